"""How published models cut text: by Hugging Face's `tokenizers`, whose ids are those of `transformers`.

From a GGUF file's lists of tokens and merges, or from a folder's tokenizer.json. A person's text is ordinary
text here: it never becomes a special token (but for T5, whose pieces hold the names of those, as they do at
`transformers`). A program puts these in by their ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from engine.data.tokenizers.published import whole_characters
from engine.errors import PretrainedError, TokenizerError
from engine.weights.pretrained.pieces import BYTE_LEVEL, Writing, writing_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Inner

MAX_TOKENS = 1_000_000
# what published models call the end of a text or of a turn
ENDS = ("<|endoftext|>", "<|im_end|>", "</s>", "<eos>", "<end_of_turn>", "<|eot_id|>", "<|end_of_text|>")
SPECIAL = 3  # ggml's type of a token that steers the model
QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Conversation:
    """A text as a person's turn: the ids that the model reads; how many are the text's, and how many of the
    others are special tokens, which no typed text becomes.
    """

    ids: tuple[int, ...]
    text_tokens: int
    special: int

    @property
    def around(self) -> int:
        """Tokens that the chat template put around the text."""
        return len(self.ids) - self.text_tokens


@dataclass(frozen=True, eq=False)
class PretrainedTokenizer:
    """A published vocabulary with the engine's words. `special` holds the tokens that no text becomes, by
    name; `begins` and `ends` are the names of those that stand around a text in a chat template.
    """

    inner: Inner = field(repr=False)
    special: Mapping[str, int] = field(repr=False)
    template: str | None = field(default=None, repr=False)  # of a chat, in Jinja; None: it does not chat
    writing: Writing = BYTE_LEVEL
    begins: str = ""
    ends: str = ""

    @cached_property
    def tokens(self) -> tuple[bytes, ...]:
        """The bytes of the text that every token stands for, by id. For a special token, its name."""
        by_id = {i: text for text, i in self.inner.get_vocab(with_added_tokens=True).items()}
        named = set(self.special.values())
        return tuple(
            by_id.get(i, "").encode() if i in named else self.writing.bytes_of(by_id.get(i, ""))
            for i in range(self.vocab_size)
        )

    @cached_property
    def vocab_size(self) -> int:
        """Rows that an embedding for it needs."""
        return max(self.inner.get_vocab(with_added_tokens=True).values()) + 1

    @cached_property
    def stops(self) -> frozenset[int]:
        """The ids of the special tokens that end a text, or a turn of a conversation."""
        return frozenset(self.special[name] for name in (*ENDS, self.ends) if name in self.special)

    @cached_property
    def _lost(self) -> frozenset[int]:
        """Bytes that no token holds: a vocabulary that was learned from text without them lacks them."""
        single = {token[0] for token in self.tokens if len(token) == 1}
        return frozenset(range(256)) - single

    def encode(self, text: str) -> list[int]:
        """Returns the ids of an ordinary text; what `unknown` names is left out or one token."""
        return list(self.inner.encode(whole_characters(text)[0], add_special_tokens=False).ids)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Raises TokenizerError for an id that stands for nothing."""
        ids = list(ids)
        if not all(0 <= i < self.vocab_size for i in ids):
            raise TokenizerError(f"ids lie between 0 and {self.vocab_size - 1}")
        return b"".join(self.tokens[i] for i in ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Returns a text, without what the vocabulary drops. Raises as `decode_bytes`."""
        whole = self.decode_bytes(ids)
        if self.writing.exact:
            return whole.decode("utf-8", "replace")
        return str(self.inner.decode(list(ids), skip_special_tokens=False))

    def unknown(self, text: str) -> list[str]:
        """Returns a text's characters that no token holds (or not all of their bytes), once, in order."""
        each = dict.fromkeys(whole_characters(text)[0])
        if not self.writing.exact:
            name = getattr(self.inner.model, "unk_token", None) or "<unk>"
            lost = self.inner.token_to_id(name)
            return [c for c in each if lost is not None and lost in self.encode(c)]
        return [c for c in each if self._lost & set(c.encode())] if self._lost else []

    def chat(self, messages: Sequence[Mapping[str, str]], answer: bool = True) -> list[int]:
        """Returns the ids of a conversation as the model was trained to read it: messages have a `role` and a
        `content`.

        With `answer`, the beginning of the model's own turn stands at the end. Names of special tokens in a
        content stay text. Raises TokenizerError for a model without a template, or one whose template refuses
        the messages.
        """
        if self.template is None:
            raise TokenizerError(
                "this model has no chat template: it continues texts and was not taught to answer"
            )
        pieces = self._pieces(messages, answer)
        return [i for text, known in pieces for i in (self.encode(text) if known is None else [known])]

    def _pieces(
        self, messages: Sequence[Mapping[str, str]], answer: bool
    ) -> Iterable[tuple[str, int | None]]:
        """The rendered conversation, cut at the special tokens that the *template* wrote."""
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        # What people wrote stands in the template as a mark that no text can hold, and comes back afterwards.
        marks = {f"\ue000{i}\ue001": m["content"] for i, m in enumerate(messages)}
        shown = [{"role": m["role"], "content": mark} for m, mark in zip(messages, marks, strict=True)]
        try:
            page = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(
                self.template or ""
            )
            whole = page.render(
                messages=shown, add_generation_prompt=answer, bos_token=self.begins, eos_token=self.ends
            )
        except TemplateError as error:
            raise TokenizerError(f"the model's chat template refuses these messages: {error}") from error
        for piece in re.split(f"({'|'.join(map(re.escape, self.special))})", whole):
            if piece in self.special:
                yield piece, self.special[piece]
            elif piece:
                yield re.sub("\ue000\\d+\ue001", lambda found: marks.get(found[0], ""), piece), None

    def user_turn(self, text: str) -> Conversation:
        """Wraps a text as the first turn, with the beginning of the model's answer behind it, as `chat`."""
        ids, named = self.chat([{"role": "user", "content": text}]), set(self.special.values())
        return Conversation(tuple(ids), len(self.encode(text)), sum(i in named for i in ids))


def from_gguf(facts: Mapping[str, Any]) -> PretrainedTokenizer:
    """Reads a GGUF file's vocabulary. Raises PretrainedError if damaged, or not byte-level BPE."""
    from tokenizers import Tokenizer, decoders, models

    if facts.get("tokenizer.ggml.model") != "gpt2":
        raise PretrainedError(
            f"its vocabulary is {facts.get('tokenizer.ggml.model')!r}; byte-level BPE (gpt2) is read"
        )
    tokens, merges = _texts(facts, "tokenizer.ggml.tokens"), _texts(facts, "tokenizer.ggml.merges")
    kinds = facts.get("tokenizer.ggml.token_type", (1,) * len(tokens))
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    known = {token: i for i, token in enumerate(tokens)}
    if len(known) != len(tokens) or len(kinds) != len(tokens):
        raise PretrainedError("its lists of tokens, their types and merges do not fit together")
    if odd := next((pair for pair in pairs if not {*pair, "".join(pair)} <= known.keys()), None):
        raise PretrainedError(f"its merge of {odd[0]!r} and {odd[1]!r} is not made of its tokens")
    inner = Tokenizer(models.BPE(known, pairs))
    inner.pre_tokenizer = _before(str(facts.get("tokenizer.ggml.pre", "gpt-2")))
    inner.decoder = decoders.ByteLevel()
    special = {token: i for i, (token, kind) in enumerate(zip(tokens, kinds, strict=True)) if kind == SPECIAL}
    template = facts.get("tokenizer.chat_template")
    begins, ends = (_token_at(facts, tokens, f"tokenizer.ggml.{end}_token_id") for end in ("bos", "eos"))
    return PretrainedTokenizer(
        inner, special, template if isinstance(template, str) else None, BYTE_LEVEL, begins, ends
    )


def _token_at(facts: Mapping[str, Any], tokens: Sequence[str], name: str) -> str:
    place = facts.get(name)
    return tokens[place] if isinstance(place, int) and 0 <= place < len(tokens) else ""


def from_json(
    text: str, template: str | None = None, begins: str = "", ends: str = ""
) -> PretrainedTokenizer:
    """Reads a tokenizer.json. Raises PretrainedError where it is damaged or of another kind."""
    from tokenizers import Tokenizer

    try:
        inner = Tokenizer.from_str(text)
    except Exception as error:  # the package raises nothing narrower
        raise PretrainedError(f"tokenizer.json cannot be read: {error}") from error
    special = {added.content: i for i, added in inner.get_added_tokens_decoder().items() if added.special}
    inner.encode_special_tokens = True  # a name that is typed stays text
    inner.no_padding()
    inner.no_truncation()
    return PretrainedTokenizer(inner, special, template, writing_of(inner), begins, ends)


def _before(name: str) -> Any:
    """How text is cut into words first, by ggml's name for it. Raises PretrainedError."""
    from tokenizers import Regex, pre_tokenizers

    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if name in ("gpt-2", "gpt2"):
        return level
    if name == "smollm":  # every digit by itself
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), level])
    if name == "qwen2":
        cut = pre_tokenizers.Split(Regex(QWEN), "isolated")
        plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return pre_tokenizers.Sequence([cut, plain])
    raise PretrainedError(f"its pre-tokenizer is {name!r}; supported are gpt-2, smollm and qwen2")


def _texts(facts: Mapping[str, Any], name: str) -> Sequence[str]:
    result = facts.get(name)
    if (
        not isinstance(result, Sequence)
        or not 0 < len(result) <= MAX_TOKENS
        or not all(isinstance(each, str) for each in result)
    ):
        raise PretrainedError(f"its {name} is not a list of texts, or has more than {MAX_TOKENS:,}")
    return result
