"""What a run has left on disk, read: a model to look into, a state to go on from, a file to take along."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from engine.checkpoints import Checkpoint, load_state, load_weights, model_with, pack
from engine.config import ModelConfig
from engine.errors import CheckpointError, RunError
from engine.faults import parts_of
from engine.model import Transformer
from engine.service.state import Run, RunView
from engine.tokenizers import from_dict
from engine.training.records import TrainState

T = TypeVar("T")
Reader = Callable[[Path], tuple[T, dict[str, Any]]]


class Found:
    """One snapshot of a run: where it lies, and of which step. Raises RunError when it is not kept."""

    def __init__(self, run: Run | None, step: int | None) -> None:
        """`step` None: the newest."""
        if run is None:
            raise RunError("There is no such run (any more).")
        self.asked = step
        self.step = run.newest if step is None else step
        saved = run.snapshots.get(self.step) if self.step is not None else None
        if saved is None:
            raise RunError(
                "No snapshot of this run was saved yet."
                if self.step is None
                else f"No snapshot of step {self.step} is kept."
            )
        self.path = saved.path

    def state(self) -> TrainState:
        """Raises RunError when it was thinned out meanwhile, CheckpointError when it is damaged; so do the
        others.
        """
        return self._read(load_state)[0]

    def model(self) -> Checkpoint:
        weights, meta = self._read(load_weights)
        model = _model(meta, weights)
        metrics = {"corpus": meta["corpus"], "step": self.asked, "train": meta["train"]}
        return Checkpoint(model, model.config, from_dict(meta["tokenizer"]), metrics)

    def zipped(self, view: RunView | None) -> bytes:
        """With the measurements up to its step, as `engine.checkpoints.unpack` reads it."""
        state, meta = self._read(load_state)
        evaluations = [asdict(e) for e in view.history.evaluations if e.step <= state.step] if view else []
        metrics = {
            "name": view.name if view else "",
            "corpus": meta["corpus"],
            "step": state.step,
            "seconds": state.seconds,
            "train": meta["train"],
            "evaluations": evaluations,
        }
        return pack(_model(meta, state.weights()), from_dict(meta["tokenizer"]), metrics)

    def _read(self, read: Reader[T]) -> tuple[T, dict[str, Any]]:
        try:
            return read(self.path)
        except CheckpointError:
            if not self.path.exists():  # thinned while it was being read
                raise RunError(f"The snapshot of step {self.step} is no longer kept.") from None
            raise


def _model(meta: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Transformer:
    """A snapshot's model, made of the parts that it was trained with."""
    parts = parts_of(meta.get("parts", "healthy"))
    return model_with(ModelConfig.from_dict(meta["model"]), weights, "this snapshot", parts)
