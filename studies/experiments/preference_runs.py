"""Trainings by preferences over seeds: `python -m studies.experiments preferences` writes
`checkpoints/preferences.json`, which the app shows until a visitor trains a run. Runs that are stored already
are left as they are, so it goes on after an interruption.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from engine import checkpoints
from engine.data import corpora
from engine.data.progress import Steps, finish
from studies.after.preferences import Kind, Plan, Preferred, Taste, measure
from studies.experiments.command import complete, folder_options, made, read_runs

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
PATH = CHECKPOINTS / "preferences.json"
MODEL, CORPUS = "shakespeare-classic", "shakespeare"
SEEDS = (0, 1, 2)
BETAS = (0.02, 0.1, 0.5)
WORDS: dict[Kind, str] = {"with": "love", "without": "the"}  # of the stored runs
TASTES = (Taste("short"), Taste("long"), *(Taste(kind, word) for kind, word in WORDS.items()))
PLANS = tuple(Plan(taste, beta, seed=seed) for taste in TASTES for beta in BETAS for seed in SEEDS)


@dataclass(frozen=True)
class PreferenceRun:
    """A training by preferences; `made` says where and when."""

    preferred: Preferred = field(repr=False)
    made: str = ""

    @property
    def plan(self) -> Plan:
        return self.preferred.plan


def begin(plan: Plan, text: str = "") -> Steps[Preferred]:
    """Trains the shipped model by preferences, as `measure` does. Raises CheckpointError without it."""
    first = checkpoints.load(CHECKPOINTS / MODEL)
    return measure(first.model, first.tokenizer, plan, text)


def trained(plan: Plan) -> PreferenceRun:
    """Trains to the end. Raises CorpusError where the text for a taste about a word is not here."""
    text = corpora.load(CORPUS).text if plan.taste.of_word else ""
    return PreferenceRun(finish(begin(plan, text)), made("preferences"))


@cache
def shipped() -> tuple[PreferenceRun, ...]:
    """Reads the runs that come with the app, once. Raises CheckpointError for an unreadable file."""
    return stored()


def stored(path: Path = PATH) -> tuple[PreferenceRun, ...]:
    """Reads the runs that are stored so far. Raises CheckpointError for an unreadable file."""
    return read_runs(path, "preferences", PreferenceRun)


def main(arguments: Sequence[str] | None = None) -> None:
    def measured(run: PreferenceRun) -> str:
        return f"{run.preferred.looks[-1].measured:.2f}"

    file = folder_options(__doc__).parse_args(arguments).into / PATH.name
    complete(file, PLANS, stored, trained, measured)
