"""The parts of a logit in the order in which they are written, and who pushed most."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import ModelConfig
from engine.measure.residual.attribution import Attribution
from engine.parts.protocols import Parts
from engine.parts.registry import HEALTHY

MOST_HEADS = 40  # that stand by themselves; more are summed, layer by layer


@dataclass(frozen=True)
class Push:
    """What one writer adds to the logit, in nats. `part` is embedding, position, attention, feedforward or
    norm.
    """

    label: str
    part: str
    value: float


@dataclass(frozen=True)
class Pushes:
    """Every writer, bottom first, as many heads are summed layer by layer; all of them by themselves in
    `single`, and of these the one that pushes most and the one that pushes least (or down); and the
    difference between the sum of the parts and the logit, which is rounding.
    """

    writers: tuple[Push, ...]
    single: tuple[Push, ...]
    most: Push
    least: Push
    difference: float

    def leading(self, count: int) -> tuple[Push, ...]:
        """The `count` single writers that push hardest, whichever way, the highest first; behind them what
        all others push together, where there are others.
        """
        order = sorted(self.single, key=lambda push: -abs(push.value))
        first = sorted(order[:count], key=lambda push: -push.value)
        rest = order[count:]
        if rest:
            first.append(Push(f"{len(rest):,} others", "others", sum(push.value for push in rest)))
        return tuple(first)


def pushes(config: ModelConfig, found: Attribution, parts: Parts = HEALTHY) -> Pushes:
    """The bars of an attribution. They sum to `found.total`: what is left out is 0."""
    by_head = found.heads.size <= MOST_HEADS
    single = _writers(config, found, parts, by_head=True)
    writers = single if by_head else _writers(config, found, parts, by_head=False)
    most, least = (choose(single, key=lambda push: push.value) for choose in (max, min))
    return Pushes(writers, single, most, least, found.total - found.logit)


def _writers(config: ModelConfig, found: Attribution, parts: Parts, *, by_head: bool) -> tuple[Push, ...]:
    c = config.resolved()
    rows = [Push("embed", "embedding", found.embedding)]
    if found.position or ("embed" in parts.position(c).enters and not c.embedding_norm):
        rows.append(Push("position", "position", found.position))
    for i in range(config.n_layers):
        rows += _attention(parts.mixer(c).present, found, i, by_head=by_head)
        if parts.feedforward(c).present:
            rows.append(Push(f"ffn {i}", "feedforward", float(found.feedforward[i])))
    if found.norm_bias or config.norm_bias:
        rows.append(Push("norm bias", "norm", found.norm_bias))
    return tuple(rows)


def _attention(mixes: bool, found: Attribution, layer: int, *, by_head: bool) -> list[Push]:
    rows = []
    if mixes:
        heads = found.heads[layer]
        if by_head:
            rows += [Push(f"head {layer}.{h}", "attention", float(v)) for h, v in enumerate(heads)]
        else:
            rows.append(Push(f"heads {layer}", "attention", float(heads.sum())))
    if found.attention_bias[layer]:
        rows.append(Push(f"attn bias {layer}", "attention", float(found.attention_bias[layer])))
    return rows
