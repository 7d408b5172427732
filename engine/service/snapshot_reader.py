"""A run's files, read: a model to look into, a state to resume from, a file to download."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from engine.errors import CheckpointError, RunError
from engine.service.state import Run, RunView
from engine.training.records import TrainState
from engine.weights.checkpoints import (
    AnyCheckpoint,
    Checkpoint,
    LabelCheckpoint,
    checkpoint_of,
    load_state,
    load_weights,
    pack,
)

T = TypeVar("T")
Trained = AnyCheckpoint
SNAPSHOT = "this snapshot"
NO_TOWER = (
    "This run learns from pairs or labels, but this page shows models that read and continue one text. Open"
    " the run on Cross-attention (pairs) or Families, Classifier (labels) instead."
)
Reader = Callable[[Path], tuple[T, dict[str, Any]]]


class SavedSnapshot:
    """One snapshot of a run: where it lies, and of which step. Raises RunError when it is not kept."""

    def __init__(self, run: Run | None, step: int | None) -> None:
        """Finds the snapshot of a `step`; None: the newest."""
        if run is None:
            raise RunError("This run no longer exists.")
        self.requested_step = step
        self.step = run.newest if step is None else step
        saved = run.snapshots.get(self.step) if self.step is not None else None
        if saved is None:
            raise RunError(
                "This run has no snapshot yet."
                if self.step is None
                else f"There is no snapshot of step {self.step}."
            )
        self.path = saved.path

    def state(self) -> TrainState:
        """Raises RunError if it was thinned out, CheckpointError if damaged; so do the others."""
        return self._read(load_state)[0]

    def model(self) -> Checkpoint:
        """Raises RunError, too, for a run that learns from pairs or labels."""
        return transformer(self.trained())

    def trained(self) -> Trained:
        return opened(*self.made_of())

    def made_of(self) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Any]]:
        """Returns what `opened` builds the model from, which may be sent to another process."""
        weights, meta = self._read(load_weights)
        return meta, weights, {"corpus": meta["corpus"], "step": self.requested_step, "train": meta["train"]}

    def zipped(self, view: RunView | None) -> bytes:
        """Returns a zip for `checkpoints.unpack`, with the measurements up to its step."""
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
        found = opened(meta, state.weights(), metrics)
        labels = found.labels if isinstance(found, LabelCheckpoint) else ()
        return pack(found.model, found.tokenizer, metrics, labels)

    def _read(self, read: Reader[T]) -> tuple[T, dict[str, Any]]:
        try:
            return read(self.path)
        except CheckpointError:
            if not self.path.exists():  # thinned while it was being read
                raise RunError(f"The snapshot of step {self.step} is no longer kept.") from None
            raise


def transformer(trained: Trained) -> Checkpoint:
    """Returns a trained Transformer. Raises RunError for a model of another kind."""
    if not isinstance(trained, Checkpoint):
        raise RunError(NO_TOWER)
    return trained


def opened(meta: Mapping[str, Any], weights: Mapping[str, Tensor], metrics: dict[str, Any]) -> Trained:
    """Returns a snapshot's model, of its kind and made of the parts that it was trained with."""
    config = {**meta["model"], "parts": meta.get("parts", "healthy")}
    return checkpoint_of(config, meta["tokenizer"], weights, metrics, SNAPSHOT)
