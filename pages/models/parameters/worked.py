"""Worked examples as on the blackboard: the same ledger, for the sizes that are counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from engine.ledger import ledger
from engine.ledger.blackboard import (
    BARE,
    LAB,
    LECTURE,
    block,
    counted,
    terms,
    tied,
    with_heads_and_contexts,
)
from engine.presets import PRESETS
from pages.models.parameters import answers, words
from pages.models.parameters.choice import Choice
from pages.models.parameters.figures import NAMES
from pages.models.parameters.where import rows_table
from ui import explain


def draw_by_hand(choice: Choice) -> None:
    """Draws the products that make up the model's count; folded, the examples of the blackboard."""
    found = terms(choice.ledger)
    explain.answer(answers.by_hand(choice, found, choice.ledger))
    rows = [
        {
            "part": " ".join((*([term.stack] if term.stack else []), NAMES[term.component])),
            "in letters": term.formula,
            "in numbers": term.numbers,
            "parameters": f"{term.parameters:,}",
        }
        for term in found
    ]
    total = {"part": "together", "in letters": "", "in numbers": "", "parameters": f"{counted(found):,}"}
    st.table(pd.DataFrame([*rows, total]).set_index("part"), border="horizontal")
    st.caption(words.LETTERS)
    explain.measure_it(_measured)
    explain.by_hand(_examples)


def _measured() -> None:
    """Two whole models of a course, and one matrix for both ends."""
    _small()
    _tied()


def _examples() -> None:
    """One block, and a whole model without the small things."""
    _block()
    _bare()


def _block() -> None:
    found = block()
    st.subheader("One block: d = 512, d_ff = 2,048", anchor=False)
    columns = [*st.columns(2), *st.columns(2)]
    with columns[0]:
        explain.worked(
            "Attention",
            f"{found.attention:,}",
            r"$4\,d^2 = 4\cdot 512^2$: $W_Q, W_K, W_V, W_O$, without biases",
        )
    with columns[1]:
        explain.worked(
            "Feed-forward",
            f"{found.network:,}",
            r"$2\,d\,d_{ff} = 2\cdot 512\cdot 2048$, without biases",
        )
    with columns[2]:
        explain.worked(
            "Norms", f"{found.norms:,}", r"$2\cdot 2\,d = 4\cdot 512$: two LayerNorms with gain and bias"
        )
    with columns[3]:
        explain.worked(
            "Together", f"{found.total:,}", f"{found.network_share:.1%} of it in the feed-forward network"
        )


def _bare() -> None:
    st.subheader("A whole model without biases, norms' gains and W_O: V = 65, d = 256, L = 4", anchor=False)
    total = ledger(BARE).total
    heads = with_heads_and_contexts()
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="center")
    with left:
        explain.worked(
            "Parameters", f"{total:,}", r"$2\,V d + 11\,L\,d^2 = 2\cdot 65\cdot 256 + 11\cdot 4\cdot 256^2$"
        )
    with right:
        st.markdown(
            "Embedding and unembedding: $V\\cdot d$ each. A block: $3d^2$ for $W_Q, W_K, W_V$ and $8d^2$ for"
            " the feed-forward network.\n\nCounted with 1, 4 and 8 heads and for 16, 512 and 4,096 tokens:"
            f" {_different(heads)}. Heads only cut $d$ into pieces, and attention's matrices act on one token"
            " at a time."
        )


def _different(totals: set[int]) -> str:
    return (
        f"always {next(iter(totals)):,}"
        if len(totals) == 1
        else " or ".join(f"{n:,}" for n in sorted(totals))
    )


def _small() -> None:
    st.subheader("4 layers of width 128", anchor=False)
    classic, eight = ledger(PRESETS["classic"].model), ledger(replace(PRESETS["classic"].model, n_layers=8))
    bare = ledger(LECTURE)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        explain.worked(
            "4 layers × 128, bare",
            f"{bare.total:,}",
            r"$2\,V d + 12\,L\,d^2 = 2\cdot 65\cdot 128 + 12\cdot 4\cdot 128^2$",
        )
        text = f"with biases, gains and {classic.config.context} positions, tied: the rows beside this"
        explain.worked("As the preset classic", f"{classic.total:,}", text)
        explain.worked(
            "The lab's own model",
            f"{ledger(LAB).total:,}",
            f"the same with {LAB.context} positions, and no biases but the norms'; the preset mini, with all"
            f" biases, has {ledger(PRESETS['mini'].model).total:,}",
        )
        explain.worked("With 8 layers", f"{eight.total:,}", "twice the blocks, and the same ends")
    with right:
        table = rows_table(classic)[["tensor", "formula", "times", "parameters"]]
        st.dataframe(
            pd.concat(
                [
                    table,
                    pd.DataFrame(
                        [{"tensor": "all", "formula": "", "times": None, "parameters": classic.total}]
                    ),
                ]
            ),
            hide_index=True,
            height=520,
            column_config={"parameters": st.column_config.NumberColumn(format="localized")},
        )


def _tied() -> None:
    st.subheader("One matrix for both ends of GPT-2: V = 50,257, d = 768", anchor=False)
    found = tied(PRESETS["gpt2"].model)
    columns = st.columns(3)
    with columns[0]:
        explain.worked("Tied", f"{found.tied:,}", "as published")
    with columns[1]:
        explain.worked("Untied", f"{found.untied:,}", f"{found.more:.0%} more")
    with columns[2]:
        explain.worked("Saved", f"{found.saved:,}", r"$V\cdot d = 50{,}257\cdot 768$ (Press & Wolf 2017)")
