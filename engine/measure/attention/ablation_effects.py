"""What switching parts off did, read off a `Comparison`: the candidates before and after, and how far the
prediction moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.config import ModelConfig
from engine.measure.attention.ablation import Comparison, Switches
from engine.measure.recording import Recording
from engine.model import Transformer
from engine.parts.heads import by_heads


@dataclass(frozen=True, eq=False)
class Consequence:
    """At one place: the likeliest tokens before and after, with both probabilities, all (token,); those of
    before come first. `kl` there, and its mean over the positions that are compared, in nats; `change` of
    the loss, nats per token, None where it is not measured.
    """

    tokens: np.ndarray
    before: np.ndarray
    after: np.ndarray
    kl: float
    mean_kl: float
    change: float | None

    @property
    def first_before(self) -> tuple[int, float]:
        """The likeliest token before, and its probability."""
        return _first(self.tokens, self.before)

    @property
    def first_after(self) -> tuple[int, float]:
        """The same afterwards."""
        return _first(self.tokens, self.after)


def _first(tokens: np.ndarray, probabilities: np.ndarray) -> tuple[int, float]:
    best = int(probabilities.argmax())
    return int(tokens[best]), float(probabilities[best])


def consequence(found: Comparison, place: int, count: int = 8) -> Consequence:
    """`count` candidates each, before and after; what both have is named once."""
    pair = (found.before, found.after)
    likeliest = [np.argsort(-r.logits[place], kind="stable")[:count].tolist() for r in pair]
    tokens = np.array([*dict.fromkeys([*likeliest[0], *likeliest[1]])], dtype=np.int64)
    before, after = (np.exp(r.log_probabilities[place][tokens]) for r in pair)
    known = found.loss_before is not None and found.loss_after is not None
    change = found.loss_after - found.loss_before if known else None  # type: ignore[operator]
    return Consequence(tokens, before, after, float(found.kl[place]), float(np.nanmean(found.kl)), change)


def surest_place(recording: Recording) -> int:
    """The place of the later half where the model is surest of what it predicts; of equal ones the
    earlier.
    """
    half = len(recording.ids) // 2
    return half + int(recording.log_probabilities[half:].max(-1).argmax())


def changes_nothing(switches: Switches) -> bool:
    """Whether everything is on and every token in its place."""
    free = Switches(place=switches.place, seed=switches.seed, ablation=switches.ablation)
    return switches == free


def is_silent(config: ModelConfig, switches: Switches) -> bool:
    """Whether no head writes anything: every one of them gives zero."""
    every = {(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)}
    return switches.ablation == "zero" and set(switches.heads_off) >= every


def writes_a_bias(model: Transformer) -> bool:
    """Whether attention adds an output bias b_O, which no head owns and no switch takes away."""
    return any(by_heads(block.mixer).constant() is not None for block in model.blocks)


@dataclass(frozen=True)
class Missed:
    """The head without which the prediction moves most, by `most` nats on average, and by how little it moves
    without the one that is missed least.
    """

    layer: int
    head: int
    most: float
    least: float


def missed(values: np.ndarray) -> Missed:
    """From the KL with each head off alone, (layer, head). NaN where nothing is finite."""
    if not np.isfinite(values).any():
        return Missed(0, 0, float("nan"), float("nan"))
    layer, head = (int(i) for i in np.unravel_index(np.nanargmax(values), values.shape))
    return Missed(layer, head, float(values[layer, head]), float(np.nanmin(values)))
