"""The view "What vocabulary size costs": a longer list of tokens against a shorter text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from engine.data.tokenizers.published import PUBLISHED, PublishedTokenizer
from engine.measure.tokens.subwords import NewWords, new_words, per_token
from engine.measure.tokens.vocabulary import Cost, Passage, costs, gain, measure_passage
from pages.input.tokens import figures, shared, words
from pages.input.tokens.textbook import draw_line, draw_thousand_words
from ui import explain, memo
from ui.players.plot import plot
from ui.widgets import select, slide_over

GRID = (256, 300, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
NAMED = (512, 1024, 2048, 4096, 8192)  # sizes that have a row in the table
PASSAGES = {100: "100 words", 1000: "1,000", 10_000: "10,000", 0: "all"}
WIDTHS = (64, 128, 256, 512, 768, 1024, 2048, 4096, 8192)
LAYERS_FIRST = 4
BITS = 2.0  # per character, of the models whose perplexities are compared
LAYERS = (1, 2, 4, 6, 8, 12, 24, 32, 48, 96)


@dataclass(frozen=True, eq=False)
class _Counted:
    """A passage, and what every tokenizer costs at width `d`; `curve` is our BPE's, `table` has a row a name,
    `others` are those of it that are not our BPE's.
    """

    known: shared.Sources
    encodings: dict[str, PublishedTokenizer]
    requested: int  # words of the passage; 0 for all
    passage: Passage
    d: int

    @property
    def curve(self) -> list[Cost]:
        rows = {str(size): (size, tokens) for size, tokens in self.passage.curve.items()}
        return costs(rows, self.d, LAYERS_FIRST)

    def table(self, layers: int = LAYERS_FIRST) -> list[Cost]:
        return costs(self.passage.rows, self.d, layers)

    @property
    def others(self) -> list[Cost]:
        return [cost for cost in self.table() if _kind(cost.name) != "ours"]


def draw_cost() -> None:
    """Draws tokens of a passage and numbers of an embedding against the size of the vocabulary, in one
    figure.
    """
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        name = shared.choose_source("cost_corpus", "Text", words.PASSAGE_HINT)
        custom = shared.custom_text() if name == "yours" else ""
        count = select("Passage", PASSAGES, "cost_words", first=1000, wrap=True)
        d = slide_over("Width d_model", WIDTHS, 256, "cost_width", width=170)
    if custom is None:
        return
    known = shared.source(name, custom)
    if known is None:
        return
    encodings = shared.at_hand()
    passage = measured(known.name, known.custom, count, tuple(encodings), known, encodings)
    counted = _Counted(known, encodings, count, passage, d)
    first, last = _ends(counted.table())
    gained = gain(first, last)
    if gained is None:
        st.info(words.NO_TOKENS)
        return
    explain.answer(words.gained(first, last, gained, _new_words(known.name, known.custom, known.text)))
    _draw_trade(counted)
    explain.measure_it(_measured, counted)
    explain.by_hand(_by_hand, counted)


def _ends(table: list[Cost]) -> tuple[Cost, Cost]:
    """Characters, and gpt2 or the largest vocabulary that there is."""
    return table[0], next((cost for cost in table if cost.name == "gpt2"), table[-1])


@memo.measured()
def _new_words(name: str, custom: str, _text: str) -> NewWords | None:
    return new_words(_text)


@memo.measured("Counting tokens …")
def measured(
    name: str,
    custom: str,
    count: int,
    published: tuple[str, ...],
    _known: shared.Sources,
    _encodings: dict[str, PublishedTokenizer],
) -> Passage:
    """Returns the first `count` words of a source (0: all of it) in tokens; `published` names the
    encodings.
    """
    return measure_passage(_known.text, count, shared.trained(_known), GRID, NAMED, _encodings)


def _kind(row: str) -> str:
    return "published" if row in PUBLISHED else "ours" if row.startswith("BPE") else "plain"


def _draw_trade(counted: _Counted) -> None:
    curve, others = counted.curve, counted.others
    plot(
        figures.trade(
            np.array([cost.vocab_size for cost in curve]),
            np.array([cost.tokens for cost in curve]),
            [(cost.name, _kind(cost.name), cost.vocab_size, cost.tokens) for cost in others],
            counted.d,
        ),
        key="cost_trade",
        alt=words.trade_alt(counted.passage.words, words.TEXTS[counted.known.name], others),
        height=350,
        name="vocabulary",
        data=_rows(counted),
    )


def _draw_scores(counted: _Counted) -> None:
    curve, others = counted.curve, counted.others
    plot(
        figures.score_curve(
            np.array([cost.vocab_size for cost in curve]),
            np.array([cost.scores for cost in curve]),
            [(cost.name, _kind(cost.name), cost.vocab_size, cost.scores) for cost in others],
        ),
        key="cost_scores",
        alt=words.scores_alt(others),
        height=300,
        name="vocabulary-attention",
        data=_rows(counted),
    )


def _rows(counted: _Counted) -> pd.DataFrame:
    """Returns the table of both figures, for the CSV."""
    every = [("our BPE", cost) for cost in counted.curve] + [(cost.name, cost) for cost in counted.others]
    return pd.DataFrame(
        {
            "tokenizer": [name for name, _ in every],
            "V": [cost.vocab_size for _, cost in every],
            "tokens": [cost.tokens for _, cost in every],
            "embedding": [cost.embedding for _, cost in every],
            "scores": [cost.scores for _, cost in every],
        }
    )


def _measured(counted: _Counted) -> None:
    """Attention's scores, whole models, 1,000 words, and one line."""
    known = counted.known
    layers = slide_over("Layers", LAYERS, LAYERS_FIRST, "cost_layers", hint=words.LAYERS_HINT)
    table = counted.table(layers)
    st.caption(words.measured_on(counted.passage, counted.requested, words.TEXTS[known.name]))
    _draw_scores(counted)
    _table(table, counted.d, layers)
    st.markdown(words.share_of(*_ends(table), counted.d))
    passage = measured(known.name, known.custom, 1000, tuple(counted.encodings), known, counted.encodings)
    draw_thousand_words(known, passage)
    draw_line(counted.encodings.get("gpt2"))


def _by_hand(counted: _Counted) -> None:
    """One quality of a model as perplexity per token, under each tokenizer."""
    st.markdown(words.PERPLEXITY)
    passage = counted.passage
    rows = {name: (passage.characters, tokens) for name, (_, tokens) in passage.rows.items()}
    st.table(
        pd.DataFrame(
            [
                {
                    "": name,
                    "characters per token": f"{score.characters_per_token:.2f}",
                    "bits per token": f"{score.bits_per_token:.2f}",
                    "perplexity per token": f"{score.perplexity:,.0f}",
                    "bits per character": f"{BITS:.2f}",
                }
                for name, score in per_token(BITS, rows).items()
            ]
        ).set_index("")
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
