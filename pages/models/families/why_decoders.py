"""The view "Why decoders": the reasons why decoders won, in a table, each with what of it can be counted or
measured here; or one text without the causal mask (without_the_mask.py).
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.models.families import without_the_mask
from studies.costs.model_choices import Size, three
from studies.experiments.why_decoders import DRAWS, Reasons, lessons, pair_writing, reasons, writing
from ui import content, explain, memo, widgets
from ui.page_frame import Parts, View

TEXT = content.beside(__file__)
SIZE = Size(12, 768, 12)


def draw(line: DeltaGenerator) -> None:
    with line:
        tokens = widgets.slide(TEXT["length"], 16, 256, 64, "why_tokens", step=16, width=300)
        percent = widgets.slide(TEXT["masking"], 5, 50, 15, "why_hidden", step=5, width=300)
    comparison = _measured(tokens, percent / 100)
    with st.container(key="whole_words"):
        st.table(_table(comparison), border="horizontal")
    explain.answer(_answer(tokens, percent, comparison))
    explain.by_hand(st.markdown, _by_hand(comparison))


@memo.measured(copied=True)
def _measured(tokens: int, rate: float) -> Reasons:
    return reasons(tokens, rate, three(SIZE))


def _table(reasons: Reasons) -> pd.DataFrame:
    """Tabulates each family by each reason."""
    tasks, work = reasons.interface, reasons.writing
    pairs, of_pairs = len(reasons.forms), ", pairs" if reasons.forms else ""
    columns = {
        TEXT["measured"]: [
            TEXT["counted lessons"],
            TEXT["counted interface"],
            TEXT("counted cache", tokens=work.written),
            TEXT["counted work"],
        ],
        TEXT["encoder"]: [
            TEXT("encoder lessons", losses=reasons.lessons.encoder),
            TEXT["encoder interface"],
            TEXT("encoder cache", flops=work.recomputed / 1e9),
            TEXT["encoder work"],
        ],
        TEXT["decoder"]: [
            TEXT("decoder lessons", losses=reasons.lessons.decoder),
            TEXT(
                f"decoder interface{of_pairs}",
                tasks=tasks.tasks,
                least=tasks.least,
                pairs=pairs,
                continued=_continued(reasons),
            ),
            TEXT("decoder cache", flops=work.cached / 1e9),
            TEXT["decoder work"],
        ],
        TEXT["both"]: [
            TEXT("both lessons", losses=reasons.lessons.both),
            TEXT(f"both interface{of_pairs}", pairs=pairs, paired=_paired(reasons)),
            TEXT("both cache", flops=reasons.pair_writing / 1e9),
            TEXT("both work", share=reasons.at_work),
        ],
    }
    rows = [TEXT(f"reason {reason}") for reason in ("lessons", "interface", "cache", "work")]
    return pd.DataFrame(columns, index=rows)


def _continued(reasons: Reasons) -> str:
    """Returns the accuracies of tasks of pairs that are written as one text."""
    return span(form.continued for form in reasons.forms.values())


def _paired(reasons: Reasons) -> str:
    return span(form.paired for form in reasons.forms.values())


def span(shares: Iterable[float]) -> str:
    """
    >>> span([0.999, 0.98, 0.964]), span([])
    ('96.4% to 99.9%', '')
    """
    ordered = sorted(shares)
    return TEXT("span", low=ordered[0], high=ordered[-1]) if ordered else ""


def _answer(tokens: int, percent: int, reasons: Reasons) -> str:
    """Says which two weigh most, and what the one way of asking costs (Markdown)."""
    won = TEXT(
        "won",
        times=reasons.lessons.times,
        decoder=reasons.lessons.decoder,
        tokens=tokens,
        encoder=reasons.lessons.encoder,
        percent=percent,
        cheaper=reasons.writing.times,
    )
    if not reasons.forms:
        return won
    return f"{won} {TEXT('accuracies', continued=_continued(reasons), paired=_paired(reasons))}"


def _by_hand(reasons: Reasons) -> str:
    """Returns the arithmetic, and each task in both forms (Markdown)."""
    tasks = "; ".join(
        TEXT(
            "form",
            name=content.Filled(name),
            continued=form.continued,
            paired=form.paired,
            parameters=form.parameters[1],
        )
        for name, form in reasons.forms.items()
    )
    said = TEXT("by hand", draws=DRAWS)
    return f"{said}\n\n{TEXT('both forms', tasks=content.Filled(tasks))}" if tasks else said


REASONS = View("reasons", TEXT, draw, (lessons, writing, pair_writing), name=TEXT["reasons"])
VIEW = View(
    "why",
    TEXT,
    needs_model=False,
    parts=Parts("families_why", (REASONS, without_the_mask.PART), label=TEXT["show"]),
)
