"""The view "Cross-check": the same weights in the engine and in a second program that may have a mistake."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from engine.config import ResolvedConfig
from engine.errors import ConfigError
from engine.model import Transformer
from engine.recording import Recording, record
from studies.costs.ledger import parameter_formula
from studies.lab.reference import random_configs
from studies.lab.reference.compare import TOLERANCE, Comparison, Difference, compare
from studies.lab.reference.mistakes import MISTAKES, Mistake, neighbours_turned, other_eps, tiled
from studies.lab.reference.position_schemes import hidden, position_bias, turned
from studies.lab.reference.random_configs import Rolled
from studies.lab.reference.second import (
    RIGHT,
    Choices,
    attention,
    block,
    feedforward,
    forward,
    gelu,
    gelu_by_tanh,
    norm,
    shared,
)
from ui import content, explain, memo, widgets
from ui.fields import show as written
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import scientific

TEXT = content.beside(__file__)
ABOVE, SEED, NONE = "model", "reference_seed", "none"
HEIGHT = 380
FLOOR = 1e-9  # where an exact equality stands: a logarithm has no zero
MOST_TICKS = 12
GOOD, BAD = "run0", "run4"
# (its name for a cache, the model, its forward pass)
Given = tuple[Hashable, Transformer, Callable[[], Recording]]


@dataclass(frozen=True)
class Wrong:
    """The mistake that was chosen: `name` is NONE where nothing is put in, be it that it changes nothing."""

    name: str
    mistake: Mistake | None = None
    idle: str | None = None

    @property
    def choices(self) -> Choices:
        return MISTAKES[self.name].choices if self.name in MISTAKES else RIGHT


def draw(subject: Subject) -> None:
    """Draws where along the stream the two programs differ, on the model of the bar or on weights drawn by
    chance; every activation is folded.
    """
    answer = st.container()
    left, right = st.columns([3, 7], gap="medium")
    with left:
        kinds = {ABOVE: TEXT["above"]} | {
            name: TEXT("random", family=kind.title) for name, kind in random_configs.KINDS.items()
        }
        family = widgets.select(TEXT["weights"], kinds, "reference_family", kind="list")
        key, model, ours = _given(subject) if family == ABOVE else _dice(family)
        chosen = wrong(_mistake(), model.config)
    with right:
        try:
            comparison = _compared(key, chosen.name, model, ours, chosen.choices)
        except ConfigError as error:
            st.info(TEXT("cannot run", why=str(error)))
            return
        _draw(comparison)
    with answer:
        explain.answer(verdict(comparison, chosen))
    explain.measure_it(_measured, comparison, None if family == ABOVE else model.config)


def _given(subject: Subject) -> Given:
    """The model of the bar on its text."""
    if subject.model.parts.name != "healthy":
        st.caption(TEXT("deliberate bug", parts=content.Filled(subject.model.parts.name)))
    return (subject.key, subject.ids), subject.model, subject.recording


def _dice(family: str) -> Given:
    """Draws the seed of a small model of a family, and says what came of it."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        hint = TEXT["seed hint"]
        seed = widgets.whole(TEXT["seed"], 0, random_configs.MOST, 0, SEED, hint=hint, width=130)
        # Streamlit's own: a button that puts a number into the field, which holds the value.
        st.button(TEXT["roll"], icon=":material/casino:", on_click=_roll, key="reference_roll")
    rolled = _rolled(family, seed)
    st.caption(_sizes(rolled))
    return (family, seed), rolled.model, partial(record, rolled.model, rolled.ids)


def _sizes(rolled: Rolled) -> str:
    """Says what was drawn."""
    c = rolled.model.config
    return TEXT(
        "rolled sharing keys" if c.n_kv_heads < c.n_heads else "rolled",
        blocks=c.n_layers,
        heads=c.n_heads,
        kv=c.n_kv_heads,
        d_head=c.d_head,
        width=c.d_model,
        parameters=parameter_formula(c),
        tokens=len(rolled.ids),
    )


def _roll() -> None:
    st.session_state[SEED] = random.randint(0, random_configs.MOST)


def _mistake() -> str:
    """Draws the choice of a mistake for the second program; returns its name, or NONE."""
    options = {NONE: TEXT["none"]} | {name: mistake.title for name, mistake in MISTAKES.items()}
    hint = TEXT["mistake hint"]
    name = widgets.select(TEXT["mistake"], options, "reference_mistake", kind="list", hint=hint)
    if name in MISTAKES:
        st.caption(MISTAKES[name].sentence)
    return name


def wrong(name: str, config: ResolvedConfig) -> Wrong:
    """Returns the mistake of a name, in a model of a configuration."""
    mistake = MISTAKES.get(name)
    idle = None if mistake is None else mistake.idle(config)
    return Wrong(NONE if idle is not None else name, mistake, idle)


def _draw(comparison: Comparison) -> None:
    states = comparison.states
    plot(
        figure(comparison),
        key="reference_two",
        height=HEIGHT,
        name="differences",
        data={
            "activation": [row.name for row in states],
            "difference": np.array([row.largest for row in states]),
            "largest_number": np.array([row.size for row in states]),
            "relative": np.array([row.relative for row in states]),
        },
        alt=TEXT("alt", far=comparison.worst.relative, tolerance=TOLERANCE),
    )


def verdict(comparison: Comparison, chosen: Wrong) -> str:
    """Says whether the programs agree, by how much, and where a difference begins."""
    far, first, last = comparison.worst.relative, comparison.begins, comparison.last
    if first is not None:
        return TEXT(
            "differ at end" if first.block is None else "differ in block",
            block=first.block,
            activation=content.Filled(first.bare),
            what=TEXT(f"what {first.bare}"),
            far=far,
            end=TEXT["end logits" if last.bare == "logits" else "end vectors"],
            off=last.largest,
            largest=last.size,
        )
    if chosen.idle is not None:
        return TEXT("harmless", idle=content.Filled(chosen.idle), far=far, tolerance=TOLERANCE)
    return TEXT("agree" if chosen.mistake is None else "unseen", far=far, tolerance=TOLERANCE)


def _measured(comparison: Comparison, config: ResolvedConfig | None) -> None:
    """Every activation that both have, and the configuration where it was drawn."""
    st.dataframe(
        {
            TEXT["activation"]: [row.name for row in comparison.rows],
            TEXT["agrees"]: [row.close for row in comparison.rows],
            TEXT["largest difference"]: [scientific(row.largest) for row in comparison.rows],
            TEXT["largest number"]: [row.size for row in comparison.rows],
        },
        hide_index=True,
        height=320,
    )
    if config is None:
        return
    values = config.to_dict()
    st.subheader(TEXT["configuration"], anchor=False)
    st.dataframe(
        {TEXT["field"]: list(values), TEXT["value"]: [written(value) for value in values.values()]},
        hide_index=True,
    )


@memo.loaded()
def _rolled(family: str, seed: int) -> Rolled:
    return random_configs.roll(family, seed)


@memo.measured("Running both …")
def _compared(
    key: Hashable, mistake: str, _model: Transformer, _ours: Callable[[], Recording], _choices: Choices
) -> Comparison:
    return compare(_model, _ours(), _choices)


def figure(comparison: Comparison) -> go.Figure:
    """Draws the relative difference of every state of the stream, from the embedding to the logits."""
    states = comparison.states
    heights = np.array([max(row.relative, FLOOR) for row in states])
    top = max(10.0, float(np.nan_to_num(heights, posinf=10.0).max()) * 10)
    heights = np.minimum(np.nan_to_num(heights, posinf=top), top)
    at = np.arange(len(states))
    close = np.array([row.close for row in states])
    line = go.Scatter(
        x=at, y=heights, mode="lines", line={"color": colour("quiet")}, hoverinfo="skip", showlegend=False
    )
    traces = [line]
    for name, part, symbol, there in (
        (TEXT["agrees"], GOOD, "circle", close),
        (TEXT["differs"], BAD, "x", ~close),
    ):
        if there.any():
            traces.append(
                go.Scatter(
                    x=at[there],
                    y=heights[there],
                    mode="markers",
                    name=name,
                    marker={"color": colour(part), "symbol": symbol, "size": 9 if len(states) < 24 else 6},
                    text=[hover(row) for row, drawn in zip(states, there, strict=True) if drawn],
                    hovertemplate="%{text}<extra></extra>",
                )
            )
    return go.figure(
        traces,
        margin={"l": 64, "r": 84, "t": 24, "b": 40},
        xaxis={
            "title": {"text": TEXT["block"]},
            "zeroline": False,
            "range": [-0.5, len(states) - 0.5],
            **ticks(states),
        },
        yaxis={
            "type": "log",
            "title": {"text": TEXT["difference"]},
            "range": [np.log10(FLOOR) - 0.3, float(np.log10(top))],
            "exponentformat": "power",
            "dtick": 2,
        },
        shapes=[tolerance()],
        annotations=[tolerance_label(), *begins(comparison, heights)],
        uirevision=f"differences-{len(states)}",
    )


def hover(row: Difference) -> str:
    case = "hover" if row.block is None else "hover in block"
    return TEXT(case, block=row.block, activation=row.bare, difference=row.largest, largest=row.size)


def ticks(states: tuple[Difference, ...]) -> dict[str, Any]:
    """Returns the embedding, every block (every few where there are many) and the end."""
    blocks = [(i, row.block) for i, row in enumerate(states) if row.bare == "resid_post"]
    step = -(-len(blocks) // MOST_TICKS)
    ends = ["resid_pre", "norm_final", "logits"]
    if len(blocks) > 3:  # no room for two words side by side
        ends.remove("norm_final")
    named = [(i, TEXT(f"tick {row.bare}")) for i, row in enumerate(states) if row.bare in ends]
    few = blocks[step if step > 1 else 0 :: max(step, 1)]
    last = named[-1][0] if named else len(states)
    few = [(i, block) for i, block in few if last - i > len(states) / 12]  # no number runs into the last word
    shown = sorted(named + [(i, str(block)) for i, block in few])
    return {
        "tickangle": 0,
        "tickmode": "array",
        "tickvals": [i for i, _ in shown],
        "ticktext": [word for _, word in shown],
    }


def tolerance() -> dict[str, Any]:
    return go.rule(y=TOLERANCE, line={"color": colour("output"), "width": 2, "dash": "dash"})


def tolerance_label() -> dict[str, Any]:
    return go.note(
        TEXT["tolerance"],
        1.005,
        float(np.log10(TOLERANCE)),
        xref="paper",
        xanchor="left",
        font={"color": colour("output")},
    )


def begins(comparison: Comparison, heights: np.ndarray) -> list[dict[str, Any]]:
    """Returns an arrow to the first state that is out of tolerance, with the activation where it began."""
    first = comparison.begins
    at = next((i for i, row in enumerate(comparison.states) if not row.close), None)
    if first is None or at is None:
        return []
    case = "begins" if first.block is None else "begins in block"
    right = at < len(heights) / 2
    return [
        {
            "x": at,
            "y": float(np.log10(heights[at])),
            "text": TEXT(case, block=first.block, activation=first.bare),
            "showarrow": True,
            "arrowhead": 2,
            "ax": 70 if right else -70,
            "ay": 24 if heights[at] > 0.1 else -24,  # clear of the tolerance
            "xanchor": "left" if right else "right",
            "font": {"color": colour(BAD)},
            "arrowcolor": colour(BAD),
        }
    ]


VIEW = View(
    "dice",
    TEXT,
    draw,
    code=(
        *(forward, block, norm, attention, feedforward, turned, shared, hidden, position_bias),
        *(gelu, gelu_by_tanh, neighbours_turned, tiled, other_eps),
    ),
    figures_only=True,
)
