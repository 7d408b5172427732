"""One forward pass of one text, with every activation kept as an array."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from engine.config import ResolvedConfig
from engine.data.progress import Steps
from engine.errors import ConfigError, HeadError, ShapeError, UnknownNameError
from engine.model import Transformer, mask_of
from engine.parts.cache import KVCache
from engine.parts.positions import PositionHooks
from engine.parts.registry import HEALTHY, Parts
from engine.probe import Patcher, Recorder, axes_of

T = TypeVar("T")
Edits = Mapping[str, Callable[[Tensor], Tensor]]


@dataclass(frozen=True, eq=False)
class Recording:
    """Every activation of one forward pass by its full name (`blocks.3.pattern`), float32, read-only, without
    the batch axis. The names come in the order of the pass; what a variant does not have is absent.
    """

    config: ResolvedConfig
    ids: tuple[int, ...]
    arrays: Mapping[str, np.ndarray] = field(repr=False)
    parts: Parts = field(default=HEALTHY, repr=False)  # what the model was made of

    def __getitem__(self, name: str) -> np.ndarray:
        """Returns an activation by its full name. Raises UnknownNameError (a KeyError) for what this variant
        does not have or was not asked for, ShapeError for a block that never ran.
        """
        if name not in self.arrays and not self.parts.is_plain_stack and name.startswith("blocks."):
            raise ShapeError(
                f"block {name.split('.')[1]} of this model never ran: its loop over the blocks is a fault,"
                f" {self.parts.name!r}"
            )
        if name not in self.arrays:
            raise UnknownNameError("recorded activation", name, self.arrays)
        return self.arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def get(self, name: str) -> np.ndarray | None:
        """Returns an activation; None for what this variant does not have."""
        return self.arrays.get(name)

    def names(self) -> list[str]:
        return list(self.arrays)

    def axes(self, name: str) -> tuple[str, ...]:
        """Returns the axes of an array here, in the vocabulary of `engine.probe`."""
        return tuple(axis for axis in axes_of(name) if axis != "batch")

    def stacked(self, name: str) -> np.ndarray:
        """Returns an activation of all blocks, bottom first: (layer, ...). Raises KeyError without it."""
        return np.stack([self[f"blocks.{i}.{name}"] for i in range(self.config.n_layers)])

    def seen(self) -> np.ndarray:
        """Returns the keys that the model's own mask (and window) let each query see: (query, key) bool."""
        length = len(self.ids)
        mask = mask_of(self.config, self.parts, length, torch.zeros(1))
        return np.ones((length, length), dtype=bool) if mask is None else np.isfinite(mask.numpy())

    @property
    def logits(self) -> np.ndarray:
        """The logits, (query, vocab). Raises HeadError for a model without an output head."""
        if "logits" not in self.arrays and not self.parts.output(self.config).present:
            raise HeadError("this model has no output head: it gives vectors, and no logits")
        return self.arrays["logits"]

    def likeliest(self, query: int) -> int:
        """Returns the token with the largest logit at a position; of equal ones the first."""
        return int(self.logits[query].argmax())

    @property
    def guesses(self) -> np.ndarray:
        """The token with the largest logit at every position, (query,)."""
        return self.logits.argmax(-1)

    @property
    def log_probabilities(self) -> np.ndarray:
        """The log-probabilities (query, vocab), nats, computed in float64."""
        return log_softmax(self.logits)


@torch.inference_mode()
def record(
    model: Transformer,
    ids: Sequence[int],
    *,
    edits: Edits | None = None,
    only: Collection[str] | None = None,
    positions: bool = True,
    cache: KVCache | None = None,
) -> Recording:
    """Runs one sequence (position,), in the model's own arithmetic, and returns its activations as float32.

    `edits` change activations on the way (see `engine.probe.Patcher`; tensors there have their batch axis,
    which is 1). `only` limits what is recorded, to names scoped (`blocks.0.pattern`) or bare. With
    `positions` off, no hook of the scheme acts. With a `cache` the ids follow those that it holds, and
    queries are theirs alone. Raises ShapeError for no ids, for an id outside the vocabulary, for anything but
    one sequence of them, and for more than a learned table holds; UnknownNameError for an edit, or a name in
    `only`, of an activation that is not there.
    """
    config = model.config
    ids = _one_sequence(ids)
    if not ids:
        raise ShapeError("there are no tokens to look at: give at least one")
    if not all(0 <= i < config.vocab_size for i in ids):
        raise ShapeError(f"ids must lie between 0 and {config.vocab_size - 1}, the model's vocabulary")
    recorder = Recorder(only)
    tokens = torch.tensor([list(ids)], device=next(model.parameters()).device)
    probe = Patcher(edits, recorder) if edits else recorder
    model(tokens, probe, cache, hooks=None if positions else PositionHooks())
    if isinstance(probe, Patcher) and probe.untouched and model.parts.is_plain_stack:
        raise UnknownNameError("activation of this model", min(probe.untouched), recorder.passed)
    arrays = {}
    for name, tensor in recorder.tensors.items():
        kept = tensor[0] if axes_of(name)[0] == "batch" else tensor
        array = kept.float().cpu().numpy() if kept.is_floating_point() else kept.cpu().numpy()
        array.flags.writeable = False
        arrays[name] = array
    return Recording(config, tuple(ids), arrays, model.parts)


def on_recording(
    measure: Callable[..., Steps[T]], model: Transformer, ids: Sequence[int], *arguments: Any
) -> Steps[T]:
    """Measures the recording of a text: `measure(model, record(model, ids), *arguments)`."""
    return (yield from measure(model, record(model, ids), *arguments))


def _one_sequence(ids: object) -> list[int]:
    """Returns ids as a list of numbers. Raises ShapeError, saying what is wanted, for anything else."""
    if isinstance(ids, str):
        raise ShapeError("record reads ids, not text: give it tokenizer.encode(text)")
    if isinstance(ids, Tensor | np.ndarray):
        ids = ids.tolist()
    if not isinstance(ids, Sequence) or not all(isinstance(i, Integral) for i in ids):
        raise ShapeError("record reads one sequence of ids, such as [3, 1, 4], without a batch axis")
    return [int(i) for i in ids]


def check_plain_stack(parts: Parts) -> None:
    """Raises ConfigError for a model whose loop over the blocks is a fault."""
    if not parts.is_plain_stack:
        raise ConfigError(
            "parts",
            parts.name,
            "is a fault in the loop over the blocks: what is measured from one block to the next would not be"
            " what this model does",
        )


def softmax(scores: np.ndarray) -> np.ndarray:
    """Returns exp(s) / sum exp(s) over the last axis, without overflow. Shape in = shape out."""
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Returns the logarithm of softmax over the last axis, in float64. Shape in = shape out."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def next_token_losses(recording: Recording) -> np.ndarray:
    """Returns the loss of each token after the first, (query - 1,), nats."""
    following = np.asarray(recording.ids[1:], dtype=np.int64)
    return -recording.log_probabilities[np.arange(len(following)), following]


def worst_position(losses: np.ndarray) -> int:
    """Returns the position with the largest loss (query,) of a text's second half: later tokens have others
    before them.

    >>> worst_position(np.array([9.0, 1.0, 2.0, 3.0]))
    3
    """
    half = len(losses) // 2
    return half + int(losses[half:].argmax())
