"""Random tokens read twice (Olsson et al. 2022, "In-context learning and induction heads"): does a model
copy, and which heads look at the same token (duplicate) or at what followed it (induction)?

Only the first reading can predict the second: whatever a model gains there, it copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from engine.data.progress import Progress, Steps
from engine.errors import ShapeError
from engine.model import Transformer
from engine.probe import Recorder
from engine.recording import next_token_losses, record
from studies.attention.head_patterns import STRONG
from studies.attention.heads import HeadValue, over_queries, previous_score, ranked_heads

MAX_REPEAT = 32  # tokens in the sequence that is repeated
SEQUENCES = 4  # over which is averaged


def induction_score(patterns: np.ndarray, half: int) -> np.ndarray:
    """Returns the mean weight from each token of a second reading on the one *after* its first occurrence.
    (..., query, key) with 2 * half tokens -> (...) (Olsson et al. 2022). Query half + i, key i + 1.
    """
    return over_queries(np.diagonal(patterns, 1 - half, -2, -1)[..., 1:])


def duplicate_score(patterns: np.ndarray, half: int) -> np.ndarray:
    """Returns the mean weight from each token of a second reading on its first occurrence. (..., query, key)
    with 2 * half tokens -> (...) (Wang et al. 2023). Query half + i, key i.
    """
    return over_queries(np.diagonal(patterns, -half, -2, -1))


@dataclass(frozen=True, eq=False)
class Repeated:
    """Both scores of every head, (layer, head) float64."""

    induction: np.ndarray
    duplicate: np.ndarray


def repeatable(model: Transformer, vocab: int | None = None) -> int:
    """Returns how many of the first `vocab` tokens a model can read twice, up to MAX_REPEAT, or 0."""
    half = min(model.config.context // 2, vocab or model.config.vocab_size, MAX_REPEAT)
    return half if model.parts.mixer(model.config).present and half > 1 else 0


def repeated(
    model: Transformer,
    seed: int = 0,
    sequences: int = SEQUENCES,
    pool: np.ndarray | None = None,
    count: int = MAX_REPEAT,
) -> Steps[Repeated | None]:
    """Measures both scores on at most `count` distinct random tokens (of the ids in `pool`, or of all), mean
    over `sequences`; None where `repeatable` is 0. A step is one sequence. The first is what `drawn` gives
    for the same pool, count and seed.
    """
    pool = np.arange(model.config.vocab_size) if pool is None else pool
    half = min(repeatable(model, len(pool)), count)
    if not half:
        return None
    scores = []
    for done in range(sequences):
        patterns = _patterns(model, np.random.default_rng(seed + done).choice(pool, half, replace=False))
        scores.append((induction_score(patterns, half), duplicate_score(patterns, half)))
        yield Progress(done + 1, sequences)
    induction, duplicate = np.mean(scores, axis=0)
    return Repeated(induction, duplicate)


@torch.inference_mode()
def _patterns(model: Transformer, once: np.ndarray) -> np.ndarray:
    """Returns the patterns (layer, head, query, key) of tokens (position,) read twice."""
    device = next(model.parameters()).device
    tokens = torch.from_numpy(np.concatenate((once, once)))[None].to(device)
    recorder = Recorder({"pattern"})

    def probe(name: str, x: Tensor) -> Tensor:
        """Cuts the stream before the unembedding, which would be a fifth of the work."""
        return x[:, -1:] if name == "norm_final" else recorder(name, x)

    model(tokens, probe)
    layers = range(model.config.n_layers)
    return np.stack([recorder[f"blocks.{i}.pattern"][0].float().cpu().numpy() for i in layers])


FEWEST = 64  # words that make a pool; a vocabulary with fewer of them gives its letters
LETTERS = 3  # that a word has at least
CHEAPER = 0.25  # of the first reading's loss: what a model saves that copies


def ordinary(tokens: Sequence[bytes]) -> np.ndarray:
    """Returns the ids of ordinary words in a vocabulary (a blank and three or more small letters); of one
    without words its letters; of one without letters all ids.

    >>> ordinary([b"b", b" ", b"a", b"\\n"]).tolist()
    [0, 2]
    """
    words = [
        i
        for i, token in enumerate(tokens)
        if token[:1] == b" " and len(token) > LETTERS and token[1:].isalpha() and token[1:].islower()
    ]
    letters = [i for i, token in enumerate(tokens) if token.isalpha()]
    chosen = words if len(words) >= FEWEST else letters if len(letters) > 1 else range(len(tokens))
    return np.array(chosen, dtype=np.int64)


def drawn(pool: np.ndarray, count: int, seed: int) -> tuple[int, ...]:
    """Draws `count` different ids of `pool`. Raises ShapeError for fewer than two, or more than there are."""
    if not 2 <= count <= len(pool):
        raise ShapeError(f"between 2 and {len(pool)} different tokens can be drawn here, not {count}")
    return tuple(int(i) for i in np.random.default_rng(seed).choice(pool, count, replace=False))


@dataclass(frozen=True, eq=False)
class Repeat:
    """The tokens `once`, read twice. Losses are in nats by position, (position,); the first token has none
    (NaN). `scores` (layer, head): mean weight from each token of the second reading to the one after its
    first occurrence. `previous` (layer, head): mean weight on the token just before.
    """

    once: tuple[int, ...]
    first: np.ndarray = field(repr=False)
    second: np.ndarray = field(repr=False)
    scores: np.ndarray = field(repr=False)
    previous: np.ndarray = field(repr=False)

    @property
    def first_loss(self) -> float:
        """The mean loss of the first reading without its first token, nats per token."""
        return float(self.first[1:].mean())

    @property
    def second_loss(self) -> float:
        """The mean over the same tokens read a second time."""
        return float(self.second[1:].mean())

    @property
    def copies(self) -> bool:
        """True if the second reading costs a quarter less than the first, or still less."""
        return self.second_loss <= (1 - CHEAPER) * self.first_loss

    @cached_property
    def best(self) -> tuple[HeadValue, ...]:
        """Every head by its score, the best first; of equal ones the lower."""
        return ranked_heads(self.scores)

    @cached_property
    def strong(self) -> tuple[HeadValue, ...]:
        """The heads with a score of at least STRONG, the best first."""
        return tuple(head for head in self.best if head.value >= STRONG)

    @property
    def before(self) -> HeadValue:
        """The head that looks most at the token before: not in the last layer, unless there is one."""
        return ranked_heads(self.previous[:-1] if len(self.previous) > 1 else self.previous)[0]


def guessing(vocab: int) -> float:
    """Returns ln V, the loss of a uniform guess in nats.

    >>> round(guessing(49152), 1)
    10.8
    """
    return float(np.log(vocab))


def read_twice(model: Transformer, once: Sequence[int]) -> Repeat:
    """Returns the losses of both readings and the score of every head. Raises KeyError for a model whose
    mixer leaves no pattern, ShapeError for fewer than two tokens.
    """
    count = len(once)
    if count < 2:
        raise ShapeError("a sequence that is read twice needs at least two tokens")
    recording = record(model, (*once, *once), only={"pattern", "logits"})
    losses = next_token_losses(recording)  # (2 count - 1,), of the tokens from the second on
    patterns = recording.stacked("pattern")  # (layer, head, query, key)
    return Repeat(
        tuple(once),
        np.concatenate(([np.nan], losses[: count - 1])),
        losses[count - 1 :],
        induction_score(patterns, count),
        previous_score(patterns),
    )
