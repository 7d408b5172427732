"""Code that both comparisons share: the choice of a mistake, the figure, the verdict, and every
activation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from engine.config import ResolvedConfig
from engine.lab.reference.compare import TOLERANCE, Comparison
from engine.lab.reference.mistakes import MISTAKES, Mistake
from engine.lab.reference.second import RIGHT, Choices
from pages.models.reference import figures
from pages.models.reference.words import NAMES
from ui import widgets
from ui.players.plot import plot
from ui.text.numbers import number

NONE = "none"


@dataclass(frozen=True)
class Wrong:
    """The mistake that was chosen: `name` is NONE where nothing is put in, be it that it changes nothing."""

    name: str
    mistake: Mistake | None = None
    idle: str | None = None

    @property
    def choices(self) -> Choices:
        return MISTAKES[self.name].choices if self.name in MISTAKES else RIGHT


def choose_mistake(key: str) -> str:
    """Draws the choice of a mistake for the second program; returns its name, or NONE."""
    options = {NONE: "none"} | {name: one.title for name, one in MISTAKES.items()}
    hint = (
        "What ports of a model get wrong most often, put into the second program. The engine stays as it is."
    )
    name = widgets.select("Mistake put in", options, key, kind="list", hint=hint)
    if name in MISTAKES:
        st.caption(MISTAKES[name].sentence)
    return name


def wrong(name: str, config: ResolvedConfig) -> Wrong:
    """Returns the mistake of a name, in a model of a configuration."""
    mistake = MISTAKES.get(name)
    idle = None if mistake is None else mistake.idle(config)
    return Wrong(NONE if idle is not None else name, mistake, idle)


def draw_figure(comparison: Comparison, key: str, height: int) -> None:
    """Draws where along the stream the two programs differ, and by how much."""
    states = comparison.states
    plot(
        figures.along(comparison),
        key=key,
        height=height,
        name="differences",
        data={
            "activation": [row.name for row in states],
            "difference": np.array([row.largest for row in states]),
            "largest_number": np.array([row.size for row in states]),
            "relative": np.array([row.relative for row in states]),
        },
        alt=(
            "Points on a logarithmic scale: the largest difference between the two programs at each place of"
            f" the residual stream, {number(comparison.worst.relative)} at most, beside the tolerance"
            f" {TOLERANCE:g}."
        ),
    )


def verdict(comparison: Comparison, chosen: Wrong) -> str:
    """Says whether the programs agree, by how much, and where a difference begins."""
    worst, first = comparison.worst, comparison.begins
    if first is not None:
        end = "the logits" if comparison.last.bare == "logits" else "the last vectors"
        where = "at the end" if first.block is None else f"in block **{first.block}**"
        return (
            f":material/close: **No.** The difference begins {where}, at `{first.bare}`"
            f" ({NAMES[first.bare]}), and grows to **{number(worst.relative)}** along the stream; {end} are"
            f" off by up to {number(comparison.last.largest)}, where the largest is"
            f" {comparison.last.size:.3g}."
        )
    far = number(worst.relative)
    reach = f"The largest difference along the stream is **{far}**, the tolerance {TOLERANCE:g}."
    if chosen.idle is not None:
        return f":material/check: **The mistake can do no harm here:** {chosen.idle}. {reach}"
    if chosen.mistake is not None:
        return (
            f":material/warning: **The mistake is in, and nobody would see it.** {reach} On this model a"
            " test would pass: it takes weights on which the mistake shows."
        )
    return (
        f":material/check: **Yes, they agree.** {reach} What is left is rounding: float32 keeps about seven"
        " digits."
    )


def draw_activations(comparison: Comparison) -> None:
    """Draws every activation that both have."""
    st.dataframe(
        {
            "activation": [row.name for row in comparison.rows],
            "agrees": [row.close for row in comparison.rows],
            "largest difference": [f"{row.largest:.2e}" for row in comparison.rows],
            "largest number": [row.size for row in comparison.rows],
        },
        hide_index=True,
        height=320,
    )
