"""The view "Vocabulary size": a longer list of tokens against a shorter text, and 1,000 words counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import streamlit as st

from pages.input.tokens.cutting import Encodings, at_hand, colour_of, is_ours
from pages.input.tokens.examples import LINE
from pages.input.tokens.text_box import compared_text
from pages.input.tokens.training_text import Sources, called, choose_source, source, trained
from studies.tokens.published import PublishedTokenizer
from studies.tokens.subwords import NewWords, new_words, per_token
from studies.tokens.vocabulary import Cost, Gain, Passage, costs, gain, line_counts, measure_passage, prefix
from ui import content, explain, memo
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.tokens import show_bytes
from ui.widgets import select, slide_over

TEXT = content.beside(__file__)
GRID = (256, 300, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
NAMED = (512, 1024, 2048, 4096, 8192)  # sizes that have a row in the table
PASSAGES = {100: "100 words", 1000: "1,000", 10_000: "10,000", 0: "all"}
WIDTHS = (64, 128, 256, 512, 768, 1024, 2048, 4096, 8192)
LAYERS_FIRST = 4
BITS = 2.0  # per character, of the models whose perplexities are compared
LAYERS = (1, 2, 4, 6, 8, 12, 24, 32, 48, 96)
SIDES = {
    "characters": "bottom center",
    "bytes": "middle right",
    "gpt2": "middle left",
    "cl100k_base": "top center",
    "o200k_base": "middle right",
}  # of labels
RULE_WIDTH = 256
# of 1,000 words of 5 characters and 1.3 tokens: (characters, gpt2)
RULE = {
    "V": ("65", "50,257"),
    "T": ("about 5,000", "about 1,300"),
    "V·d": ("16,640", "12,865,792"),
    "T²": ("25 M", "1.7 M"),
}
RUNNING = LINE + "\nAll:\nSpeak, speak.\n"  # how Tiny Shakespeare goes on
LAST = 4  # tokens of a line that are named


@dataclass(frozen=True, eq=False)
class _Counted:
    """A passage, and what every tokenizer costs at width `d`; `curve` is our BPE's, `table` has a row a name,
    `others` are those of it that are not our BPE's.
    """

    known: Sources
    encodings: Encodings
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
        return [cost for cost in self.table() if not is_ours(cost.name)]


def draw() -> None:
    """Draws tokens of a passage and numbers of an embedding against the size of the vocabulary, in one
    figure.
    """
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        name = choose_source("cost_corpus", TEXT["text"], TEXT["passage hint"])
        custom = compared_text() if name == "yours" else ""
        count = select(TEXT["passage"], PASSAGES, "cost_words", first=1000, wrap=True)
        d = slide_over(TEXT["width"], WIDTHS, 256, "cost_width", width=170)
    if custom is None:
        return
    known = source(name, custom)
    if known is None:
        return
    encodings = at_hand()
    passage = measured(known.name, known.custom, count, tuple(encodings), known, encodings)
    counted = _Counted(known, encodings, count, passage, d)
    first, last = _ends(counted.table())
    gained = gain(first, last)
    if gained is None:
        st.info(TEXT["no tokens"])
        return
    explain.answer(_answer(first, last, gained, _new_words(known.name, known.custom, known.text)))
    others = counted.others
    names = "; ".join(TEXT("count of tokens", name=cost.name, tokens=cost.tokens) for cost in others)
    plot(
        trade(counted.curve, others, d),
        key="cost_trade",
        alt=TEXT("alt", words=passage.words, name=called(known.name), counts=names),
        height=350,
        name="vocabulary",
        data=_rows(counted),
    )
    explain.measure_it(_measured, counted)
    explain.by_hand(_by_hand, counted)


def _ends(table: list[Cost]) -> tuple[Cost, Cost]:
    """Characters, and gpt2 or the largest vocabulary that there is."""
    return table[0], next((cost for cost in table if cost.name == "gpt2"), table[-1])


@memo.measured()
def _new_words(name: str, custom: str, _text: str) -> NewWords | None:
    return new_words(_text)


@memo.measured(TEXT["counting"])
def measured(
    name: str,
    custom: str,
    count: int,
    published: tuple[str, ...],
    _known: Sources,
    _encodings: Encodings,
) -> Passage:
    """Returns the first `count` words of a source (0: all of it) in tokens; `published` names the
    encodings.
    """
    return measure_passage(_known.text, count, trained(_known), GRID, NAMED, _encodings)


def _answer(first: Cost, last: Cost, gained: Gain, new: NewWords | None) -> str:
    """Says what a longer list of pieces buys and costs, and why it is no list of words."""
    said = TEXT(
        "gained",
        entries=first.vocab_size,
        name=first.name,
        last=last.name,
        last_entries=last.vocab_size,
        tokens=gained.tokens,
        scores=_times(gained.scores),
        embedding=_times(gained.embedding),
    )
    return said if new is None else f"{said} {TEXT('words missed', listed=new.listed, share=new.share)}"


def _times(ratio: float) -> content.Filled:
    """A factor, no more exact than is of use."""
    return content.Filled(f"{ratio:,.{1 if ratio < 10 else 0}f}")


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
    known, passage, others = counted.known, counted.passage, counted.others
    layers = slide_over(TEXT["layers"], LAYERS, LAYERS_FIRST, "cost_layers", hint=TEXT["layers hint"])
    table = counted.table(layers)
    case = "a part" if counted.requested else "the whole"
    fewer = " has fewer" * (counted.requested > passage.words)
    st.caption(
        TEXT(
            f"measured on {case}{fewer}",
            words=passage.words,
            name=called(known.name),
            characters=passage.characters,
        )
    )
    names = "; ".join(TEXT("count of scores", name=cost.name, scores=cost.scores) for cost in others)
    plot(
        score_curve(counted.curve, others),
        key="cost_scores",
        alt=TEXT("alt scores", counts=names),
        height=300,
        name="vocabulary-attention",
        data=_rows(counted),
    )
    _table(table, counted.d, layers)
    first, last = _ends(table)
    st.markdown(
        TEXT(
            "share of model",
            d=counted.d,
            share=last.share,
            last=last.name,
            first_share=first.share,
            first=first.name,
        )
    )
    thousand = measured(known.name, known.custom, 1000, tuple(counted.encodings), known, counted.encodings)
    _draw_thousand_words(known, thousand)
    _draw_line(counted.encodings.get("gpt2"))


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
    st.caption(TEXT("model", layers=layers, d=d))


def _draw_thousand_words(known: Sources, passage: Passage) -> None:
    """Characters against gpt2 for 1,000 words: measured here, and by the rule of thumb."""
    st.markdown(TEXT["thousand words"])
    names = [name for name in ("characters", "gpt2") if name in passage.rows]
    here = {
        cost.name: {"V": cost.vocab_size, "T": cost.tokens, "V·d": cost.embedding, "T²": cost.scores}
        for cost in costs({name: passage.rows[name] for name in names}, RULE_WIDTH, LAYERS_FIRST)
    }
    rows = []
    for label, published in RULE.items():
        row = {"": label if label != "V·d" else f"V·d, d = {RULE_WIDTH}"}
        for name, rule in zip(("characters", "gpt2"), published, strict=True):
            counted = f"{here[name][label]:,}" if name in here else TEXT["no gpt2"]
            row |= {TEXT("by count", name=name): counted, TEXT("by rule", name=name): rule}
        rows.append(row)
    st.table(pd.DataFrame(rows).set_index(""))
    case = "rule, with gpt2" if "gpt2" in here else "rule of thumb"
    tokens = passage.per_word("gpt2") if "gpt2" in here else 0.0
    each = passage.per_word("characters")
    st.caption(TEXT(case, name=called(known.name), characters=each, tokens=tokens))


def _draw_line(gpt2: PublishedTokenizer | None) -> None:
    """One line whose count depends on what follows it."""
    st.markdown(TEXT["one line"])
    if gpt2 is None:
        line = content.Filled(show_bytes(LINE.encode()))
        st.caption(TEXT("line uncounted", line=line, characters=len(LINE)))
        return
    alone, with_empty, running = counted = line_counts(LINE, RUNNING, gpt2)
    st.table(
        pd.DataFrame(
            [
                {
                    "": line.what,
                    "characters": f"{line.characters}",
                    "gpt2 tokens": f"{len(line.ids)}",
                    "last tokens": " ".join(
                        f"`{show_bytes(gpt2.decode_bytes([i]))}`" for i in line.ids[-LAST:]
                    ),
                }
                for line in counted
            ]
        ).set_index("")
    )
    st.markdown(
        TEXT(
            "line counted",
            line=LINE.strip(),
            characters=alone.characters,
            alone=len(alone.ids),
            with_empty=len(with_empty.ids),
            running=len(running.ids),
        )
    )


def _by_hand(counted: _Counted) -> None:
    """One quality of a model as perplexity per token, under each tokenizer."""
    st.markdown(TEXT["perplexity"])
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


def trade(curve: Sequence[Cost], others: Sequence[Cost], width: int) -> go.Figure:
    """Draws tokens of a passage by our BPE, and those by other tokenizers, against the vocabulary; on the
    right axis the embedding, vocabulary times `width`.
    """
    line = np.geomspace(28, 2 * _largest(curve, others), 120)
    embedding = go.Scatter(
        mode="lines",
        x=line,
        y=line * width,
        yaxis="y2",
        name=TEXT["embedding line"],
        line={"color": colour("embedding"), "width": 3, "dash": "dash"},
        hovertemplate=TEXT["hover embedding"],
    )
    top = 1.12 * max(1, *(cost.tokens for cost in (*curve, *others)))
    axis = {"rangemode": "tozero", "nticks": 6, "exponentformat": "SI", "separatethousands": True}
    return go.figure(
        [
            embedding,
            _ours(curve, "tokens") | {"name": TEXT["our line"]},
            *(_point(cost, "tokens") for cost in others),
        ],
        uirevision="vocabulary",
        margin={"l": 64, "r": 64, "t": 34, "b": 48},
        xaxis=_vocabulary_axis(_largest(curve, others)),
        yaxis=axis | {"title": {"text": TEXT["axis tokens"]}, "range": [0, top]},
        yaxis2=axis | go.axis(TEXT["axis embedding"], overlaying="y", side="right", tickmode="auto"),
    )


def score_curve(curve: Sequence[Cost], others: Sequence[Cost]) -> go.Figure:
    """Draws attention scores of one head by our BPE, and by other tokenizers, against the vocabulary."""
    return go.figure(
        [_ours(curve, "scores"), *(_point(cost, "scores") for cost in others)],
        uirevision="vocabulary-attention",
        margin={"l": 64, "r": 64, "t": 8, "b": 48},
        showlegend=False,
        xaxis=_vocabulary_axis(_largest(curve, others)),
        yaxis=go.axis(TEXT["axis scores"], showgrid=True, rangemode="tozero", nticks=6, exponentformat="SI"),
    )


def _largest(curve: Sequence[Cost], others: Sequence[Cost]) -> int:
    return max(cost.vocab_size for cost in (*curve, *others))


def _ours(curve: Sequence[Cost], what: Literal["tokens", "scores"]) -> go.Trace:
    return go.Scatter(
        mode="lines+markers",
        x=np.array([cost.vocab_size for cost in curve], dtype=np.float64),
        y=np.array([getattr(cost, what) for cost in curve], dtype=np.float64),
        line={"color": colour("run0"), "width": 3},
        marker={"size": 6},
        hovertemplate=TEXT(f"hover our {what}"),
    )


def _point(cost: Cost, what: Literal["tokens", "scores"]) -> go.Trace:
    return go.Scatter(
        mode="markers+text",
        x=[cost.vocab_size],
        y=[getattr(cost, what)],
        text=[cost.name],
        textposition=SIDES.get(cost.name, "top center"),
        textfont={"size": 14},
        cliponaxis=False,
        showlegend=False,
        marker={"size": 11, "symbol": "diamond", "color": colour_of(cost.name)},
        hovertemplate=TEXT(f"hover {what}", name=cost.name),
    )


def _vocabulary_axis(largest: int) -> dict[str, Any]:
    return go.axis(
        TEXT["axis vocabulary"],
        showgrid=True,
        type="log",
        range=[np.log10(28.0), np.log10(2 * largest)],
        tickvals=[64, 256, 1024, 4096, 16384, 65536, 262144],
        ticktext=["64", "256", "1,024", "4,096", "16k", "65k", "262k"],
        tickangle=0,
    )


VIEW = View("cost", TEXT, draw, code=(costs, prefix), needs_model=False)
