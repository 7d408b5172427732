"""The compute of a token, and its growth with the text: attention's parameters do not depend on T, its scores
do.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.ledger import Flops, Ledger
from engine.ledger.budget import budget, grown
from engine.ledger.growth import by_heads, by_part
from engine.ledger.sizes import fitting, padding
from pages.models.parameters import answers, figures, figures_cost, guesses, words
from pages.models.parameters.choice import LENGTHS, Choice
from ui import explain, widgets
from ui.guess import ask
from ui.players.plot import plot
from ui.text.numbers import short


def draw_flops(choice: Choice) -> None:
    """Draws FLOPs of a token over the length of the text, and what they are at one length; the
    rest folded.
    """
    ledger = choice.ledger
    tokens = length_slider("parameters_length", ledger.config.context)
    flops = ledger.flops(tokens)
    lengths = np.unique(np.append(np.geomspace(LENGTHS[0], LENGTHS[-1], 121).round(), LENGTHS)).astype(
        np.int64
    )
    parts = by_part(ledger, lengths)
    crossing = ledger.crossover()
    never = "kept below everything else by the window" if flops.scores else "absent"
    where = f"equal to everything else from {crossing:,} tokens" if crossing else never
    alt = (
        f"Forward FLOPs for one token of {choice.title} over the length of the text, 16 to a million tokens;"
        f" scores and weighted sums grow with it, {where}."
    )
    explain.answer(answers.work_of_a_token(choice, flops, crossing))
    meeting = (crossing, ledger.flops(crossing).scores) if crossing else None
    plot(
        figures_cost.flops_by_length(lengths, parts, meeting, tokens),
        key="parameters_flops",
        alt=alt,
        height=350,
        data=pd.DataFrame({"tokens": lengths, **parts}),
        name="flops",
    )
    ask("longer", guesses.longer, choice, tokens)
    explain.measure_it(_measured, choice, flops, crossing)
    explain.by_hand(_products, flops)


def length_slider(key: str, fallback: int) -> int:
    """Draws the slider for the length of the text, a power of two."""
    nearest = min(LENGTHS, key=lambda n: abs(np.log(n / max(fallback, 1))))
    # written without commas: the label is what a link holds
    return widgets.slide_over("Sequence length T", LENGTHS, nearest, key)


def _measured(choice: Choice, flops: Flops, crossing: int | None) -> None:
    """The numbers at one length, what heads cost, which sizes suit the hardware, and two laws of budgets."""
    _numbers(flops, choice.ledger)
    explain.takeaway(words.attention_and_length(choice, flops, crossing))
    _heads(choice.ledger, flops.tokens)
    _sizes(choice.ledger)
    _budget(choice.ledger)


def _products(flops: Flops) -> None:
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "component": figures.NAMES[p.component],
                    "product": p.name,
                    "formula": p.formula,
                    "in numbers": p.numbers,
                    "times": p.copies,
                    "FLOPs per token": p.flops,
                    "grows with T": p.grows,
                }
                for p in flops.rows
            ]
        ),
        hide_index=True,
        column_config={"FLOPs per token": st.column_config.NumberColumn(format="localized")},
    )
    made_once = (words.ONCE.format(name=p.name, flops=p.flops) for p in flops.once)
    st.caption(words.WHAT_COUNTS + "".join(made_once))


def _numbers(flops: Flops, ledger: Ledger) -> None:
    for column, card in zip([*st.columns(2), *st.columns(2)], words.numbers_at(flops, ledger), strict=True):
        with column:
            explain.worked(*card)
    st.caption(words.whole_text(flops, ledger))


def _heads(ledger: Ledger, tokens: int) -> None:
    """8 heads are not 8 times the work."""
    c = ledger.config
    shared = by_heads(c, tokens, ledger.parts, (1, 2, 4, 8, 16))
    rows = tuple(row for row in shared if row.d_head % 2 == 0)  # RoPE turns pairs
    if c.mixer != "attention" or not rows:
        return
    st.subheader(words.MORE_HEADS, anchor=False)
    st.markdown(words.heads(rows))
    st.table(
        pd.DataFrame(
            {
                "heads": [f"{row.heads}" for row in rows],
                "head width": [f"{row.d_head:,}" for row in rows],
                "attention FLOPs per token": [f"{row.flops:,}" for row in rows],
                "attention weights per token and layer": [f"{row.weights:,}" for row in rows],
            }
        ).set_index("heads")
    )


def _sizes(ledger: Ledger) -> None:
    """Sizes that 64 divides, and why."""
    rows = fitting(ledger.config)
    st.subheader(words.WHY_SIZES, anchor=False)
    st.markdown(words.sizes(rows[0], padding(ledger.config)))
    st.table(
        pd.DataFrame(
            {
                "size": [f"{words.SIDES[row.field]} (`{row.field}`)" for row in rows],
                "numbers": [f"{row.size:,}" for row in rows],
                "largest power of two that divides it": [f"{row.factor:,}" for row in rows],
                "multiple of 64": ["yes" if row.fits else f"no; {row.padded:,} would be" for row in rows],
            }
        ).set_index("size")
    )


def _budget(ledger: Ledger) -> None:
    """Beyond 6 N: how large a model, and how much text, for the work there is."""
    spending = budget(ledger.total)
    st.subheader(words.HOW_MUCH_TEXT, anchor=False)
    st.markdown(words.chinchilla(spending))
    st.table(
        pd.DataFrame(
            {
                "published law": list(grown(10)),
                "for ten times the compute: parameters": [f"× {n:.1f}" for n, _ in grown(10).values()],
                "and tokens": [f"× {d:.1f}" for _, d in grown(10).values()],
            }
        ).set_index("published law")
    )
    st.caption(words.LAWS.format(size=short(spending.parameters)))
