"""A part of "GQA / MQA": the cache of eight published models, bytes per token, by the way they share keys."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from studies.generation.published_caches import PUBLISHED_CACHES, PublishedCache
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import gigabytes

TEXT = content.beside(__file__)
SHADES = {"MHA": "run5", "GQA": "attention", "MQA": "run2", "MLA": "run0"}
ROOM = 8  # by which the axis begins before the least dot: its number stands there
WIDTHS = {4: "float32", 2: "16 bits", 1: "8 bits"}  # bytes of a number


def draw(beside: Any, subject: Subject) -> None:
    """Draws each model's bytes per token, as published and with one key-value head for each query head."""
    named = {each.title: each for each in PUBLISHED_CACHES}
    with beside, st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        title = widgets.select(TEXT["model"], list(named), "cached_model", first="DeepSeek-V3", kind="list")
        width = widgets.select(TEXT["precision"], WIDTHS, "cached_width", first=2)
    rows = [
        (each.title, each.way, each.bytes_per_token(width), each.bytes_with(each.heads, width))
        for each in PUBLISHED_CACHES
    ]
    plot(
        figure(title, width),
        key="published_caches",
        height=340,
        name="published-caches",
        data=pd.DataFrame(rows, columns=["model", "way", "bytes_per_token", "bytes_with_mha"]),
        alt=TEXT("alt", rows=", ".join(f"{name} {size:,}" for name, _, size, _ in rows)),
    )
    chosen = named[title]
    size, full = chosen.bytes_per_token(width), chosen.bytes_with(chosen.heads, width)
    explain.answer(TEXT(f"answer {chosen.way}", title=title, size=size, times=full / size))
    explain.measure_it(_table, width)
    explain.by_hand(st.markdown, by_hand(chosen, width))


def by_hand(chosen: PublishedCache, width: int) -> str:
    """Returns the arithmetic of a model's bytes per token (Markdown)."""
    return TEXT(
        "by hand latent" if chosen.latent else "by hand",
        **asdict(chosen),
        width=width,
        size=chosen.bytes_per_token(width),
    )


def figure(title: str, width: int) -> go.Figure:
    """Draws a row for each model, on a log scale: a dot as published, a ring for multi-head attention."""
    traces = []
    for each in PUBLISHED_CACHES:
        sizes = [each.bytes_per_token(width), each.bytes_with(each.heads, width)]
        shade = colour(SHADES[each.way])
        traces.append(
            go.Scatter(
                x=sizes,
                y=[each.title] * 2,
                mode="lines+markers+text",
                line={"color": shade, "width": 4 if each.title == title else 1.5},
                marker={"size": [16, 11], "symbol": ["circle", "circle-open"], "color": shade},
                text=[f"<b>{sizes[0]:,}</b>", ""],
                textposition="middle left",
                cliponaxis=False,
                hovertemplate=TEXT["hover"] + f"<extra>{each.title}</extra>",
            )
        )
    at = [2**n for n in range(10, 25, 2)]
    least = min(each.bytes_per_token(width) for each in PUBLISHED_CACHES)
    across = [
        go.ticks(some, [gigabytes(each) for each in some], title=TEXT["axis"], type="log")
        | {"range": np.log10([least / room, at[-1]]).tolist()}
        for some, room in (
            (at, ROOM),
            (at[::3], 2.5 * ROOM),
        )  # on a phone a number is a wider part of the axis
    ]
    titles = [each.title for each in PUBLISHED_CACHES]
    named = [f"{each.title}, <b>{each.way}</b>" for each in PUBLISHED_CACHES]
    return go.figure(
        traces,
        margin={"l": 160, "r": 12, "t": 40, "b": 44},  # the top: buttons stand there, and no dot
        showlegend=False,
        xaxis=across[0],
        yaxis=go.ticks(titles, named, autorange="reversed"),
        annotations=[go.heading(TEXT["rings"], 0, 1.02, name=f"narrow:{TEXT['rings short']}")],
        meta={"narrow": {"xaxis": across[1], "margin": {"l": 150, "r": 4, "t": 40, "b": 44}}},
    )


def _table(width: int) -> None:
    rows = {
        each.title: {
            TEXT["way"]: each.way,
            TEXT["layers"]: f"{each.layers}",
            TEXT["numbers"]: f"{each.numbers:,}",
            TEXT["published"]: f"{each.bytes_per_token(width):,}",
            TEXT["with mha"]: f"{each.bytes_with(each.heads, width):,}",
            TEXT["with mqa"]: f"{each.bytes_with(1, width):,}",
            TEXT["source"]: each.source,
        }
        for each in PUBLISHED_CACHES
    }
    st.table(pd.DataFrame.from_dict(rows, orient="index"), border="horizontal")


PART = View("published", TEXT, draw, (PublishedCache,), shows=("MLA", "multi-head latent attention"))
