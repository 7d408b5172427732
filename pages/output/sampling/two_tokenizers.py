"""The part "Two tokenizers" of Perplexity: one text by characters and by pieces, and what may be compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
import torch

from engine.data.corpus import Corpus
from engine.errors import CorpusError, TokenizerError
from engine.model import Transformer
from engine.recording import record
from studies.generation.scoring import Scored, score
from ui import content, explain, memo, session, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.players.plot import plot

TEXT = content.beside(__file__)
SIZE = 1024
PASSAGE = 240  # characters
CUTS = ("char", f"bpe:{SIZE}")
LN_2 = math.log(2)


@dataclass(frozen=True)
class Row:
    """One text under one tokenizer: its perplexity per token, and its bits per character."""

    name: str
    tokens: int  # that are scored
    perplexity: float
    bits: float


def draw(subject: Subject, scored: Scored, container: Any) -> None:
    """Draws perplexity per token beside bits per character: of counted pairs of characters, counted pairs of
    BPE pieces, and this model. The text is chosen in `container`.
    """
    text, scored = _text(subject, scored, container)
    try:
        letters, pieces = (_pairs(text, name, *_corpus(name)) for name in CUTS)
    except TokenizerError:
        st.info(TEXT["unknown"])
        return
    if letters is None or pieces is None:
        st.info(TEXT["too short"])
        return
    rows = (letters, pieces, _of_model(subject, text, scored))
    named = "; ".join(TEXT("alt row", name=r.name, perplexity=r.perplexity, bits=r.bits) for r in rows)
    plot(
        per_token_and_per_character(rows),
        key="sampling_two_tokenizers",
        height=300,
        name="perplexity-and-bits-per-character",
        alt=TEXT("alt", rows=content.Filled(named)),
        data=pd.DataFrame(
            {
                TEXT["column name"]: [row.name for row in rows],
                TEXT["column tokens"]: [row.tokens for row in rows],
                TEXT["column perplexity"]: [row.perplexity for row in rows],
                TEXT["column bits"]: [row.bits for row in rows],
            }
        ),
    )
    explain.answer(answer(letters, pieces))
    st.caption(TEXT("how", corpus=TEXT[f"corpus {_corpus(CUTS[0])[0]}"]))


def answer(letters: Row, pieces: Row) -> str:
    """Says what each number makes of the same two ways of counting."""
    gap = pieces.bits - letters.bits
    case = "as many" if abs(gap) < 0.005 else "fewer" if gap < 0 else "more"
    higher = pieces.perplexity > letters.perplexity
    said = {"times": pieces.perplexity / letters.perplexity, "pieces": pieces.bits, "letters": letters.bits}
    return TEXT("answer" if higher else "answer, lower", case=TEXT[f"case {case}"], **said)


def _corpus(cut: str) -> tuple[str, Corpus]:
    """Returns (name, corpus) in which pairs are counted: the Python manual without Tiny Shakespeare."""
    try:
        return "shakespeare", session.corpus("shakespeare", cut)
    except CorpusError:
        return "python", session.corpus("python", cut)


@memo.measured(TEXT["reading"])
def _pairs(text: str, cut: str, name: str, _corpus: Corpus) -> Row | None:
    """Scores a text by pairs of tokens counted on a corpus (by `name`); None for one with a single token.
    Raises TokenizerError for unknown characters.
    """
    ids = torch.tensor(_corpus.tokenizer.encode(text), dtype=torch.int64)
    if len(ids) < 2:
        return None
    of_text = replace(_corpus, validation=ids)
    nats, bits = of_text.baselines["bigram"], of_text.baselines_in_bits["bigram"]
    said = TEXT("pairs char") if cut == "char" else TEXT("pairs bpe", size=_corpus.vocab_size)
    return Row(said, len(ids) - 1, math.exp(nats), bits)


def _text(subject: Subject, scored: Scored, container: Any) -> tuple[str, Scored]:
    """Returns the text that is scored, and its score by the model: a held-out passage, as long as the
    model's context, or what the bar has.
    """
    texts = {each: TEXT(f"text {each}") for each in ("passage", "this")}
    if widgets.select(TEXT["text"], texts, "scored_text", container=container, hidden=True) == "this":
        return subject.text, scored
    corpus = _corpus(CUTS[0])[1]
    held_out = corpus.text[len(corpus.train) :]
    begin = held_out.index("\n\n") + 2
    ids = subject.tokenizer.encode(held_out[begin : begin + PASSAGE])[: subject.config.context]
    text = subject.tokenizer.decode(ids)
    return text, score(_logits(subject.key, tuple(ids), subject.model), ids)


@memo.measured()
def _logits(key: tuple[str, int], ids: tuple[int, ...], _model: Transformer) -> np.ndarray:
    """Returns what the model says after each of a text's tokens, (position, vocab) float32."""
    return record(_model, ids).logits


def _of_model(subject: Subject, text: str, scored: Scored) -> Row:
    likelihood = scored.likelihood
    given = len(subject.tokenizer.decode(list(subject.ids[:1])))
    characters = max(1, len(text) - given)
    bits = -likelihood.total / LN_2 / characters
    return Row(TEXT("model", title=subject.title), likelihood.tokens, likelihood.perplexity, bits)


def per_token_and_per_character(rows: Sequence[Row]) -> go.Figure:
    """Draws a bar for each row, twice: perplexity per token on the left, bits per character on the right."""
    names = [row.name for row in rows]
    shades = [colour("run0"), colour("run2"), colour("output")]
    panels = (("perplexity", "", [0, 0.42], ".1f"), ("bits", "2", [0.58, 1], ".2f"))
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    for what, number, domain, form in panels:
        values = np.array([getattr(row, what) for row in rows])
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": values,
                "y": names,
                "xaxis": f"x{number}",
                "yaxis": f"y{number}",
                "marker": {"color": shades},
                "text": [format(value, form) for value in values],
                "textposition": "outside",
                "cliponaxis": False,
                "hovertemplate": TEXT[f"hover {what}"],
            }
        )
        axes[f"xaxis{number}"] = {
            "title": {"text": TEXT[f"axis {what}"]},
            "rangemode": "tozero",
            "domain": domain,
            "anchor": f"y{number}",
        }
        axes[f"yaxis{number}"] = {
            "autorange": "reversed",
            "showgrid": False,
            "anchor": f"x{number}",
            "showticklabels": not number,
        }
    return go.figure(
        traces, margin={"l": 190, "r": 48, "t": 8, "b": 44}, showlegend=False, bargap=0.35, **axes
    )
