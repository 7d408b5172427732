"""A finished race as a small file, which the app shows before a visitor trains: the same curves and texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.config import ModelConfig, TrainConfig
from engine.data.corpora import from_text
from engine.parts.registry import parts_of
from engine.training.records import Done, Evaluation, Record, Sample, TaskScores
from runs.history import SHOWN, History
from runs.kinds import Data, kind_of
from runs.race import Entrant, race
from runs.state import Run, RunSpec, RunView
from studies.experiments.command import reading, write_json

POINTS = 200  # of a curve's batches that are stored
DIGITS = 5


@dataclass(frozen=True)
class Stored:
    """A stored race. `made` names the command, the machine and the date; `runs` are of ended runs without
    snapshots. `repeats` are the same trainings with other seeds: of them only the evaluations are stored.
    `more` is what else its file holds.
    """

    made: str
    runs: tuple[RunView, ...]
    repeats: tuple[RunView, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def save(self, path: Path) -> None:
        """Writes some tens of kilobytes of JSON."""
        packed = {"runs": [_packed(view) for view in self.runs]}
        if self.repeats:
            packed["repeats"] = [_packed(view, curve=False) for view in self.repeats]
        write_json(path, {"made": self.made} | packed | dict(self.more))

    def repeats_of(self, shown: Sequence[RunView]) -> tuple[RunView, ...]:
        """Returns the repeats of those runs that are shown as stored; a live run has none."""
        names = {run.name for run in self.runs if any(run is view for view in shown)}
        return tuple(view for view in self.repeats if view.name in names)

    def over_seeds(self, name: str) -> tuple[RunView, ...]:
        """Returns the run of this name and its repeats, the first seed first."""
        return tuple(view for view in (*self.runs, *self.repeats) if view.name == name)


def run_race(
    specs: Sequence[RunSpec],
    made: str,
    device: str = "auto",
    on_record: Callable[[int, Record], object] = lambda who, record: None,
) -> Stored:
    """Trains all of them in turns, in this process and to their ends, and returns the race as a file holds
    it. `on_record` gets every record, with the index of its run. Raises ConfigError or CorpusError.
    """
    texts = {(s.corpus, s.text, s.train.tokenizer): None for s in specs}
    corpora = {key: _corpus(*key) for key in texts}
    entrants = [
        Entrant(s.model, s.train, corpora[s.corpus, s.text, s.train.tokenizer], parts_of(s.parts))
        for s in specs
    ]
    runs = [Run("", "", spec, Path(), 0.0, status="running") for spec in specs]
    for who, record in race(entrants, device=device):
        on_record(who, record)
        if isinstance(record, Done):
            runs[who].become("failed" if record.reason == "diverged" else "finished")
        else:
            runs[who].take_in(record)
    return Stored(made, tuple(run.view(0) for run in runs))


def _corpus(name: str, text: str | None, tokenizer: str) -> Data:
    return from_text(text, tokenizer=tokenizer) if text else kind_of(name).read(name, tokenizer)


def load_race(path: Path) -> Stored:
    """Reads a stored race. Raises CheckpointError when it is not complete."""
    with reading(path, f"races {path.stem}") as values:
        runs, repeats = (tuple(map(_opened, values.get(name, ()))) for name in ("runs", "repeats"))
        if not runs:
            raise ValueError("it has no runs")
        more = {name: each for name, each in values.items() if name not in ("made", "runs", "repeats")}
        return Stored(str(values["made"]), runs, repeats, more)


def _packed(view: RunView, *, curve: bool = True) -> dict[str, Any]:
    rows, spec = view.history.rows[: None if curve else 0], view.spec
    some = np.unique(np.linspace(0, max(0, len(rows) - 1), min(POINTS, len(rows))).astype(np.int64))
    return {
        "name": view.given or view.name,
        "model": spec.model.to_dict(),
        "train": spec.train.to_dict(),
        "corpus": spec.corpus,
        "parts": spec.parts,
        "status": view.status,
        "message": view.message,
        "step": view.step,
        "seconds": round(view.seconds, 2),
        "precision": view.precision,
        "curve": {
            name: _rounded(rows[name][some]) for name in ("step", "loss", "grad_norm", "seconds", "bits")
        },
        "looks": [asdict(e) | {"heads": None} for e in view.history.evaluations],
        "samples": [asdict(s) for s in view.history.samples],
    }


def _rounded(values: np.ndarray) -> list[float | None]:
    return [float(f"{v:.{DIGITS}g}") if np.isfinite(v) else None for v in values.tolist()]


def _look(values: Mapping[str, Any]) -> Evaluation:
    """An evaluation, with its scores of a task where it has some."""
    task = values.get("task")
    return Evaluation(**{**values, "task": TaskScores(**task) if task else None})


def _opened(values: Mapping[str, Any]) -> RunView:
    model, train = ModelConfig.from_dict(values["model"]), TrainConfig.from_dict(values["train"])
    curve = values["curve"]
    rows = np.zeros(len(curve["step"]), SHOWN)
    rows["learning_rate"] = np.nan  # is not stored
    for name, column in curve.items():
        rows[name] = [np.nan if v is None else v for v in column]
    rows["tokens"] = rows["step"] * kind_of(values["corpus"]).tokens(model, train, values["corpus"])
    looks = tuple(_look(look) for look in values["looks"])
    history = History(rows, looks, tuple(Sample(**sample) for sample in values["samples"]))
    spec = RunSpec(model, train, values["corpus"], name=values["name"], parts=values["parts"])
    run = Run("", "", spec, Path(), 0.0, status=values["status"], message=values["message"])
    run.step, run.seconds, run.precision = values["step"], values["seconds"], values["precision"]
    return replace(run.view(0), history=history)
