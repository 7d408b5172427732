"""The part "Memory" of the KV cache: the formula with numbers, and how fewer key-value heads shrink
it, here and in published models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.presets import Preset
from studies.costs.presets import PRESETS
from studies.generation.kv_cache import (
    DTYPES,
    CacheSize,
    Family,
    Sharing,
    by_family,
    can_share,
    family,
    sharing,
)
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.numbers import gigabytes

TEXT = content.beside(__file__)
LENGTHS = tuple(2**k for k in range(3, 18))
MODELS = ("llama2-7b", "llama2-70b", "llama3-8b", "mistral-7b")
WAYS: tuple[Family, ...] = ("MHA", "GQA", "MQA")


def draw(subject: Subject, container: Any) -> None:
    """Draws the formula with its numbers, this model with every number of key-value heads, and published
    models.
    """
    b, d = st.columns([4, 5], gap="medium")
    # as a link holds it: no commas
    tokens = widgets.slide_over(TEXT["length"], LENGTHS, 4096, "kv_tokens", container=container)
    kinds = {each: TEXT["precision bfloat16"] if each == "bfloat16" else each for each in DTYPES}
    dtype = widgets.select(TEXT["precision"], kinds, "kv_dtype", first="bfloat16", container=b)
    by_heads = sharing(subject.config, tokens, dtype, subject.model.parts)
    heads = widgets.select(
        TEXT["heads"], list(by_heads.sizes), "kv_heads", first=by_heads.model_heads, container=d
    )
    _by_heads(by_heads, heads)
    if not can_share(subject.config):
        st.caption(TEXT["cannot share"])
    saved = by_heads.saved(heads)
    explain.answer(
        TEXT(
            "fewer bytes" if saved > 1 else "most bytes",
            heads=heads,
            of=by_heads.heads,
            tokens=tokens,
            size=by_heads.sizes[heads].formula,
            saved=saved,
        )
    )
    explain.measure_it(_published, tokens, dtype)
    explain.by_hand(_formula, by_heads.sizes[heads], subject.config.context)


def _by_heads(sharing: Sharing, heads: int) -> None:
    ways = list(sharing.sizes)
    sizes = [size.formula for size in sharing.sizes.values()]
    names = [way(n, sharing.heads) for n in ways]
    each = ", ".join(TEXT("size", name=name, size=size) for name, size in zip(names, sizes, strict=True))
    plot(
        bytes_by_heads(ways, sizes, sharing.heads, heads),
        key="kv_heads_figure",
        height=110 + 40 * len(ways),
        name="kv-cache-by-heads",
        data=pd.DataFrame({"kv_heads": ways, "bytes": sizes, "chosen": [n == heads for n in ways]}),
        alt=TEXT("alt", sizes=each),
    )


def _formula(size: CacheSize, context: int) -> None:
    numbers = TEXT("formula", numbers=content.Filled(size.numbers), size=size.formula)
    tensor = TEXT(
        "tensor agrees" if size.tensor == size.formula else "tensor differs",
        shape=" × ".join(f"{n:,}" for n in size.shape),
        dtype=size.dtype,
        bytes=size.tensor,
    )
    beyond = TEXT("beyond context", context=context) if size.tokens > context else ""
    st.markdown(f"{numbers}\n\n{tensor} {beyond}".rstrip())


def _published(tokens: int, dtype: str) -> None:
    st.subheader(TEXT["published title"], anchor=False)
    presets = [PRESETS[name] for name in MODELS]
    configs = [preset.model.resolved() for preset in presets]
    titles = [_title(preset) for preset in presets]
    families = [family(c.n_kv_heads or 0, c.n_heads) for c in configs]
    sizes = [by_family(c, tokens, dtype) for c in configs]
    ways = {way: np.array([size[way] for size in sizes], dtype=np.float64) for way in WAYS}
    own = [size[way] for way, size in zip(families, sizes, strict=True)]
    each = ", ".join(
        TEXT("size of way", name=title, way=way, size=size)
        for title, way, size in zip(titles, families, own, strict=True)
    )
    plot(
        published(titles, ways, families),
        key="kv_published",
        height=380,
        name="kv-cache-published",
        data=pd.DataFrame(
            {
                "model": titles,
                "has": families,
                "tokens": tokens,
                "dtype": dtype,
                **{f"{way}_bytes": way_sizes for way, way_sizes in ways.items()},
            }
        ),
        alt=TEXT("alt published", tokens=tokens, dtype=dtype, sizes=each),
    )
    notes = " · ".join(_note(preset, tokens) for preset in presets)
    st.caption(TEXT("published", notes=content.Filled(notes)))


def _note(preset: Preset, tokens: int) -> str:
    c = preset.model.resolved()
    return TEXT(
        "note beyond" if tokens > c.context else "note",
        title=_title(preset),
        layers=c.n_layers,
        kv=c.n_kv_heads,
        heads=c.n_heads,
        d_head=c.d_head,
        context=c.context,
        source=preset.source or "",
    )


def _title(preset: Preset) -> str:
    return preset.title.removesuffix(" (published)")


def bytes_by_heads(kv_heads: Sequence[int], sizes: Sequence[int], heads: int, chosen: int) -> go.Figure:
    """Draws a bar for each number of key-value heads, from one for each of the `heads` (MHA) down to one for
    all (MQA).
    """
    names = [way(n, heads) for n in kv_heads]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": np.array(sizes, dtype=np.float64),
        "text": [gigabytes(n) for n in sizes],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": [colour("attention", 100 if n == chosen else 45) for n in kv_heads]},
        "hovertext": [TEXT("hover", name=name, bytes=n) for name, n in zip(names, sizes, strict=True)],
        "hoverinfo": "text",
    }
    return go.figure(
        [bars],
        margin={"l": 130, "r": 72, "t": 8, "b": 40},
        showlegend=False,
        bargap=0.3,
        yaxis={"autorange": "reversed", "showgrid": False},
        xaxis={
            "title": {"text": TEXT["axis kilobytes"]},
            "rangemode": "tozero",
            **byte_ticks(sizes),
        },
    )


def way(kv_heads: int, heads: int) -> str:
    """
    >>> way(8, 8), way(2, 8), way(1, 8), way(1, 1)
    ('MHA, 8 of 8', 'GQA, 2 of 8', 'MQA, 1 of 8', 'MHA, 1 of 1')
    """
    return f"{family(kv_heads, heads)}, {kv_heads} of {heads}"


def published(titles: Sequence[str], ways: Mapping[Family, np.ndarray], actual: Sequence[str]) -> go.Figure:
    """Draws bytes of published models by way of sharing, way -> (model,); `actual` is each model's way."""
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "y": list(titles),
            "x": sizes.astype(np.float64),
            "name": name,
            "cliponaxis": False,
            "textposition": "outside",
            "marker": {
                "color": [colour("attention", 100 if mine == name else 30) for mine in actual],
                "line": {"color": colour("attention"), "width": 1},
            },
            "text": [
                f"<b>{name} {gigabytes(n)}</b>" if mine == name else f"{name} {gigabytes(n)}"
                for n, mine in zip(sizes, actual, strict=True)
            ],
            "hoverinfo": "text",
            "hovertext": [
                TEXT("hover own" if mine == name else "hover other", title=title, way=name, bytes=n)
                for title, n, mine in zip(titles, sizes, actual, strict=True)
            ],
        }
        for name, sizes in ways.items()
    ]
    return go.figure(
        bars,
        barmode="group",
        bargap=0.25,
        bargroupgap=0.08,
        showlegend=False,
        margin={"l": 104, "r": 104, "t": 8, "b": 40},
        yaxis={"autorange": "reversed", "showgrid": False},
        xaxis={
            "title": {"text": TEXT["axis gigabytes"]},
            "rangemode": "tozero",
            **byte_ticks(np.concatenate(list(ways.values()))),
        },
    )


def byte_ticks(sizes: Sequence[int] | np.ndarray) -> dict[str, list[float] | list[str]]:
    """Returns a power of two from tick to tick, at most four after 0, in the words that stand beside the
    bars.

    >>> byte_ticks([2**23, 2**21])["ticktext"]
    ['0', '2 MB', '4 MB', '6 MB', '8 MB']
    """
    top = float(np.max(sizes))
    step = 2.0 ** np.ceil(np.log2(top / 4))  # more would not fit on a phone
    at = np.arange(0, top + step / 2, step)
    return {"tickvals": [float(v) for v in at], "ticktext": [gigabytes(v) if v else "0" for v in at]}
