"""Where the parameters of a model are, tensor by tensor; what tying and grouping save."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.ledger import Ledger, kv_numbers
from pages.models.parameters import figures
from pages.models.parameters.choice import Choice
from ui import explain
from ui.players.plot import plot
from ui.text.numbers import percent


def where_view(choice: Choice) -> None:
    ledger = choice.ledger
    rest = ledger.total - ledger.in_blocks
    st.markdown(
        f"**{ledger.total:,} parameters**: {ledger.in_blocks:,} in the {ledger.config.n_layers:,} blocks"
        + (" of each stack" if ledger.encoder else "")
        + f" ({percent(ledger.in_blocks, ledger.total)}), {rest:,} before and after them."
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
    takeaway(choice)
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
                "share": row.parameters / max(ledger.total, 1),
            }
            for row in ledger.rows
        ]
    )


def takeaway(choice: Choice) -> None:
    ledger = choice.ledger
    counts = ledger.components
    network, attention = (
        counts.get("feedforward", 0),
        counts.get("attention", 0) + counts.get("cross_attention", 0),
    )
    outside = ledger.total - ledger.in_blocks
    if not network or not attention:
        missing = "no feed-forward networks" if not network else "no attention matrices"
        explain.takeaway(f"This model's blocks have {missing}; most have both.")
        return
    of_block, c = network / ledger.in_blocks, ledger.config
    usual = abs(of_block - 2 / 3) < 0.03
    close = (
        "about two thirds, as $8d^2$ of $12d^2$ says"
        if usual
        else "the usual shape, $d_{ff} = 4d$ with full heads, would give two thirds"
    )
    words = f"**{of_block:.1%} of the blocks' parameters are in the feed-forward networks**: {close}."
    if not usual:
        queries, keys, width = c.n_heads * (c.d_head or 0), (c.n_kv_heads or 0) * (c.d_head or 0), c.d_model
        words += (
            f" Here $d_{{ff}}$ is {(c.d_ff or 0) / width:.3g}·d, the queries are {queries / width:.3g}·d wide"
            f" and the keys {keys / width:.3g}·d."
        )
    if ledger.encoder is not None:
        words += " A decoder's blocks have a second attention, which reads the encoder."
    share = percent(outside, ledger.total)
    words += (
        f" Embedding, positions and output are {share} of the whole; with the same vocabulary, the larger the"
        " model, the less."
    )
    explain.takeaway(words)


def _savings(choice: Choice) -> None:
    """What one matrix for embedding and output saves, what sharing keys and values saves, and what a longer
    context costs.
    """
    c, total = choice.config, choice.ledger.total
    columns = [*st.columns(2), *st.columns(2)]
    other = choice.variant(tie_embeddings=not c.tie_embeddings)
    with columns[0]:
        if other is not None:
            saved, untied = abs(other.total - total), max(other.total, total)
            share = percent(saved, untied)
            words = (
                f"$V\\cdot d$ = {c.vocab_size:,} · {c.d_model:,}: one matrix for embedding and output."
                f" {share} of the model without tying."
            )
            explain.worked("Tying saves" if c.tie_embeddings else "Tying would save", f"{saved:,}", words)
    with columns[1]:
        longer = choice.variant(context=2 * c.context)
        if longer is not None:
            words = (
                f"{2 * c.context:,} tokens in place of {c.context:,}: attention's matrices act on one token"
                " at a time, so they stay as they are."
            )
            explain.worked(
                "Twice the context",
                _signed(longer.total - total),
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
    now, then = kv_numbers(c, choice.ledger.encoder), kv_numbers(other.config, other.encoder)
    today = f", now {now:,}." if now != then else "."
    cache = (
        f" A token then takes {then:,} numbers in the KV cache{today}"
        if now
        else " Without a causal mask there is no KV cache."
    )
    explain.worked(name, _signed(other.total - choice.ledger.total), words + cache)


def _signed(change: int) -> str:
    return "±0" if change == 0 else f"{'+' if change > 0 else '−'}{abs(change):,}"
