"""A text as a person's turn: what the template puts around it, and where an answer ends."""

from __future__ import annotations

import pytest

from engine.errors import TokenizerError
from engine.pretrained.conversation import asked
from engine.pretrained.vocabulary import PretrainedTokenizer
from engine.tokenizers import ends

tokenizers = pytest.importorskip("tokenizers")

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}<|im_start|>"
)


def made(template: str | None) -> PretrainedTokenizer:
    names = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    letters = [chr(c) for c in range(33, 127)] + ["Ġ"]
    inner = tokenizers.Tokenizer(
        tokenizers.models.BPE({token: i for i, token in enumerate((*names, *letters))}, [])
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return PretrainedTokenizer(inner, {name: i for i, name in enumerate(names)}, template)


def test_what_stands_around_a_text_is_counted():
    found = asked(made(TEMPLATE), "Hi <|im_end|>")
    # three special tokens and "user: ", a token for each letter; the typed name stays 10 letters
    assert (found.own, found.special, found.around) == (13, 3, 3 + len("user: "))
    assert made(TEMPLATE).decode(list(found.ids)) == "<|im_start|>user: Hi <|im_end|><|im_end|><|im_start|>"


def test_without_a_template_there_is_no_conversation():
    with pytest.raises(TokenizerError, match="no chat template"):
        asked(made(None), "Hi")


def test_the_tokens_that_end_a_text_are_known_by_their_names():
    assert ends(made(None)) == {0, 2}
