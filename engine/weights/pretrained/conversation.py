"""A text as a person's turn in a conversation: what a chat template puts around it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.weights.pretrained.vocabulary import PretrainedTokenizer


@dataclass(frozen=True)
class Conversation:
    """The ids that the model reads; how many of them are the text's, and how many of the others are special
    tokens, which no typed text becomes.
    """

    ids: tuple[int, ...]
    text_tokens: int
    special: int

    @property
    def around(self) -> int:
        """Tokens that the template put around the text."""
        return len(self.ids) - self.text_tokens


def user_turn(tokenizer: PretrainedTokenizer, text: str) -> Conversation:
    """Wraps a text as the first turn, with the beginning of the model's answer behind it. Raises
    TokenizerError for a model without a chat template.
    """
    ids = tuple(tokenizer.chat([{"role": "user", "content": text}]))
    named = frozenset(tokenizer.special.values())
    return Conversation(ids, len(tokenizer.encode(text)), sum(i in named for i in ids))
