"""The token embedding seen as a table of vectors: the lookup, its principal axes, who is near whom, and
whether classes of tokens find each other.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F

from engine.errors import ShapeError
from engine.measure.recording import Recording
from engine.model import Transformer
from engine.tokenizers import Tokenizer

STRATUM = 8  # tokens of neighbouring frequency that exchange their labels in the stricter baseline


# The lookup -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Lookup:
    """From ids to what the first block reads. The two differences are the largest over all entries, in
    absolute value.
    """

    ids: tuple[int, ...]
    rows: np.ndarray = field(repr=False)  # (query, d_model): E[ids]
    added: np.ndarray | None = field(
        repr=False
    )  # (query, d_model): the position vectors, where the scheme adds any here
    entered: np.ndarray = field(repr=False)  # (query, d_model): what the first block reads
    one_hot_difference: float  # between the rows and one_hot(ids) @ E
    sum_difference: float  # between `entered` and rows + added


@torch.inference_mode()
def lookup(model: Transformer, recording: Recording) -> Lookup:
    """The embedding of a recorded text, checked against the matrix product that it stands for: one_hot(ids)
    (query, vocab) @ E (vocab, d_model).
    """
    matrix = model.embedding.detach().float()
    one_hot = F.one_hot(torch.tensor(recording.ids), len(matrix)).to(matrix.dtype)  # (query, vocab)
    product = (one_hot @ matrix).numpy()
    rows, entered = recording["embed"], recording["blocks.0.resid_pre"]
    added = recording["pos_embed"] if "pos_embed" in recording else None
    total = rows if added is None else rows + added
    return Lookup(
        recording.ids,
        rows,
        added,
        entered,
        float(np.abs(product - rows).max()),
        float(np.abs(entered - total).max()),
    )


def embedding_of(model: Transformer) -> np.ndarray:
    """E, (vocab, d_model) float32."""
    return model.embedding.detach().float().cpu().numpy()


# Classes of tokens ------------------------------------------------------------------------------

CHARACTERS = ("vowels", "consonants", "capitals", "digits", "punctuation", "whitespace", "other")
PIECES = (
    "begins a word",
    "inside a word",
    "capitalised",
    "digits",
    "punctuation",
    "whitespace",
    "part of a character",
    "other",
)


def token_bytes(tokenizer: Tokenizer) -> list[bytes]:
    """What each token stands for, by id; a token may be a part of a character, which only bytes can say."""
    whole = getattr(tokenizer, "decode_bytes", None)
    if whole is not None:
        return [bytes(whole([i])) for i in range(tokenizer.vocab_size)]
    return [tokenizer.decode([i]).encode("utf-8", "surrogatepass") for i in range(tokenizer.vocab_size)]


def token_classes(
    tokens: Sequence[bytes], vocab_size: int | None = None
) -> tuple[tuple[str, ...], np.ndarray]:
    """(names of the classes, class of each token (vocab,) int64). Tokens beyond the given ones, such as a
    mask, are `other`.

    Where every token is one character: vowels (a e i o u, accents apart), consonants, capitals, digits ...
    Else the pieces of a BPE: by whether they begin with a space, lie inside a word, begin with a capital, or
    are only a part of a character.

    >>> names, found = token_classes([b"a", b"T", b"z", b","])
    >>> [names[i] for i in found]
    ['vowels', 'capitals', 'consonants', 'punctuation']
    >>> names, found = token_classes([b" the", b"ing", b"\\xe2"])
    >>> [names[i] for i in found]
    ['begins a word', 'inside a word', 'part of a character']
    """
    texts = [_text(token) for token in tokens]
    single = all(text is not None and len(text) == 1 for text in texts)
    names = CHARACTERS if single else PIECES
    kind = _character if single else _piece
    found = [names.index(kind(text)) for text in texts]
    beyond = max(0, (vocab_size or 0) - len(found))
    return names, np.asarray(found + [names.index("other")] * beyond, dtype=np.int64)


def _text(token: bytes) -> str | None:
    try:
        return token.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


def _character(char: str | None) -> str:
    if not char:
        return "other"
    if char.isspace():
        return "whitespace"
    if char.isdecimal():
        return "digits"
    plain = unicodedata.normalize("NFD", char)[0]
    if char.isalpha():
        return (
            "capitals"
            if char.isupper()
            else "other"
            if not char.islower()
            else "vowels"
            if plain in "aeiou"
            else "consonants"
        )
    return "punctuation" if unicodedata.category(char)[0] in "PS" else "other"


def _piece(text: str | None) -> str:
    if text is None:
        return "part of a character"
    bare = text.strip()
    if text and not bare:
        return "whitespace"
    if bare.isdecimal():
        return "digits"
    if bare and all(unicodedata.category(c)[0] in "PS" for c in bare):
        return "punctuation"
    if not any(c.isalpha() for c in bare):
        return "other"
    if bare.lstrip("'")[:1].isupper():
        return "capitalised"
    return "begins a word" if text[0].isspace() else "inside a word"


def token_counts(text: str, tokenizer: Tokenizer, vocab_size: int) -> np.ndarray:
    """How often each token occurs in a text, (vocab,) int64; characters that the tokenizer lacks are left
    out.
    """
    unknown = set(tokenizer.unknown(text))
    kept = "".join(c for c in text if c not in unknown) if unknown else text
    array = getattr(tokenizer, "encode_array", None)
    ids = np.asarray(array(kept) if array is not None else tokenizer.encode(kept), dtype=np.int64)
    return np.bincount(ids, minlength=vocab_size)[:vocab_size]


# Principal components ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Principal:
    """The directions in which the rows of a matrix differ most (Pearson 1901). `shares` are of the variance,
    all of them, largest first.
    """

    axes: np.ndarray = field(repr=False)  # (component, d_model), of length 1
    shares: np.ndarray = field(repr=False)  # (min(rows - 1, d_model),), summing to 1


def principal(matrix: np.ndarray, count: int = 3) -> Principal:
    """The first `count` principal axes of the rows of `matrix` (row, d_model), by the eigenvectors of their
    covariance.

    An axis has no sign of its own: here the scores' third moment is positive, so the longer tail points to
    the right or up. Where the matrix has fewer dimensions than `count`, the missing axes are zero. Raises
    ShapeError for what is not a matrix.
    """
    if matrix.ndim != 2 or not matrix.size:
        raise ShapeError(f"principal axes need a matrix (row, d_model), not shape {matrix.shape}")
    centred = _centred(matrix)
    values, vectors = np.linalg.eigh(centred.T @ centred)  # ascending
    values, vectors = np.clip(values[::-1], 0, None), vectors[:, ::-1]
    axes = np.zeros((count, matrix.shape[1]))
    axes[: min(count, matrix.shape[1])] = vectors.T[:count]
    scores = centred @ axes.T
    axes *= np.where((scores**3).sum(0) < 0, -1.0, 1.0)[:, None]
    kept = values[: max(1, min(len(matrix) - 1, matrix.shape[1]))]
    total = float(kept.sum())
    return Principal(axes, kept / total if total > 0 else np.zeros_like(kept))


def aligned(found: Principal, reference: Principal) -> Principal:
    """The same axes, each turned to the side on which the reference's axis of the same rank lies: no picture
    is mirrored between two steps.
    """
    signs = np.where((found.axes * reference.axes).sum(1) < 0, -1.0, 1.0)
    return Principal(found.axes * signs[:, None], found.shares)


def project(matrix: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(scores (row, component) float32, share of the rows' own variance that each axis keeps (component,)).

    The mean row is taken off first. With the axes of another step of the same training, the shares are
    smaller than that step's own would be.
    """
    centred = _centred(matrix)
    scores = centred @ axes.T
    total = float((centred**2).sum())
    kept = (scores**2).sum(0) / total if total > 0 else np.zeros(len(axes))
    return scores.astype(np.float32), kept


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's r of two arrays of one size; NaN where one of them does not vary."""
    a, b = a.astype(np.float64).ravel() - a.mean(), b.astype(np.float64).ravel() - b.mean()
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum() / size) if size > 1e-12 else float("nan")


# Who is near whom -------------------------------------------------------------------------------


def directions(matrix: np.ndarray, centre: bool = True) -> np.ndarray:
    """The rows (row, d_model) float64, made of length 1, after the mean row was taken off: what all rows
    share tells none from another.

    Rows of no length stay zero.
    """
    rows = _centred(matrix) if centre else matrix.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 1e-12)


def cosines(
    matrix: np.ndarray, rows: Sequence[int] | np.ndarray | None = None, centre: bool = True
) -> np.ndarray:
    """Cosine of every two rows (row, row) float32; of the chosen rows only where some are named. The mean row
    is that of all.
    """
    unit = directions(matrix, centre)
    some = unit if rows is None else unit[np.asarray(rows, dtype=np.int64)]
    return np.clip(some @ some.T, -1, 1).astype(np.float32)


def neighbours(matrix: np.ndarray, token: int, count: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """(ids, cosines) of the rows nearest to a token's, best first, itself left out."""
    unit = directions(matrix)
    near = unit @ unit[token]
    order = np.argsort(-near, kind="stable")
    order = order[order != token][:count]
    return order, near[order].astype(np.float32)


def kept_neighbours(matrix: np.ndarray, scores: np.ndarray, count: int = 6) -> np.ndarray:
    """For each token, how many of its `count` nearest by cosine are also among the `count` nearest dots of a
    picture: (vocab,) int64.

    matrix (vocab, d_model), scores (vocab, component): where the picture puts the tokens. It takes vocab^2
    numbers: for small vocabularies.
    """
    near = cosines(matrix)
    np.fill_diagonal(near, -2)
    flat = scores.astype(np.float64)
    lengths = (flat * flat).sum(1)
    far = lengths[:, None] + lengths[None, :] - 2 * flat @ flat.T
    np.fill_diagonal(far, np.inf)
    count = min(count, len(matrix) - 1)
    true, drawn = (
        np.argsort(-near, axis=1, kind="stable")[:, :count],
        np.argsort(far, axis=1, kind="stable")[:, :count],
    )
    return (true[:, :, None] == drawn[:, None, :]).sum((1, 2))


# Do classes find each other? --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Separation:
    """Mean cosine of two tokens of one class, minus that of two tokens of different classes; and the same for
    shuffled labels.
    """

    within: float
    across: float
    chance: np.ndarray = field(repr=False)  # (shuffles,): the difference, with the labels dealt out at random
    matched: np.ndarray | None = field(
        repr=False
    )  # (shuffles,): dealt out among tokens of like frequency only; None where none is known
    by_class: dict[
        str, tuple[int, float, float]
    ]  # name -> (tokens, within, across); NaN where a class has one token

    @property
    def difference(self) -> float:
        return self.within - self.across


def separation(
    matrix: np.ndarray,
    names: Sequence[str],
    classes: np.ndarray,
    *,
    counts: np.ndarray | None = None,
    shuffles: int = 100,
    seed: int = 0,
) -> Separation:
    """Whether classes of tokens lie together: matrix (vocab, d_model), classes (vocab,).

    Where counts (vocab,) are given, tokens that never occur are left out (nothing has taught them), and
    `matched` exchanges labels only among STRATUM tokens of neighbouring frequency: what is above that is not
    explained by frequency alone.
    """
    kept = (
        np.flatnonzero(counts > 0)
        if counts is not None and (counts > 0).sum() > 2
        else np.arange(len(matrix))
    )
    unit, labels = directions(matrix[kept]), np.unique(classes[kept], return_inverse=True)[1]
    within, across = (float(values[0]) for values in _within_across(unit, labels[None]))
    generator = np.random.default_rng(seed)
    chance = _differences(unit, np.stack([generator.permutation(labels) for _ in range(shuffles)]))
    matched = None
    if counts is not None:
        order = np.argsort(-counts[kept], kind="stable")
        matched = _differences(unit, np.stack([_dealt(labels, order, generator) for _ in range(shuffles)]))
    table = {
        name: _one_class(unit, classes[kept] == i)
        for i, name in enumerate(names)
        if (classes[kept] == i).any()
    }
    return Separation(within, across, chance, matched, table)


def _dealt(labels: np.ndarray, order: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """The labels, exchanged among neighbours in `order`. The borders of the strata move from shuffle to
    shuffle.
    """
    stratum = (np.arange(len(order)) + generator.integers(0, STRATUM)) // STRATUM
    shuffled = np.argsort(
        stratum + generator.random(len(order))
    )  # within a stratum only: a random number below 1 decides
    found = np.empty_like(labels)
    found[order] = labels[order[shuffled]]
    return found


def _within_across(unit: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean cosines over pairs of different tokens, for each labelling (labelling, vocab) of the unit rows;
    all have classes of the same sizes.

    A class's pairs sum to |sum of its rows|^2 - sum of |row|^2, so that no matrix of pairs is ever made.
    """
    count = int(labels.max()) + 1
    sizes = np.bincount(labels[0], minlength=count)
    own = float((unit * unit).sum())
    every = float((unit.sum(0) ** 2).sum()) - own
    rows, same = unit.astype(np.float32), np.empty(len(labels))
    for first in range(0, len(labels), 16):  # one product for several labellings at once
        some = labels[first : first + 16]
        member = (some[:, None, :] == np.arange(count)[None, :, None]).astype(
            np.float32
        )  # (labelling, class, vocab)
        sums = member.reshape(-1, len(rows)) @ rows  # (labelling * class, d_model)
        same[first : first + 16] = (sums.astype(np.float64) ** 2).reshape(len(some), -1).sum(1) - own
    pairs, all_pairs = float((sizes * (sizes - 1)).sum()), float(len(unit) * (len(unit) - 1))
    nothing = np.full(len(labels), np.nan)
    return same / pairs if pairs else nothing, (
        (every - same) / (all_pairs - pairs) if all_pairs > pairs else nothing
    )


def _differences(unit: np.ndarray, labels: np.ndarray) -> np.ndarray:
    within, across = _within_across(unit, labels)
    return within - across


def case_pairs(tokens: Sequence[bytes]) -> np.ndarray:
    """Ids of every small letter or word and of the same with a capital, (pair, 2), where the vocabulary has
    both.

    >>> case_pairs([b"A", b"a", b"b", b" the", b" The"]).tolist()
    [[1, 0], [3, 4]]
    """
    ids = {text: i for i, token in enumerate(tokens) if (text := _text(token))}
    found = [
        (i, ids[capital])
        for text, i in ids.items()
        if (capital := text.title()) in ids and capital != text and text == text.lower()
    ]
    return np.asarray(found, dtype=np.int64).reshape(-1, 2)


def case_cosines(matrix: np.ndarray, pairs: np.ndarray) -> tuple[float, float]:
    """(mean cosine of a small token with its own capital, with the capital of another), over `pairs` (pair,
    2). NaN where there are too few.
    """
    unit = directions(matrix)
    small, capital = unit[pairs[:, 0]], unit[pairs[:, 1]]
    count, own = len(pairs), float((small * capital).sum())
    every = float(small.sum(0) @ capital.sum(0))
    return (own / count, (every - own) / (count * (count - 1))) if count > 1 else (float("nan"), float("nan"))


def _one_class(unit: np.ndarray, member: np.ndarray) -> tuple[int, float, float]:
    size, own = int(member.sum()), unit[member]
    total = own.sum(0)
    within = float(total @ total - (own * own).sum()) / (size * (size - 1)) if size > 1 else float("nan")
    across = (
        float(total @ unit[~member].sum(0)) / (size * (len(unit) - size))
        if size < len(unit)
        else float("nan")
    )
    return size, within, across


def _centred(matrix: np.ndarray) -> np.ndarray:
    values = matrix.astype(np.float64)
    return values - values.mean(0)
