"""The training of a model that is looked into, where it has one: a run, or a shipped time-lapse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from runs.history import losses_at
from runs.snapshot_series import Lapse
from runs.state import RunView
from studies.attention.head_scores import HeadFormation, formed
from ui import frames, live, session, training_step
from ui.models import LAPSES, lapse_of, run_of
from ui.players.scrubber import Mark, scrubber
from ui.training_step import NEWEST

SCRUBBER = "subject_scrubber"

DOES = {"previous": "previous token", "induction": "copies"}


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
    view = run_of(name)
    return of_run(view) if view is not None else None


@dataclass(frozen=True)
class Moment:
    """A step of a training: NEWEST, which is followed, or one of those that are kept. Without a training it
    is NEWEST.
    """

    timeline: Timeline | None
    step: int

    @property
    def steps(self) -> tuple[int, ...]:
        return self.timeline.steps if self.timeline else ()

    @property
    def number(self) -> int:
        """The step as a number, where there is a training."""
        return max(self.steps) if self.steps and self.step == NEWEST else self.step


@contextmanager
def scrubbed(
    name: str, above: DeltaGenerator | None = None, draw: Callable[[int], object] | None = None
) -> Iterator[Moment]:
    """Gives the moment of a training that is looked at. Its scrubber stands `above`, or here, and is drawn on
    leaving: coming last, it tells the browser that the pictures of a step have all been sent. Within a
    fragment of its own, it moves without the rest being drawn again; where `draw` draws it at another step,
    and nothing but its figures differs, while the hand moves, past Streamlit.
    """
    timeline = timeline_of(name)
    moment = Moment(timeline, training_step.current(name, timeline.steps if timeline else ()))
    container = above or st.container()
    if (
        moment.steps
    ):  # its place does not move while it loads; on a wide screen it is beside the question (app.css)
        container = container.container(height=78, border=False, key="timeline")
    try:
        yield moment
    finally:
        if timeline is not None and moment.steps:
            with container:
                losses, marks = timeline.losses, timeline.marks
                ahead = "" if draw is None else frames.offer(draw, moment.step)
                scrubber(
                    moment.steps, losses, moment.step, marks=marks, model=name, key=SCRUBBER, frames=ahead
                )
            follow(timeline)


def follow(timeline: Timeline | None) -> None:
    """Has the page drawn again when a training that goes on has got further."""
    if timeline is None or timeline.run is None or not timeline.active:
        return
    manager, run = session.manager(), timeline.run

    def look() -> live.Sight:
        manager.watch(run)
        view = manager.view(run)
        return live.Sight(None if view is None else (view.snapshots, view.active))

    live.follow("snapshots", look, drawn=(timeline.steps, True), every=1.0, whole=True)


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
    'head 0.3 previous token, head 1.0 copies'
    """
    by_step: dict[int, list[HeadFormation]] = {}
    for formation in formations:
        at = next((step for step in steps if step >= formation.step), None)
        if at is not None:
            by_step.setdefault(at, []).append(formation)
    return tuple(
        Mark(
            step,
            "head " + ", ".join(f"{formation.layer}.{formation.head}" for formation in some),
            ", ".join(
                f"head {formation.layer}.{formation.head} {DOES[formation.kind]}" for formation in some
            ),
        )
        for step, some in sorted(by_step.items())
    )
