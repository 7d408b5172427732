"""Options, facts and files that the commands for shipped models share."""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import torch

from engine.checkpoints import load_state, write_whole
from engine.errors import CheckpointError, without_paths
from engine.training.numerics import keep_memory
from engine.training.records import TrainState

log = logging.getLogger("glassformer.experiments")
DIGITS = 6  # of a stored float
SCALARS: Mapping[Any, Any] = {
    int: int,
    float: int | float,
    str: str,
    bool: bool,
}  # as JSON has them
T = TypeVar("T")


def folder_options(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser with the folder of the models (`--into`) and of interrupted trainings (`--work`)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--into", type=Path, default=Path("checkpoints"))
    parser.add_argument(
        "--work",
        type=Path,
        default=None,
        help="where the resumable state lies (default: the user's cache folder)",
    )
    return parser


def begin(threads: int | None = None) -> None:
    """Prepares a command: its log goes to the terminal, and it computes in so many threads, if given."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    keep_memory()
    if threads:
        torch.set_num_threads(threads)


def made(command: str) -> str:
    """Returns what made a result: the command, the date and the machine."""
    return f"python -m studies.experiments {command}, {time.strftime('%Y-%m-%d')}, on {processor()}"


def machine() -> dict[str, str | int]:
    """Returns the machine and the versions, to be stored beside a result."""
    return {
        "processor": processor(),
        "cores": os.cpu_count() or 0,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def processor() -> str:
    """Returns the graphics card where there is one, else the processor, by its maker's name."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def to_json(value: Any) -> Any:
    """Returns a dataclass with all that it holds as JSON has it, every float to DIGITS digits.

    >>> to_json((1 / 3, 7, {"a": np.array([1234567.0, 0.1], np.float32)}))
    [0.333333, 7, {'a': [1234570.0, 0.1]}]
    """
    if is_dataclass(value):
        return {each.name: to_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: to_json(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return to_json(value.tolist())
    if isinstance(value, tuple | list):
        return [to_json(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def from_json(kind: Any, value: Any) -> Any:
    """Returns what `to_json` was given: a dataclass, or a tuple, array or mapping of one type. Raises
    KeyError or TypeError for the JSON of another.

    >>> from_json(tuple[tuple[float, ...], ...], [[0.5], []])
    ((0.5,), ())
    """
    if is_dataclass(kind):
        types = get_type_hints(kind)
        return kind(**{name: from_json(types[name], each) for name, each in value.items()})  # type: ignore[operator]
    if get_origin(kind) is tuple:
        return tuple(from_json(get_args(kind)[0], each) for each in value)
    if get_origin(kind) is Mapping:
        return {name: from_json(get_args(kind)[1], each) for name, each in value.items()}
    if kind in SCALARS and not isinstance(value, SCALARS[kind]):
        raise TypeError(f"{str(value)[:40]!r} stands where a value of type {kind.__name__} is expected")
    return np.array(value, dtype=np.float64) if kind is np.ndarray else value


def strided(values: Sequence[float], stride: int) -> np.ndarray:
    """Returns the mean of each `stride` values, without the rest at the end: (point,)."""
    return np.array(values[: len(values) // stride * stride]).reshape(-1, stride).mean(1)


def write_json(path: Path, values: Any) -> None:
    """Writes a file that the app shows, whole or not at all."""
    write_whole(path, (json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n").encode())


@contextmanager
def reading(path: Path, command: str) -> Iterator[Any]:
    """Yields the JSON that a command wrote. Raises CheckpointError where reading or using it fails."""
    try:
        yield json.loads(path.read_text("utf-8"))
    except CheckpointError:
        raise
    except Exception as error:  # whatever a damaged file makes of what is done with it
        again = f"`python -m studies.experiments {command}` makes it anew"
        why = without_paths(str(error)) or type(error).__name__
        raise CheckpointError(
            f"{path.name} cannot be read: {why}. {'Delete it, then ' if path.exists() else ''}{again}"
        ) from error


def read_runs(path: Path, command: str, kind: type[T]) -> tuple[T, ...]:
    """Reads the runs of a list that a command has stored so far. Raises CheckpointError as `reading`."""
    with reading(path, command) as rows:
        return tuple(from_json(kind, row) for row in rows)


def require_all(runs: Collection[Any], plans: Collection[Any], path: Path, command: str) -> None:
    """Raises CheckpointError where a planned run is not among the stored, as after an interruption."""
    if missing := sum(plan not in runs for plan in plans):
        raise CheckpointError(
            f"{path.name} lacks {missing} of {len(plans)} runs."
            f" `python -m studies.experiments {command}` trains them"
        )


def require_recipe(stored: Mapping[str, Any], recipe: Mapping[str, Any], path: Path) -> None:
    """Raises CheckpointError where a file names other settings than these. Settings that it lacks pass."""
    recipe = json.loads(json.dumps(recipe))
    if other := [name for name in recipe if stored.get(name, recipe[name]) != recipe[name]]:
        raise CheckpointError(
            f"{path.name} was made with another recipe ({', '.join(other)}). Delete it to train all runs"
            " again, or give another folder with `--into`"
        )


def resumed(path: Path, made_by: Mapping[str, Any]) -> TrainState | None:
    """Reads the state of an interrupted training; None where there is none. Raises CheckpointError where
    another recipe made it.
    """
    if not path.exists():
        return None
    state, recorded = load_state(path)
    if recorded != made_by:
        raise CheckpointError(f"{path} was made by another recipe")
    log.info("%s: going on from step %d", path, state.step)
    return state


def complete(
    path: Path,
    plans: Sequence[Any],
    read: Callable[[Path], Sequence[Any] | Mapping[Any, Any]],
    train: Callable[[Any], Any],
    describe: Callable[[Any], str],
    whole: Callable[[dict[Any, Any]], Any] = lambda runs: [*runs.values()],
) -> None:
    """Trains each plan whose run is not in the file yet, and writes the file after every run, so that the
    command goes on after an interruption. `read` returns runs by plan, or runs that have their `plan`;
    `whole` makes the file's contents of these by plan, `describe` a line of the log.
    """
    begin(threads=1)
    stored = read(path) if path.exists() else {}
    runs = dict(stored) if isinstance(stored, Mapping) else {run.plan: run for run in stored}
    path.parent.mkdir(parents=True, exist_ok=True)
    for plan in plans:
        if plan not in runs:
            runs[plan] = train(plan)
            write_json(path, to_json(whole({each: runs[each] for each in plans if each in runs})))
        log.info("%s: %s", plan, describe(runs[plan]))
