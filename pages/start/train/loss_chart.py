"""The losses of a run as a chart, alone or beside other runs: in nats per token, or in bits per character."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.start.train import curve_points
from pages.start.train.run_kinds import bits, kind_of, number
from pages.start.train.shown_runs import compared, laid_over
from runs.state import RunView
from studies.experiments import race_table
from studies.experiments.race_table import name_of
from ui import content, widgets
from ui.figures.losses import loss_curves
from ui.players.plot import payload, plot

TEXT = content.beside(__file__)
LIVE_POINTS = 500  # of a curve that is sent again several times a second; once it rests, all of them are
LOSS_IN = {"nats per token": "nats", "bits per character": "bits"}  # id in a link -> on the button
Picture: TypeAlias = Callable[[RunView, RunView | None], bytes]  # of a run and the other of its pair


def losses(
    view: RunView, other: RunView | None, height: int, menu: DeltaGenerator
) -> tuple[list[str], Picture]:
    """Draws the chart of a run, the other of its pair and earlier runs laid over: in the unit that was
    chosen, or in bits per character where only that is comparable. While it trains, the choices stand in its
    `menu`. Returns what must be said of it, and how it is drawn at any later moment.
    """
    kind = kind_of(view.spec)
    with menu if view.active else st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        laid = laid_over(view)
        x = widgets.select(TEXT["against"], ["step", "time"], "axis", hidden=True)
        runs = [*compared(view, other), *laid]
        mixed = any(run.spec.train.tokenizer != view.spec.train.tokenizer for run in runs)
        unit: race_table.Unit = "bits" if mixed else _unit() if kind.characters else "nats"
    along: race_table.Along = "seconds" if x == "time" else "steps"
    lines = kind.baselines(unit)
    plot(**_chart(runs, height, lines, along, unit))

    def picture(now: RunView, other_now: RunView | None) -> bytes:
        return payload(**_chart([*compared(now, other_now), *laid], height, lines, along, unit))

    return _notes(runs, mixed), picture


def _chart(
    runs: Sequence[RunView],
    height: int,
    lines: Mapping[str, float],
    along: race_table.Along,
    unit: race_table.Unit,
) -> dict[str, Any]:
    """Returns the arguments of `plot`, for the first of `runs` with the others laid over it."""
    view, *others = runs
    kind = kind_of(view.spec)
    points = LIVE_POINTS if view.active else len(view.history.steps)
    return {
        "figure": loss_curves(
            race_table.run_curves(view, along, unit, points=points),
            lines,
            kind.choices,
            along=along,
            others=[race_table.run_curves(run, along, unit, points=1) for run in others],
            changes=[run.changes for run in runs],
            end=float(view.total_steps) if along == "steps" else None,
            unit=unit,
            token=kind.noun,
        ),
        "key": "loss_chart",
        "alt": _alt(view, unit),
        "height": height,
        # a table is too much to send at every look
        "data": None if view.active else curve_points.curve_table(view.history),
        "name": f"loss-{slug(view.name)}",
    }


def _notes(views: list[RunView], mixed: bool) -> list[str]:
    """Returns what must be known of curves that lie over each other. `mixed`: the tokens of one are not those
    of another.
    """
    notes: list[str] = []
    if len(views) > 1:
        notes += [
            TEXT(
                "changed by hand",
                name=name_of(view),
                changes=content.Filled("; ".join(change.words for change in view.changes)),
            )
            for view in views
            if view.changes
        ]
    if mixed:
        why = kind_of(views[0].spec).noun == "character"  # else it stands below the numbers
        notes.append(f"{TEXT['in bits']} {comparable()}" if why else TEXT["in bits"])
    return notes


def comparable() -> str:
    """Says which losses can be compared between tokenizers."""
    return TEXT["comparable"]


def _unit() -> race_table.Unit:
    chosen = widgets.select(TEXT["loss in"], LOSS_IN, "loss_in", hidden=True)
    return "bits" if chosen == "bits per character" else "nats"


def _alt(view: RunView, unit: race_table.Unit) -> str:
    looks = view.history.evaluations
    if not looks:
        return TEXT("alt unmeasured", name=view.name)
    first, last = looks[0], looks[-1]
    nats = unit == "nats"
    began, ends = (look.validation_loss if nats else bits(look) for look in (first, last))
    return TEXT(
        "alt whole" if first.complete != last.complete else "alt",
        name=view.name,
        began=number(began, ".2f"),
        ends=number(ends, ".2f"),
        unit=TEXT("nats per", noun=kind_of(view.spec).noun) if nats else TEXT["bits per"],
        step=last.step,
    )


def slug(text: str) -> str:
    """Returns a name that any file system takes.

    >>> slug("Fast: 2 layers!")
    'fast-2-layers'
    """
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split()
    return "-".join(words)[:60] or "run"
