"""The view "What vocabulary size costs": a longer list of tokens against a shorter text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.comparing import Passage, gain, measure_passage
from engine.measure.vocabulary import Cost, costs
from engine.tokenizers.published import PUBLISHED, PublishedTokenizer
from pages.input.tokens import figures, shared, words
from pages.input.tokens.textbook import draw_line, draw_thousand_words
from ui import explain
from ui.players.plot import plot
from ui.widgets import one_of, slide_over

GRID = (256, 300, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
NAMED = (512, 1024, 2048, 4096, 8192)  # sizes that have a row in the table
PASSAGES = {100: "100 words", 1000: "1,000 words", 10_000: "10,000 words", 0: "all of it"}
WIDTHS = (64, 128, 256, 512, 768, 1024, 2048, 4096, 8192)
LAYERS = (1, 2, 4, 6, 8, 12, 24, 32, 48, 96)


def draw_cost() -> None:
    """Sequence length, embedding and attention against the size of the vocabulary; the textbook's table; one
    line, counted.
    """
    name = shared.choose_source(
        "cost_corpus", "Text", "Our BPE learns from this text, and the passage is its beginning."
    )
    own = shared.own_text(110) if name == "yours" else ""
    if own is None:
        return
    known = shared.source(name, own)
    if known is None:
        return
    count, d, layers = _controls()
    encodings = shared.encodings(list(PUBLISHED))
    found = measured(known.name, known.own, count, tuple(encodings), known, encodings)
    kinds = {
        row: "published" if row in PUBLISHED else "ours" if row.startswith("BPE") else "plain"
        for row in found.rows
    }
    table = costs(found.rows, d, layers)
    curve = costs({str(size): (size, tokens) for size, tokens in found.curve.items()}, d, layers)
    of = f"the first {found.words:,} words" if count else "the whole text"
    fewer = f" It has no more than {found.words:,} words." if count > found.words else ""
    st.caption(f"Measured on {of} of {shared.SOURCES[known.name]}: {found.characters:,} characters.{fewer}")
    _curves(curve, table, kinds, d)
    _table(table, d, layers)
    _takeaway(table, d)
    draw_thousand_words(known, measured(known.name, known.own, 1000, tuple(encodings), known, encodings))
    draw_line(encodings.get("gpt2"))


def _controls() -> tuple[int, int, int]:
    """(words of the passage, 0 for all; d_model; layers)"""
    count = one_of("Passage", PASSAGES, "cost_words", first=1000, wrap=True)
    width, depth = st.columns(2, gap="medium")
    d = slide_over("Width d_model", WIDTHS, 256, "cost_width", place=width)
    hint = "For the whole model's parameters only."
    return count, d, slide_over("Layers", LAYERS, 4, "cost_layers", place=depth, hint=hint)


@st.cache_resource(max_entries=24, show_spinner="Counting tokens …")
def measured(
    name: str,
    own: str,
    count: int,
    published: tuple[str, ...],
    _known: shared.Sources,
    _encodings: dict[str, PublishedTokenizer],
) -> Passage:
    """The first `count` words of a source (0: all of it) in tokens; `published` names the encodings."""
    return measure_passage(_known.text, count, shared.trained(_known), GRID, NAMED, _encodings)


def _curves(curve: list[Cost], table: list[Cost], kinds: dict[str, str], d: int) -> None:
    sizes = np.array([cost.vocab_size for cost in curve])
    panels = (
        ("tokens", "Sequence length T", "tokens", "vocabulary-length"),
        ("embedding", f"Embedding V·d, d = {d:,} (log)", "parameters", "vocabulary-embedding"),
        ("scores", "Attention T²", "scores in one head", "vocabulary-attention"),
    )
    for column, (field, title, unit, name) in zip(st.columns(3, gap="small"), panels, strict=True):
        points = [
            (cost.name, kinds[cost.name], cost.vocab_size, float(getattr(cost, field)))
            for cost in table
            if kinds[cost.name] != "ours"
        ]
        every = [*curve, *(cost for cost in table if kinds[cost.name] != "ours")]
        data = pd.DataFrame(
            {
                "tokenizer": [c.name if c in table else "our BPE" for c in every],
                "V": [c.vocab_size for c in every],
            }
        )
        values = np.array([getattr(cost, field) for cost in curve], np.float64)
        alt = (
            f"{title} against the size of the vocabulary: "
            + "; ".join(f"{n} {v:,.0f}" for n, _, _, v in points)
            + "."
        )
        with column:
            figure = figures.cost_curve(
                sizes, values, points, title=title, unit=unit, log=field == "embedding"
            )
            plot(
                figure,
                key=f"cost_{field}",
                alt=alt,
                height=300,
                name=name,
                data=data.assign(**{unit: [getattr(cost, field) for cost in every]}),
            )


def _table(table: list[Cost], d: int, layers: int) -> None:
    st.table(
        pd.DataFrame(
            [
                {
                    "": cost.name,
                    "V": f"{cost.vocab_size:,}",
                    "T": f"{cost.tokens:,}",
                    "V·d": f"{cost.embedding:,}",
                    "model, tied": f"{cost.tied:,}",
                    "model, untied": f"{cost.untied:,}",
                    "embedding's share, tied": f"{cost.share:.1%}",
                    "T²": f"{cost.scores:,}",
                }
                for cost in table
            ]
        ).set_index("")
    )
    st.caption(words.model_of(layers, d))


def _takeaway(table: list[Cost], d: int) -> None:
    first = table[0]
    last = next((cost for cost in table if cost.name == "gpt2"), table[-1])
    found = gain(first, last)
    if found is not None:
        explain.takeaway(words.gained(first, last, found, d))
