"""The view "Memory": what a model needs to write and to be trained, how that grows with the text, and what it
fits into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import GROUPED_MIXERS, ResolvedConfig
from pages.models.parameters.choice import Choice
from pages.models.parameters.length import LENGTHS, chosen_length, length_axis, length_slider
from studies.costs.fits import Fit, alike, needs, smallest, totals, uses
from studies.costs.flops import seen_by_layers
from studies.costs.growth import break_even, caches
from studies.costs.ledger import DTYPES, GB, TRAINED_IN, kv_numbers
from studies.costs.memory import activations
from studies.guesses import sizes
from ui import content, explain, guess, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.guess import Guess
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import gigabytes

TEXT = content.beside(__file__)
DEVICES = {"phone": 8 * GB, "laptop": 16 * GB, "GPU": 24 * GB, "big GPU": 80 * GB}
BATCHES = tuple(2**k for k in range(11))
DTYPE = "bfloat16"
LINES = {
    "own": ("attention", "solid"),
    "each": ("run1", "dash"),
    "one": ("run2", "dot"),
    "with weights": ("feedforward", "solid"),
}
PARTS = {
    "weights": ("feedforward", 100),
    "gradients": ("run4", 100),
    "master copy": ("run2", 100),
    "AdamW moments": ("run2", 60),
    "activations": ("training", 100),
    "KV cache": ("attention", 100),
}
VISIBLE = 50  # a device with more times the memory than is needed would leave no bar to see


def draw(choice: Choice) -> None:
    """Draws what writing and training need, beside what devices have; folded, its growth with the text, and
    what fits into what.
    """
    ledger = choice.ledger
    left, middle, right = st.columns([7, 4, 4], gap="medium")
    kinds = {each: TEXT["precision bfloat16"] if each == DTYPE else each for each in DTYPES}
    dtype = widgets.select(TEXT["precision"], kinds, "parameters_dtype", first=DTYPE, container=left)
    batch = widgets.slide_over(TEXT["batch"], BATCHES, 1, "parameters_batch", container=middle)
    with right:
        tokens = length_slider(ledger.config.context)
    names = {f"{size // GB} GB {name.removeprefix('big ')}": size for name, size in DEVICES.items()}
    device = smallest(ledger, names, dtype, batch, tokens)
    explain.answer(memory_needed(choice, dtype, batch, tokens, device))
    if tokens > ledger.config.context:
        case = "beyond the table" if ledger.config.position == "learned" else "beyond the context"
        st.caption(TEXT(case, context=ledger.config.context))
    _uses(choice, dtype, batch, tokens)
    guess.ask("shared", single_key_head, choice, dtype, batch, tokens)
    explain.measure_it(_measured, choice, dtype, batch, tokens)
    explain.by_hand(_cache_by_hand, choice, dtype, batch, tokens)


def memory_needed(choice: Choice, dtype: str, batch: int, tokens: int, device: str | None) -> str:
    """Says what writing and training take, and the smallest device on which the model writes."""
    needed = uses(choice.ledger, dtype, batch, tokens)
    sums, cache = totals(needed), needed["to write"].get("KV cache", 0)
    texts = "several texts" if batch > 1 else "one text"
    fits = "on no device" if device is None else "on an" if device.startswith("8") else "on a"
    said = TEXT(
        f"writes {texts} {fits}",
        texts=batch,
        tokens=tokens,
        dtype=dtype,
        model=choice.title,
        bytes=sums["to write"],
        device=device,
        cache=content.Filled(TEXT("cache share", cache=cache) if cache else ""),
    )
    return f"{said} {TEXT('to train', bytes=sums['to train'])}" if dtype in TRAINED_IN else said


def single_key_head(choice: Choice, dtype: str, batch: int, tokens: int) -> Guess | None:
    """Makes a guess about sharing keys and values."""
    other = choice.variant(n_kv_heads=1) if choice.config.mixer in GROUPED_MIXERS else None
    truth = None if other is None else sizes.single_key_head(choice.ledger, other, dtype, batch, tokens)
    if truth is None:
        return None
    n = truth.numbers
    return Guess.of(
        TEXT,
        truth,
        TEXT("guess", before=n["before"], heads=choice.config.n_kv_heads),
        TEXT("outcome", before=n["before"], found=n["found"]),
        {"parameters_n_kv_heads": 1},
        {name: gigabytes(n[name]) for name in truth.offered},
    )


def _measured(choice: Choice, dtype: str, batch: int, tokens: int) -> None:
    """How the cache grows, what it fits into, and where the cache is as large as the weights."""
    _growing(choice, dtype, batch, tokens)
    explain.takeaway(_as_large_as_the_weights(choice))
    _fits(choice, dtype, batch, tokens)


def _growing(choice: Choice, dtype: str, batch: int, tokens: int) -> None:
    """Weights and KV cache over the length of the text, for three ways of sharing keys."""
    lengths = np.array(LENGTHS, dtype=np.int64)
    c = choice.ledger.config
    if not kv_numbers(c):
        _say_no_cache(c)
        return
    ways = {"own": choice.ledger}
    for name, heads in (("each", c.n_heads), ("one", 1)):
        other = (
            choice.variant(n_kv_heads=heads) if c.mixer in GROUPED_MIXERS and heads != c.n_kv_heads else None
        )
        if other is not None:
            ways[name] = other
    lines = caches(ways, dtype, batch, lengths)
    lines["with weights"] = lines["own"] + choice.ledger.memory(dtype).weights
    named = {line: (TEXT(f"line {line}"), values) for line, values in lines.items()}
    ends = "; ".join(TEXT("end of line", name=name, bytes=v[-1]) for name, v in named.values())
    plot(
        memory_by_length(lengths, named, DEVICES, tokens),
        key="parameters_cache",
        alt=TEXT("alt lines", model=choice.title, ends=ends),
        height=400,
        data=pd.DataFrame({"tokens": lengths} | dict(named.values())),
        name="kv-cache",
    )


def _cache_by_hand(choice: Choice, dtype: str, batch: int, tokens: int) -> None:
    """The KV cache's size, factor by factor."""
    c = choice.ledger.config
    if not kv_numbers(c):
        _say_no_cache(c)
        return
    cache = choice.ledger.memory(dtype, batch, tokens).kv_cache
    held = seen_by_layers(c, tokens) / c.n_layers
    said = TEXT(
        "cache" if choice.ledger.encoder is None else "caches",
        tokens=tokens,
        size=cache,
        letter="T" if held == tokens else f"{held:,.10g}",
        layers=c.n_layers,
        heads=c.n_kv_heads,
        d_head=c.d_head,
        held=held,
        batch=batch,
        each=max(DTYPES[dtype], 2),
    )
    if held == tokens:
        st.markdown(said)
    else:
        windows = TEXT("windows" if 0 in c.windows else "window", layers=c.windows.count(0), held=held)
        st.markdown(f"{said} {windows}")
    st.caption(TEXT("trained" if dtype in TRAINED_IN else "not trained", dtype=dtype))


def _say_no_cache(c: ResolvedConfig) -> None:
    st.info(TEXT["no mixer" if c.mixer == "none" else "no mask"])


def _uses(choice: Choice, dtype: str, batch: int, tokens: int) -> None:
    needed = uses(choice.ledger, dtype, batch, tokens)
    table = pd.DataFrame(
        [{"use": use, "what": what, "bytes": n} for use, parts in needed.items() for what, n in parts.items()]
    )
    sums = "; ".join(f"{use} {gigabytes(total)}" for use, total in totals(needed).items())
    plot(
        memory_bars(needed, DEVICES),
        key="parameters_memory",
        alt=TEXT("alt", model=choice.title, dtype=dtype, sums=sums),
        height=310,
        data=table,
        name="memory",
    )


def _fits(choice: Choice, dtype: str, batch: int, tokens: int) -> None:
    st.subheader(TEXT["hardware"], anchor=False)
    named = {"inference": TEXT("with cache", tokens=tokens)}
    rows = [
        {
            "": _named(name, size),
            **{
                named.get(use, use): f"{'✓' if need <= size else '✗'}  {gigabytes(need)}"
                for use, need in needs(choice.ledger, dtype, batch, tokens).items()
            },
        }
        for name, size in DEVICES.items()
    ]
    st.table(pd.DataFrame(rows).set_index(""), border="horizontal")
    names = {_named(name, size): size for name, size in DEVICES.items()}
    st.markdown(
        "\n".join(
            f"- **{'; '.join(devices)}**: {_fit(fit)}"
            for fit, devices in alike(choice.ledger, names, batch, tokens).items()
        )
    )
    st.caption(TEXT["devices"])


def _fit(fit: Fit) -> str:
    """Says what can be done with a model in a given memory: in as many bits as fit."""
    if fit.writes_in is None:
        return TEXT("holds" if fit.holds_in else "too large", holds=fit.holds_in, least=fit.least_weights)
    case = "runs and trains" if fit.trains_in else "runs"
    return TEXT(case, writes=fit.writes_in, trains=fit.trains_in, least=fit.least_training)


def _as_large_as_the_weights(choice: Choice) -> str:
    """Says from which length on the cache outweighs the weights, and what sharing keys does about it."""
    even = break_even(choice.ledger)
    if not even.token:
        return TEXT("weights alone", weights=even.weights)
    said = TEXT(
        "never outweighs" if even.most else "outweighs",
        token=even.token,
        window=even.window,
        most=even.most,
        weights=even.weights,
        tokens=even.tokens,
    )
    shared = TEXT("shared" if even.group > 1 else "not shared", heads=choice.config.n_heads, group=even.group)
    return f"{said} {shared}"


def _named(name: str, size: int) -> str:
    """
    >>> _named("phone", 8 * GB), _named("GPU", 80 * GB)
    ('phone, 8 GB', 'GPU, 80 GB')
    """
    return f"{name.removeprefix('big ')}, {size // GB} GB"


def memory_by_length(
    lengths: np.ndarray, lines: Mapping[str, tuple[str, np.ndarray]], devices: Mapping[str, int], at: int
) -> go.Figure:
    """Draws bytes over the length of the text: lines (of LINES -> name, (lengths,) bytes), and how much each
    device has.
    """
    drawn = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": lengths,
            "y": values / GB,
            "name": name,
            "line": {"width": 3 if dash == "solid" else 2, "color": colour(shade), "dash": dash},
            "text": [gigabytes(v) for v in values],
            "hovertemplate": TEXT("hover line", name=name),
        }
        for line, (name, values) in lines.items()
        for shade, dash in [LINES[line]]
    ]
    everything = np.concatenate([values for _, values in lines.values()]) / GB
    positive = everything[everything > 0]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (0.1, 1.0)
    low, high = np.log10(min(max(low, high / 1e5), 4.0)) - 0.1, np.log10(max(high, 100.0)) + 0.15
    rules = [
        go.rule(y=size / GB, line={"color": colour("quiet"), "width": 1, "dash": "dot"})
        for size in devices.values()
    ]
    # Side by side, since 8, 16 and 24 GB lie close together.
    names = [
        go.note(
            f"{name.split()[-1]} {size // GB}",
            i / len(devices),
            float(np.log10(size / GB)),
            xref="paper",
            xanchor="left",
            yanchor="middle",
            font={"size": 12},
            bgcolor="var(--gf-seq0)",
            borderpad=1,
        )
        for i, (name, size) in enumerate(devices.items())
    ]
    return go.figure(
        drawn,
        margin={"l": 64, "r": 16, "t": 62, "b": 48},
        shapes=[*rules, chosen_length(at)],
        annotations=names,
        xaxis=length_axis(lengths),
        yaxis={"type": "log", "title": {"text": "GB"}, "range": [low, high], "tickformat": ",~g", "dtick": 1},
    )


def memory_bars(uses: Mapping[str, Mapping[str, int]], devices: Mapping[str, int]) -> go.Figure:
    """Draws bytes by what they are for, one bar a use: use -> part of PARTS -> bytes. Upright lines
    are what `devices` have, the smallest always where its line leaves the bars to be seen.
    """
    bars: list[dict[str, Any]] = []
    for part, shade in PARTS.items():
        values = [parts.get(part, 0) for parts in uses.values()]
        if any(values):
            bars.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "y": list(uses),
                    "x": np.array(values, dtype=np.float64) / GB,
                    "name": part,
                    "marker": {"color": colour(*shade)},
                    "text": [gigabytes(v) for v in values],
                    "textposition": "none",
                    "hovertemplate": f"{part}: %{{text}}<extra></extra>",
                }
            )
    sums = {use: sum(parts.values()) for use, parts in uses.items()}
    most, least = max(sums.values()), min(devices.values())
    end = max(most, least) if most * VISIBLE > least else most
    shown = {name: size for name, size in devices.items() if size <= end}
    apart = _apart(list(shown.values()), end / 3)  # on a phone there is room for three names
    return go.figure(
        bars,
        barmode="stack",
        bargap=0.35,
        margin={"l": 84, "r": 16, "t": 74, "b": 44},
        shapes=[
            go.rule(x=size / GB, line={"color": colour("quiet"), "width": 1.5, "dash": "dot"})
            for size in shown.values()
        ],
        annotations=[
            go.note(
                f"{name.split()[-1]} {size // GB} GB",
                size / GB,
                1.0,
                yref="paper",
                yanchor="bottom",
                xanchor="center" if size * 1.05 < end else "right",
                font={"size": 12},
                name="" if size in apart else "wide",
            )
            for name, size in shown.items()
            if size * 12 > end  # no room beside each other
        ]
        + [
            go.note(gigabytes(total), total / GB, use, xanchor="left", xshift=6, font={"size": 15})
            for use, total in sums.items()
        ],
        xaxis={
            "title": {"text": "GB"},
            "nticks": 6,
            "tickformat": ",~g",
            "range": [0, 1.13 * end / GB],
        },
        yaxis={"autorange": "reversed", "showgrid": False, "tickfont": {"size": 15}},
        legend={"xref": "container", "yref": "container", "yanchor": "top"},
        meta={"narrow": {}},
    )


def _apart(sizes: Sequence[int], room: float) -> list[int]:
    """Returns the sizes, from the largest down, that are at least `room` from each other.

    >>> _apart([8, 16, 24, 80], 12)
    [80, 24, 8]
    """
    kept: list[int] = []
    for size in sorted(sizes, reverse=True):
        if not kept or kept[-1] - size >= room:
            kept.append(size)
    return kept


VIEW = View(
    "memory",
    TEXT,
    draw,
    code=(kv_numbers, activations),
    needs_model=False,
    question=lambda choice: TEXT("question", model=choice.title),
)
