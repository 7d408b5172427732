"""Direct logit attribution: how much each writer to the residual stream pushed one logit (Elhage et al.
2021).

The stream is a sum, and the unembedding is linear. Only the final norm's division stands between them; with
its scale held at the value it has on this text, a logit is a sum of one number for each writer, exactly.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from engine.errors import ConfigError, ShapeError
from engine.measure.recording import Recording
from engine.measure.residual.writes import outputs
from engine.model import Transformer
from engine.parts.heads import by_heads
from engine.parts.norms import Linearised

BLOCK = 1024  # rows that are summed in float32
Versus = int | Literal["mean"] | None


@dataclass(frozen=True, eq=False)
class Attribution:
    """Contributions to one logit, or to a difference of logits, in nats (float64). What the model does not
    have is 0.
    """

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
        """The sum of what all of them pushed, whichever way: what a rounding error is measured by."""
        many = np.concatenate([self.heads.ravel(), self.attention_bias, self.feedforward])
        few = abs(self.embedding) + abs(self.position) + abs(self.norm_bias)
        return float(few + np.abs(many).sum())


@torch.no_grad()
def attribute(
    model: Transformer, recording: Recording, position: int, target: int, versus: Versus = None
) -> Attribution:
    """The parts of the logit of `target` at `position`; minus the logit of `versus`, or minus the mean of all
    logits ('mean').

    With y = g (x - mean(x)) / s + b and u the target's row of the unembedding, u . y = sum over writes w of d
    . w, plus u . b, where d = centred(g u) / s. RMSNorm does not centre: each norm says its own d. Raises
    ConfigError where the stream is no sum, or a part cannot be taken apart; ShapeError for a place or token
    that is not there.
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
    through = _through_norm(model, torch.tensor(outputs(recording)[-1][position]).double(), u)
    d = through.direction
    blocks = range(c.n_layers)
    layers = [_layer(model, recording, i, position, d) for i in blocks]
    # A norm before the first block leaves no sum before it: what it gives is the embedding's.
    first = ("norm_embed",) if "norm_embed" in recording else ("embed", "pos_embed", "type_embed")
    found = Attribution(
        logit=float(pick(torch.tensor(recording.logits[position]))),
        embedding=sum(_dot(recording, name, position, d) for name in first if name != "pos_embed"),
        position=_dot(recording, "pos_embed", position, d) if "pos_embed" in first else 0.0,
        heads=np.stack([heads for heads, _ in layers]),
        attention_bias=np.array([bias for _, bias in layers]),
        feedforward=np.array([_dot(recording, f"blocks.{i}.ffn_out", position, d) for i in blocks]),
        norm_bias=through.constant,
        scale=through.scale,
    )
    _agree(found.total, found.logit, found.size, "wiring", model.blocks[0])
    return found


def _chooser(target: int, versus: Versus) -> Callable[[Tensor], Tensor]:
    """Rows (vocab, ...) -> the target's, less what it is compared with, float64."""
    if versus is None:
        return lambda rows: rows[target].double()
    if versus == "mean":
        return lambda rows: rows[target].double() - _mean(rows)
    return lambda rows: rows[target].double() - rows[versus].double()


def _mean(rows: Tensor) -> Tensor:
    """Over the vocabulary, (vocab, ...) -> (...) float64. A real one's rows are many: a block of them is
    summed in float32, the blocks in float64.
    """
    sums = [block.sum(0, dtype=torch.float32) for block in rows.split(BLOCK)]
    return torch.stack(sums).sum(0, dtype=torch.float64) / len(rows)


def _through_norm(model: Transformer, x: Tensor, u: Tensor) -> Linearised:
    """The final norm at x, as the reader u sees it. Raises ConfigError where it is no division by one number,
    or not the one that it says.
    """
    norm: Any = copy.deepcopy(model.norm_final)
    norm = norm.double().cpu()
    found: Linearised | None = norm.linearised(x, u)
    if found is None:
        raise ConfigError(
            "norm",
            type(norm).__name__,
            "is no division by one number: no logit is a sum of what was written",
        )
    parts = found.direction * x
    _agree(float(parts.sum()) + found.constant, float(u @ norm(x)), float(parts.abs().sum()), "norm", norm)
    return found


def _layer(
    model: Transformer, recording: Recording, layer: int, position: int, d: Tensor
) -> tuple[np.ndarray, float]:
    """What each head of a layer pushed, (head,), and what attention wrote whatever the heads held. Raises
    ConfigError where these are not all that it wrote.
    """
    name = f"blocks.{layer}."
    if name + "attn_out" not in recording:
        return np.zeros(model.config.n_heads), 0.0
    mixer = by_heads(model.blocks[layer].mixer)
    z = torch.from_numpy(recording[name + "z"].astype(np.float64)).to(model.embedding.device)
    heads = mixer.writes_at(z, position).cpu() @ d  # (head, d_model) (d_model,) -> (head,)
    constant = mixer.constant()
    bias = 0.0 if constant is None else float(constant.double().cpu() @ d)
    wrote = _dot(recording, name + "attn_out", position, d)
    _agree(float(heads.sum()) + bias, wrote, float(heads.abs().sum()) + abs(bias), "mixer", mixer)
    return heads.numpy(), bias


def _agree(ours: float, wanted: float, size: float, field: str, part: object) -> None:
    """A swapped part may have inherited what another says of itself: a sum would be wrong, in silence."""
    if not abs(ours - wanted) <= 1e-3 * size + 1e-6:
        raise ConfigError(
            field,
            type(part).__name__,
            "does something else than it says of itself: no logit can be taken apart into what was written",
        )


def _dot(recording: Recording, name: str, position: int, d: Tensor) -> float:
    return float(recording[name][position].astype(np.float64) @ d.numpy()) if name in recording else 0.0
