"""Part of the view "Extrapolation": which curves are drawn, and how; whatever the URL says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from engine.config import Position
from engine.measure.positions.extrapolation import TAIL, UNITS, Stopgap, Unit
from engine.measure.positions.schemes import SCHEMES
from ui import widgets

Variant = tuple[Position, Stopgap | None]  # a scheme as it is, or with a stopgap
STOPGAPS: dict[str, tuple[Position, Stopgap]] = {
    "Learned: table repeated": ("learned", "repeat"),
    "Learned: last row held": ("learned", "hold"),
    "RoPE: larger base (NTK)": ("rope", "ntk"),
    "T5: unmet buckets filled": ("t5", "far"),
}
ABOVE = "Above own last 64"
SHOWN = {"Loss": "Loss", ABOVE: "Excess loss"}  # id in links -> what is written
WINDOWS = {"128": 128, "256": 256, "all": 0}  # 0: every one there is
WIDTHS = ("1", "4", "8", "16")


@dataclass(frozen=True)
class Choice:
    """`windows` are read, and each point is a mean over `width` positions; `above`: what is above a model's
    own sliding window is drawn.
    """

    variants: tuple[Variant, ...]
    above: bool
    unit: Unit
    windows: int
    width: int


def choose(chosen: Sequence[Position], schemes: set[Position], live: bool) -> Choice:
    """Reads the choice from the widgets. `chosen` are drawn as they are; `schemes` are those with a model;
    `live`: something can be measured here.
    """
    variants: list[Variant] = [(name, None) for name in chosen]
    row = st.container(horizontal=True, gap="medium")
    hint = "The loss, or its excess over the same model's loss with a sliding window."
    above = widgets.select("Show", SHOWN, "bench_show", container=row, hint=hint) == ABOVE
    hint = "1 bit is ln 2 = 0.693 nats."
    unit = widgets.select("Unit", tuple(UNITS), "bench_unit", container=row, hint=hint)
    if not live:
        return Choice(tuple(variants), above, unit, 0, TAIL)
    hint = (
        "Number of windows to read, each 4 contexts long. More windows take longer (about a second per"
        " hundred windows per scheme) but narrow the bands."
    )
    windows = widgets.select(
        "Windows", tuple(WINDOWS), "bench_windows", first="256", container=row, hint=hint
    )
    hint = "Positions averaged in each point. 1: no smoothing."
    width = widgets.select(
        "Positions per point", WIDTHS, "bench_bin", first=str(TAIL), container=row, hint=hint
    )
    names = [name for name, (scheme, _) in STOPGAPS.items() if scheme in schemes]
    hint = "Ways to extend a scheme without retraining; drawn dashed, since they are not part of any scheme."
    variants += [
        STOPGAPS[name] for name in widgets.select_several("Stopgaps", names, "bench_stopgaps", hint=hint)
    ]
    return Choice(tuple(variants), above, unit, WINDOWS[windows], int(width))


def name_of(variant: Variant) -> str:
    """Returns a variant's name in the legend and in the table."""
    scheme, kind = variant
    if kind is None:
        return SCHEMES[scheme].title
    return next(name for name, found in STOPGAPS.items() if found == variant)
