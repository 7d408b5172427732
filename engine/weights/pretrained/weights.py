"""From the tensors of a file, under the names of its makers, to those of this engine's model. Strict in
both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from engine.errors import PretrainedError

Change = Callable[[np.ndarray], np.ndarray]


class Source(Protocol):
    """A file or a folder of tensors."""

    @property
    def title(self) -> str:
        """The name to use in messages, never a path of this machine."""
        ...

    @property
    def bits(self) -> float:
        """Bits that one number takes on disk, on average."""
        ...

    def names(self) -> Iterable[str]: ...

    def shape(self, name: str) -> tuple[int, ...]: ...

    def numbers(self, name: str) -> np.ndarray:
        """Returns a tensor as float32, all of it finite. Raises PretrainedError."""
        ...


@dataclass(frozen=True)
class Piece:
    """Where one of our tensors comes from: each of `parts` (its name there, what to do to it), stacked row
    block under row block.
    """

    parts: tuple[tuple[str, Change | None], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.parts)

    def __add__(self, below: Piece) -> Piece:
        return Piece(self.parts + below.parts)


def piece(*names: str, change: Change | None = None) -> Piece:
    """Tensors that are all changed alike."""
    return Piece(tuple((name, change) for name in names))


def transposed(x: np.ndarray) -> np.ndarray:
    """Transposes a matrix: GPT-2 keeps its matrices as (in, out); here, as in PyTorch, they are (out, in). A
    bias stays as it is.
    """
    return x.T


def offset_gain(x: np.ndarray) -> np.ndarray:
    """Adds 1 to a gain: Gemma stores its gains minus 1."""
    return x + 1


def half_split(n_heads: int) -> Change:
    """Reorders the rows of a query or key matrix, (head * d_head, d_model), out of the order in which GGUF's
    llama keeps them.

    There the two rows that RoPE turns together are neighbours; here, as at Hugging Face, they are half a head
    apart.
    """

    def change(x: np.ndarray) -> np.ndarray:
        return x.reshape(n_heads, -1, 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)

    return change


def by_head(n_heads: int) -> Change:
    """Unpacks GPT-NeoX's fused matrix: it stacks q, k and v head by head, (head, 3, d_head, ...); here all of
    q comes first, (3, head, d_head, ...).
    """

    def change(x: np.ndarray) -> np.ndarray:
        return x.reshape(n_heads, 3, -1, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)

    return change


def assembled(
    model: nn.Module, pieces: Mapping[str, Piece], source: Source, ignored: Collection[str] = ()
) -> Iterator[tuple[str, Tensor]]:
    """Yields our names with float32 tensors, all that a model has, which may be on the meta device. Each is
    made when it is requested, so that never all have to lie in memory.

    `ignored` may be there or not: buffers, and copies of a tied matrix; a name that ends in a dot stands for
    all that begin so. Raises PretrainedError that names the tensor which is missing, left over, of another
    shape than the model's (before the first is made), or not finite.
    """
    wanted = {name: tuple(p.shape) for name, p in model.named_parameters()}
    if wanted.keys() != pieces.keys():
        odd = sorted(wanted.keys() ^ pieces.keys())
        raise PretrainedError(f"{source.title}: its family's table does not fit the configuration: {odd[0]}")
    there, used = set(source.names()), {name for each in pieces.values() for name in each.names}
    if missing := sorted(used - there):
        raise PretrainedError(f"{source.title} lacks the tensor {missing[0]}{_more(missing)}")
    prefixes = tuple(name for name in ignored if name.endswith("."))
    left = there - used - set(ignored)
    if extra := sorted(name for name in left if not name.startswith(prefixes)):
        raise PretrainedError(f"{source.title} has a tensor that no part takes: {extra[0]}{_more(extra)}")
    _check_sizes(wanted, pieces, source)
    for name, each in pieces.items():
        yield name, _made(name, wanted[name], each, source)


def _check_sizes(wanted: Mapping[str, tuple[int, ...]], pieces: Mapping[str, Piece], source: Source) -> None:
    """Before anything is read: as many numbers as the configuration says."""
    for name, each in pieces.items():
        result = sum(int(np.prod(source.shape(n), dtype=np.int64)) for n in each.names)
        if result != int(np.prod(wanted[name], dtype=np.int64)):
            shapes = " and ".join(str(source.shape(n)) for n in each.names)
            raise PretrainedError(
                f"{source.title}: {' and '.join(each.names)} of shape {shapes} should make {wanted[name]}"
            )


def _made(name: str, shape: tuple[int, ...], each: Piece, source: Source) -> Tensor:
    parts = [source.numbers(n) if change is None else change(source.numbers(n)) for n, change in each.parts]
    result = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if result.shape != shape:
        raise PretrainedError(f"{source.title}: {' and '.join(each.names)} make {result.shape}, not {shape}")
    return torch.from_numpy(np.ascontiguousarray(result, dtype=np.float32))


def _more(names: Collection[str]) -> str:
    return f", and {len(names) - 1} more" if len(names) > 1 else ""
