"""Direct logit attribution: how much each writer to the stream pushed a logit (Elhage et al. 2021).

The stream is a sum, and the unembedding is linear. With the scale of the final norm held at its value on this
text, a logit is a sum of one number for each writer, exactly.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from engine.config import ModelConfig
from engine.errors import ConfigError, ShapeError
from engine.model import Transformer
from engine.parts.attention import by_heads
from engine.parts.norms import FixedDivisor
from engine.parts.registry import HEALTHY, Parts
from engine.recording import Recording
from studies.residual.stream import outputs

BLOCK = 1024  # rows that are summed in float32
Versus = int | Literal["mean"] | None


@dataclass(frozen=True, eq=False)
class Attribution:
    """The contributions to one logit, or to a difference of logits, in nats (float64). Absent parts are 0."""

    logit: float  # as the model computed it
    embedding: float
    position: float
    heads: np.ndarray  # (layer, head)
    attention_bias: np.ndarray  # (layer,): W_O's bias, which belongs to no head
    feedforward: np.ndarray  # (layer,)
    norm_bias: float
    scale: float  # what the final norm divided by

    @property
    def total(self) -> float:
        rest = self.heads.sum() + self.attention_bias.sum() + self.feedforward.sum()
        return float(self.embedding + self.position + rest + self.norm_bias)

    @property
    def size(self) -> float:
        """The sum of all contributions by size, which a rounding error is measured by."""
        many = np.concatenate([self.heads.ravel(), self.attention_bias, self.feedforward])
        few = abs(self.embedding) + abs(self.position) + abs(self.norm_bias)
        return float(few + np.abs(many).sum())


@torch.no_grad()
def attribute(
    model: Transformer, recording: Recording, position: int, target: int, versus: Versus = None
) -> Attribution:
    """Splits the logit of `target` at `position`, minus that of `versus` or the mean of all logits ('mean').

    With y = g (x - mean(x)) / s + b and u the target's row of the unembedding, u . y = sum over writes w of
    d . w, plus u . b, where d = centred(g u) / s. RMSNorm does not centre: each norm says its own d. Raises
    ConfigError where the stream is no sum, or a part cannot be taken apart, or ShapeError.
    """
    c = model.config
    if not model.parts.sums(c):
        raise ConfigError(
            "wiring", c.wiring, "leaves no sum of writes to take apart; it must be 'pre' or 'parallel'"
        )
    if not model.output.linear:
        raise ConfigError(
            "output_head", c.output_head, "makes no logit that is a product with the stream; 'linear' does"
        )
    length, vocab = recording.logits.shape
    if not (
        0 <= position < length
        and 0 <= target < vocab
        and (not isinstance(versus, int) or 0 <= versus < vocab)
    ):
        raise ShapeError(f"position must be below {length} and tokens below {vocab}")
    pick = _chooser(target, versus)
    u = pick(model.output_matrix).cpu()  # (d_model,)
    through = through_norm(model.norm_final, torch.tensor(outputs(recording)[-1][position]).double(), u)
    d = through.direction
    blocks = range(c.n_layers)
    layers = [_layer(model, recording, i, position, d) for i in blocks]
    # A norm before the first block leaves no sum before it: what it gives is the embedding's.
    first = ("norm_embed",) if "norm_embed" in recording else ("embed", "pos_embed", "type_embed")
    result = Attribution(
        logit=float(pick(torch.tensor(recording.logits[position]))),
        embedding=sum(_dot(recording, name, position, d) for name in first if name != "pos_embed"),
        position=_dot(recording, "pos_embed", position, d) if "pos_embed" in first else 0.0,
        heads=np.stack([heads for heads, _ in layers]),
        attention_bias=np.array([bias for _, bias in layers]),
        feedforward=np.array([_dot(recording, f"blocks.{i}.ffn_out", position, d) for i in blocks]),
        norm_bias=through.constant,
        scale=through.scale,
    )
    agree(result.total, result.logit, result.size, "wiring", model.blocks[0])
    return result


def _chooser(target: int, versus: Versus) -> Callable[[Tensor], Tensor]:
    """Returns a function of rows (vocab, ...): the target's, less the one it is compared with, float64."""
    if versus is None:
        return lambda rows: rows[target].double()
    if versus == "mean":
        return lambda rows: rows[target].double() - _mean(rows)
    return lambda rows: rows[target].double() - rows[versus].double()


def _mean(rows: Tensor) -> Tensor:
    """Returns the mean over the vocabulary, (vocab, ...) -> (...) float64, by float32 blocks."""
    sums = [block.sum(0, dtype=torch.float32) for block in rows.split(BLOCK)]
    return torch.stack(sums).sum(0, dtype=torch.float64) / len(rows)


def through_norm(norm: Any, x: Tensor, u: Tensor) -> FixedDivisor:
    """Linearises a norm of a model at x for the reader u, both (d_model,) float64. Raises ConfigError where
    it does not divide x by a single number.
    """
    norm = copy.deepcopy(norm).double().cpu()
    result: FixedDivisor | None = norm.with_fixed_divisor(x, u)
    if result is None:
        raise ConfigError(
            "norm", type(norm).__name__, "is no division by one number: no logit is a sum of what was written"
        )
    parts = result.direction * x
    agree(float(parts.sum()) + result.constant, float(u @ norm(x)), float(parts.abs().sum()), "norm", norm)
    return result


def _layer(
    model: Transformer, recording: Recording, layer: int, position: int, d: Tensor
) -> tuple[np.ndarray, float]:
    """Returns each head's push, (head,), and the constant one. Raises ConfigError if not all."""
    name = f"blocks.{layer}."
    if name + "attn_out" not in recording:
        return np.zeros(model.config.n_heads), 0.0
    mixer = by_heads(model.blocks[layer].mixer)
    z = torch.from_numpy(recording[name + "z"].astype(np.float64)).to(model.embedding.device)
    heads = mixer.writes_at(z, position).cpu() @ d  # (head, d_model) (d_model,) -> (head,)
    constant = mixer.constant()
    bias = 0.0 if constant is None else float(constant.double().cpu() @ d)
    wrote = _dot(recording, name + "attn_out", position, d)
    agree(float(heads.sum()) + bias, wrote, float(heads.abs().sum()) + abs(bias), "mixer", mixer)
    return heads.numpy(), bias


def agree(ours: float, wanted: float, size: float, field: str, part: object) -> None:
    """Raises ConfigError where a swapped part does something else than it declares: where `ours` is not
    `wanted`, but for the rounding of a sum of that `size`.
    """
    if not abs(ours - wanted) <= 1e-3 * size + 1e-6:
        raise ConfigError(
            field,
            type(part).__name__,
            "does something else than it says of itself: no logit can be taken apart into what was written",
        )


def _dot(recording: Recording, name: str, position: int, d: Tensor) -> float:
    return float(recording[name][position].astype(np.float64) @ d.numpy()) if name in recording else 0.0


MOST_HEADS = 40  # that stand by themselves; more are summed, layer by layer


@dataclass(frozen=True)
class Push:
    """One writer's push on the logit, nats. `part`: embedding, position, attention, feedforward, norm."""

    label: str
    part: str
    value: float


@dataclass(frozen=True)
class Pushes:
    """Every writer, bottom first; many heads are summed layer by layer, but not in `single`, from which
    `most` and `least` come. `difference` is the sum of the parts less the logit: rounding.
    """

    writers: tuple[Push, ...]
    single: tuple[Push, ...]
    most: Push
    least: Push
    difference: float

    def leading(self, count: int) -> tuple[Push, ...]:
        """Returns the `count` single writers that push hardest, highest first, then the sum of all others."""
        order = sorted(self.single, key=lambda push: -abs(push.value))
        first = sorted(order[:count], key=lambda push: -push.value)
        rest = order[count:]
        if rest:
            first.append(Push(f"{len(rest):,} others", "others", sum(push.value for push in rest)))
        return tuple(first)


def pushes(config: ModelConfig, attribution: Attribution, parts: Parts = HEALTHY) -> Pushes:
    """Returns the bars of an attribution. They sum to its total: what is left out is 0."""
    by_head = attribution.heads.size <= MOST_HEADS
    single = _writers(config, attribution, parts, by_head=True)
    writers = single if by_head else _writers(config, attribution, parts, by_head=False)
    most, least = (choose(single, key=lambda push: push.value) for choose in (max, min))
    return Pushes(writers, single, most, least, attribution.total - attribution.logit)


def _writers(
    config: ModelConfig, attribution: Attribution, parts: Parts, *, by_head: bool
) -> tuple[Push, ...]:
    c = config.resolved()
    rows = [Push("embed", "embedding", attribution.embedding)]
    if attribution.position or ("embed" in parts.position(c).enters and not c.embedding_norm):
        rows.append(Push("position", "position", attribution.position))
    for i in range(config.n_layers):
        rows += _attention(parts.mixer(c).present, attribution, i, by_head=by_head)
        if parts.feedforward(c).present:
            rows.append(Push(f"ffn {i}", "feedforward", float(attribution.feedforward[i])))
    if attribution.norm_bias or config.norm_bias:
        rows.append(Push("norm bias", "norm", attribution.norm_bias))
    return tuple(rows)


def _attention(mixes: bool, attribution: Attribution, layer: int, *, by_head: bool) -> list[Push]:
    rows = []
    if mixes:
        heads = attribution.heads[layer]
        if by_head:
            rows += [Push(f"head {layer}.{h}", "attention", float(v)) for h, v in enumerate(heads)]
        else:
            rows.append(Push(f"heads {layer}", "attention", float(heads.sum())))
    if attribution.attention_bias[layer]:
        rows.append(Push(f"attn bias {layer}", "attention", float(attribution.attention_bias[layer])))
    return rows
