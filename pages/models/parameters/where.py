"""Where the parameters of a model are, tensor by tensor; what tying and grouping save."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.ledger import Ledger
from engine.ledger.hand_count import terms
from engine.ledger.shares import change, largest, thin, where
from pages.models.parameters import answers, figures, guesses, words
from pages.models.parameters.choice import Choice
from ui import explain
from ui.guess import ask
from ui.players.plot import plot
from ui.text.numbers import percent


def draw_where(choice: Choice) -> None:
    """Draws every tensor as an area, and where most of them are; folded, what tying and grouping save, and
    the count by hand.
    """
    ledger = choice.ledger
    explain.answer(answers.where_they_are(choice, *largest(ledger)))
    plot(
        figures.treemap(ledger, choice.title),
        key="parameters_treemap",
        alt=f"Parameters of {choice.title} as areas: " + parts_in_words(ledger),
        height=350,
        data=rows_table(ledger),
        name="parameters",
    )
    st.caption(words.areas(ledger, {figures.NAMES[name]: count for name, count in thin(ledger).items()}))
    ask("wider", guesses.wider, choice)
    explain.measure_it(_measured, choice)
    explain.by_hand(_by_hand, choice)


def _measured(choice: Choice) -> None:
    """The model's parts as bars, and what other choices would save or cost."""
    ledger, shares = choice.ledger, where(choice.ledger)
    st.markdown(words.in_and_outside(shares, ledger))
    counts = ledger.components
    plot(
        figures.component_bars(counts),
        key="parameters_bars",
        alt=f"Parameters of {choice.title} by component: " + parts_in_words(ledger),
        height=360,
        data=pd.DataFrame(
            {"component": [figures.NAMES[n] for n in counts], "parameters": list(counts.values())}
        ),
        name="components",
    )
    explain.takeaway(words.in_the_blocks(choice, shares))
    _savings(choice)


def _by_hand(choice: Choice) -> None:
    """The products that make up the count, and every tensor."""
    products = terms(choice.ledger)
    st.markdown(answers.by_hand(choice, products))
    rows = [
        {
            "part": " ".join((*([term.stack] if term.stack else []), figures.NAMES[term.component])),
            "in symbols": term.formula,
            "in numbers": term.numbers,
            "parameters": f"{term.parameters:,}",
        }
        for term in products
    ]
    st.table(pd.DataFrame(rows).set_index("part"), border="horizontal")
    st.caption(words.LETTERS)
    table = rows_table(choice.ledger)
    st.dataframe(
        table,
        hide_index=True,
        height=min(35 * len(table) + 38, 460),
        column_config={
            "each": st.column_config.NumberColumn(format="localized"),
            "parameters": st.column_config.NumberColumn(format="localized"),
            "share": st.column_config.NumberColumn(format="percent"),
        },
    )


def parts_in_words(ledger: Ledger) -> str:
    return (
        ", ".join(
            f"{figures.NAMES[name]} {percent(count, ledger.total)}"
            for name, count in ledger.components.items()
            if count
        )
        + "."
    )


def rows_table(ledger: Ledger) -> pd.DataFrame:
    """Returns the itemised table: a row for each tensor."""
    return pd.DataFrame(
        [
            {
                **({"stack": row.stack} if ledger.encoder else {}),
                "component": figures.NAMES[row.component],
                "tensor": row.name,
                "formula": row.formula,
                "in numbers": row.numbers,
                "each": row.each,
                "times": row.copies,
                "parameters": row.parameters,
                "share": row.parameters / max(ledger.total, 1),
            }
            for row in ledger.rows
        ]
    )


def _savings(choice: Choice) -> None:
    """Draws what one matrix for embedding and output saves, what a longer context costs, and what sharing
    keys and values saves.
    """
    c = choice.config
    variants = (
        (words.tying, choice.variant(tie_embeddings=not c.tie_embeddings)),
        (words.twice_the_context, choice.variant(context=2 * c.context)),
    )
    cards = [say(c, *change(choice.ledger, other)) for say, other in variants if other is not None]
    grouped = (_grouped(choice, words.OWN_KEYS, c.n_heads), _grouped(choice, words.ONE_KEY, 1))
    cards += [card for card in grouped if card is not None]
    for column, card in zip([*st.columns(2), *st.columns(2)], cards, strict=False):
        with column:
            explain.worked(*card)


def _grouped(choice: Choice, name: str, heads: int) -> tuple[str, str, str] | None:
    """A card for another number of key heads; None where the model cannot have it."""
    c = choice.config
    if c.mixer != "attention":
        return name, "–", words.NO_KEYS
    other = choice.variant(n_kv_heads=heads)
    return None if other is None else (name, *words.shared_keys(c, heads, *change(choice.ledger, other)))
