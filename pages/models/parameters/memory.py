"""How much memory a model needs to write and to be trained, how that grows with the text, and what it fits
into.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.ledger import DTYPES, GB, kv_numbers
from engine.ledger.fits import alike, needs, smallest, totals, uses
from engine.ledger.flops import seen
from engine.ledger.growth import break_even, caches
from pages.models.parameters import answers, figures_cost, guesses, words
from pages.models.parameters.choice import LENGTHS, Choice
from pages.models.parameters.flops import length_slider
from ui import explain, widgets
from ui.guess import ask
from ui.players.plot import plot
from ui.text.numbers import gigabytes

DEVICES = {"phone": 8 * GB, "laptop": 16 * GB, "GPU": 24 * GB, "big GPU": 80 * GB}
BATCHES = tuple(2**k for k in range(11))
DTYPE = "bfloat16"


def draw_memory(choice: Choice) -> None:
    """Draws what writing and training need, beside what devices have; folded, its growth with the text, and
    what fits into what.
    """
    ledger = choice.ledger
    left, middle, right = st.columns([7, 4, 4], gap="medium")
    dtype = widgets.select("Precision", list(DTYPES), "parameters_dtype", first=DTYPE, container=left)
    batch = widgets.slide_over("Batch size (texts)", BATCHES, 1, "parameters_batch", container=middle)
    with right:
        tokens = length_slider("parameters_length", ledger.config.context)
    names = {f"{size // GB} GB {name.removeprefix('big ')}": size for name, size in DEVICES.items()}
    device = smallest(ledger, names, dtype, batch, tokens)
    explain.answer(answers.memory_needed(choice, dtype, batch, tokens, device))
    if tokens > ledger.config.context:
        st.caption(words.beyond_the_context(ledger))
    _uses(choice, dtype, batch, tokens)
    ask("shared", guesses.single_key_head, choice, dtype, batch, tokens)
    explain.measure_it(_measured, choice, dtype, batch, tokens)
    explain.by_hand(_cache_by_hand, choice, dtype, batch, tokens)


def _measured(choice: Choice, dtype: str, batch: int, tokens: int) -> None:
    """How the cache grows, what it fits into, and where the cache is as large as the weights."""
    _growing(choice, dtype, batch, tokens)
    explain.takeaway(words.as_large_as_the_weights(choice, break_even(choice.ledger)))
    _fits(choice, dtype, batch, tokens)


def _growing(choice: Choice, dtype: str, batch: int, tokens: int) -> None:
    """Weights and KV cache over the length of the text, for three ways of sharing keys."""
    lengths = np.array(LENGTHS, dtype=np.int64)
    c = choice.ledger.config
    if not kv_numbers(c):
        st.info(words.no_cache(c))
        return
    ways = {"KV cache": choice.ledger}
    for name, heads in (("one KV head each (MHA)", c.n_heads), ("one KV head (MQA)", 1)):
        other = choice.variant(n_kv_heads=heads) if c.mixer == "attention" and heads != c.n_kv_heads else None
        if other is not None:
            ways[name] = other
    lines = caches(ways, dtype, batch, lengths)
    lines["weights + KV cache"] = lines["KV cache"] + choice.ledger.memory(dtype).weights
    ends = "; ".join(f"{name} {gigabytes(v[-1])} at a million tokens" for name, v in lines.items())
    alt = f"Memory of {choice.title} over the length of the text: {ends}."
    plot(
        figures_cost.memory_by_length(lengths, lines, DEVICES, tokens),
        key="parameters_cache",
        alt=alt,
        height=400,
        data=pd.DataFrame({"tokens": lengths, **lines}),
        name="kv-cache",
    )


def _cache_by_hand(choice: Choice, dtype: str, batch: int, tokens: int) -> None:
    """The KV cache's size, factor by factor."""
    c = choice.ledger.config
    if not kv_numbers(c):
        st.info(words.no_cache(c))
        return
    cache = choice.ledger.memory(dtype, batch, tokens).kv_cache
    st.markdown(words.cache(choice.ledger, cache, seen(c, tokens), tokens, batch, max(DTYPES[dtype], 2)))
    st.caption(words.trained_in(dtype))


def _uses(choice: Choice, dtype: str, batch: int, tokens: int) -> None:
    needed = uses(choice.ledger, dtype, batch, tokens)
    table = pd.DataFrame(
        [{"use": use, "what": what, "bytes": n} for use, parts in needed.items() for what, n in parts.items()]
    )
    sums = "; ".join(f"{use} {gigabytes(total)}" for use, total in totals(needed).items())
    alt = f"Memory of {choice.title} in {dtype}: {sums}."
    plot(
        figures_cost.memory_bars(needed, DEVICES),
        key="parameters_memory",
        alt=alt,
        height=310,
        data=table,
        name="memory",
    )


def _fits(choice: Choice, dtype: str, batch: int, tokens: int) -> None:
    st.subheader(words.WHICH_HARDWARE, anchor=False)
    named = {"inference": f"with KV cache, T = {tokens:,}"}
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
            f"- **{'; '.join(devices)}**: {answers.fits_line(fit)}"
            for fit, devices in alike(choice.ledger, names, batch, tokens).items()
        )
    )
    st.caption(words.DEVICES)


def _named(name: str, size: int) -> str:
    """
    >>> _named("phone", 8 * GB), _named("GPU", 80 * GB)
    ('phone, 8 GB', 'GPU, 80 GB')
    """
    return f"{name.removeprefix('big ')}, {size // GB} GB"
