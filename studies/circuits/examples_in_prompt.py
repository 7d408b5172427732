"""Examples in a prompt: how often a model answers right after 0, 1, 2, ... lines that show what is wanted.

    few = finish(measure(model, tokenizer, [("hot", "cold"), ("big", "small"), ...]))

Nothing is trained: this is the few-shot prompt of Brown et al. 2020 ("Language models are few-shot
learners"). Exchanging the answers among the examples is the control of Min et al. 2022 ("Rethinking the role
of demonstrations").
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.data.progress import Progress, Steps
from engine.data.tokenizers import Tokenizer
from engine.errors import ConfigError
from engine.model import Transformer

COUNTS = (0, 1, 2, 4, 8, 16)  # examples before the question
DRAWS = 4  # of the examples and their order
BATCH = 4  # prompts that are read at once
RIGHT, EXCHANGED = 0, 1  # the answers that the examples hold: their own, or one another's
Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class FewShot:
    """Every word of `pairs`, asked after each of COUNTS, in several draws of the examples. `probability` of
    the right answer and the likeliest token, `guess`: (RIGHT or EXCHANGED, draw, pair, count).
    """

    pairs: tuple[Pair, ...]
    answers: tuple[int, ...] = field(repr=False)  # the right token of each pair
    probability: np.ndarray = field(repr=False)
    guess: np.ndarray = field(repr=False)

    @property
    def right(self) -> np.ndarray:
        """True where the likeliest token is the right answer, of the shape of `guess`."""
        return self.guess == np.array(self.answers)[:, None]

    @property
    def accuracy(self) -> np.ndarray:
        """The share of right answers, (RIGHT or EXCHANGED, draw, count)."""
        return self.right.mean(2)

    @property
    def mean_accuracy(self) -> np.ndarray:
        """The share of right answers, the mean of all draws, (RIGHT or EXCHANGED, count)."""
        result: np.ndarray = self.accuracy.mean(1)
        return result

    @property
    def likelihood(self) -> np.ndarray:
        """The mean probability of the right answer, (RIGHT or EXCHANGED, draw, count)."""
        return self.probability.mean(2)

    @property
    def mean_likelihood(self) -> np.ndarray:
        """The probability of the right answer, the mean of all draws, (RIGHT or EXCHANGED, count)."""
        return self.probability.mean((1, 2))


def prompt(pairs: Sequence[Pair], word: str) -> str:
    r"""Returns the examples, a line each, and the word that is asked.

    >>> prompt([("hot", "cold")], "big")
    'hot: cold\nbig:'
    """
    return "".join(f"{shown}: {answer}\n" for shown, answer in pairs) + f"{word}:"


def order(count: int, draw: int) -> list[int]:
    """Draws an order of pairs by `draw`; an EXCHANGED example has the answer of the next pair."""
    return random.Random(draw).sample(range(count), count)


def measure(
    model: Transformer, tokenizer: Tokenizer, pairs: Sequence[Pair], draws: int = DRAWS
) -> Steps[FewShot]:
    """Asks every word after each count of examples, which are others of the pairs. Yields what there is after
    every draw. Raises ConfigError for too few pairs, and for an answer that is not one token.

    A prompt of the most examples asks at every count, for a causal model does not see the lines after a
    question. A prompt begins at each pair of a draw's order, so each is asked once at every count.
    """
    most = max(COUNTS)
    if len(pairs) <= most:
        raise ConfigError("pairs", len(pairs), f"must be more than {most}")
    answers = tuple(_token(tokenizer, answer) for _, answer in pairs)
    words, line_end = [tokenizer.encode(f"{word}:") for word, _ in pairs], tokenizer.encode("\n")
    probability = np.zeros((2, draws, len(pairs), len(COUNTS)))
    guess = np.zeros(probability.shape, dtype=np.int64)
    few = FewShot(tuple(pairs), answers, probability[:, :0], guess[:, :0])
    starts = [range(at, min(at + BATCH, len(pairs))) for at in range(0, len(pairs), BATCH)]
    done, total = 0, draws * 2 * len(starts)
    yield Progress(0, total, few)
    for draw in range(draws):
        drawn = order(len(pairs), draw)
        following = dict(zip(drawn, drawn[1:] + drawn[:1], strict=True))
        for way in (RIGHT, EXCHANGED):
            shown = [answers[following[i] if way == EXCHANGED else i] for i in range(len(pairs))]
            lines = [[*word, answer, *line_end] for word, answer in zip(words, shown, strict=True)]
            for batch in starts:
                rows = [[drawn[(start + k) % len(drawn)] for k in range(most + 1)] for start in batch]
                queries = [[row[count] for count in COUNTS] for row in rows]
                p = _after_words(model, rows, lines, words)  # (row, count, vocab)
                wanted = torch.tensor(answers)[torch.tensor(queries)][..., None]
                probability[way, draw, queries, range(len(COUNTS))] = p.gather(-1, wanted)[..., 0]
                guess[way, draw, queries, range(len(COUNTS))] = p.argmax(-1)
                done += 1
                if done % (2 * len(starts)) == 0:
                    few = FewShot(few.pairs, answers, probability[:, : draw + 1], guess[:, : draw + 1])
                yield Progress(done, total, few)
    return few


def _token(tokenizer: Tokenizer, answer: str) -> int:
    ids = tokenizer.encode(f" {answer}")
    if len(ids) != 1:
        raise ConfigError("answer", answer, f"must be one token after a space, not {len(ids)}")
    return ids[0]


@torch.no_grad()
def _after_words(
    model: Transformer,
    rows: Sequence[Sequence[int]],
    lines: Sequence[Sequence[int]],
    words: Sequence[Sequence[int]],
) -> Tensor:
    """Returns probabilities (row, count, vocab) after the word of line k, each k in COUNTS, of `rows`."""
    prompts = [[token for i in row for token in lines[i]] for row in rows]
    longest = max(map(len, prompts))
    logits = model(torch.tensor([ids + [0] * (longest - len(ids)) for ids in prompts]))
    places = [
        [sum(len(lines[i]) for i in row[:count]) + len(words[row[count]]) - 1 for count in COUNTS]
        for row in rows
    ]
    return logits[torch.arange(len(rows))[:, None], torch.tensor(places)].softmax(-1)
