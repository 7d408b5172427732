"""Byte-pair encoding, learned and watched (Sennrich et al. 2016; bytes: Radford et al. 2019)."""

from __future__ import annotations

import heapq
import re
import reprlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
import regex  # type: ignore[import-untyped]

from engine.data.progress import Progress, Steps, finish
from engine.errors import TokenizerError

if TYPE_CHECKING:
    import tiktoken

Level = Literal["byte", "char"]
Split = Literal["words", "none"]

# GPT-2's: contractions, words with the space before them, numbers, other signs, blanks. No merge crosses a
# border.
WORDS = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
# The same for a text of ASCII alone, in half the time.
ASCII_WORDS = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+| ?\d+| ?[^\sA-Za-z\d]+|\s+(?!\S)|\s+", re.ASCII)
PROGRESS_EVERY = 8  # merges between two chances to stop
# GPT-2's order of the 256 bytes: the printable ones first. It matters for ties alone.
_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
BYTES = [bytes([b]) for b in [*_PRINTABLE, *sorted(set(range(256)) - set(_PRINTABLE))]]
MAX_COUNT = 2**53  # of anything that a file counts: exact as a float
MAX_TOKEN_BYTES = 16 << 20  # of all tokens of a tokenizer read from a file
BORDER = -1  # in place of a symbol: behind a piece, and where one was merged into its left neighbour
KEPT_PIECES = 100_000  # whose ids are remembered


@dataclass(frozen=True)
class Merge:
    """One step of training: the pair of ids that stood side by side most often became the token `token`."""

    rank: int  # counted from 0
    pair: tuple[int, int]
    token: int
    count: int  # times the pair stood there, overlaps included
    length: int  # tokens of the training text after the merge


@dataclass(frozen=True)
class BpeTokenizer:
    """`base` holds the starting symbols (bytes or characters), by id; each merge may add one more token.

    Text becomes ids by merging the neighbours that make the token of the lowest id, as tiktoken does.
    """

    level: Level
    split: Split
    base: tuple[bytes, ...]  # a character stands as its UTF-8
    merges: tuple[Merge, ...] = field(repr=False)

    @cached_property
    def tokens(self) -> list[bytes]:
        """The bytes of every token, by id."""
        tokens = list(self.base)
        for merge in self.merges:
            made = tokens[merge.pair[0]] + tokens[merge.pair[1]]
            if merge.token == len(tokens):
                tokens.append(made)
        return tokens

    @property
    def vocab_size(self) -> int:
        return len(self.tokens)

    @cached_property
    def ranks(self) -> dict[bytes, int]:
        """Ids by token."""
        return {token: i for i, token in enumerate(self.tokens)}

    @cached_property
    def _known(self) -> dict[str, tuple[int, ...]]:
        return {}

    def unknown(self, text: str) -> list[str]:
        """Returns the characters of a text that cannot be encoded, each once; none at byte level."""
        return [] if self.level == "byte" else [c for c in dict.fromkeys(text) if _utf8(c) not in self.ranks]

    def encode(self, text: str) -> list[int]:
        """Encodes a text. Raises TokenizerError naming the characters that the alphabet lacks."""
        ids: list[int] = []
        for piece in pieces(text, self.split):
            symbols = self._known.get(piece)
            if symbols is None:
                symbols = tuple(self._merge(self._symbols(piece)))
                if len(self._known) < KEPT_PIECES and len(piece) < 100:
                    self._known[piece] = symbols
            ids += symbols
        return ids

    def encode_array(self, text: str) -> np.ndarray:
        """Encodes a text as an array (token,) of int64; bytes without merges by a table, a hundred times
        faster.
        """
        if self == UNMERGED:
            table = np.array([self.ranks[BYTE[b]] for b in range(256)])
            ids: np.ndarray = table[np.frombuffer(_utf8(text), np.uint8)]
            return ids
        return np.array(self.encode(text), dtype=np.int64)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the bytes of ids. Raises TokenizerError for an id outside the vocabulary."""
        tokens = self.tokens
        try:
            # A negative id would count from the end: it is made one that does not exist.
            return b"".join([tokens[i] if i >= 0 else tokens[len(tokens)] for i in ids])
        except IndexError:
            raise TokenizerError(f"ids must lie between 0 and {self.vocab_size - 1}") from None

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids, incomplete characters as replacement signs. Raises as `decode_bytes`."""
        data = self.decode_bytes(ids)
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace")

    def to_dict(self) -> dict[str, Any]:
        base = (
            None if self.level == "byte" else "".join(b.decode("utf-8", "surrogatepass") for b in self.base)
        )
        merges = [[*m.pair, m.count, m.length] for m in self.merges]
        return {"kind": "bpe", "level": self.level, "split": self.split, "base": base, "merges": merges}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BpeTokenizer:
        """Reads what `to_dict` gave. Raises TokenizerError for anything else."""
        level, split, base, rows = (values.get(name) for name in ("level", "split", "base", "merges"))
        if level not in get_args(Level) or split not in get_args(Split) or not isinstance(rows, list):
            raise TokenizerError("a bpe tokenizer needs its level, its split and its merges")
        if level == "char" and (not isinstance(base, str) or not base or len(set(base)) != len(base)):
            raise TokenizerError("a character-level bpe tokenizer needs its alphabet, each character once")
        start = BYTES if level == "byte" else [_utf8(c) for c in str(base)]
        known, merges = {token: i for i, token in enumerate(start)}, []
        tokens, size = list(start), 0
        for rank, row in enumerate(rows):
            plain = (
                isinstance(row, list)
                and len(row) == 4
                and all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= MAX_COUNT for n in row)
            )
            if not plain or max(row[:2]) >= len(tokens):
                raise TokenizerError(
                    f"merge {rank} must be two earlier ids, a count and a length, not {reprlib.repr(row)}"
                )
            size += len(tokens[row[0]]) + len(tokens[row[1]])
            if (
                size > MAX_TOKEN_BYTES
            ):  # a short file can ask for endless tokens: each merge may double the last
                raise TokenizerError(f"its tokens are longer than {MAX_TOKEN_BYTES >> 20} MB together")
            made = tokens[row[0]] + tokens[row[1]]
            if made not in known:
                known[made] = len(tokens)
                tokens.append(made)
            merges.append(Merge(rank, (row[0], row[1]), known[made], row[2], row[3]))
        return cls(cast(Level, level), cast(Split, split), tuple(start), tuple(merges))

    def as_tiktoken(self) -> tiktoken.Encoding:
        """Returns the same tokenizer as a tiktoken.Encoding. Raises TokenizerError at character level."""
        import tiktoken

        if self.level != "byte":
            raise TokenizerError("tiktoken starts from bytes: only a byte-level tokenizer can be handed over")
        pattern = WORDS if self.split == "words" else r"(?s:.+)"
        return tiktoken.Encoding(
            "glassformer", pat_str=pattern, mergeable_ranks=dict(self.ranks), special_tokens={}
        )

    def _symbols(self, piece: str) -> list[bytes]:
        if self.level == "byte":
            return [BYTE[b] for b in _utf8(piece)]
        if unknown := self.unknown(piece):
            raise TokenizerError(
                f"this tokenizer's alphabet of {len(self.base)} characters lacks"
                f" {' '.join(map(repr, unknown[:8]))}"
            )
        return [_utf8(c) for c in piece]

    def _merge(self, symbols: list[bytes]) -> list[int]:
        """Ids of one piece. A heap of possible merges over a linked list: n log n in its length."""
        ranks, count = self.ranks, len(symbols)
        following, before, alive = list(range(1, count + 1)), list(range(-1, count - 1)), [True] * count
        heap = [
            (ranks[made], i, len(made))
            for i in range(count - 1)
            if (made := symbols[i] + symbols[i + 1]) in ranks
        ]
        heapq.heapify(heap)
        while heap:
            _, i, size = heapq.heappop(heap)
            j = following[i]
            if not alive[i] or j >= count or len(symbols[i]) + len(symbols[j]) != size:
                continue  # one of the two has merged with another meanwhile
            symbols[i] += symbols[j]
            alive[j] = False
            following[i] = k = following[j]
            if k < count:
                before[k] = i
            for a, b in ((before[i], i), (i, k)):
                if a >= 0 and b < count and (made := symbols[a] + symbols[b]) in ranks:
                    heapq.heappush(heap, (ranks[made], a, len(made)))
        return [ranks[symbol] for symbol, stays in zip(symbols, alive, strict=True) if stays]


BYTE = {token[0]: token for token in BYTES}
UNMERGED = BpeTokenizer("byte", "words", tuple(BYTES), ())  # each byte is a token


def pieces(text: str, split: Split) -> list[str]:
    """Splits a text into the parts that are encoded by themselves; together they are the text."""
    if split == "words":
        return (ASCII_WORDS if text.isascii() else _pattern()).findall(text)
    return [text] if text else []


@cache
def _pattern() -> Any:
    return regex.compile(WORDS)


def train(text: str, vocab_size: int, *, level: Level = "byte", split: Split = "words") -> BpeTokenizer:
    """Runs `learning` to its end and returns the tokenizer."""
    return finish(learning(text, vocab_size, level=level, split=split))


def learning(
    text: str, vocab_size: int, *, level: Level = "byte", split: Split = "words"
) -> Steps[BpeTokenizer]:
    """Learns merges until there are `vocab_size` tokens, or until no pair of tokens is left.

    The most frequent pair is merged; of equals, the one with the smaller first id, then the smaller second
    (as Hugging Face's trainer decides). A merge whose bytes are a token already gets that token's id. Raises
    TokenizerError for a text without characters and for a vocabulary smaller than its starting symbols.
    """
    wanted = merges_wanted(text, vocab_size, level)
    yield Progress(0, wanted)
    return (yield from Trainer(text, level, split).learning(wanted))


def merges_wanted(text: str, vocab_size: int, level: Level) -> int:
    """Returns how many merges make `vocab_size` tokens of a text. Raises as `learning`."""
    start = len(starting_symbols(text, level))
    if vocab_size < start:
        raise TokenizerError(
            f"a vocabulary of {vocab_size} is smaller than the {start} {level}s to start from"
        )
    return vocab_size - start


def starting_symbols(text: str, level: Level) -> tuple[bytes, ...]:
    """Returns the 256 bytes, or a text's characters, sorted. Raises TokenizerError where there are none."""
    if level not in get_args(Level):
        raise TokenizerError(f"level must be one of {get_args(Level)}")
    if not text:
        raise TokenizerError("there is no text to learn merges from")
    return tuple(BYTES) if level == "byte" else tuple(_utf8(c) for c in sorted(set(text)))


class Trainer:
    """All distinct pieces in one linked list of symbols, each with the number of times its piece occurs, and
    with BORDER behind each.

    Counts of pairs are kept up to date merge by merge: only places where the merged pair stood are visited.
    """

    def __init__(self, text: str, level: Level, split: Split) -> None:
        if split not in get_args(Split):
            raise TokenizerError(f"split must be one of {get_args(Split)}")
        self.level, self.split, self.base = level, split, starting_symbols(text, level)
        self.tokens = list(self.base)
        ids = {token: i for i, token in enumerate(self.base)}
        id_of_byte = bytes(ids[BYTE[b]] for b in range(256)) if level == "byte" else b""
        counted = Counter(pieces(text, split))
        self.symbols: list[int] = []
        self.weight: list[int] = []
        for piece, times in counted.items():
            self.symbols += (
                _utf8(piece).translate(id_of_byte) if id_of_byte else [ids[_utf8(c)] for c in piece]
            )
            self.symbols.append(BORDER)
            self.weight += [times] * (len(self.symbols) - len(self.weight))
        self.length = sum(self.weight) - counted.total()  # without the borders
        size = len(self.symbols)
        self.following, self.before = list(range(1, size + 1)), list(range(-1, size - 1))
        self.runners_up: list[tuple[tuple[tuple[int, int], int], ...]] = []
        self.places: dict[tuple[int, int], list[int]] = defaultdict(list)
        for i, pair in enumerate(pairwise(self.symbols)):
            self.places[pair].append(i)
        self.counts: dict[tuple[int, int], int] = defaultdict(int)
        for pair, where in self.places.items():
            if BORDER not in pair:
                self.counts[pair] = sum(map(self.weight.__getitem__, where))

    def learning(self, wanted: int, keep: int = 0) -> Steps[BpeTokenizer]:
        """Learns at most `wanted` merges, with a progress now and then; `keep` as in `merges`."""
        merges: list[Merge] = []
        for merge in self.merges(len(self.base) + wanted, keep):
            merges.append(merge)
            if merge.rank % PROGRESS_EVERY == 0:
                yield Progress(merge.rank, wanted)
        return BpeTokenizer(self.level, self.split, self.base, tuple(merges))

    def merges(self, vocab_size: int, keep: int = 0) -> Iterable[Merge]:
        """Yields the merges, best first; `runners_up` gets the `keep` pairs that came next, with counts."""
        known = {token: i for i, token in enumerate(self.tokens)}
        heap = [(-count, pair) for pair, count in self.counts.items()]
        heapq.heapify(heap)
        rank = 0
        while heap and len(self.tokens) < vocab_size:
            negative, pair = heapq.heappop(heap)
            count = self.counts[pair]
            if count != -negative:
                continue  # it has changed since, and stands in the heap anew
            if count < 1:
                return
            if keep:
                self.runners_up.append(self._next(heap, pair, keep))
            made = self.tokens[pair[0]] + self.tokens[pair[1]]
            token = known.setdefault(made, len(self.tokens))
            if token == len(self.tokens):
                self.tokens.append(made)
            for changed in self._apply(pair, token):
                if (now := self.counts[changed]) > 0:
                    heapq.heappush(heap, (-now, changed))
            yield Merge(rank, pair, token, count, self.length)
            rank += 1

    def _next(
        self, heap: list[tuple[int, tuple[int, int]]], winner: tuple[int, int], keep: int
    ) -> tuple[tuple[tuple[int, int], int], ...]:
        """The best pairs but the winner: (pair, count). Outdated entries before them leave the heap."""
        best: list[tuple[int, tuple[int, int]]] = []
        while heap and len(best) < keep:
            entry = heapq.heappop(heap)
            if entry[0] == -self.counts[entry[1]] < 0 and entry[1] != winner and entry not in best[-1:]:
                best.append(entry)
        for entry in best:
            heapq.heappush(heap, entry)
        return tuple((pair, -negative) for negative, pair in best)

    def _apply(self, pair: tuple[int, int], token: int) -> set[tuple[int, int]]:
        """Merges the pair wherever it stands, left to right. Returns the pairs whose count has changed."""
        first, second = pair
        symbols, following, before = self.symbols, self.following, self.before
        # Neighbour -> where its pairs with the new token begin: what stood there is counted at once.
        lefts: dict[int, list[int]] = defaultdict(list)
        rights: dict[int, list[int]] = defaultdict(list)
        for i in sorted(self.places.pop(pair, ())):
            j = following[i]
            if symbols[i] != first or symbols[j] != second:
                continue  # one of the two was taken by a neighbour
            left, right = before[i], following[j]
            lefts[symbols[left]].append(left)
            rights[symbols[right]].append(i)
            symbols[i], symbols[j], following[i], before[right] = token, BORDER, right, i
        changed = {pair}
        for left, where in lefts.items():
            self._replace((left, first), (left, token), where, changed)
        for right, where in rights.items():
            times = self._replace((second, right), (token, right), where, changed)
            self.counts[pair] -= times
            self.length -= times
        return changed

    def _replace(
        self, old: tuple[int, int], new: tuple[int, int], where: list[int], changed: set[tuple[int, int]]
    ) -> int:
        """Counts `new` in place of `old` at the symbols where they begin, unless BORDER is one of the two.
        Returns how many times those symbols stand in the text.
        """
        times = sum(map(self.weight.__getitem__, where))
        if BORDER not in new:
            self.counts[old] -= times
            self.counts[new] += times
            self.places[new] += where
            changed.add(old)
            changed.add(new)
        return times


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
