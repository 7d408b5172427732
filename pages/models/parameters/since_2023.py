"""The part "Since 2023": what a token meets, caches and costs in models whose layers differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from pages.models.parameters.choice import Choice
from pages.models.parameters.components import NAMES
from pages.models.parameters.length import LENGTHS, length_slider
from studies.costs.since_2023 import CARDS, Card
from studies.guesses import sizes
from ui import content, explain, guess, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.guess import Guess
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.markdown import whole
from ui.text.numbers import flop, short

TEXT = content.beside(__file__)
MEASURES = ("met", "cached", "worked")
SHADES = {"met": "feedforward", "cached": "attention", "worked": "residual"}
WRITTEN: dict[str, Callable[[float], str]] = {
    "met": short,
    "cached": lambda count: f"{count:,.0f}",
    "worked": flop,
}
TOKENS = 8192
CARD, MEASURE = "parameters_card", "parameters_measure"


def draw(choice: Choice) -> None:
    """Draws one measure of all cards and of the chosen model, and what it is for one card; folded, all of
    them in numbers, and the count of that card.
    """
    left, middle, right = st.columns([4, 3, 4], gap="medium", vertical_alignment="bottom")
    shown = {each: TEXT(f"measure {each}") for each in MEASURES}
    measure = widgets.select(TEXT["measure"], shown, MEASURE, container=left, hidden=True)
    titles = {name: card.title for name, card in CARDS.items()}
    name = widgets.select(TEXT["card"], titles, CARD, kind="list", container=middle)
    tokens = TOKENS
    if measure != "met":
        with right:
            tokens = length_slider(TOKENS)
    card = CARDS[name]
    rows = {each.title: values(each, tokens)[measure] for each in CARDS.values()}
    rows |= {TEXT("above", model=whole(choice.title)): of_ledger(choice, tokens)[measure]}
    explain.answer(_answer(card, measure, tokens))
    written = WRITTEN[measure](rows[card.title][1])
    plot(
        dots(rows, measure, card.title),
        key="parameters_cards",
        alt=TEXT("alt", measure=shown[measure], count=len(rows), model=card.title, value=written),
        height=310,
        data=pd.DataFrame(
            [(title, *pair) for title, pair in rows.items()], columns=["model", "all", "token"]
        ),
        name="since-2023",
    )
    if measure == "cached":
        guess.ask("windowed", longer, card, tokens)
    explain.measure_it(_table, tokens)
    explain.by_hand(_by_hand, card)


def values(card: Card, tokens: int) -> dict[str, tuple[float, float]]:
    """Returns each measure of a card: of the whole model, and for a token among `tokens`."""
    cached, worked = (card.cache(tokens) + card.state) / tokens, card.flops(tokens)
    return {"met": (card.total, card.active), "cached": (cached, cached), "worked": (worked, worked)}


def of_ledger(choice: Choice, tokens: int) -> dict[str, tuple[float, float]]:
    """Returns the same of the model that was chosen above, whose tokens meet all of it."""
    counted = choice.ledger
    cached, worked = counted.memory(tokens=tokens).kv_cache / tokens, counted.flops(tokens).forward
    return {"met": (counted.total, counted.total), "cached": (cached, cached), "worked": (worked, worked)}


def _answer(card: Card, measure: str, tokens: int) -> str:
    """Says what a token meets, caches or costs, and why."""
    beyond = f" {TEXT('beyond', context=card.context)}" if tokens > card.context else ""
    if measure == "met":
        case = "met all" if card.active == card.total else "met"
        return TEXT(case, model=card.title, share=card.share, active=card.active, total=card.total)
    if measure == "worked":
        work = card.flops(tokens)
        return TEXT("worked", model=card.title, flop=work, tokens=tokens, dense=work / 2) + beyond
    each = content.Filled(f"{(card.cache(tokens) + card.state) / tokens:,.0f}")
    return f"{TEXT('cached', model=card.title, each=each, tokens=tokens)} {_why_cached(card)}{beyond}"


def _why_cached(card: Card) -> str:
    """Says what makes a card's cache smaller than that of a key and a value for each head."""
    windowed, layers, window = card.windows
    if "MLA" in card.kinds:
        return TEXT("cached latent", heads=card.stack[0].attention.heads)
    if card.state:
        cached = sum(each.count for each in card.stack if each.attention.cached)
        return TEXT("cached state", layers=cached, all=layers, state=card.state)
    if windowed:
        return TEXT("cached windows", windowed=windowed, layers=layers, window=window)
    return TEXT["cached groups"]


def dots(rows: Mapping[str, tuple[float, float]], measure: str, chosen: str) -> go.Figure:
    """Draws a dot for each model on a logarithmic axis, larger for the `chosen` card, and an open circle for
    the whole of a model.
    """
    names = sorted((name for name in rows if rows[name][0] > 0), key=lambda name: rows[name][0])
    shade, written = colour(SHADES[measure]), WRITTEN[measure]
    lines = {
        "type": "scatter",
        "mode": "lines",
        "x": [x for name in names for x in (*rows[name], None)],
        "y": [y for name in names for y in (name, name, None)],
        "line": {"color": shade, "width": 3},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    circles: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers+text",
            "x": np.array([rows[name][at] for name in names], dtype=np.float64),
            "y": names,
            "name": TEXT["active" if at else "whole"],
            "text": [
                written(rows[name][at]) if at or rows[name][0] > rows[name][1] else "" for name in names
            ],
            "textposition": position,
            "hovertemplate": TEXT["hover"],
            "cliponaxis": False,
            "showlegend": measure == "met",
            "marker": {
                "size": [16 if name == chosen else 11 for name in names],
                "symbol": symbol,
                "color": shade,
                "line": {"width": 2, "color": shade},
            },
        }
        for at, symbol, position in (
            (0, "circle-open", "middle right"),
            (1, "circle", "middle left"),
        )
    ]
    low, high = (edge(rows[name][at] for name in names) for edge, at in ((min, 1), (max, 0)))
    ends = [float(np.log10(low)) - 0.6, float(np.log10(high)) + 0.6]
    return go.figure(
        [lines, *circles] if measure == "met" else circles[1:],
        margin={"l": 150, "r": 24, "t": 34 if measure == "met" else 8, "b": 44},
        xaxis={
            "type": "log",
            "title": {"text": TEXT[f"axis {measure}"]},
            "range": ends,
            "exponentformat": "B",
        }
        | ({"dtick": 1} if ends[1] - ends[0] > 2 else {}),
        yaxis={"showgrid": True, "type": "category"},
    )


def longer(card: Card, tokens: int) -> Guess | None:
    """Makes a guess about the cache of a text of twice the length."""
    if 2 * tokens not in LENGTHS:
        return None
    truth = sizes.longer_cache(card, tokens)
    return Guess.of(
        TEXT,
        truth,
        TEXT("guess", model=card.title, tokens=tokens, double=2 * tokens),
        TEXT("outcome", **truth.numbers),
        {"parameters_length": 2 * tokens},
    )


def _layers(card: Card) -> str:
    """Writes the kinds of layers that a card has."""
    return ", ".join(
        TEXT(
            "each windowed layer" if each.attention.window else "each layer",
            count=each.count,
            kind=each.attention.kind,
            window=each.attention.window,
        )
        for each in card.stack
    )


def _table(tokens: int) -> None:
    """Every card in numbers, with its layers, experts and source."""
    rows = [
        {
            "model": card.title,
            "parameters": f"{card.total:,}",
            "active": f"{card.active:,}",
            "cache per token": f"{card.cache(tokens) / tokens:,.0f}",
            "FLOPs per token": flop(card.flops(tokens)),
            "layers": _layers(card),
            "experts": card.experts or TEXT["dense"],
            "its makers say": card.published,
            "source": card.source,
        }
        for card in CARDS.values()
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, height=35 * len(rows) + 38)
    st.markdown(TEXT["table"])


def _by_hand(card: Card) -> None:
    """Every tensor of a card."""
    written = {name: content.Filled(getattr(card, name)) for name in ("published", "source")}
    numbers = {"count": len(card.stack), "total": card.total, "active": card.active}
    st.markdown(TEXT("by hand", model=card.title, **numbers, **written))
    rows = [
        {
            "part": NAMES.get(component, component),
            "tensor": tensor.name,
            "shape": " · ".join(f"{size:,}" for size in tensor.shape),
            "layers": count,
            "in each": tensor.copies,
            "met": tensor.met,
            "parameters": f"{count * tensor.numbers:,}",
            "active": f"{count * tensor.active:,}",
        }
        for component, count, tensor in card.rows()
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, height=min(35 * len(rows) + 38, 460))
    st.markdown(TEXT["flops by hand"])


PART = View("since", TEXT, draw, code=(Card,))
