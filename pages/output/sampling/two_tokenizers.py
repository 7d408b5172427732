"""The part "Two tokenizers" of Perplexity: one text by characters and by pieces, and what may be compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.data.corpus import Corpus
from engine.errors import CorpusError
from engine.model import Transformer
from engine.recording import record
from studies.generation.scoring import Scored, pair_nats, score
from ui import content, explain, memo, session, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.players.plot import plot

TEXT = content.beside(__file__)
SIZE = 1024
PASSAGE = 240  # characters
GIVEN = "\n"  # before the text, so that its first token has something to be scored after
CUTS = ("char", f"bpe:{SIZE}")
LN_2 = math.log(2)


@dataclass(frozen=True)
class Row:
    """One text under one tokenizer: its perplexity per token, and its bits per character."""

    name: content.Filled
    tokens: int  # that are scored
    perplexity: float
    bits: float


def draw(subject: Subject, container: Any) -> None:
    """Draws perplexity per token beside bits per character: of counted pairs of characters, counted pairs of
    BPE pieces, and this model. The text is chosen in `container`.
    """
    texts = {each: TEXT(f"text {each}") for each in ("passage", "this")}
    chosen = widgets.select(TEXT["text"], texts, "scored_text", container=container, hidden=True)
    corpora = {cut: _corpus(cut) for cut in CUTS}
    _, counted = corpora[CUTS[0]]
    text = _passage(counted) if chosen == "passage" else subject.text
    unknown = {*subject.tokenizer.unknown(GIVEN + text), *counted.tokenizer.unknown(GIVEN + text)}
    text = "".join(character for character in text if character not in unknown)
    given = subject.tokenizer.encode(GIVEN) if GIVEN not in unknown else []
    ids = [*given, *subject.tokenizer.encode(text)][: subject.config.context]
    text = subject.tokenizer.decode(ids[len(given) :])
    if not given or not text.strip():
        st.info(TEXT["unknown"])
        return
    scored = score(_logits(subject.key, tuple(ids), subject.model), ids)
    if not scored.finite:
        st.warning(TEXT["diverged"])
        return
    letters, pieces = (_pairs(text, cut, *corpora[cut]) for cut in CUTS)
    rows = (letters, pieces, _of_model(subject, text, scored, len(given)))
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


def _passage(corpus: Corpus) -> str:
    """Returns the beginning of the text that is held out from our own models."""
    held_out = corpus.text[len(corpus.train) :]
    begin = held_out.find("\n\n") + 2
    return held_out[begin : begin + PASSAGE]


@memo.measured(TEXT["reading"])
def _pairs(text: str, cut: str, name: str, _corpus: Corpus) -> Row:
    """Scores all of a text, after a line break, by pairs of tokens counted on a corpus (by `name`). Raises
    TokenizerError for unknown characters.
    """
    ids = [*_corpus.tokenizer.encode(GIVEN), *_corpus.tokenizer.encode(text)]
    total = pair_nats(_corpus, ids)
    said = TEXT("pairs char") if cut == "char" else TEXT("pairs bpe", size=_corpus.vocab_size)
    return _row(said, len(ids) - 1, total, text)


@memo.measured()
def _logits(key: tuple[str, int], ids: tuple[int, ...], _model: Transformer) -> np.ndarray:
    """Returns what the model says after each of a text's tokens, (position, vocab) float32."""
    return record(_model, ids).logits


def _of_model(subject: Subject, text: str, scored: Scored, given: int) -> Row:
    """Scores the same text by the model; its first `given` tokens are the line break."""
    tokens = scored.likelihood.tokens - (given - 1)
    return _row(TEXT("model", title=subject.title), tokens, scored.nats_from(given - 1), text)


def _row(name: content.Filled, tokens: int, nats: float, text: str) -> Row:
    return Row(name, tokens, math.exp(nats / tokens), nats / LN_2 / len(text))


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
