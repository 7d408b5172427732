"""Shannon's guessing game: a reader guesses the next character of a held-out text until it is right.

Shannon (1951), Prediction and Entropy of Printed English: the numbers of the guesses hold all that the text
does, for a reader who guesses alike. So a reader is a language model, with a loss beside that of others.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
import torch

from engine.errors import CorpusError, ShapeError
from engine.model import Transformer

NGRAMS = {"unigram": 0, "bigram": 1, "trigram": 2}  # tokens before the one that each predicts
GUESSES = 5  # at each character, after which it is shown
PRIOR = 0.5  # added to the count of each outcome (Krichevsky and Trofimov, 1981)
ENOUGH = 30  # characters, below which a mean says little
SHORTEST = 8  # tokens of a text that has a passage
BATCH = 8  # windows that a model reads at a time
WORD = 20  # tokens within which a word begins


@dataclass(frozen=True)
class Passage:
    """Tokens `ids` to guess, one after the other, behind a `lead` that is shown; `start` is where the lead
    begins in the text.
    """

    start: int
    lead: tuple[int, ...]
    ids: tuple[int, ...]


def draw_passage(
    text: np.ndarray, seed: int, *, lead: int, most: int, blanks: Collection[int], line_break: int | None
) -> Passage:
    """Draws a passage of a text, (token,): it begins where a line does, what is guessed where a word does.

    The lead has at least `lead` tokens, and at most `most` are guessed; of a short text there are fewer.
    `blanks` are the ids of white space, the `line_break` among them. Raises CorpusError for too short a text.
    """
    if len(text) < SHORTEST:
        raise CorpusError(
            f"the held-out text has {len(text)} characters; {SHORTEST} are needed to guess some"
        )
    lead = min(lead, len(text) // 2)
    latest = max(0, len(text) - lead - WORD - most)
    starts = np.flatnonzero(text[:latest] == line_break) + 1 if line_break is not None else np.zeros(0, int)
    starts = starts if len(starts) else np.arange(latest + 1)
    start = int(starts[Random(seed).randrange(len(starts))])
    first = start + lead
    words = (i for i in range(first, min(first + WORD, len(text) - 1)) if int(text[i - 1]) in blanks)
    first = next(words, first)
    return Passage(start, tuple(text[start:first].tolist()), tuple(text[first : first + most].tolist()))


@torch.inference_mode()
def model_log_p(model: Transformer, passage: Passage) -> np.ndarray:
    """Returns ln p of every token at each that is guessed, (character, vocab): the model has read the lead
    and all before it, as far as its context reaches.
    """
    context = model.config.context
    read = torch.tensor([*passage.lead, *passage.ids[:-1]])
    rows = [model(read[None, :context])[0]]  # the first window predicts after each of its tokens
    if len(read) > context:  # the others predict after their last
        rows += [model(batch)[:, -1] for batch in read.unfold(0, context, 1)[1:].split(BATCH)]
    return torch.cat(rows).double().log_softmax(-1)[len(passage.lead) - 1 :].numpy()


def ngram_log_p(train: np.ndarray, passage: Passage, vocab: int) -> dict[str, np.ndarray]:
    """Returns ln p of every token at each that is guessed, (character, vocab), by predictors without a
    network: `uniform`, and those of NGRAMS, counted on `train` with add-one smoothing (Laplace's): p(b | a) =
    (count of ab + 1) / (count of a + V), where a are the tokens before b.
    """
    count, whole = len(passage.ids), np.array([*passage.lead, *passage.ids])
    result = {"uniform": np.full((count, vocab), -math.log(vocab))}
    for name, given in NGRAMS.items():
        if len(train) > given and len(passage.lead) >= given:
            first = len(passage.lead) - given
            before = _numbered(whole[first : first + count + given - 1], given, count, vocab)
            counts = _following(train, before, given, vocab) + 1.0
            result[name] = np.log(counts / counts.sum(1, keepdims=True))
    return result


def _following(train: np.ndarray, before: np.ndarray, given: int, vocab: int) -> np.ndarray:
    """Counts what follows runs of `given` tokens, (run, vocab); `before` has their numbers, (run,)."""
    pairs = _numbered(train, given + 1, len(train) - given, vocab)
    known, often = np.unique(pairs, return_counts=True)
    counts = np.zeros((len(before), vocab))
    for row, first in zip(counts, before * vocab, strict=True):
        here = slice(*np.searchsorted(known, (first, first + vocab)))
        row[known[here] - first] = often[here]
    return counts


def _numbered(tokens: np.ndarray, length: int, count: int, vocab: int) -> np.ndarray:
    """Encodes the first `count` runs of `length` tokens as numbers below V^length; int64 holds V to 2^21."""
    numbers = np.zeros(count, dtype=np.int64)
    for i in range(length):
        numbers = numbers * vocab + tokens[i : i + count]
    return numbers


def nats_of(log_p: np.ndarray, ids: Sequence[int]) -> np.ndarray:
    """Returns -ln p of the tokens that came, (character,), from ln p of all, (character, vocab)."""
    return -log_p[np.arange(len(ids)), list(ids)]


@dataclass(frozen=True)
class Turn:
    """How one character was guessed: how many guesses, at most GUESSES, and whether the last was `right`."""

    guesses: int
    right: bool


def turns_of(log_p: np.ndarray, ids: Sequence[int]) -> list[Turn]:
    """Returns how a predictor would play that guesses the likeliest token first, of equal ones the first. So
    it is measured as a reader is, who cannot say how sure he is.
    """
    order = np.argsort(-log_p, axis=1, kind="stable")
    ranks = (order == np.array(ids)[:, None]).argmax(1) + 1
    most = outcomes(log_p.shape[1]) - 1
    return [Turn(min(rank, most), rank <= most) for rank in ranks.tolist()]


def turn_nats(turns: Sequence[Turn], vocab: int) -> np.ndarray:
    """Returns -ln p of each character by a reader's guesses, (character,), with p from earlier turns alone.

    p of the g-th guess is how often the g-th was right so far, with PRIOR added for each of the outcomes 1 to
    GUESSES and "none of them". Where no guess was right, what these leave is spread evenly over the tokens
    that were not tried. So before each character p sums to 1 over the vocabulary, and the loss is one of a
    language model: an upper bound of the text's entropy. Raises ShapeError for a turn that cannot be.
    """
    counts = np.full(outcomes(vocab), PRIOR)
    nats = np.empty(len(turns))
    for i, turn in enumerate(turns):
        outcome = _outcome(turn, vocab)
        nats[i] = -math.log(_probability(turn, counts / counts.sum(), vocab))
        counts[outcome] += 1
    return nats


def outcomes(vocab: int) -> int:
    """Returns the number of outcomes of a turn: each of the guesses, or none. The last token of a small
    vocabulary needs no guess.
    """
    return min(GUESSES, vocab - 1) + 1


def _outcome(turn: Turn, vocab: int) -> int:
    most = outcomes(vocab) - 1
    if not turn.right <= turn.guesses <= most:
        raise ShapeError(f"a character has at most {most} guesses, and the right one is among them")
    return turn.guesses - 1 if turn.right else most


def _probability(turn: Turn, shares: np.ndarray, vocab: int) -> float:
    """p of the token that came, where the outcomes have these shares."""
    if turn.right:
        return float(shares[_outcome(turn, vocab)])
    return float(shares[turn.guesses :].sum()) / (vocab - turn.guesses)


@dataclass(frozen=True)
class Bounds:
    """Shannon's bounds of a text's entropy from a reader's guesses, in nats per character."""

    lower: float
    upper: float


def bounds(turns: Sequence[Turn], vocab: int) -> Bounds:
    """Returns Shannon's bounds (1951), from the shares q of the outcomes of all turns at once.

    Upper: the entropy of the guess numbers, what comes after the last guess spread evenly. Lower: the sum of
    q_i (i ln i - (i - 1) ln (i - 1)), which counts a token that no guess hit as if the next had. Raises
    ShapeError for no turns.
    """
    if not turns:
        raise ShapeError("bounds need at least one character that was guessed")
    shares = np.bincount([_outcome(turn, vocab) for turn in turns], minlength=outcomes(vocab)) / len(turns)
    upper = -sum(math.log(_probability(turn, shares, vocab)) for turn in turns)
    lower = sum(_steepness(turn.guesses + (not turn.right)) for turn in turns)
    return Bounds(lower / len(turns), upper / len(turns))


def _steepness(rank: int) -> float:
    return rank * math.log(rank) - (rank - 1) * math.log(max(1, rank - 1))


def class_p(counts: Sequence[int]) -> np.ndarray:
    """Returns the probabilities of a class by its votes (vocab,): each token's share, with one voter more who
    spreads a vote evenly over all V (additive smoothing of 1 / V; Perks, 1947). No vote at all is uniform.

    >>> class_p([1, 0]).tolist()
    [0.75, 0.25]
    """
    votes = np.asarray(counts, dtype=np.float64)
    return (votes + 1 / len(votes)) / (votes.sum() + 1)


def class_nats(votes: Sequence[Sequence[int]], ids: Sequence[int]) -> np.ndarray:
    """Returns -ln p by a class of the tokens that came, (character,), from its votes on each."""
    return np.array([-math.log(class_p(counts)[token]) for counts, token in zip(votes, ids, strict=True)])


@dataclass(frozen=True, eq=False)
class ClassGuess:
    """Probabilities of the next token by a class and by a model, (vocab,)."""

    of_class: np.ndarray = field(repr=False)
    of_model: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, counts: Sequence[int], log_p: np.ndarray) -> ClassGuess:
        """Makes it of votes and of a model's ln p, (vocab,)."""
        return cls(class_p(counts), np.exp(log_p))

    @property
    def first(self) -> tuple[tuple[int, ...], int]:
        """Returns the likeliest tokens of the class, several where votes are equal, and the model's first."""
        of_class = np.flatnonzero(self.of_class == self.of_class.max())
        return tuple(of_class.tolist()), int(self.of_model.argmax())

    def likeliest(self, count: int, always: int | None = None) -> list[int]:
        """Returns the tokens that either holds for likeliest, at most `count`; `always` is among them."""
        either = np.maximum(self.of_class, self.of_model)
        order = np.argsort(-either, kind="stable")[:count].tolist()
        if always is not None and always not in order:
            order[-1] = always
        return order


def mean_nats(nats: Mapping[str, np.ndarray], count: int) -> dict[str, float]:
    """Returns each predictor's mean loss on the first `count` characters, in nats; nothing for none."""
    return {name: float(each[:count].mean()) for name, each in nats.items()} if count else {}


def standard_error(nats: np.ndarray) -> float:
    """Returns the standard error of a mean loss; infinite for fewer than two characters."""
    return float(nats.std(ddof=1)) / math.sqrt(len(nats)) if len(nats) > 1 else math.inf
