"""The table of checks and bugs, measured: `python -m studies.experiments doctor [--work FOLDER] [--again NAME
...]` trains every fault of the lab, examines the model, and writes checkpoints/doctor.json.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.checkpoints import load_state, save_state, write_whole
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.data.progress import finish
from engine.model import build
from engine.parts.registry import parts_of
from engine.training.records import Done, Evaluation, Sample, Snapshot, Step, TrainState
from engine.training.train import train
from studies.experiments.command import begin, folder_options, reading, strided, write_json
from studies.lab.doctor.case import Case, TrainingCurve
from studies.lab.doctor.check import Finding
from studies.lab.doctor.checks import CHECKS, examine
from studies.lab.faults import FAULTS, Fault

log = logging.getLogger("glassformer.doctor")
NAME = "doctor.json"
PATH = Path(__file__).resolve().parents[3] / "checkpoints" / NAME
HEALTHY = "healthy"
STRIDE = 5  # the losses of so many steps are one point of a stored curve
DIGITS = 4
# Fewer than on a page, for time.
LOOKS: dict[str, Any] = {"eval_every": 50, "eval_tokens": 4096, "look_early": False}


@dataclass(frozen=True, eq=False)
class Chart:
    """The chart of one trained model: its curve (means of STRIDE batches), samples and findings."""

    name: str
    steps: np.ndarray = field(repr=False)  # (point,): the last step of each
    losses: np.ndarray = field(repr=False)
    evaluations: tuple[Evaluation, ...]
    samples: tuple[Sample, ...]
    diverged: bool
    counting: float  # the loss of counting letters on its text
    findings: Mapping[str, Finding]

    @property
    def caught_by(self) -> tuple[str, ...]:
        """The names of the checks that it failed."""
        return tuple(name for name, finding in self.findings.items() if finding.verdict == "fail")


def subject_of(name: str) -> Fault:
    """Returns a fault of the lab, or the healthy model as one."""
    return FAULTS[name] if name in FAULTS else Fault(HEALTHY, "No bug", "", "", "")


def text_of(fault: Fault, corpus: Corpus) -> Corpus:
    """Returns the text that a fault is shown on."""
    return corpora.from_text(corpus.text[: fault.characters], corpus.name) if fault.characters else corpus


def trained(fault: Fault, corpus: Corpus) -> tuple[TrainState, dict[str, Any]]:
    """Trains the model with its fault, and returns its state and the course of its training."""
    corpus = text_of(fault, corpus)
    model, settings, parts = fault.faulty()
    model, settings = replace(model, vocab_size=corpus.vocab_size), replace(settings, **LOOKS)
    losses: list[float] = []
    looks: list[dict[str, Any]] = []
    samples: list[dict[str, Any]] = []
    state, diverged = None, False
    for record in train(model, settings, corpus, parts=parts_of(parts), device="cpu"):
        match record:
            case Step():
                losses.append(record.loss)
            case Evaluation():
                looks.append(asdict(record))
            case Sample():
                samples.append(asdict(record))
            case Snapshot():
                state = record.state
            case Done():
                diverged = record.reason == "diverged"
    assert state is not None
    return state, {"losses": losses, "looks": looks, "samples": samples, "diverged": diverged}


def case_of(fault: Fault, state: TrainState, went: Mapping[str, Any], corpus: Corpus) -> Case:
    """Returns the doctor's case: the model, the configuration that was meant, its text and its training."""
    corpus = text_of(fault, corpus)
    meant, _, _ = fault.healthy()
    config, settings, parts = fault.faulty()
    meant, config = (replace(c, vocab_size=corpus.vocab_size) for c in (meant, config))
    model = build(config, parts=parts_of(parts))
    model.load_state_dict(state.weights())
    losses = np.array(went["losses"])
    looks = tuple(Evaluation(**look) for look in went["looks"])
    curve = TrainingCurve(np.arange(1, len(losses) + 1), losses, looks, went["diverged"])
    return Case(model, meant, corpus, settings, curve)


def examined(fault: Fault, state: TrainState, went: Mapping[str, Any], corpus: Corpus) -> dict[str, Any]:
    """Returns one row of the stored table."""
    findings = finish(examine(case_of(fault, state, went, corpus)))
    return {
        "losses": [round(float(loss), DIGITS) for loss in strided(went["losses"], STRIDE)],
        "looks": [
            [look["step"], round(look["train_loss"], DIGITS), round(look["validation_loss"], DIGITS)]
            for look in went["looks"]
        ],
        "samples": [[sample["step"], sample["prompt"], sample["text"]] for sample in went["samples"]],
        "diverged": went["diverged"],
        "counting": round(text_of(fault, corpus).baselines["unigram"], DIGITS),
        "findings": {
            f.check: [f.verdict, _digits(f.number), f.sentence, round(f.seconds, 2)] for f in findings
        },
    }


def _digits(number: float | None) -> float | None:
    return None if number is None or not np.isfinite(number) else float(f"{number:.5g}")


def read(name: str, stored: Mapping[str, Any]) -> Chart:
    """Reads a row of the stored table."""
    losses = np.array(stored["losses"], dtype=np.float64)
    return Chart(
        name,
        STRIDE * np.arange(1, len(losses) + 1),
        losses,
        tuple(Evaluation(step, one, other, 0.0, False) for step, one, other in stored["looks"]),
        tuple(Sample(*sample) for sample in stored["samples"]),
        stored["diverged"],
        stored["counting"],
        {check: Finding(check, *values) for check, values in stored["findings"].items()},
    )


@cache
def shipped(path: Path = PATH) -> Mapping[str, Chart]:
    """Reads the charts of all examined faults, and of the healthy model, by name. Raises CheckpointError for
    an unreadable file.
    """
    with reading(path, "doctor") as stored:
        rows = stored["rows"]
        return {name: read(name, rows[name]) for name in (HEALTHY, *FAULTS) if name in rows}


def make(into: Path, work: Path, corpus: Corpus, names: Sequence[str], again: Sequence[str]) -> None:
    """Trains each named fault's model (again if in `again`), examines it and writes the table. A model that
    is stored in `work` is not trained again.
    """
    work.mkdir(parents=True, exist_ok=True)
    rows: dict[str, Any] = {}
    for name in names:
        fault, file, notes = subject_of(name), work / f"{name}.state", work / f"{name}.json"
        made_by = [*(part.to_dict() for part in fault.faulty()[:2]), fault.parts, fault.characters]
        kept = json.loads(notes.read_text("utf-8")) if notes.exists() and file.exists() else {}
        if kept.get("made_by") != json.loads(json.dumps(made_by)) or name in again:
            state, went = trained(fault, corpus)
            save_state(file, state, {})
            kept = {"made_by": made_by, "went": went}
            write_whole(notes, json.dumps(kept).encode())
        rows[name] = examined(fault, load_state(file)[0], kept["went"], corpus)
        caught = [check for check, finding in rows[name]["findings"].items() if finding[0] == "fail"]
        log.info("%s: %s", name, ", ".join(caught) or "nothing found")
        write_json(into / NAME, _about(corpus) | {"rows": rows})


def _about(corpus: Corpus) -> dict[str, Any]:
    return {
        "made_by": "python -m studies.experiments doctor",
        "corpus": corpus.name,
        "stride": STRIDE,
        "checks": list(CHECKS),
        "torch": torch.__version__,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = folder_options(__doc__)
    parser.add_argument("--again", nargs="*", default=[], help="faults to be trained anew")
    options = parser.parse_args(arguments)
    begin(threads=1)
    torch.set_flush_denormal(True)  # numbers too small to matter would take a hundred times as long
    work = options.work or corpora.cache_folder() / "doctor"
    make(options.into, work, corpora.load("shakespeare"), [HEALTHY, *FAULTS], options.again)
