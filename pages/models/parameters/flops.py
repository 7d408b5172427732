"""What a token costs to compute, and how that grows with the text: attention's parameters do not see T, its
scores do.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.ledger import Flops, Ledger
from engine.ledger.flops import seen
from pages.models.parameters import cost_figures, figures
from pages.models.parameters.choice import Choice
from ui import explain
from ui.players.plot import plot
from ui.text.numbers import flop, percent

LENGTHS = tuple(2**k for k in range(4, 21))  # 16 to a million


def flops_view(choice: Choice) -> None:
    ledger = choice.ledger
    tokens = length_slider("parameters_length", ledger.config.context)
    flops = ledger.flops(tokens)
    lengths = np.unique(np.append(np.geomspace(LENGTHS[0], LENGTHS[-1], 121).round(), LENGTHS)).astype(
        np.int64
    )
    parts = by_part(ledger, lengths)
    crossing = ledger.crossover()
    table = pd.DataFrame({"tokens": lengths, **parts})
    never = "kept below everything else by the window" if flops.scores else "absent"
    where = f"equal to everything else from {crossing:,} tokens on" if crossing else never
    alt = (
        f"Forward FLOPs for one token of {choice.title} over the length of the text, 16 to a million tokens;"
        f" scores and weighted sums grow with it, {where}."
    )
    meeting = (crossing, ledger.flops(crossing).scores) if crossing else None
    plot(
        cost_figures.flops_by_length(lengths, parts, meeting, tokens),
        key="parameters_flops",
        alt=alt,
        height=420,
        data=table,
        name="flops",
    )
    _numbers(flops, ledger)
    explain.takeaway(_takeaway(choice, flops, crossing))
    with st.expander("Every product, with its formula", icon=":material/calculate:"):
        st.dataframe(
            pd.DataFrame(
                [
                    {
                        "component": figures.NAMES[p.component],
                        "product": p.name,
                        "formula": p.formula,
                        "in numbers": p.numbers,
                        "times": p.copies,
                        "FLOP for a token": p.flops,
                        "grows with T": p.grows,
                    }
                    for p in flops.rows
                ]
            ),
            hide_index=True,
            column_config={"FLOP for a token": st.column_config.NumberColumn(format="localized")},
        )
        st.caption(
            "A multiplication with an addition counts 2. Only matrix products count; norms, softmax and sums"
            " are a few percent more. Every score is counted, also those that the causal mask hides: the"
            " engine computes them all. What acts once a text, such as BERT's pooler, is not counted."
        )


def length_slider(key: str, fallback: int) -> int:
    """The length of the text, a power of two."""
    nearest = min(LENGTHS, key=lambda n: abs(np.log(n / max(fallback, 1))))
    chosen = st.select_slider(
        "Tokens of text T", LENGTHS, nearest, key=key, bind="query-params"
    )  # written without commas: the label is what a link holds
    return chosen if chosen in LENGTHS else nearest


def by_part(ledger: Ledger, lengths: np.ndarray) -> dict[str, np.ndarray]:
    """Forward FLOPs for one token, part by part: label -> (lengths,). What grows does so in proportion to the
    tokens that are seen, so one token's count is enough.
    """
    one = ledger.flops(1)
    level = {
        "feed-forward": ("feedforward",),
        "attention's matrices": ("attention", "cross_attention"),
        "unembedding": ("unembedding",),
    }
    found = {
        name: np.full(
            len(lengths),
            sum(p.flops for p in one.rows if p.component in components and not p.grows),
            dtype=np.float64,
        )
        for name, components in level.items()
    }
    level_sum = np.full(len(lengths), one.forward - one.scores, dtype=np.float64)
    looked = np.array([seen(ledger.config, int(n)) for n in lengths], dtype=np.float64)
    return {"everything else": level_sum, "scores and sums": one.scores * looked, **found}


def _numbers(flops: Flops, ledger: Ledger) -> None:
    columns = [*st.columns(2), *st.columns(2)]
    with columns[0]:
        explain.worked(
            "Forward, one token", flop(flops.forward), f"{flops.forward:,} at T = {flops.tokens:,}"
        )
    with columns[1]:
        part = percent(flops.scores, flops.forward)
        words = f"{growing(ledger)} = {flops.scores:,}; the rest does not depend on T"
        explain.worked("Of these, scores and sums", part, words)
    with columns[2]:
        explain.worked(
            "Training, one token",
            flop(flops.training),
            "3 · forward: backward makes two products for each of forward's",
        )
    with columns[3]:
        used = (flops.forward - flops.scores) // 2
        rule = (
            f"6 · {ledger.total:,} parameters: {flops.six_n / max(flops.training, 1):.0%} of what was"
            " counted. "
        )
        rule += (
            f"With the {used:,} that meet a token in a product: {6 * used / max(flops.training, 1):.0%}."
            " Kaplan et al. 2020 count those of the blocks only"
        )
        explain.worked("6 N, the rule of thumb", flop(flops.six_n), rule)
    whole = flops.training * flops.tokens
    what = (
        f"A text of {flops.tokens:,} tokens"
        if ledger.encoder is None
        else f"A text of {flops.tokens:,} tokens to read and one as long to write"
    )
    st.caption(f"{what}: {flop(whole / 3)} forward, {flop(whole)} to be trained on it once.")


def growing(ledger: Ledger) -> str:
    """The formula (Markdown) of what grows with T: scores and weighted sums, in each layer, of each
    attention.
    """
    products = "2" if ledger.config.mixer == "mean" else "2\\cdot 2"  # a mean has no scores
    formula = f"${products}\\cdot T\\cdot H\\cdot d_{{head}}\\cdot L$"
    return (
        formula
        if ledger.encoder is None
        else f"{formula}, three times (the encoder's, the decoder's and the one between)"
    )


def _takeaway(choice: Choice, flops: Flops, crossing: int | None) -> str:
    if crossing is None and flops.scores:
        return (
            f"Each token is compared with the last {choice.config.window:,} only, so from there on it costs"
            " the same however long the text, and everything else together stays dearer: scores and sums are"
            f" {percent(flops.scores, flops.forward)} here."
        )
    if crossing is None:
        return (
            "Without a mixer tokens never look at each other, so a token costs the same however long the"
            " text."
        )
    c = choice.config
    table = (
        f" Only its table of {c.context:,} positions knows how long a text can be."
        if c.position == "learned"
        else ""
    )
    where = (
        f"beyond its context of {c.context:,}"
        if crossing > c.context
        else f"within its context of {c.context:,}"
    )
    matrices = sum(choice.ledger.components.get(part, 0) for part in ("attention", "cross_attention"))
    has = (
        f"Attention's matrices have {matrices:,} parameters" if matrices else "This mixer has no parameters,"
    )
    each = "each layer" if choice.ledger.encoder is None else "each layer and attention"
    does, cost = ("averages T others", 2) if c.mixer == "mean" else ("is compared with T others", 4)
    return (
        f"{has} **whatever T is**.{table} But each token {does}, which costs ${cost}\\,T\\,H\\,d_{{head}}$ in"
        f" {each}: from **T = {crossing:,}** on, {where}, more than everything else together. 6 N does not"
        f" know T, so it misses these {percent(flops.scores, flops.forward)} here; and it counts"
        " tables, from which a token only takes a row."
    )
