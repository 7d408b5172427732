"""Where the parameters of a model are, tensor by tensor; what tying and grouping save."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.ledger import Ledger
from engine.ledger.shares import Where, change, row_share, where
from pages.models.parameters import figures
from pages.models.parameters.choice import Choice, say_changes
from ui import explain
from ui.players.plot import plot
from ui.text.numbers import percent


def draw_where(choice: Choice) -> None:
    """Every tensor as an area, the parts as bars, what tying and grouping save, and the table of all."""
    say_changes(choice)
    ledger = choice.ledger
    found = where(ledger)
    st.markdown(
        f"**{found.total:,} parameters**: {found.in_blocks:,} in the {ledger.config.n_layers:,} blocks"
        + (" of each stack" if ledger.encoder else "")
        + f" ({percent(found.in_blocks, found.total)}), {found.outside:,} before and after them."
    )
    table = rows_table(ledger)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        alt = f"Parameters of {choice.title} as areas: " + parts_in_words(ledger)
        plot(
            figures.treemap(ledger, choice.title),
            key="parameters_treemap",
            alt=alt,
            height=430,
            data=table,
            name="parameters",
        )
        st.caption("Click an area to go into it, and its top line to come back.")
    with right:
        counts = ledger.components
        frame = pd.DataFrame(
            {"component": [figures.NAMES[n] for n in counts], "parameters": list(counts.values())}
        )
        alt = f"Parameters of {choice.title} by component: " + parts_in_words(ledger)
        plot(
            figures.component_bars(counts),
            key="parameters_bars",
            alt=alt,
            height=430,
            data=frame,
            name="components",
        )
    _takeaway(choice, found)
    _savings(choice)
    st.subheader("Every tensor", anchor=False)
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
    st.caption(
        "V: vocabulary, T: context, d: width, L: layers, H: heads, H_kv: key-value heads, d_head: width of a"
        " head, d_ff: feed-forward width."
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
    """The itemised table: a row for each tensor."""
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
                "share": row_share(ledger, row),
            }
            for row in ledger.rows
        ]
    )


def _takeaway(choice: Choice, found: Where) -> None:
    if not found.network or not found.attention:
        missing = "no feed-forward networks" if not found.network else "no attention matrices"
        explain.takeaway(f"This model's blocks have {missing}; most have both.")
        return
    close = (
        "about two thirds, as $8d^2$ of $12d^2$ says"
        if found.usual
        else "the usual shape, $d_{ff} = 4d$ with full heads, would give two thirds"
    )
    words = (
        f"**{found.network_share:.1%} of the blocks' parameters are in the feed-forward networks**: {close}."
    )
    if not found.usual:
        words += (
            f" Here $d_{{ff}}$ is {found.d_ff:.3g}·d, the queries are {found.queries:.3g}·d wide"
            f" and the keys {found.keys:.3g}·d."
        )
    if choice.ledger.encoder is not None:
        words += " A decoder's blocks have a second attention, which reads the encoder."
    words += (
        f" Embedding, positions and output are {percent(found.outside, found.total)} of the whole; with the"
        " same vocabulary, the larger the model, the less."
    )
    explain.takeaway(words)


def _savings(choice: Choice) -> None:
    """What one matrix for embedding and output saves, what sharing keys and values saves, and what a longer
    context costs.
    """
    c = choice.config
    columns = [*st.columns(2), *st.columns(2)]
    other = choice.variant(tie_embeddings=not c.tie_embeddings)
    with columns[0]:
        if other is not None:
            found = change(choice.ledger, other)
            share = percent(found.saved, found.larger)
            words = (
                f"$V\\cdot d$ = {c.vocab_size:,} · {c.d_model:,}: one matrix for embedding and output."
                f" {share} of the model without tying."
            )
            explain.worked(
                "Tying saves" if c.tie_embeddings else "Tying would save", f"{found.saved:,}", words
            )
    with columns[1]:
        longer = choice.variant(context=2 * c.context)
        if longer is not None:
            words = (
                f"{2 * c.context:,} tokens in place of {c.context:,}: attention's matrices act on one token"
                " at a time, so they stay as they are."
            )
            explain.worked(
                "Twice the context",
                _signed(change(choice.ledger, longer).parameters),
                words + (" Only the position table grows." if c.position == "learned" else ""),
            )
    with columns[2]:
        _grouped(choice, "A key head for each query head (MHA)", c.n_heads)
    with columns[3]:
        _grouped(choice, "One key head for all (MQA)", 1)


def _grouped(choice: Choice, name: str, heads: int) -> None:
    c = choice.config
    if c.mixer != "attention":
        explain.worked(name, "–", "Only the mixer `attention` has separate keys to share.")
        return
    other = choice.variant(n_kv_heads=heads)
    if other is None:
        return
    words = (
        "That is this model."
        if heads == c.n_kv_heads
        else f"{heads} in place of {c.n_kv_heads}, in each of {c.n_layers:,} layers."
    )
    found = change(choice.ledger, other)
    now, then = found.cache_before, found.cache_after
    today = f", now {now:,}." if now != then else "."
    cache = (
        f" A token then takes {then:,} numbers in the KV cache{today}"
        if now
        else " Without a causal mask there is no KV cache."
    )
    explain.worked(name, _signed(found.parameters), words + cache)


def _signed(change: int) -> str:
    return "±0" if change == 0 else f"{'+' if change > 0 else '−'}{abs(change):,}"
