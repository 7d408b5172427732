"""The training of a model that is looked into, where it has one: a run, or a shipped time-lapse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.measure.attention.head_scores import HeadFormation, formed
from engine.service.history import losses_at
from engine.service.state import RunView
from engine.training.snapshot_series import Lapse
from ui import session
from ui.models import LAPSES, RUN, lapse_of
from ui.players.scrubber import Mark

DOES = {"previous": "looks one back", "induction": "copies"}


@dataclass(frozen=True)
class Timeline:
    """`steps` can be looked into; `losses` (nats per token, of the training) and `marks` belong to them.
    `total` is how many steps the training has; `formed` are the heads of the marks; `run` is the id of one
    that may still go on.
    """

    steps: tuple[int, ...]
    losses: tuple[float | None, ...]
    marks: tuple[Mark, ...]
    total: int
    formed: tuple[HeadFormation, ...] = ()
    run: str | None = None
    active: bool = False


def timeline_of(name: str) -> Timeline | None:
    """Returns the timeline of a model in the bar; None for one whose training is not here."""
    if name in LAPSES:
        return of_lapse(lapse_of(name))
    view = session.manager().view(name.removeprefix(RUN)) if name.startswith(RUN) else None
    return of_run(view) if view is not None else None


def of_lapse(lapse: Lapse) -> Timeline:
    return Timeline(
        lapse.steps, lapse.losses, marks(lapse.formed, lapse.steps), lapse.train.steps, lapse.formed
    )


def of_run(view: RunView) -> Timeline:
    heads = formed((look.step, look.heads) for look in view.history.evaluations)
    return Timeline(
        view.snapshots,
        tuple(losses_at(view.snapshots, view.history)),
        marks(heads, view.snapshots),
        view.total_steps,
        heads,
        view.id,
        view.active,
    )


def marks(formations: Iterable[HeadFormation], steps: tuple[int, ...]) -> tuple[Mark, ...]:
    """Returns a mark for each step at which heads had formed for the first time: of the `steps` with
    snapshots, the first at or after it.

    >>> formations = [HeadFormation(12, "previous", 0, 3), HeadFormation(15, "induction", 1, 0)]
    >>> marks(formations, (0, 10, 20))[0].words
    '0.3 looks one back, 1.0 copies'
    """
    by_step: dict[int, list[HeadFormation]] = {}
    for one in formations:
        at = next((step for step in steps if step >= one.step), None)
        if at is not None:
            by_step.setdefault(at, []).append(one)
    return tuple(
        Mark(
            step,
            ", ".join(f"{one.layer}.{one.head}" for one in some),
            ", ".join(f"{one.layer}.{one.head} {DOES[one.kind]}" for one in some),
        )
        for step, some in sorted(by_step.items())
    )
