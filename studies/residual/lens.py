"""The logit lens: the model's prediction if it stopped after each block (nostalgebraist 2020)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.config import ResolvedConfig
from engine.data.progress import Progress, Steps, finish
from engine.errors import HeadError
from engine.model import Transformer
from engine.recording import Recording
from studies.residual.stream import outputs

SHOWN = 10  # tokens that are kept of each distribution
AT_ONCE = 4_000_000  # logits that are held at a time: those of a real vocabulary at all depths are gigabytes


@dataclass(frozen=True, eq=False)
class Lens:
    """The predictions by depth: 0 is before the first block, i + 1 after block i, the last the output.

    `kl` is KL(final | depth) = sum of p_final (ln p_final - ln p_depth), in nats. `settled` is the first
    depth from which on a position's top guess stays the final one. The likeliest tokens of each distribution
    are stored, with their probabilities there and at the output.
    """

    guess: np.ndarray  # (depth, query) token id
    probability: np.ndarray  # (depth, query), of the guess
    kl: np.ndarray  # (depth, query), nats
    settled: np.ndarray  # (query,)
    likeliest: np.ndarray = field(repr=False)  # (depth, query, shown) ids, best first
    here: np.ndarray = field(repr=False)  # (depth, query, shown), their probabilities at that depth
    output: np.ndarray = field(repr=False)  # (depth, query, shown), and at the last one

    def top(self, depth: int, position: int, count: int = SHOWN) -> np.ndarray:
        """Returns the ids of the likeliest tokens there, best first: at most (count,)."""
        return self.likeliest[depth, position, :count]


def logit_lens(model: Transformer, recording: Recording) -> Lens:
    """Applies norm_final and the output head to the stream at every depth, in the model's own arithmetic. A
    post-norm model has no norm_final: its stream has been through norm2. Raises HeadError without a head.
    """
    return finish(lens_steps(model, recording))


@torch.no_grad()
def lens_steps(model: Transformer, recording: Recording) -> Steps[Lens]:
    """Runs `logit_lens` a few positions at a time: with 30 layers and 49,152 tokens it takes a second."""
    if not model.output.present:
        raise HeadError("this model has no output head: no depth of it says anything")
    like = model.embedding
    streams = torch.from_numpy(np.stack(outputs(recording)))  # (depth, query, d_model)
    length = streams.shape[1]
    some = _positions_at_once(model.config)
    result = []
    for at in range(0, length, some):
        x = streams[:, at : at + some].to(device=like.device, dtype=like.dtype)
        logits = model.logits(x)  # (depth, some, vocab)
        result.append(read_lens(logits.float().cpu()))
        yield Progress(min(at + some, length), length)
    return join_lens(result)


def fits_at_once(config: ResolvedConfig, length: int) -> bool:
    """True if a text of so many tokens is read at once."""
    return length <= _positions_at_once(config)


def _positions_at_once(config: ResolvedConfig) -> int:
    return max(1, AT_ONCE // ((config.n_layers + 1) * config.vocab_size))


def read_lens(logits: Tensor) -> tuple[Tensor, ...]:
    """Returns from logits: guess, probability, KL, and the likeliest tokens here and at the output."""
    total = logits.logsumexp(-1)  # (depth, query)
    best, guess = logits.max(-1)
    values, likeliest = logits.topk(min(SHOWN, logits.shape[-1]), dim=-1)  # (depth, query, shown)
    final = (logits[-1] - total[-1, :, None]).exp()  # (query, vocab): p_final
    # ln p = logit - total: what is left of the sum over the vocabulary is a product, and nothing so large as
    # the logits is made once more.
    expected = torch.einsum("dqv,qv->dq", logits, final) - total  # (depth, query): mean of ln p_depth
    kl = (expected[-1] - expected).clamp_min(0.0)  # rounding may leave -1e-6
    at_output = logits[-1].expand_as(logits).gather(-1, likeliest)
    output = (at_output - total[-1, :, None]).exp()
    return guess, (best - total).exp(), kl, likeliest, (values - total[..., None]).exp(), output


def join_lens(parts: list[tuple[Tensor, ...]]) -> Lens:
    """Joins results of positions after others."""
    arrays = (torch.cat(part, dim=1).numpy() for part in zip(*parts, strict=True))
    guess, probability, kl, likeliest, here, output = arrays
    return Lens(guess, probability, kl, first_settled(guess), likeliest, here, output)


def first_settled(guess: np.ndarray) -> np.ndarray:
    """Returns the first depth from which on the guess is the last depth's: (depth, query) -> (query,).

    >>> first_settled(np.array([[1, 2], [3, 2], [1, 2]])).tolist()
    [2, 0]
    """
    same = guess == guess[-1]
    stays = np.logical_and.accumulate(same[::-1])[::-1]  # same here and at every later depth
    return stays.argmax(0)


@dataclass(frozen=True, eq=False)
class Settling:
    """The depths at which guesses come to stay. `counts` and `by` (depth,): tokens settled at and by it.

    `half`: the first depth by which half of all `tokens` are settled. `kl` (depth,): mean distance from the
    output, nats; `step`: the depth that comes closest to the output in one go, None where none does.
    """

    counts: np.ndarray
    by: np.ndarray
    half: int
    tokens: int
    kl: np.ndarray
    step: int | None


def settling(lens: Lens) -> Settling:
    """Counts over the tokens of the text."""
    tokens = len(lens.settled)
    counts = np.bincount(lens.settled, minlength=len(lens.guess))
    by = np.cumsum(counts)
    kl = lens.kl.mean(1)
    steps = kl[:-1] - kl[1:]
    largest = int(steps.argmax())
    step = largest + 1 if steps[largest] > 0 else None
    return Settling(counts, by, int(np.argmax(2 * by >= tokens)), tokens, kl, step)


@dataclass(frozen=True, eq=False)
class Cell:
    """One depth at one token: its likeliest `tokens`, best first, with probabilities `here` and at the
    `output` (token,). `kl` from here to the output, nats; the `final` guess, and where it settles.
    """

    tokens: np.ndarray
    here: np.ndarray
    output: np.ndarray
    kl: float
    final: int
    settled: int


def cell(lens: Lens, depth: int, position: int, count: int = SHOWN) -> Cell:
    """Returns a cell with at most `count` tokens, and no more than the lens has."""
    tokens = lens.top(depth, position, count)
    here, output = (kept[depth, position, :count] for kept in (lens.here, lens.output))
    final, settled = int(lens.guess[-1, position]), int(lens.settled[position])
    return Cell(tokens, here, output, float(lens.kl[depth, position]), final, settled)


@dataclass(frozen=True)
class Reach:
    """The end of a scale for KL, nats, above the embedding; `is_short` where that lies beyond it."""

    top: float
    is_short: bool


def reach(lens: Lens) -> Reach:
    """Returns the scale without the embedding's row."""
    top = float(lens.kl[1:].max())
    return Reach(top, bool(lens.kl[0].max() > top))


# One token, from block to block -------------------------------------------------------------------


def telling(
    guesses: np.ndarray, following: Sequence[int | None], worth: np.ndarray, blanks: Collection[int]
) -> int:
    """Returns the position to begin with: where the final guess `guesses` (query,) is no blank and comes
    true, the largest `worth` (query,), the later of several. Where nothing is `following`, it may come true.
    Where no guess does: one that is no blank; else any.
    """
    seen = np.array([int(guess) not in blanks for guess in guesses])
    true = np.array(
        [after is None or after == guess for guess, after in zip(guesses, following, strict=True)]
    )
    for kept in (seen & true, seen, np.ones(len(guesses), dtype=bool)):
        if kept.any():
            value = np.where(kept, worth, -np.inf)
            return int(len(value) - 1 - value[::-1].argmax())
    raise ValueError("there is no token to begin with")


def sureness(logits: np.ndarray) -> np.ndarray:
    """Returns the probability of the likeliest token: logits (query, vocab) -> (query,)."""
    top = logits.max(-1, keepdims=True)
    return 1 / np.exp(logits - top).sum(-1)


def latest(lens: Lens, following: Sequence[int | None], blanks: Collection[int]) -> int:
    """Returns the `telling` position whose answer settles last; of several, the surest."""
    worth = lens.settled + 0.999 * lens.probability[-1]
    return telling(lens.guess[-1], following, worth, blanks)


@dataclass(frozen=True, eq=False)
class DepthTable:
    """The guesses for one position by depth. `depths` (row,), lowest first; `tokens` and `shares` (row,
    rank): the likeliest tokens there and their probabilities.

    `settled` is the depth from which on the final guess stays on top, `earlier` its probability one depth
    below (0 where it was not among the likeliest), `final` at the output.
    """

    depths: np.ndarray
    tokens: np.ndarray
    shares: np.ndarray
    settled: int
    earlier: float
    final: float


def depth_table(lens: Lens, position: int, rows: int = 10, ranks: int = 4) -> DepthTable:
    """Returns at most `rows` depths: first, last, the settling one, the one before, and others."""
    depths, settled = len(lens.guess), int(lens.settled[position])
    chosen = _depths(depths, settled, rows)
    final, below = int(lens.guess[-1, position]), max(settled - 1, 0)
    there = np.flatnonzero(lens.likeliest[below, position] == final)
    earlier = float(lens.here[below, position, there[0]]) if len(there) else 0.0
    tokens, shares = (kept[chosen, position, :ranks] for kept in (lens.likeliest, lens.here))
    return DepthTable(chosen, tokens, shares, settled, earlier, float(lens.probability[-1, position]))


def _depths(count: int, settled: int, rows: int) -> np.ndarray:
    """Chooses at most `rows` depths.

    >>> _depths(5, 3, 10).tolist(), _depths(31, 30, 6).tolist()
    ([0, 1, 2, 3, 4], [0, 10, 20, 29, 30])
    """
    if count <= rows:
        return np.arange(count)
    even = np.linspace(0, count - 1, rows - 2).round().astype(int).tolist()
    return np.array(sorted({*even, settled, max(settled - 1, 0)}))
