"""All exercises, by sets; `make` makes one from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

from engine.errors import ExerciseError
from studies.exercises.exercise import Exercise
from studies.exercises.sets import (
    after_pretraining,
    attention,
    bugs,
    cache,
    families,
    generation,
    masks,
    parameters,
    positions,
    proofs,
    scaling,
    shapes,
    tokens,
    training,
)

Maker = Callable[[Random], Exercise]
MANY = 200  # drawings after which a clear one must have come
LARGEST_SEED = 9999


@dataclass(frozen=True)
class Set:
    """A set of exercises about one subject: id -> (title, maker)."""

    title: str
    tasks: Mapping[str, tuple[str, Maker]]


def _set(title: str, tasks: tuple[tuple[str, str, Maker], ...]) -> Set:
    return Set(title, {id_: (name, maker) for id_, name, maker in tasks})


SETS: Mapping[str, Set] = {
    "attention": _set("Attention", attention.TASKS),
    "masks": _set("Masks", masks.TASKS),
    "shapes": _set("Shapes", shapes.TASKS),
    "positions": _set("Positions", positions.TASKS),
    "tokens": _set("Tokens", tokens.TASKS),
    "parameters": _set("Parameters", parameters.TASKS),
    "training": _set("Training", (*training.TASKS, *scaling.TASKS)),
    "generation": _set("Generation", generation.TASKS),
    "cache": _set("KV cache", cache.TASKS),
    "after": _set("After pre-training", after_pretraining.TASKS),
    "families": _set("Families and bugs", (*families.TASKS, *bugs.TASKS)),
    "proofs": _set("Proofs and reasons", proofs.TASKS),
}
TASKS: Mapping[str, tuple[str, Maker]] = {
    id_: task for chosen in SETS.values() for id_, task in chosen.tasks.items()
}


def make(task: str, seed: int = 1) -> Exercise:
    """Makes the exercise `task`, the same for the same seed. Raises ExerciseError for an unknown one.

    Numbers that would give two mistakes the same result, or a mistake the right one, are drawn again.
    """
    if task not in TASKS:
        raise ExerciseError(f"there is no exercise {task!r}: choose one of {', '.join(TASKS)}")
    title, maker = TASKS[task]
    for turn in range(MANY):
        found = maker(Random(f"{task}/{seed}/{turn}"))
        if found.clear:
            return replace(found, id=task, title=title, seed=seed)
    raise AssertionError(f"{task} with seed {seed}: no clear one in {MANY}")
