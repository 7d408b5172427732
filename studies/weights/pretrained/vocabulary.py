"""How published models cut text: by Hugging Face's `tokenizers`, whose ids are those of `transformers`.

From a GGUF file's lists of tokens and merges, or from a folder's tokenizer.json. A person's text is ordinary
text here: it never becomes a special token (but for T5, whose pieces hold the names of those, as they do at
`transformers`). A program puts these in by their ids.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from engine.errors import PretrainedError, TokenizerError
from studies.tokens.published import whole_characters
from studies.weights.pretrained import chat_template
from studies.weights.pretrained.pieces import BYTE_LEVEL, Writing, writing_of

if TYPE_CHECKING:
    from tokenizers import Encoding
    from tokenizers import Tokenizer as Inner

MAX_TOKENS = 1_000_000
# what published models call the end of a text or of a turn
ENDS = ("<|endoftext|>", "<|im_end|>", "</s>", "<eos>", "<end_of_turn>", "<|eot_id|>", "<|end_of_text|>")
SPECIAL, USER_DEFINED = 3, 4  # ggml's types of tokens that steer the model, and that no text is cut within
NEUTRAL = "x0q~"  # a text of a letter shows what a template writes around any
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
    name; `names` those that have a role, by it, such as `eos_token`. `unk` is the id for what no token holds.
    """

    inner: Inner = field(repr=False)
    special: Mapping[str, int] = field(repr=False)
    template: str | None = field(default=None, repr=False)  # of a chat, in Jinja; None: it does not chat
    writing: Writing = BYTE_LEVEL
    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    unk: int | None = None
    rows: int = 0  # of the embedding, where it has more than there are tokens: tables are filled up

    @cached_property
    def added(self) -> Mapping[str, int]:
        """The tokens that were added to the learned ones, and are found in a text before it is cut."""
        return {token.content: i for i, token in self.inner.get_added_tokens_decoder().items()}

    @cached_property
    def tokens(self) -> tuple[bytes, ...]:
        """The bytes of the text that every token stands for, by id. For a special token, its name; none for
        a row that has no token.
        """
        by_id = {i: text for text, i in self.inner.get_vocab(with_added_tokens=True).items()}
        plain = set(self.special.values())  # its text is itself
        if self.writing.exact:
            plain |= set(self.added.values())
        return tuple(
            by_id.get(i, "").encode() if i in plain else self.writing.bytes_of(by_id.get(i, ""))
            for i in range(max(self.vocab_size, self.rows))
        )

    @cached_property
    def vocab_size(self) -> int:
        """Rows that an embedding for it needs."""
        return max(self.inner.get_vocab(with_added_tokens=True).values()) + 1

    @cached_property
    def stops(self) -> frozenset[int]:
        """The ids of the tokens that end a text, or a turn of a conversation."""
        named = {**self.added, **self.special}
        return frozenset(named[name] for name in (*ENDS, self.names.get("eos_token", "")) if name in named)

    @cached_property
    def _lost(self) -> frozenset[int]:
        """Bytes that no token holds: a vocabulary that was learned from text without them lacks them."""
        single = {token[0] for token in self.tokens if len(token) == 1}
        return frozenset(range(256)) - single

    def encode(self, text: str) -> list[int]:
        """Returns the ids of an ordinary text; what `unknown` names is left out or one token. Raises
        TokenizerError for a text that the vocabulary cannot cut.
        """
        return list(_cut(self.inner, whole_characters(text)[0]).ids)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Raises TokenizerError for an id that stands for nothing."""
        ids = list(ids)
        if not all(0 <= i < len(self.tokens) for i in ids):
            raise TokenizerError(f"ids lie between 0 and {len(self.tokens) - 1}")
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
            return [c for c in each if self.unk is not None and self.unk in self.encode(c)]
        return [c for c in each if self._lost & set(c.encode())] if self._lost else []

    @property
    def unknown_token(self) -> str:
        """Returns the name of the token for what no other holds; empty where there is none."""
        return "" if self.unk is None else self.inner.id_to_token(self.unk) or ""

    def unread(self, text: str) -> list[str]:
        """Returns the pieces of a text that become the unknown token, once, in order."""
        text = whole_characters(text)[0]
        if self.unk is None or self.writing.exact:
            return []
        cut = _cut(self.inner, text)
        pieces = (text[slice(*cut.offsets[n])].strip() for n, i in enumerate(cut.ids) if i == self.unk)
        return list(dict.fromkeys(piece for piece in pieces if piece))

    def chat(self, messages: Sequence[Mapping[str, str]], answer: bool = True) -> list[int]:
        """Returns the ids of a conversation as the model was trained to read it: messages have a `role` and a
        `content`.

        With `answer`, the beginning of the model's own turn stands at the end. Names of special tokens in a
        content stay text. Raises TokenizerError for a model without a template, or one whose template refuses
        the messages.
        """
        return self._conversation(messages, answer)[0]

    def user_turn(self, text: str) -> Conversation:
        """Wraps a text as the first turn, with the beginning of the model's answer behind it, as `chat`."""
        ids, control = self._conversation([{"role": "user", "content": text}], True)
        neutral = next((c for c in NEUTRAL if c not in text), NEUTRAL[0])
        try:
            other, _ = self._conversation([{"role": "user", "content": neutral}], True)
        except TokenizerError:  # it takes not every text
            own = min(len(self.encode(text)), len(ids))
        else:
            before = _alike(ids, other)
            own = len(ids) - before - min(_alike(ids[::-1], other[::-1]), len(ids) - before)
        return Conversation(tuple(ids), own, sum(i in control for i in ids))

    def _conversation(
        self, messages: Sequence[Mapping[str, str]], answer: bool
    ) -> tuple[list[int], set[int]]:
        """Returns the ids, and those of the tokens that steer the model. The text is rendered as it is, and
        cut once, as transformers does it.

        Where a person typed the name of such a token, its first character stands in the template as another
        one, which no text holds: so the template's own are told from it, and it is cut as ordinary text.
        """
        if self.template is None:
            raise TokenizerError(
                "this model has no chat template: it continues texts and was not taught to answer"
            )
        said = [{**m, "content": whole_characters(m["content"])[0]} for m in messages]
        control = self._control(self.template, said, answer)
        guards = _Guards(control, "".join([self.template, *(m["content"] for m in said)]))
        guarded = [{**m, "content": guards.put(m["content"])} for m in said]
        ((text,), _) = chat_template.rendered(self.template, [guarded], answer, self.names)
        steering = {self._named[name] for name in control}
        if not guards.used:
            ids = list(_cut(self._cutting[0], text).ids)
            if sum(i in steering for i in ids) <= len(
                re.findall("|".join(map(re.escape, control)) or "(?!)", text)
            ):
                return ids, steering
        return self._cut_around(text, guards), steering

    @cached_property
    def _named(self) -> Mapping[str, int]:
        return {**self.added, **self.special}

    def _control(self, template: str, messages: Sequence[Mapping[str, str]], answer: bool) -> list[str]:
        """The names that no typed text may become: special tokens, and added ones that have a role, or that
        the template writes; longest first. Blanks are none: Gemma has a token for a line break.
        """
        blank = [{**m, "content": NEUTRAL[0]} for m in messages]
        try:
            ((text,), literals) = chat_template.rendered(template, [blank], answer, self.names)
        except TokenizerError:  # it wants another content: whatever it could write then
            text, literals = "\0".join(self.added), ""
        roles = {*ENDS, *self.names.values()}
        own = {name for name in self.added if name in roles or name in text or name in literals}
        own = {name for name in own if not name.isspace()}
        return sorted(own | self.special.keys(), key=len, reverse=True)

    @cached_property
    def _cutting(self) -> tuple[Inner, Inner, Mapping[str, str], Mapping[int | None, int]]:
        """(one that knows all names, one that knows each by another, which nobody can type; name -> that
        other; ids there -> ids). Both share the learned tokens with `inner`.
        """
        from tokenizers import AddedToken, Tokenizer

        knowing, aliased, secret = (
            Tokenizer(self.inner.model),
            Tokenizer(self.inner.model),
            secrets.token_hex(8),
        )
        aliases: dict[str, str] = {}
        for each in (knowing, aliased):
            if self.inner.normalizer is not None:
                each.normalizer = self.inner.normalizer
            if self.inner.pre_tokenizer is not None:
                each.pre_tokenizer = self.inner.pre_tokenizer
        for _, token in sorted(self.inner.get_added_tokens_decoder().items()):
            (knowing.add_special_tokens if token.special else knowing.add_tokens)([token])
            aliases[token.content] = f"\uf8ff{secret}{len(aliases):06d}\uf8ff"
            strips = {"lstrip": token.lstrip, "rstrip": token.rstrip}
            aliased.add_special_tokens([AddedToken(aliases[token.content], normalized=False, **strips)])
        back = {aliased.token_to_id(alias): self._named[name] for name, alias in aliases.items()}
        return knowing, aliased, aliases, back

    def _cut_around(self, text: str, guards: _Guards) -> list[int]:
        """The ids of a text in which people wrote names of tokens, which are no tokens there."""
        _, aliased, aliases, back = self._cutting
        words = {t.content for t in self.inner.get_added_tokens_decoder().values() if t.single_word}
        each = [
            rf"(?<!\w){re.escape(name)}(?!\w)" if name in words else re.escape(name)
            for name in sorted(aliases, key=len, reverse=True)
        ]
        text = guards.taken_off(re.sub("|".join(each) or "(?!)", lambda found: aliases[found[0]], text))
        return [back.get(i, i) for i in _cut(aliased, text).ids]


def _cut(inner: Inner, text: str) -> Encoding:
    """Cuts a text. Raises TokenizerError where the vocabulary has no token for a part of it."""
    try:
        return inner.encode(text, add_special_tokens=False)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except (
        BaseException
    ) as error:  # the package raises nothing narrower, and a Rust panic is not an Exception
        raise TokenizerError(f"this model's vocabulary cannot cut this text: {error}") from error


class _Guards:
    """Characters that stand for others where a person wrote a name of `control`, or half of one at an end,
    which the template could make whole.
    """

    def __init__(self, control: Sequence[str], texts: str) -> None:
        self._control = control
        self._free = (c for c in map(chr, range(0xE000, 0xF8FF)) if c not in texts)
        self.used: dict[str, str] = {}  # what a character stands as

    def put(self, content: str) -> str:
        result = list(content)
        for i in self._places(content):
            if content[i] not in self.used:
                self.used[content[i]] = next(self._free)
            result[i] = self.used[content[i]]
        return "".join(result)

    def _places(self, content: str) -> set[int]:
        result: set[int] = set()
        begins = {0, len(content) - len(content.lstrip())}
        ends = {len(content), len(content.rstrip())}
        for name in self._control:
            result |= {found.start() for found in re.finditer(f"(?={re.escape(name)})", content)}
            for length in range(2, len(name)):
                result |= {at - length for at in ends if content.endswith(name[:length], 0, at)}
                result |= {at + length - 1 for at in begins if content.startswith(name[-length:], at)}
        return result

    def taken_off(self, text: str) -> str:
        return text.translate({ord(stands): c for c, stands in self.used.items()})


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    """How many ids both begin with."""
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def from_gguf(facts: Mapping[str, Any]) -> PretrainedTokenizer:
    """Reads a GGUF file's vocabulary. Raises PretrainedError if damaged, or not byte-level BPE."""
    from tokenizers import AddedToken, Tokenizer, decoders, models

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
    for token, kind in zip(tokens, kinds, strict=True):
        if kind in (SPECIAL, USER_DEFINED) and token:
            add = inner.add_special_tokens if kind == SPECIAL else inner.add_tokens
            add([AddedToken(token, normalized=False)])
    special = {token: i for i, (token, kind) in enumerate(zip(tokens, kinds, strict=True)) if kind == SPECIAL}
    inner.encode_special_tokens = True  # a name that is typed stays text
    template = facts.get("tokenizer.chat_template")
    roles = {
        "bos": "bos",
        "eos": "eos",
        "unk": "unknown",
        "pad": "padding",
        "sep": "seperator",
    }  # as it is spelled
    named = {f"{role}_token": _token_at(facts, tokens, called) for role, called in roles.items()}
    return PretrainedTokenizer(
        inner,
        special,
        template if isinstance(template, str) else None,
        BYTE_LEVEL,
        {role: token for role, token in named.items() if token},
    )


def _token_at(facts: Mapping[str, Any], tokens: Sequence[str], role: str) -> str:
    place = facts.get(f"tokenizer.ggml.{role}_token_id")
    return tokens[place] if isinstance(place, int) and 0 <= place < len(tokens) else ""


def from_json(
    text: str, template: str | None = None, names: Mapping[str, str] | None = None
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
    writing = writing_of(inner)
    return PretrainedTokenizer(inner, special, template, writing, names or {}, _unknown_id(inner, text))


def _unknown_id(inner: Inner, text: str) -> int | None:
    """The id of the token for what no other holds; None for a vocabulary without one."""
    if type(inner.model).__name__ == "Unigram":  # the package does not tell it
        result: int | None = json.loads(text)["model"].get("unk_id")
        return result
    name = getattr(inner.model, "unk_token", None)
    return None if name is None else inner.token_to_id(name)


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
