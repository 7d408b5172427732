"""The first token as an attention sink (Xiao et al. 2023): its weight, and the text without it.

A text that never had it makes the next token its sink. A text that *loses* it half-way, as a sliding window
does, is another matter: what was computed with it is still there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from torch import Tensor

from engine.data.progress import Progress, Steps
from engine.errors import ConfigError, ShapeError
from engine.model import Transformer
from engine.recording import Recording, next_token_losses, record
from studies.attention.head_patterns import MORE, STRONG
from studies.attention.heads import HeadValue, even_pattern, first_score, ranked_heads

Opening = Literal["kept", "other", "dropped", "forgotten", "control"]
OPENINGS: tuple[Opening, ...] = get_args(Opening)
FEWEST = 8  # tokens of a text that has two halves worth the name


@dataclass(frozen=True, eq=False)
class OpeningResult:
    """One way to begin a text. `seen` is the earliest position that the second half may look at, `share`
    (layer, head) the mean weight on it. The mean is over all queries after it, or, where the first token was
    forgotten, those that have lost it. `loss`: nats per token, mean over the second half. `lengths` (2,
    layer, kv_head): the length of its value vector, and the mean of the others after it (Gu et al. 2024).
    """

    opening: Opening
    ids: tuple[int, ...]
    seen: int
    share: np.ndarray = field(repr=False)
    even: float  # what evenly spread heads would give it
    loss: float
    lengths: np.ndarray = field(repr=False)

    @property
    def mean(self) -> float:
        """The mean over all heads."""
        return float(self.share.mean())

    @property
    def by_layer(self) -> np.ndarray:
        """The mean of each layer, (layer,)."""
        return self.share.mean(1)

    @property
    def most(self) -> HeadValue:
        """The head that rests there most."""
        return ranked_heads(self.share)[0]

    @property
    def is_sink(self) -> bool:
        """True if heads rest there, and all together give it clearly more than its even share."""
        return self.resting > 0 and self.mean > MORE * self.even

    @property
    def ratios(self) -> tuple[float, float]:
        """The least and most that its value vector is longer than others', over KV heads; NaN if all zero."""
        first, others = self.lengths
        ratio = np.divide(first, others, out=np.full(first.shape, np.nan), where=others > 0)
        known = ratio[np.isfinite(ratio)]
        return (float(known.min()), float(known.max())) if known.size else (float("nan"), float("nan"))

    @property
    def resting(self) -> int:
        """Heads that give it at least STRONG of their weight."""
        return int((self.share >= STRONG).sum())


@dataclass(frozen=True, eq=False)
class Sinks:
    """Every opening of one text. The losses are of the same tokens: those that come after position `half`."""

    ids: tuple[int, ...]
    half: int
    other: int  # the token that was put in front
    control: int  # the place of the token that was forgotten in the first one's stead
    openings: tuple[OpeningResult, ...] = field(repr=False)

    def of(self, opening: Opening) -> OpeningResult:
        return next(result for result in self.openings if result.opening == opening)


def measure(model: Transformer, ids: Sequence[int], other: int) -> Steps[Sinks]:
    """Reads the text as it is (`kept`), with the token `other` in front, without its first token (`dropped`),
    with that token hidden from the middle on (`forgotten`), and with another one hidden (`control`).

    Raises ShapeError for a text with fewer than FEWEST tokens, ConfigError for an encoder, KeyError for a
    model whose mixer leaves no pattern.
    """
    if len(ids) < FEWEST:
        raise ShapeError(f"the text has {len(ids)} tokens: give at least {FEWEST}, so that it has two halves")
    if not model.config.causal:
        raise ConfigError("causal", False, "must be True: an encoder has no next token to predict")
    half, result = len(ids) // 2, []
    ways: dict[Opening, tuple[tuple[int, ...], int | None]] = {
        "kept": (tuple(ids), None),
        "other": ((other, *ids), None),
        "dropped": (tuple(ids[1:]), None),
        "forgotten": (tuple(ids), 0),
        "control": (tuple(ids), half // 2),
    }
    for opening in OPENINGS:
        text, hidden = ways[opening]
        result.append(_opened(model, opening, text, hidden, len(ids) - half))
        yield Progress(len(result), len(OPENINGS))
    return Sinks(tuple(ids), half, other, half // 2, tuple(result))


def _opened(
    model: Transformer, opening: Opening, text: tuple[int, ...], hidden: int | None, later: int
) -> OpeningResult:
    """Reads one opening. The last `later` queries are its second half; `hidden` is what they may not see."""
    start = len(text) - later
    edits = {} if hidden is None else _hidden(model, hidden, start)
    recording = record(model, text, edits=edits, only={"pattern", "v", "logits"})
    seen = 1 if hidden == 0 else 0
    losses = next_token_losses(recording)[start:]  # the second half's queries, but the last: nothing follows
    share, even = _share(recording, seen, start)
    values = np.linalg.norm(recording.stacked("v").astype(np.float64), axis=-1)  # (layer, kv_head, key)
    lengths = np.stack([values[..., seen], values[..., seen + 1 :].mean(-1)])
    return OpeningResult(opening, text, seen, share, even, float(losses.mean()), lengths)


def _share(recording: Recording, seen: int, start: int) -> tuple[np.ndarray, float]:
    """Returns the mean weight on the earliest token in sight, (layer, head), and that of even heads."""
    patterns, even = recording.stacked("pattern"), even_pattern(recording.seen())
    if not seen:
        return first_score(patterns), float(first_score(even))
    rest = even[start:, seen:]
    return patterns[:, :, start:, seen].mean(-1), float((rest[:, 0] / rest.sum(-1)).mean())


def _hidden(model: Transformer, key: int, start: int) -> dict[str, Callable[[Tensor], Tensor]]:
    """Returns edits that hide a key from the queries from `start` on, in every layer."""

    def edit(scores: Tensor) -> Tensor:
        scores = scores.clone()  # (batch, head, query, key)
        scores[:, :, start:, key] = -float("inf")
        return scores

    return {f"blocks.{i}.masked_scores": edit for i in range(model.config.n_layers)}
