"""Trains the races that come with the app: `python -m studies.experiments races`."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from runs.state import RunSpec
from studies.experiments.command import begin, folder_options, processor
from studies.experiments.race_recipes import QUESTIONS
from studies.experiments.stored_races import Stored, load_race, run_race
from studies.experiments.thinking_aloud import RACES as THOUGHT_ALOUD
from studies.tasks.all import TASKS
from studies.tasks.recipes import task_recipe
from studies.tasks.rungs import LADDER, LONG_TRAINING, MOST_STEPS, RACE_TRAINING

log = logging.getLogger("glassformer.races")
SHIPPED = Path(__file__).parents[2] / "checkpoints" / "races"
CORPUS, LETTERS = "shakespeare", 65
SEEDS = (0, 1, 2)
OTHERS = "; other seeds "  # in what a race is made of, before the date and machine of its repeats
RUNGS = "ladder"  # the race of all rungs, beside those of QUESTIONS
DIGITS, ADDITIONS = "digits", ("addition", "addition_reversed")  # the same sums, written from either end
ALL = (RUNGS, DIGITS, *THOUGHT_ALOUD, *QUESTIONS)


def rung_specs(
    names: Sequence[str],
    corpus: str = CORPUS,
    text: str | None = None,
    vocab_size: int = LETTERS,
    steps: int = RACE_TRAINING.steps,
    seconds: float = 0.0,
) -> tuple[RunSpec, ...]:
    """Returns the runs of a race of rungs, in the order given. Only the budget may be changed: `steps` (as
    many as LONG_TRAINING has are its recipe), or so many `seconds` of computing each.
    """
    recipe = LONG_TRAINING if steps == LONG_TRAINING.steps else RACE_TRAINING
    train = replace(recipe, steps=MOST_STEPS if seconds else steps, seconds=seconds)
    return tuple(
        RunSpec(replace(r.model, vocab_size=vocab_size), train, corpus, text, r.title, r.parts)
        for r in (LADDER[name] for name in names)
    )


def question_specs(name: str) -> tuple[RunSpec, ...]:
    """Returns the runs of a race of QUESTIONS."""
    return tuple(RunSpec(c.model, c.train, CORPUS, name=c.title) for c in QUESTIONS[name].contestants)


def task_spec(name: str) -> RunSpec:
    """Returns the run that trains a synthetic task by its recipe."""
    model, train = task_recipe(TASKS[name])
    return RunSpec(model, train, name, name=TASKS[name].title)


def specs_of(name: str) -> tuple[RunSpec, ...]:
    """Returns the runs of a shipped race."""
    if name == DIGITS:
        return tuple(map(task_spec, ADDITIONS))
    if name in THOUGHT_ALOUD:
        return THOUGHT_ALOUD[name].specs()
    return rung_specs(tuple(LADDER)) if name == RUNGS else question_specs(name)


@cache
def shipped(name: str) -> Stored:
    """Reads a race that comes with the app. Raises CheckpointError where it cannot be read."""
    return load_race(SHIPPED / f"{name}.json")


def rung_losses() -> dict[str, tuple[float, ...]]:
    """Reads the shipped race's validation losses by seed: rung -> nats per token. Raises CheckpointError."""
    return {name: end_losses(shipped(RUNGS), rung.title) for name, rung in LADDER.items()}


def end_losses(race: Stored, name: str) -> tuple[float, ...]:
    """Returns the validation losses (nats per token) at the end of a run and of its repeats, by seed."""
    return tuple(view.history.evaluations[-1].validation_loss for view in race.over_seeds(name))


def seeds_of(name: str) -> Sequence[int]:
    """Returns the seeds of a shipped race; the first is that of the race itself."""
    return QUESTIONS[name].seeds if name in QUESTIONS else SEEDS


def train_race(name: str, folder: Path) -> Stored:
    """Trains a shipped race and its repeats, unless stored, and writes the file after each."""
    path, specs = folder / f"{name}.json", specs_of(name)
    race = load_race(path) if path.exists() else None
    if race is None or not all(map(RunSpec.same_recipe, specs, (view.spec for view in race.runs))):
        race = run_race(specs, _made(name))
        race.save(path)
    else:
        log.info("%s: %s holds this recipe, left as it is; delete it to train again", name, path)
    if more := specs[len(race.runs) :]:
        added = f"{', '.join(spec.name for spec in more)} {_when_and_where()}"
        race = replace(race, runs=(*race.runs, *run_race(more, "").runs), made=f"{race.made}; {added}")
        race.save(path)
    for seed in seeds_of(name)[1:]:
        for spec in specs:
            repeat = replace(spec, train=replace(spec.train, seed=seed, sample_every=0, snapshot_every=0))
            if any(view.spec.same_recipe(repeat) for view in race.over_seeds(spec.name)):
                continue
            if OTHERS not in race.made:
                race = replace(race, made=f"{race.made}{OTHERS}{_when_and_where()}")
            race = replace(race, repeats=(*race.repeats, *run_race([repeat], "").runs))
            log.info("%s, %s: %s", name, spec.name, end_losses(race, spec.name))
            race.save(path)
    return race


def _made(name: str) -> str:
    return f"python -m studies.experiments races {name}, {_when_and_where()}"


def _when_and_where() -> str:
    threads = torch.get_num_threads()
    how = f"{threads} thread{'s' if threads > 1 else ''}"
    return f"{time.strftime('%Y-%m-%d')}, on {processor()}, {how}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = folder_options(__doc__)
    parser.add_argument("races", nargs="*", help=f"of {', '.join(ALL)} (default: all)")
    options = parser.parse_args(arguments)
    begin()
    folder = options.into / "races"
    folder.mkdir(parents=True, exist_ok=True)
    for name in options.races or ALL:
        race = train_race(name, folder)
        log.info("%s: %s", name, {view.name: end_losses(race, view.name) for view in race.runs})
