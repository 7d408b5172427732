"""How much memory a model needs to write and to be trained, how that grows with the text, and what it fits
into.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.ledger import DTYPES, GB, TRAINED_IN, Ledger, kv_numbers
from engine.ledger.fits import fit, needs, totals, uses
from engine.ledger.flops import seen
from engine.ledger.growth import break_even, caches, with_weights
from pages.models.parameters import cost_figures
from pages.models.parameters.choice import Choice, say_changes
from pages.models.parameters.flops import LENGTHS, length_slider
from ui import explain, widgets
from ui.players.plot import plot
from ui.text.numbers import gigabytes

DEVICES = {"phone": 8 * GB, "laptop": 16 * GB, "card": 24 * GB, "big card": 80 * GB}
BATCHES = tuple(2**k for k in range(11))
DTYPE = "bfloat16"


def draw_memory(choice: Choice) -> None:
    """Weights and cache over the length of the text, what each use needs, and what it fits into."""
    say_changes(choice)
    ledger = choice.ledger
    left, middle, right = st.columns([7, 4, 4], gap="medium")
    dtype = widgets.one_of("Numbers are kept as", list(DTYPES), "parameters_dtype", first=DTYPE, place=left)
    batch = widgets.slide_over("Texts at once (batch)", BATCHES, 1, "parameters_batch", place=middle)
    with right:
        tokens = length_slider("parameters_length", ledger.config.context)
    if tokens > ledger.config.context:
        table = " would need a longer table of positions, and" if ledger.config.position == "learned" else ""
        st.caption(
            f":material/info: Beyond this model's context of {ledger.config.context:,} it{table} would have"
            " to be trained for it."
        )
    _growing(choice, dtype, batch, tokens)
    _uses(choice, dtype, batch, tokens)
    _fits(choice, dtype, batch, tokens)
    _takeaway(choice)


def _growing(choice: Choice, dtype: str, batch: int, tokens: int) -> None:
    """Weights and KV cache over the length of the text, for three ways of sharing keys."""
    lengths = np.array(LENGTHS, dtype=np.int64)
    c = choice.ledger.config
    if not kv_numbers(c):
        why = (
            "it has no mixer."
            if c.mixer == "none"
            else "it has no causal mask, so every later token changes them."
        )
        st.info(f"This model keeps no keys and values: {why}")
        return
    ways = {"KV cache": choice.ledger}
    for name, heads in (("a key head each (MHA)", c.n_heads), ("one key head (MQA)", 1)):
        other = choice.variant(n_kv_heads=heads) if c.mixer == "attention" and heads != c.n_kv_heads else None
        if other is not None:
            ways[name] = other
    lines = caches(ways, dtype, batch, lengths)
    lines["weights + KV cache"] = with_weights(choice.ledger, dtype, lines["KV cache"])
    cache = choice.ledger.memory(dtype, batch, tokens).kv_cache
    twice = "2 · " if choice.ledger.encoder else ""
    held = seen(c, tokens)
    letter = "T" if held == tokens else f"{held:,}"
    window = "" if held == tokens else f" Attention looks back over {held:,} positions only: no more is kept."
    st.markdown(
        f"**KV cache at T = {tokens:,}: {gigabytes(cache)}** = {twice}2 · L · H_kv · d_head · {letter} ·"
        f" batch · bytes = {twice}2 · {c.n_layers} · {c.n_kv_heads} · {c.d_head} · {held:,} · {batch:,} ·"
        f" {max(DTYPES[dtype], 2):g}"
        + (", for what the decoder wrote and what the encoder read." if choice.ledger.encoder else ".")
        + window
    )
    ends = "; ".join(f"{name} {gigabytes(v[-1])} at a million tokens" for name, v in lines.items())
    alt = f"Memory of {choice.title} over the length of the text: {ends}."
    table = pd.DataFrame({"tokens": lengths, **lines})
    plot(
        cost_figures.memory_by_length(lengths, lines, DEVICES, tokens),
        key="parameters_cache",
        alt=alt,
        height=400,
        data=table,
        name="kv-cache",
    )


def _uses(choice: Choice, dtype: str, batch: int, tokens: int) -> None:
    found = uses(choice.ledger, dtype, batch, tokens)
    table = pd.DataFrame(
        [{"use": use, "what": what, "bytes": n} for use, parts in found.items() for what, n in parts.items()]
    )
    sums = "; ".join(f"{use} {gigabytes(total)}" for use, total in totals(found).items())
    alt = f"Memory of {choice.title} in {dtype}: {sums}."
    plot(
        cost_figures.memory_bars(found),
        key="parameters_memory",
        alt=alt,
        height=270 if len(found) > 1 else 200,
        data=table,
        name="memory",
    )
    if dtype in TRAINED_IN:
        st.caption(
            "AdamW keeps two float32 averages for each weight, and a float32 copy where weights have fewer"
            " bits: 16 bytes a parameter in all, with gradients. Activations: what backward needs of the"
            " forward pass as this engine computes it, with attention's patterns written out and without"
            " dropout; fused kernels and recomputing need far less."
        )
    else:
        st.caption(
            f"Models are not trained in {dtype}: choose bfloat16 or float32 for that. Keys and values stay in"
            " 16 bits; the scales beside quantised weights are left out."
        )


def _fits(choice: Choice, dtype: str, batch: int, tokens: int) -> None:
    st.subheader("What does it fit into?", anchor=False)
    named = {"inference": f"with KV cache, T = {tokens:,}"}
    rows = [
        {
            "": _named(name, size),
            **{
                named.get(use, use): f"{'✓' if need.fits else '✗'}  {gigabytes(need.bytes)}"
                for use, need in needs(choice.ledger, size, dtype, batch, tokens).items()
            },
        }
        for name, size in DEVICES.items()
    ]
    st.table(pd.DataFrame(rows).set_index(""), border="horizontal")
    st.markdown(
        "\n".join(
            f"- **{_named(name, size)}**: {fits_line(choice.ledger, size, batch, tokens)}"
            for name, size in DEVICES.items()
        )
    )
    st.caption(
        "1 GB is 2³⁰ bytes here, as memory is sold. A phone of 8 GB and a laptop of 16 GB are assumed, with"
        " nothing else in them; in truth the system needs some of it, too. Lines name the most bits that fit,"
        " of float32, bfloat16, int8 and int4."
    )


def _named(name: str, size: int) -> str:
    """
    >>> _named("phone", 8 * GB), _named("card", 80 * GB)
    ('phone, 8 GB', 'card, 80 GB')
    """
    return f"{name.removeprefix('big ')}, {size // GB} GB"


def fits_line(ledger: Ledger, size: int, batch: int, tokens: int) -> str:
    """What can be done with a model within `size` bytes: in as many bits as fit."""
    found = fit(ledger, size, batch, tokens)
    if found.writes_in is None:
        return (
            f"its weights fit in {found.holds_in}, but not with this KV cache."
            if found.holds_in
            else f"not even in int4, {gigabytes(found.least_weights)} of weights."
        )
    return f"writes in {found.writes_in}" + (
        f", and can be trained in {found.trains_in}."
        if found.trains_in
        else f"; to be trained it would need {gigabytes(found.least_training)}."
    )


def _takeaway(choice: Choice) -> None:
    found = break_even(choice.ledger)
    if not found.token:
        explain.takeaway(
            f"In bfloat16 the weights take {gigabytes(found.weights)}; training takes eight times that,"
            " before any activation."
        )
        return
    shared = (
        f"With a key head for each of its {choice.config.n_heads} query heads it would be {found.group} times"
        " as large."
        if found.group > 1
        else "Grouped keys (GQA) divide it."
    )
    if found.most:
        explain.takeaway(
            f"A token in the cache takes {gigabytes(found.token)} in bfloat16. Attention looks back over"
            f" **{found.window:,} positions**, so a text never takes more than {gigabytes(found.most)},"
            f" beside weights of {gigabytes(found.weights)}. {shared}"
        )
        return
    explain.takeaway(
        f"A token in the cache takes {gigabytes(found.token)} in bfloat16, so at **{found.tokens:,.0f}"
        " tokens** (one text, or many together) the cache is as large as the weights,"
        f" {gigabytes(found.weights)}. {shared}"
    )
