"""The races that come with the app: `python -m engine.experiments races` trains them and writes
`checkpoints/races/NAME.json`, which the app shows before a visitor trains.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from engine.data.tasks.all import TASKS
from engine.experiments.command import places, processor, reading, write_json
from engine.experiments.ladder_gains import losses
from engine.experiments.stored_races import Stored, load_race, run_race
from engine.presets.ladder import FIRST_FOUR, LADDER, MOST_STEPS, RACE_TRAINING
from engine.presets.races import QUESTIONS
from engine.presets.task_recipes import task_recipe
from engine.service.state import RunSpec
from engine.training.numerics import keep_memory

log = logging.getLogger("glassformer.races")
SHIPPED = Path(__file__).parents[2] / "checkpoints" / "races"
CORPUS, LETTERS = "shakespeare", 65
SEEDS = (0, 1, 2)
UNSEEDED = ("attention-8", "block-8")  # they explode, and cost most
RUNGS = "ladder"  # the race of all rungs, beside those of QUESTIONS
DIGITS, ADDITIONS = "digits", ("addition", "addition_reversed")  # the same sums, written from either end


def rung_specs(
    names: Sequence[str],
    corpus: str = CORPUS,
    text: str | None = None,
    vocab_size: int = LETTERS,
    seed: int = 0,
    steps: int = RACE_TRAINING.steps,
    seconds: float = 0.0,
) -> tuple[RunSpec, ...]:
    """Returns the runs of a race of rungs, in the order given. Only the budget may be changed: `steps`, or so
    many `seconds` of computing each, in which a larger rung does fewer steps.
    """
    train = replace(RACE_TRAINING, seed=seed, steps=MOST_STEPS if seconds else steps, seconds=seconds)
    return tuple(
        RunSpec(replace(r.model, vocab_size=vocab_size), train, corpus, text, r.title, r.parts)
        for r in (LADDER[name] for name in names)
    )


def question_specs(name: str, seed: int = 0) -> tuple[RunSpec, ...]:
    """Returns the runs of a race of QUESTIONS."""
    return tuple(
        RunSpec(c.model, replace(c.train, seed=seed), CORPUS, name=c.title)
        for c in QUESTIONS[name].contestants
    )


def task_spec(name: str) -> RunSpec:
    """Returns the run that trains a synthetic task by its recipe."""
    model, train = task_recipe(TASKS[name])
    return RunSpec(model, train, name, name=TASKS[name].title)


def specs_of(name: str) -> tuple[RunSpec, ...]:
    """Returns the runs of a shipped race."""
    if name == DIGITS:
        return tuple(map(task_spec, ADDITIONS))
    return rung_specs(tuple(LADDER)) if name == RUNGS else question_specs(name)


@cache
def shipped(name: str) -> Stored:
    """Reads a race that comes with the app. Raises CheckpointError where it cannot be read."""
    return load_race(SHIPPED / f"{name}.json")


def seed_losses(name: str) -> tuple[float, ...]:
    """Reads a rung's losses on unseen text after the shipped race's training with each of SEEDS; none where
    it was not trained with them. Raises CheckpointError where the file cannot be read.
    """
    return _seeds().get(name, ())


@cache
def _seeds() -> dict[str, tuple[float, ...]]:
    with reading(SHIPPED / "seeds.json", "races seeds") as stored:
        return {name: tuple(map(float, losses)) for name, losses in stored["losses"].items()}


def train_seeds(folder: Path) -> None:
    """Trains the rungs with the seeds that the shipped race has not, validated at their ends alone, and
    writes `seeds.json` after each: the same command goes on with those that are missing.
    """
    first = losses(load_race(folder / f"{RUNGS}.json").runs)
    path = folder / "seeds.json"
    stored: dict[str, list[float]] = json.loads(path.read_text())["losses"] if path.exists() else {}
    for name in (n for n in (*FIRST_FOUR, *LADDER) if n not in UNSEEDED and n not in stored):
        over = [round(first[name], 4)]
        for seed in SEEDS[1:]:
            (spec,) = rung_specs([name], seed=seed)
            quiet = replace(spec.train, eval_every=0, sample_every=0, snapshot_every=0)
            (view,) = run_race([replace(spec, train=quiet)], "").runs
            over.append(round(view.history.evaluations[-1].validation_loss, 4))
        stored[name] = over
        log.info("%s: %s", name, over)
        ordered = {name: stored[name] for name in LADDER if name in stored}
        what = {"made": _made("seeds"), "seeds": SEEDS, "losses": ordered}
        write_json(path, what)


def _made(name: str) -> str:
    threads = torch.get_num_threads()
    how = f"{threads} thread{'s' if threads > 1 else ''}"
    return f"python -m engine.experiments races {name}, {time.strftime('%Y-%m-%d')}, on {processor()}, {how}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = places(__doc__)
    parser.add_argument(
        "races", nargs="*", help=f"of {', '.join((RUNGS, DIGITS, *QUESTIONS, 'seeds'))} (default: all)"
    )
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    keep_memory()
    folder = options.into / "races"
    folder.mkdir(parents=True, exist_ok=True)
    for name in options.races or (RUNGS, DIGITS, *QUESTIONS, "seeds"):
        if name == "seeds":
            train_seeds(folder)
            continue
        race = run_race(specs_of(name), _made(name))
        race.save(folder / f"{name}.json")
        looked = {view.name: view.history.evaluations for view in race.runs}
        ends = {who: round(looks[-1].validation_loss, 3) for who, looks in looked.items() if looks}
        log.info("%s: %s", name, ends)
