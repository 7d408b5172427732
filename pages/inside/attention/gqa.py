"""The view "GQA / MQA": which query heads read the same keys and values, and what that saves."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from engine.config import ResolvedConfig
from engine.parts import registry
from engine.parts.attention import Attention
from engine.parts.registry import HEALTHY
from pages.inside.attention import published_caches
from pages.inside.attention.heads_map import HEAD_COLOURS
from studies.attention.shared_keys import SharedKeys, cache_saving, fitting, kind, served_by, shared_keys
from studies.costs.presets import PRESETS
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.model_needs import QUERIES_KEYS
from ui.page_frame import Parts, View
from ui.players.plot import plot
from ui.text.numbers import gigabytes

TEXT = content.beside(__file__)
PUBLISHED = {"LLaMA-2 70B": "llama2-70b", "LLaMA-2 7B": "llama2-7b", "GPT-2 small": "gpt2"}
BYTES = {"float32": 4, "16 bits": 2, "8 bits": 1}
MAX_HEADS = 128


def draw(beside: Any, subject: Subject) -> None:
    """Draws the heads of one model, and what sharing saves; its controls `beside` the parts' buttons."""
    with beside, st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        names = (TEXT["mine"], *PUBLISHED)
        sizes = {name: name for name in names} | {"own": TEXT["own"]}
        which = widgets.select(TEXT["sizes"], sizes, "attention_sizes", first="LLaMA-2 70B", kind="list")
        size = BYTES[widgets.select(TEXT["precision"], list(BYTES), "attention_bytes", first="16 bits")]
    c, parts = subject.config, subject.model.parts
    if which in PUBLISHED:
        c, parts = PRESETS[PUBLISHED[which]].model.resolved(), HEALTHY
    heads, kv = _own() if which == "own" else (c.n_heads, c.n_kv_heads or c.n_heads)
    plot(
        figure(heads, kv),
        key="attention_shared",
        alt=TEXT("alt", heads=heads, kv=kv),
        height=300,
        name="shared-keys",
        data=pd.DataFrame({"query_head": range(heads), "kv_head": served_by(heads, kv)}),
    )
    now, full = (_counted(c, heads, n, size, parts.name, parts) for n in (kv, heads))
    per_token = gigabytes(now.cache_bytes_per_token)
    explain.answer(
        TEXT(
            "saved" if kv < heads else "nothing saved",
            saved=cache_saving(now, full) if kv < heads else 0.0,
            heads=heads,
            kv=kv,
            kind=kind(heads, kv),
            per_token=per_token,
        )
    )
    explain.measure_it(_table, which, c, heads, kv, size, parts)
    explain.by_hand(
        st.markdown,
        TEXT(
            "by hand",
            layers=c.n_layers,
            kv=kv,
            d_head=c.d_head,
            size=size,
            per_token=per_token,
            whole=gigabytes(now.cache_bytes),
            context=c.context,
        ),
    )


def _own() -> tuple[int, int]:
    with st.container(horizontal=True, gap="medium"):
        heads = widgets.whole(TEXT["query heads"], 1, MAX_HEADS, 8, "attention_heads", width=160)
        wanted = widgets.whole(TEXT["kv heads"], 1, MAX_HEADS, 2, "attention_kv", width=160)
    if (kv := fitting(heads, wanted)) != wanted:
        st.info(TEXT("does not divide", wanted=wanted, heads=heads, kv=kv))
    return heads, kv


def _table(which: str, c: ResolvedConfig, heads: int, chosen: int, size: int, parts: registry.Parts) -> None:
    """The choice beside no sharing and full sharing."""
    if which in PUBLISHED:
        st.caption(TEXT("published", source=PRESETS[PUBLISHED[which]].source))
    elif which == "own":
        st.caption(TEXT("own sizes", d_head=c.d_head))
    columns = {}
    for kv in dict.fromkeys((heads, chosen, 1)):
        n = _counted(c, heads, kv, size, parts.name, parts)
        cells = (
            f"{n.parameters:,}",
            f"{n.all_parameters:,}",
            gigabytes(n.cache_bytes_per_token),
            gigabytes(n.cache_bytes),
        )
        columns[TEXT("chosen column" if kv == chosen else "column", kv=kv)] = cells
    rows = [TEXT["weights of a layer"], TEXT["weights of all"], TEXT["cache of a token"]]
    rows.append(TEXT("cache of a text", context=c.context))
    st.table(pd.DataFrame(columns, index=pd.Index(rows, name="")))


@memo.measured(copied=True)
def _counted(
    c: ResolvedConfig, heads: int, kv: int, size: int, made_of: str, _parts: registry.Parts
) -> SharedKeys:
    """`made_of`, the parts' name, stands for them in the key."""
    return shared_keys(c, heads, kv, size, _parts)


def figure(n_heads: int, n_kv: int) -> go.Figure:
    """Draws query heads in a row, the key-value heads that they read below; one colour for a group."""
    group, shades = n_heads // n_kv, [colour(name) for name in HEAD_COLOURS]
    at = [(i + 0.5) * group - 0.5 for i in range(n_kv)]
    size = max(5, min(18, 200 // n_heads))  # they touch nowhere, not even on a phone
    traces = []
    for n, shade in enumerate(shades[:n_kv]):
        lines = [
            ([head, at[head // group], None], [1, 0, None])
            for head in range(n_heads)
            if (head // group) % len(shades) == n
        ]
        x, y = ([each for line in lines for each in line[axis]] for axis in (0, 1))
        traces.append(
            go.Scatter(mode="lines", x=x, y=y, line={"color": shade, "width": 1.5}, hoverinfo="skip")
        )
    for places, level, name, symbol, many in (
        (list(range(n_heads)), 1, "query head", "circle", group),
        (at, 0, "key-value head", "square", 1),
    ):
        dots = [shades[i // many % len(shades)] for i in range(len(places))]
        traces.append(
            go.Scatter(
                mode="markers",
                x=places,
                y=[level] * len(places),
                customdata=[f"{name} {i} of {len(places)}" for i in range(len(places))],
                marker={"size": size, "symbol": symbol, "color": dots},
                hovertemplate="%{customdata}<extra></extra>",
            )
        )
    return go.figure(
        traces,
        margin={"l": 120, "r": 8, "t": 12, "b": 8},
        showlegend=False,
        xaxis={"visible": False, "range": [-0.8, n_heads - 0.2]},
        yaxis=go.ticks([0, 1], ["keys, values", "queries"], tickmode="array", range=[-0.3, 1.3]),
    )


ONE = View("model", TEXT, draw, (Attention.scores, Attention.weighted_sum, shared_keys), name=TEXT["one"])
VIEW = View(
    "shared-keys",
    TEXT,
    takes=(QUERIES_KEYS,),
    figures_only=True,
    parts=Parts("attention_sharing", (ONE, published_caches.PART), label=TEXT["part"], line=(3, 7)),
)
