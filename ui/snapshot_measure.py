"""A number of every snapshot of a run, measured while the page is looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.data.progress import Progress, Steps
from engine.errors import GlassformerError
from engine.model import Transformer
from ui import memo
from ui.background_jobs import measured
from ui.model_bar import Subject
from ui.models import model_after
from ui.timeline import timeline_of

MOST_STEPS = 32  # snapshots that are measured


def _results(what: str, model: str, steps: Sequence[int]) -> dict[int, Any]:
    """Returns the measurements of a run so far, by step; None for a snapshot that is gone."""
    found = {step: memo.MEASURED.known(("snapshot", what, model, step)) for step in steps}
    return {step: result[0] for step, result in found.items() if result is not None}


def _keep(what: str, model: str, step: int, result: Any) -> None:
    memo.MEASURED.put(("snapshot", what, model, step), (result,), memo.size_of(result) + memo.ENTRY)


def some(steps: Sequence[int]) -> list[int]:
    """Returns at most MOST_STEPS + 1 of the snapshots, every 2^k-th: those of a shorter run stay among them,
    so that nothing is measured twice.

    >>> len(some(range(200))), some([0, 10, 20])
    (26, [0, 10, 20])
    """
    stride = 1
    while -(-len(steps) // stride) > MOST_STEPS:
        stride *= 2
    return sorted({*steps[::stride], steps[-1]})


def draw_over_snapshots(
    what: str,
    model: str,
    steps: Sequence[int],
    measure: Callable[[Transformer], Any],
    draw: Callable[[dict[int, Any]], None],
) -> None:
    """Measures snapshots of a run and draws what is there so far (step -> what `measure` gave). `what` names
    the measure among others, `model` the run as the subject's bar does.
    """
    wanted = some(steps)
    results = _results(what, model, wanted)
    missing = [step for step in wanted if step not in results]

    def measuring() -> Steps[dict[int, Any]]:
        for done, step in enumerate(missing):
            yield Progress(done, len(missing))
            try:
                results[step] = measure(model_after(model, step).model)
            except GlassformerError:
                results[step] = None  # thinned out or removed meanwhile
            _keep(what, model, step, results[step])
        return {step: results[step] for step in wanted}

    def draw_known(_: object = None) -> None:
        results.update(_results(what, model, missing))
        if known := {step: results[step] for step in wanted if results.get(step) is not None}:
            draw(known)

    if missing:
        all_of_them = measured((what, model, *wanted), measuring, "Measuring the snapshots", draw_known)
        if all_of_them is None:
            return
        results.update(all_of_them)
    draw_known()


def steps_of(subject: Subject) -> tuple[int, ...]:
    """Returns the steps of the training that is looked at; none for a model without one."""
    timeline = timeline_of(subject.key[0])
    return timeline.steps if timeline else ()
