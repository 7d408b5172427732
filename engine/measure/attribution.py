"""Direct logit attribution: how much each writer to the residual stream pushed one logit (Elhage et al.
2021).

The stream is a sum, and the unembedding is linear. Only the final norm's division stands between them; with
its scale held at the value it has on this text, a logit is a sum of one number for each writer, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from engine.config import ModelConfig
from engine.errors import ConfigError, ShapeError
from engine.measure.recording import Recording
from engine.measure.residual import is_sum, outputs
from engine.model import Transformer

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


@torch.no_grad()
def attribute(
    model: Transformer, recording: Recording, position: int, target: int, versus: Versus = None
) -> Attribution:
    """The parts of the logit of `target` at `position`; minus the logit of `versus`, or minus the mean of all
    logits ('mean').

    With y = g (x - mean(x)) / s + b and u the target's row of the unembedding, u . y = sum over writes w of d
    . w, plus u . b, where d = centred(g u) / s. RMSNorm does not centre. Raises ConfigError where the stream
    is no sum, ShapeError for a place or token that is not there.
    """
    c = model.config
    if not is_sum(c):
        raise ConfigError(
            "wiring", c.wiring, "leaves no sum of writes to take apart; it must be 'pre' or 'parallel'"
        )
    length, vocab = recording.logits.shape
    if not (
        0 <= position < length
        and 0 <= target < vocab
        and (not isinstance(versus, int) or 0 <= versus < vocab)
    ):
        raise ShapeError(f"position must be below {length} and tokens below {vocab}")
    pick = _chooser(target, versus)
    u = pick(model.output_matrix.double())  # (d_model,)
    direction, norm_bias, scale = _through_norm(
        model.norm_final, c, torch.tensor(outputs(recording)[-1][position]).double(), u
    )
    blocks = range(c.n_layers)
    d = direction.cpu().numpy()
    return Attribution(
        logit=float(pick(torch.tensor(recording.logits[position]).double())),
        embedding=_dot(recording, "embed", position, d),
        position=_dot(recording, "pos_embed", position, d),
        heads=np.stack([_heads(model.blocks[i], recording, i, position, direction) for i in blocks]),
        attention_bias=np.array([_bias(model.blocks[i], direction) for i in blocks]),
        feedforward=np.array([_dot(recording, f"blocks.{i}.ffn_out", position, d) for i in blocks]),
        norm_bias=norm_bias,
        scale=scale,
    )


def _chooser(target: int, versus: Versus) -> Callable[[Tensor], Tensor]:
    """Rows (vocab, ...) -> the target's, less what it is compared with."""
    if versus is None:
        return lambda rows: rows[target]
    return lambda rows: rows[target] - (rows.mean(0) if versus == "mean" else rows[versus])


def _through_norm(norm: Any, c: ModelConfig, x: Tensor, u: Tensor) -> tuple[Tensor, float, float]:
    """(direction d, u . b, scale s) such that u . norm(x) = d . x + u . b."""
    gain, bias = getattr(norm, "gain", None), getattr(norm, "bias", None)
    if c.norm == "none":
        return u, 0.0, 1.0
    centred = x - x.mean() if c.norm == "layernorm" else x
    scale = (centred.square().mean() + c.norm_eps).sqrt().to(u.device)
    direction = u if gain is None else u * gain.double()
    if c.norm == "layernorm":
        direction = (
            direction - direction.mean()
        )  # taking the mean off the reader is taking it off what is read
    return direction / scale, 0.0 if bias is None else float(u @ bias.double()), float(scale)


def _dot(recording: Recording, name: str, position: int, d: np.ndarray) -> float:
    return float(recording[name][position].astype(np.float64) @ d) if name in recording else 0.0


def _heads(block: Any, recording: Recording, layer: int, position: int, direction: Tensor) -> np.ndarray:
    """(head,): z_h W_O,h . d. Without W_O a head writes its own slice of the stream."""
    c = recording.config
    if f"blocks.{layer}.z" not in recording:
        return np.zeros(c.n_heads)
    w_o = getattr(block.mixer, "w_o", None)
    reader = direction if w_o is None else direction @ w_o.weight.double()  # (d_model,) -> (head * d_head,)
    z = recording[f"blocks.{layer}.z"][:, position].astype(np.float64)  # (head, d_head)
    return np.asarray((z * reader.cpu().numpy().reshape(z.shape)).sum(-1))


def _bias(block: Any, direction: Tensor) -> float:
    bias = getattr(getattr(block.mixer, "w_o", None), "bias", None)
    return 0.0 if bias is None else float(bias.double() @ direction)
