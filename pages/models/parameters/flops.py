"""What a token costs to compute, and how that grows with the text: attention's parameters do not see T, its
scores do.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.ledger import Ledger
from engine.ledger.growth import Work, by_part, work
from pages.models.parameters import cost_figures, figures
from pages.models.parameters.choice import Choice, say_changes
from ui import explain, widgets
from ui.players.plot import plot
from ui.text.numbers import flop, percent

LENGTHS = tuple(2**k for k in range(4, 21))  # 16 to a million


def draw_flops(choice: Choice) -> None:
    """FLOPs of a token over the length of the text, the numbers at one length, and every product."""
    say_changes(choice)
    ledger = choice.ledger
    tokens = length_slider("parameters_length", ledger.config.context)
    found = work(ledger, tokens)
    flops = found.flops
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
    _numbers(found, ledger)
    explain.takeaway(_takeaway(choice, found, crossing))
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
    # written without commas: the label is what a link holds
    return widgets.slide_over("Tokens of text T", LENGTHS, nearest, key)


def _numbers(found: Work, ledger: Ledger) -> None:
    flops = found.flops
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
        rule = (
            f"6 · {ledger.total:,} parameters: {found.six_n_share:.0%} of what was counted. With the"
            f" {found.multiplying:,} that meet a token in a product: {found.six_multiplying_share:.0%}."
            " Kaplan et al. 2020 count those of the blocks only"
        )
        explain.worked("6 N, the rule of thumb", flop(flops.six_n), rule)
    what = (
        f"A text of {flops.tokens:,} tokens"
        if ledger.encoder is None
        else f"A text of {flops.tokens:,} tokens to read and one as long to write"
    )
    forward, training = flop(found.text_forward), flop(found.text_training)
    st.caption(f"{what}: {forward} forward, {training} to be trained on it once.")


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


def _takeaway(choice: Choice, found: Work, crossing: int | None) -> str:
    flops = found.flops
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
    has = (
        f"Attention's matrices have {found.attention:,} parameters"
        if found.attention
        else "This mixer has no parameters,"
    )
    each = "each layer" if choice.ledger.encoder is None else "each layer and attention"
    does, cost = ("averages T others", 2) if c.mixer == "mean" else ("is compared with T others", 4)
    return (
        f"{has} **whatever T is**.{table} But each token {does}, which costs ${cost}\\,T\\,H\\,d_{{head}}$ in"
        f" {each}: from **T = {crossing:,}** on, {where}, more than everything else together. 6 N does not"
        f" know T, so it misses these {percent(found.flops.scores, found.flops.forward)} here; and it counts"
        " tables, from which a token only takes a row."
    )
