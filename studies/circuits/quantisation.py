"""Quantisation: numbers in few bits, rounded to the nearest of some levels, with a scale for each block.

With 32 numbers to a block these are the kinds of ggml (llama.cpp): symmetric in 8 bits its Q8_0, with an
offset in 4 bits its Q4_1. https://github.com/ggml-org/ggml/blob/master/src/ggml-quants.c

A quantised twin shares all tensors of its model; the matrices of a block are rounded when the block is
reached and given up behind it, so that no more than one block is in memory twice.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.data.progress import Progress, Steps
from engine.errors import ConfigError, ShapeError
from engine.model import Transformer, build
from engine.training.numerics import perplexity
from studies.weights.pretrained.blocks import QuantisedBlock

BLOCK = 32  # numbers that share a scale, as in ggml
PART = 16  # bits of a scale or a minimum: both are kept as float16
FULL = 32  # bits of a number that is not rounded
BITS = (8, 4, 3, 2)


@dataclass(frozen=True)
class Rounding:
    """A way to write numbers in `bits` each. `block` numbers of a row share a scale; 0: the whole matrix
    shares one. Without `offset` a number is d * q, with q from -(2^(bits - 1) - 1) to as much above zero.
    With it, it is d * q + m, with q from 0 to 2^bits - 1.
    """

    bits: int
    block: int = BLOCK
    offset: bool = False

    def validate(self) -> Rounding:
        """Returns itself; raises ConfigError for bits or a block that cannot be."""
        if not 2 <= self.bits <= 8:
            raise ConfigError("bits", self.bits, "must be between 2 and 8")
        if self.block < 0:
            raise ConfigError("block", self.block, "must be at least 1, or 0 for the whole matrix")
        return self

    @property
    def top(self) -> int:
        """The largest q."""
        return 2**self.bits - 1 if self.offset else 2 ** (self.bits - 1) - 1

    @property
    def levels(self) -> int:
        """The number of values of q. A symmetric way does not use one of the 2^bits patterns.

        >>> Rounding(2).levels, Rounding(2, offset=True).levels
        (3, 4)
        """
        return self.top + 1 if self.offset else 2 * self.top + 1

    def stored_bits(self, rows: int, columns: int) -> float:
        """Returns bits per number of a matrix, with its share of scales and minima; blocks end with rows.

        >>> Rounding(4, offset=True).stored_bits(1, 32), Rounding(4).stored_bits(2, 40)
        (5.0, 4.8)
        """
        scales = rows * math.ceil(columns / self.block) if self.block else 1
        return self.bits + scales * PART * (1 + self.offset) / max(rows * columns, 1)


@dataclass(frozen=True, eq=False)
class Rounded:
    """A matrix (row, column) in few bits. `q` are whole numbers (row, block, number); `scale` d and
    `minimum` m are (row, block, 1), or (1, 1, 1) for the whole matrix; m is zero without an offset.
    """

    way: Rounding
    columns: int
    q: Tensor = field(repr=False)
    scale: Tensor = field(repr=False)
    minimum: Tensor = field(repr=False)

    @property
    def values(self) -> Tensor:
        """The matrix d * q + m, (row, column) float32."""
        return (self.q * self.scale).add_(self.minimum).flatten(1)[:, : self.columns]


def rounded(matrix: Tensor, way: Rounding) -> Rounded:
    """Rounds each number of a matrix (row, column) to the nearest level of its block, ties away from zero.
    Like in ggml, the numbers are rounded with the exact scale, and the scale's float16 is stored. The last
    block of a row may be shorter. Raises ConfigError.
    """
    way.validate()
    x = matrix.float()
    columns = x.shape[1]
    if way.block:
        more = -columns % way.block  # filled up with its last number, which changes no scale
        x = F.pad(x[None], (0, more), mode="replicate")[0] if more else x
        x = x.unflatten(1, (-1, way.block))  # (row, block, number)
        axes: tuple[int, ...] = (2,)
    else:
        x, axes = x[:, None], (0, 1, 2)
    least, most = x.amin(axes, keepdim=True), x.amax(axes, keepdim=True)
    if way.offset:
        d, m = (most - least) / way.top, least
        q = (x - m).mul_(inverse(d)).add_(0.5).floor_()
    else:
        d, m = torch.maximum(most, -least) / way.top, torch.zeros_like(least)
        q = x * inverse(d)
        q.add_(q.sign(), alpha=0.5).trunc_()
    return Rounded(way, columns, q, d.half().float(), m.half().float())


def inverse(d: Tensor) -> Tensor:
    """Returns 1 / d, and 0 where d is 0: a block of equal numbers has no step."""
    return torch.where(d == 0, 0.0, 1 / d)


@dataclass(frozen=True, eq=False)
class RoundingError:
    """The loss of precision of a matrix.

    `relative` is the length of the difference as a share of the matrix's, `largest` the largest difference of
    a number, `zeros` the share of zeros now; `bits` are those of a number with its
    share of the scales.
    """

    relative: float
    largest: float
    zeros: float
    bits: float


@dataclass(frozen=True, eq=False)
class Histogram:
    """Shares of the numbers in the bins between `edges` (bin + 1,), before and after: (bin,) each."""

    edges: np.ndarray
    before: np.ndarray
    after: np.ndarray

    @property
    def middles(self) -> np.ndarray:
        return (self.edges[1:] + self.edges[:-1]) / 2


def rounding_error(matrix: Tensor, quantised: Rounded | None) -> RoundingError:
    """Compares a matrix with its quantised form; None for a matrix that stayed as it is."""
    x = matrix.float()
    values = x if quantised is None else quantised.values
    apart = values - x
    size = float(x.norm())
    return RoundingError(
        relative=float(apart.norm()) / size if size else 0.0,
        largest=float(apart.abs().max()),
        zeros=float((values == 0).float().mean()),
        bits=FULL if quantised is None else quantised.way.stored_bits(*x.shape),
    )


def histogram(matrix: Tensor, quantised: Rounded | None, bins: int = 121) -> Histogram:
    """Counts the numbers in bins around zero that hold all but the outermost thousandth."""
    x = matrix.float().flatten().cpu().numpy()
    after = x if quantised is None else quantised.values.flatten().cpu().numpy()
    reach = float(np.quantile(np.abs(x[np.isfinite(x)]), 0.999)) if np.isfinite(x).any() else 1.0
    edges = np.linspace(-1, 1, bins + 1) * (reach or 1.0)
    shares = [np.histogram(v, edges)[0] / v.size for v in (x, after)]
    return Histogram(edges, *shares)


Q4_1 = Rounding(4, BLOCK, offset=True)


@torch.inference_mode()
def made(matrix: Tensor, row: int, index: int) -> QuantisedBlock:
    """Quantises the same block of a matrix by Q4_1. Raises ShapeError where there is no such block."""
    if not 0 <= row < matrix.shape[0] or not 0 <= index * BLOCK < matrix.shape[1]:
        raise ShapeError(f"a matrix of {tuple(matrix.shape)} has no block {index} in a row {row}")
    own = matrix[row : row + 1, index * BLOCK : (index + 1) * BLOCK].float()
    result = rounded(own, Q4_1)
    q = result.q.flatten()[: own.shape[1]].int().cpu().numpy()
    return QuantisedBlock("Q4_1", float(result.scale), float(result.minimum), q, own[0].cpu().numpy())


Scope = Literal["matrix", "kind", "all"]
TABLES = ("embedding", "unembedding")


def matrices(model: Transformer) -> dict[str, tuple[str, ...]]:
    """Returns kind -> the full names of the matrices of that kind, one for each block that has it. Gains,
    biases and tables of positions are not among them: ggml keeps them whole, too.
    """
    result: dict[str, list[str]] = {}
    for name, tensor in model.named_parameters():
        if tensor.dim() == 2 and (name in TABLES or name.startswith("blocks.")):
            kind = name if name in TABLES else name.split(".", 2)[2]
            result.setdefault(kind, []).append(name)
    return {kind: tuple(names) for kind, names in result.items()}


def chosen(model: Transformer, name: str, scope: Scope) -> tuple[str, ...]:
    """Returns the matrix of a name, all of its kind, or all there are. Raises ConfigError."""
    known = matrices(model)
    kind = next((kind for kind, names in known.items() if name in names), None)
    if kind is None:
        raise ConfigError("name", name, "is not a matrix of this model")
    if scope == "all":
        return tuple(name for names in known.values() for name in names)
    return known[kind] if scope == "kind" else (name,)


def twin(model: Transformer, names: Collection[str], way: Rounding) -> Transformer:
    """Returns a model that shares all tensors, but for `names`, which are rounded. Raises ConfigError."""
    way.validate()
    tensors = model.state_dict()
    if odd := sorted(set(names) - tensors.keys()):
        raise ConfigError("name", odd[0], "is not a matrix of this model")
    made = build(model.config, device="meta", parts=model.parts).requires_grad_(False)
    tables = {name: _made(tensors[name], way) for name in names if name in TABLES}
    made.load_state_dict(tensors | tables, strict=True, assign=True)
    for index, block in enumerate(made.blocks):
        at = f"blocks.{index}."
        own = {name.removeprefix(at): tensors[name] for name in names if name.startswith(at)}
        if own:
            _when_reached(block, own, way)
    return made.eval()


def _made(tensor: Tensor, way: Rounding) -> Tensor:
    return rounded(tensor, way).values.to(tensor.dtype)


def _when_reached(block: nn.Module, own: Mapping[str, Tensor], way: Rounding) -> None:
    """Rounds the block's matrices while it computes, and puts its own back after."""

    def before(module: nn.Module, given: Any) -> None:
        module.load_state_dict({n: _made(x, way) for n, x in own.items()}, strict=False, assign=True)

    def after(module: nn.Module, given: Any, made: Any) -> None:
        module.load_state_dict(dict(own), strict=False, assign=True)

    block.register_forward_pre_hook(before)
    block.register_forward_hook(after)


@dataclass(frozen=True, eq=False)
class Losses:
    """The mean loss of a text's tokens after the first, nats: `full`, and by number of BITS for blocks of 32
    and for one scale a matrix. `matrices` and `numbers` were rounded; `tokens` were predicted.
    """

    full: float
    by_block: np.ndarray = field(repr=False)
    whole: np.ndarray = field(repr=False)
    matrices: int
    numbers: int
    tokens: int

    def at(self, bits: int, whole: bool) -> float:
        """Returns the loss at so many bits, nats; of 32 bits that of the model as it is."""
        if bits == FULL:
            return self.full
        return float((self.whole if whole else self.by_block)[BITS.index(bits)])

    def enough(self, whole: bool, more: float) -> int:
        """Returns the fewest bits with a loss at most a share `more` above the model's; 32 if 8 fail."""
        enough = FULL
        for bits in sorted(BITS, reverse=True):
            if self.at(bits, whole) > (1 + more) * self.full:
                break
            enough = bits
        return enough

    def perplexity(self, bits: int, whole: bool) -> float:
        return perplexity(self.at(bits, whole))


@torch.inference_mode()
def losses(
    model: Transformer, ids: Sequence[int], names: Collection[str], offset: bool = False
) -> Steps[Losses]:
    """Measures the loss on a text with the matrices `names` in fewer and fewer bits. Raises ShapeError."""
    if not model.config.causal:
        raise ShapeError("an encoder does not predict the next token, so it has no loss on a text as it is")
    if len(ids) < 2:
        raise ShapeError("the text has one token: a loss needs a second one to predict")
    tokens = torch.tensor([list(ids)], device=model.embedding.device)
    ways = [Rounding(bits, block, offset) for block in (Rounding(4).block, 0) for bits in BITS]
    full = _loss(model, tokens)
    yield Progress(1, len(ways) + 1)
    losses = []
    for done, way in enumerate(ways):
        losses.append(_loss(twin(model, names, way), tokens))
        yield Progress(done + 2, len(ways) + 1)
    by_block, whole = np.array(losses).reshape(2, len(BITS))
    parameters = dict(model.named_parameters())
    numbers = sum(parameters[name].numel() for name in names)
    return Losses(full, by_block, whole, len(names), numbers, len(ids) - 1)


def _loss(model: Transformer, tokens: Tensor) -> float:
    logits = model(tokens)[0, :-1].double()  # (query - 1, vocab)
    return float(F.cross_entropy(logits, tokens[0, 1:]))
