"""How published models cut text: byte-level BPE, by Hugging Face's `tokenizers`, whose ids are those of
`transformers`.

From a GGUF file's lists of tokens and merges, or from a folder's tokenizer.json. What a person types is
ordinary text here: it never becomes a special token. A program puts these in by their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from engine.errors import PretrainedError, TokenizerError
from engine.tokenizers.published import whole_characters

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Inner

MAX_TOKENS = 1_000_000
SPECIAL = 3  # ggml's type of a token that steers the model
QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, eq=False)
class ByteLevelTokenizer:
    """A byte-level vocabulary with the engine's words. `special` holds the tokens that no text becomes,
    by name.
    """

    inner: Inner = field(repr=False)
    special: Mapping[str, int] = field(repr=False)
    template: str | None = field(
        default=None, repr=False
    )  # of a chat, in Jinja; None for a model that does not chat

    @cached_property
    def tokens(self) -> tuple[bytes, ...]:
        """The bytes of every token, by id. Of a special token, its name."""
        by_id = {i: text for text, i in self.inner.get_vocab(with_added_tokens=True).items()}
        named = set(self.special.values())
        return tuple(
            by_id.get(i, "").encode() if i in named else _bytes(by_id.get(i, ""))
            for i in range(self.vocab_size)
        )

    @cached_property
    def vocab_size(self) -> int:
        """Rows that an embedding for it needs."""
        return max(self.inner.get_vocab(with_added_tokens=True).values()) + 1

    @cached_property
    def _lost(self) -> frozenset[int]:
        """Bytes that no token holds: a vocabulary that was learned from text without them lacks them."""
        single = {token[0] for token in self.tokens if len(token) == 1}
        return frozenset(range(256)) - single

    def encode(self, text: str) -> list[int]:
        """The ids of a text, all of it ordinary. What `unknown` names is left out."""
        return list(self.inner.encode(whole_characters(text)[0], add_special_tokens=False).ids)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Raises TokenizerError for an id that stands for nothing."""
        try:
            return b"".join(self.tokens[i] for i in _inside(ids, self.vocab_size))
        except IndexError:
            raise TokenizerError(f"ids lie between 0 and {self.vocab_size - 1}") from None

    def decode(self, ids: Sequence[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def unknown(self, text: str) -> list[str]:
        """Characters of a text that have a byte which no token holds, each once, in their order."""
        if not self._lost:
            return []
        return [c for c in dict.fromkeys(whole_characters(text)[0]) if self._lost & set(c.encode())]

    def chat(self, messages: Sequence[Mapping[str, str]], answer: bool = True) -> list[int]:
        """The ids of a conversation as the model was trained to read it: messages have a `role` and a
        `content`.

        With `answer`, the beginning of the model's own turn stands at the end. Names of special tokens in a
        content stay text. Raises TokenizerError for a model without a template, or one whose template refuses
        the messages.
        """
        if self.template is None:
            raise TokenizerError(
                "this model has no chat template: it continues texts and was not taught to answer"
            )
        return [
            i
            for piece, known in self._pieces(messages, answer)
            for i in ([known] if known is not None else self.encode(piece))
        ]

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
            whole = page.render(messages=shown, add_generation_prompt=answer, **self._named())
        except TemplateError as error:
            raise TokenizerError(f"the model's chat template refuses these messages: {error}") from error
        import re

        for piece in re.split(f"({'|'.join(map(re.escape, self.special))})", whole):
            if piece in self.special:
                yield piece, self.special[piece]
            elif piece:
                yield re.sub("\ue000\\d+\ue001", lambda found: marks.get(found[0], ""), piece), None

    def _named(self) -> dict[str, str]:
        ends = [name for name in self.special if "end" in name or name == "</s>"]
        return {"bos_token": next(iter(self.special), ""), "eos_token": ends[-1] if ends else ""}


def from_gguf(facts: Mapping[str, Any]) -> ByteLevelTokenizer:
    """The vocabulary in a GGUF file. Raises PretrainedError for one that is not byte-level BPE, or is
    damaged.
    """
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
    return ByteLevelTokenizer(inner, special, template if isinstance(template, str) else None)


def from_json(text: str, template: str | None = None) -> ByteLevelTokenizer:
    """A folder's tokenizer.json. Raises PretrainedError where it is damaged, or not byte-level."""
    from tokenizers import Tokenizer

    try:
        inner = Tokenizer.from_str(text)
    except Exception as error:  # the package raises nothing narrower
        raise PretrainedError(f"tokenizer.json cannot be read: {error}") from error
    if "ByteLevel" not in repr(inner.pre_tokenizer) + repr(inner.decoder):
        raise PretrainedError(
            "tokenizer.json does not hold a byte-level vocabulary, the one kind that is read here"
        )
    special = {added.content: i for i, added in inner.get_added_tokens_decoder().items() if added.special}
    inner.encode_special_tokens = True  # a name that is typed stays text
    return ByteLevelTokenizer(inner, special, template)


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
    raise PretrainedError(
        f"it cuts text into words in a way called {name!r}; known are gpt-2, smollm and qwen2"
    )


def _texts(facts: Mapping[str, Any], name: str) -> Sequence[str]:
    found = facts.get(name)
    if (
        not isinstance(found, Sequence)
        or not 0 < len(found) <= MAX_TOKENS
        or not all(isinstance(one, str) for one in found)
    ):
        raise PretrainedError(f"its {name} is no list of texts, or has more than {MAX_TOKENS:,}")
    return found


def _inside(ids: Iterable[int], count: int) -> Iterable[int]:
    for i in ids:
        if not 0 <= i < count:
            raise IndexError(i)
        yield i


def _table() -> dict[str, int]:
    """GPT-2's letters for bytes: a printable byte is itself, the 68 others stand from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(rest)}


_LETTERS = _table()
_BY_BYTE = {byte: letter for letter, byte in _LETTERS.items()}


def _bytes(token: str) -> bytes:
    r"""
    >>> _bytes("Ġthe"), _bytes("Ċ"), _bytes("Ã©")
    (b' the', b'\n', b'\xc3\xa9')
    """
    return bytes(_LETTERS[c] for c in token) if all(c in _LETTERS for c in token) else token.encode()


def letters(token: bytes) -> str:
    r"""Bytes as byte-level vocabularies write them.

    >>> letters(b" the"), letters(b"\n")
    ('Ġthe', 'Ċ')
    """
    return "".join(_BY_BYTE[byte] for byte in token)
