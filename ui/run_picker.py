"""Runs of one kind that a view opens by itself, without the bar: which there are, and at which step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamlit.delta_generator import DeltaGenerator

from engine.service.state import RunView
from engine.training.kinds import Kind
from ui import session, training_step
from ui.model_bar import SCRUBBER, follow_snapshots
from ui.models import RUN, title_of
from ui.players.scrubber import scrubber
from ui.timeline import timeline_of
from ui.training_step import NEWEST


def runs(kind: Kind, named: str | None) -> dict[str, str]:
    """Returns this browser's trainings of a kind that have something to look into, newest first, and the one
    that a link names, by their names in links -> title.
    """
    views = [view for view in reversed(session.manager().runs(session.owner())) if _opens(view, kind)]
    other = run_of(named) if named else None
    if other is not None and _opens(other, kind) and other.id not in [view.id for view in views]:
        views.append(other)
    return {RUN + view.id: title_of(RUN + view.id, view) for view in views}


def _opens(view: RunView, kind: Kind) -> bool:
    return view.spec.kind is kind and bool(view.snapshots)


def run_of(name: str) -> RunView | None:
    """Returns the training of that name; None for a model that is not trained here, and one that has gone."""
    return session.manager().view(name.removeprefix(RUN)) if name.startswith(RUN) else None


@contextmanager
def scrubbed(name: str, above: DeltaGenerator) -> Iterator[int]:
    """Returns the step of a training that is looked at; NEWEST of a model that was not trained here. Its
    scrubber comes last, which tells the browser that the pictures of a step have been sent.
    """
    timeline = timeline_of(name)
    steps = timeline.steps if timeline else ()
    place = above.container(height=78, border=False, key="timeline") if steps else above
    shown = training_step.current(name, steps)
    try:
        yield max(steps) if steps and shown == NEWEST else shown
    finally:
        if timeline is not None and steps:
            with place:
                scrubber(steps, timeline.losses, shown, model=name, key=SCRUBBER)
            if timeline.run is not None and timeline.active:
                follow_snapshots(timeline.run, steps)
