"""A model with some of its matrices in few bits, and what its loss on a text becomes.

The model itself stays as it is: others look into it at the same time. A twin is made that shares all its
tensors, and the matrices of a block are rounded when the block is reached and given up behind it: never more
than one block is held twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.data.progress import Progress, Steps
from engine.errors import ConfigError, ShapeError
from engine.measure.circuits.rounding import (
    BITS,
    FULL,
    Rounding,
    rounded,
)
from engine.model import Transformer, build
from engine.training.numerics import perplexity

Scope = Literal["matrix", "kind", "all"]
TABLES = ("embedding", "unembedding")


def matrices(model: Transformer) -> dict[str, tuple[str, ...]]:
    """kind -> the full names of the matrices of that kind, one for each block that has it: what multiplies
    the stream.

    Gains, biases and tables of positions are not among them: they are few, and ggml keeps them whole, too.
    """
    found: dict[str, list[str]] = {}
    for name, tensor in model.named_parameters():
        if tensor.dim() == 2 and (name in TABLES or name.startswith("blocks.")):
            kind = name if name in TABLES else name.split(".", 2)[2]
            found.setdefault(kind, []).append(name)
    return {kind: tuple(names) for kind, names in found.items()}


def chosen(model: Transformer, name: str, scope: Scope) -> tuple[str, ...]:
    """The matrix of a name alone, all of its kind, or all there are. Raises ConfigError for a name that is no
    matrix.
    """
    known = matrices(model)
    kind = next((kind for kind, names in known.items() if name in names), None)
    if kind is None:
        raise ConfigError("name", name, "is no matrix of this model")
    if scope == "all":
        return tuple(name for names in known.values() for name in names)
    return known[kind] if scope == "kind" else (name,)


def twin(model: Transformer, names: Collection[str], way: Rounding) -> Transformer:
    """A model that shares the tensors of `model`, except for the matrices `names`: those it has rounded.

    Raises ConfigError for a name that is no matrix, and for a way that cannot be.
    """
    way.validate()
    tensors = model.state_dict()
    if odd := sorted(set(names) - tensors.keys()):
        raise ConfigError("name", odd[0], "is no matrix of this model")
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
    """The block has its matrices rounded while it computes, and its own ones before and after."""

    def before(module: nn.Module, given: Any) -> None:
        module.load_state_dict({n: _made(x, way) for n, x in own.items()}, strict=False, assign=True)

    def after(module: nn.Module, given: Any, made: Any) -> None:
        module.load_state_dict(dict(own), strict=False, assign=True)

    block.register_forward_pre_hook(before)
    block.register_forward_hook(after)


@dataclass(frozen=True, eq=False)
class Losses:
    """The mean loss of a text's tokens after the first, nats: `full` as the model is, and `by_bits` (number
    of BITS,) for blocks of 32 and for one scale a matrix.

    `matrices` and `numbers` were rounded; `tokens` were predicted.
    """

    full: float
    by_block: np.ndarray = field(repr=False)
    whole: np.ndarray = field(repr=False)
    matrices: int
    numbers: int
    tokens: int

    def at(self, bits: int, whole: bool) -> float:
        """Nats; of 32 bits those of the model as it is."""
        if bits == FULL:
            return self.full
        return float((self.whole if whole else self.by_block)[BITS.index(bits)])

    def enough(self, whole: bool, more: float) -> int:
        """The fewest bits at which the loss is at most a share `more` above that of the model as it is, and
        is so with all more bits too; 32 where 8 are too few.
        """
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
    """The loss on a text (position,) with the matrices `names` in fewer and fewer bits: one pass is a piece
    of work.

    Raises ShapeError for a text of one token, and for an encoder, which does not predict the next token.
    """
    if not model.config.causal:
        raise ShapeError("an encoder does not predict the next token, so it has no loss on a text as it is")
    if len(ids) < 2:
        raise ShapeError("the text has one token: a loss needs a second one to predict")
    tokens = torch.tensor([list(ids)], device=model.embedding.device)
    ways = [Rounding(bits, block, offset) for block in (Rounding(4).block, 0) for bits in BITS]
    full = _loss(model, tokens)
    yield Progress(1, len(ways) + 1)
    found = []
    for done, way in enumerate(ways):
        found.append(_loss(twin(model, names, way), tokens))
        yield Progress(done + 2, len(ways) + 1)
    by_block, whole = np.array(found).reshape(2, len(BITS))
    parameters = dict(model.named_parameters())
    numbers = sum(parameters[name].numel() for name in names)
    return Losses(full, by_block, whole, len(names), numbers, len(ids) - 1)


def _loss(model: Transformer, tokens: Tensor) -> float:
    logits = model(tokens)[0, :-1].double()  # (query - 1, vocab)
    return float(F.cross_entropy(logits, tokens[0, 1:]))
