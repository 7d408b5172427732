"""Files of runs: a manager's private folder, swept when its process is gone, snapshots in a budget, and the
models in them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout
from torch import Tensor

from engine.checkpoints import Checkpoint, pack
from engine.errors import RunError
from engine.training.records import Evaluation, TrainState
from runs.history import thin
from studies.pairs.checkpoints import AnyCheckpoint, LabelCheckpoint, checkpoint_of

T = TypeVar("T")
Trained = AnyCheckpoint
Reader = Callable[[Path], tuple[T, dict[str, Any]]]

MAX_SNAPSHOTS = 200  # of one run, however small they are
GATE, OWN = ".sweep.lock", ".alive.lock"
NO_TOWER = (
    "This run learns from pairs or labels, but this page shows models that read and continue one text. Open"
    " the run on Cross-attention (pairs) or Families, Classifier (labels) instead."
)


@dataclass(frozen=True)
class Saved:
    """A snapshot on disk."""

    path: Path
    size: int  # bytes


def thinned(sizes: Mapping[int, int], budget: int, limit: int = MAX_SNAPSHOTS) -> list[int]:
    """Returns the steps to keep, so that the sizes (step -> bytes) fit a budget: every second one is dropped
    until they do.

    The first and the newest stay; the newest alone when two are too many.

    >>> thinned({0: 10, 25: 10, 50: 10, 75: 10, 100: 10}, budget=35)
    [0, 50, 100]
    """
    steps = sorted(sizes)
    while len(steps) > 1 and (len(steps) > limit or sum(sizes[step] for step in steps) > budget):
        steps = thin(steps) if len(steps) > 2 else steps[-1:]
    return steps


def temporary_folder() -> None:
    """Makes the system's folder for temporary files again where it has been removed: Python remembers its
    name from the start on.
    """
    with suppress(OSError):  # who writes there says why it cannot
        os.makedirs(tempfile.gettempdir(), exist_ok=True)


class Store:
    """One manager's folder. Its lock file is held while the process lives, so that others can tell a dead
    one's. All managers make and sweep folders behind one gate: none is seen before its lock is held.
    """

    def __init__(self, parent: Path | None = None) -> None:
        """Raises RunError when the folder cannot be made, or belongs to somebody else."""
        self._wanted = parent
        self._open()

    def _open(self) -> None:
        """Makes the folder: at the start, and where somebody has removed it under a server that runs."""
        user = os.getuid() if hasattr(os, "getuid") else "user"
        temporary_folder()
        self.parent = self._wanted or Path(tempfile.gettempdir()) / f"glassformer-{user}"
        try:
            self.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._wanted is None and not _is_ours(self.parent):
                self.parent = Path(tempfile.mkdtemp(prefix="glassformer-"))
            with self._gate():
                self.parent.mkdir(mode=0o700, exist_ok=True)
                self._sweep()
                self.folder = self.parent / f"manager-{os.getpid()}-{secrets.token_hex(4)}"
                self.folder.mkdir(mode=0o700)
                self._alive = _lock(self.folder / OWN)
                self._alive.acquire(blocking=False)
        except OSError as error:
            advice = "Free some space there, or set TMPDIR to another folder"
            raise RunError(
                f"no folder for snapshots can be created in {self.parent}: {error.strerror or error}."
                f" {advice}"
            ) from error

    def make(self) -> Path:
        """Returns a new folder for one run. Raises RunError when there is no room for one."""
        if not self.folder.is_dir():
            self._open()
        folder = self.folder / f"run-{secrets.token_hex(8)}"
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise RunError(f"no folder could be created for the run: {error.strerror or error}") from error
        return folder

    def write_text(self, folder: Path, text: bytes) -> Path:
        """Returns the file of a run's own text (UTF-8). Raises RunError when there is no room."""
        path = folder / "text.txt"
        try:
            path.write_bytes(text)
        except OSError as error:
            raise RunError(
                f"The text could not be stored for the training ({error.strerror or error}): free some disk"
                " space."
            ) from error
        return path

    def remove(self, folder: Path) -> None:
        if folder.parent == self.folder:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Removes every file of this manager but the gate, at which a server that starts may be waiting."""
        with suppress(OSError), self._gate():  # an OSError: the parent folder has been removed under us
            shutil.rmtree(self.folder, ignore_errors=True)
            self._alive.release(force=True)
        shutil.rmtree(self.folder, ignore_errors=True)  # where an open file cannot be removed, it goes now

    def _gate(self) -> FileLock:
        return _lock(self.parent / GATE)

    def _sweep(self) -> None:
        """Removes the folders of managers that have ended without closing. The gate must be held."""
        for folder in self.parent.glob("manager-*"):
            lock = _lock(folder / OWN)
            try:
                lock.acquire(blocking=False)
            except (Timeout, OSError):
                continue  # alive, or not ours to touch
            shutil.rmtree(folder, ignore_errors=True)
            lock.release(force=True)
            shutil.rmtree(folder, ignore_errors=True)


def clear_partial(folder: Path) -> None:
    """Removes files that a killed worker had begun and not finished."""
    for path in folder.glob(".*"):
        path.unlink(missing_ok=True)


def _lock(path: Path) -> FileLock:
    # Taken and released by different threads: the housekeeping may outlive the thread that made the manager.
    return FileLock(path, timeout=30, thread_local=False)


def _is_ours(folder: Path) -> bool:
    """True if a folder in a place that everybody may write to is really this user's, and no link."""
    if not hasattr(os, "getuid"):
        return True
    state = folder.lstat()
    mine = state.st_uid == os.getuid() and not state.st_mode & 0o022
    return mine and folder.is_dir() and not folder.is_symlink()


def opened(meta: Mapping[str, Any], weights: Mapping[str, Tensor], metrics: dict[str, Any]) -> Trained:
    """Returns a snapshot's model, of its kind and made of the parts that it was trained with."""
    config = {**meta["model"], "parts": meta.get("parts", "healthy")}
    return checkpoint_of(config, meta["tokenizer"], weights, metrics, "this snapshot")


def transformer(trained: Trained) -> Checkpoint:
    """Returns a trained Transformer. Raises RunError for a model of another kind."""
    if not isinstance(trained, Checkpoint):
        raise RunError(NO_TOWER)
    return trained


def zipped(state: TrainState, meta: Mapping[str, Any], name: str, evaluations: Iterable[Evaluation]) -> bytes:
    """Returns a snapshot as a zip for `checkpoints.unpack`, with a run's measurements up to its step."""
    metrics = {
        "name": name,
        "corpus": meta["corpus"],
        "step": state.step,
        "seconds": state.seconds,
        "train": meta["train"],
        "evaluations": [asdict(e) for e in evaluations if e.step <= state.step],
    }
    trained = opened(meta, state.weights(), metrics)
    config = trained.config if isinstance(trained, LabelCheckpoint) else None
    return pack(trained.model, trained.tokenizer, metrics, config)
