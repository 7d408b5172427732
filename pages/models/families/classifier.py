"""The view "Classifier": one line, eight speakers, and what each word does to their shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import CorpusError, GlassformerError, RunError
from runs.kinds import LABELS
from studies.families.classifier import (
    WordAblation,
    ablate_words,
    by_size,
    counting_right,
    labelled_right,
    share,
)
from studies.pairs.checkpoints import LabelCheckpoint, load_labels
from studies.pairs.corpora import frequent_right, speakers
from studies.pairs.seq2seq import Classifier
from ui import content, explain, memo, session, widgets
from ui.figures import specs as go
from ui.figures.labels import crowded, plain
from ui.figures.patterns import named_cells, placed, token_axis
from ui.figures.theme import DIVERGING, colour
from ui.models import RUN, runs
from ui.page_frame import View
from ui.players.plot import plot
from ui.site import ROOT
from ui.text.markdown import sentence
from ui.timeline import scrubbed
from ui.training_step import NEWEST

TEXT = content.beside(__file__)
MODEL, TYPED = "speaks_model", "speaks_text"
SHIPPED = "shipped"
FOLDER = ROOT / "checkpoints" / "paired" / "speakers"
HEIGHT, LETTERS = 400, 420
OFFERED = 40  # held-out texts that "Another" goes through
NAMED = 3  # unknown words
WIDE = 420  # pixels that the words have between them
BARS = 0.3  # of the width: the shares
MOST = 32  # upright words that have room beside each other


def draw() -> None:
    asked_for = widgets.read_url(MODEL)
    shipped = {SHIPPED: TEXT["shipped"]} if (FOLDER / "config.json").is_file() else {}
    there = shipped | runs(LABELS, asked_for)
    if not there:
        explain.answer(TEXT["none"])
        return
    above = st.container(gap=None)  # the scrubber's place is in the line of the question (app.css)
    pictured, controls = st.columns([9, 3], gap="medium")
    with controls:
        if asked_for.startswith(RUN) and asked_for not in there:
            st.caption(TEXT["not yet"])
        name = widgets.select(TEXT["model"], there, MODEL, kind="list")
        typed = st.text_area(
            TEXT["typed"], TEXT["first"], key=TYPED, max_chars=LETTERS, height=150, **widgets.KEPT
        )
        st.button(TEXT["another"], on_click=_another, icon=":material/shuffle:", disabled=not _held())
    text = " ".join(typed.split())
    with scrubbed(name, above) as moment:
        at = moment.number
        try:
            spoken = _spoken(name, at, text)
        except GlassformerError as error:
            explain.answer(sentence(error))
            return
        with pictured:
            _picture(spoken)
        explain.answer(answer(spoken, _held().get(text)))
        explain.measure_it(_measured, name, at)
        explain.by_hand(st.markdown, TEXT["by hand"])


def _picture(spoken: WordAblation) -> None:
    labels = [named(spoken.labels[i]) for i in spoken.order]
    shares, moves = spoken.shares[spoken.order], spoken.moves[:, spoken.order]
    said = ", ".join(
        TEXT("alt share", who=who, share=value) for who, value in zip(labels, shares, strict=True)
    )
    plot(
        effects(shares, moves, spoken.words, labels),
        key="speaks",
        alt=TEXT("alt", shares=said, words=len(spoken.words)),
        height=HEIGHT,
        name="who-speaks",
        data={"speaker": labels, "probability": shares}
        | {f"{i} {word}": moves[i] for i, word in enumerate(spoken.words)},
    )


def named(label: str) -> str:
    """Returns a speaker, as they are called outside a script.

    >>> named("KING RICHARD II")
    'King Richard II'
    """
    return " ".join(part if part == "II" else part.title() for part in label.split())


def answer(spoken: WordAblation, true: str | None) -> str:
    """Says who speaks, and by which word it is recognised (Markdown)."""
    first, second = spoken.order[:2]
    said = [
        TEXT(
            "matters most",
            word=spoken.words[spoken.heaviest],
            who=named(spoken.labels[first]),
            share=spoken.shares[first],
            without=spoken.without[spoken.heaviest, first],
            second=named(spoken.labels[second]),
            second_share=spoken.shares[second],
            uniform=1 / len(spoken.labels),
        )
    ]
    if true is not None:
        said.append(TEXT("right" if true == spoken.labels[first] else "wrong", who=named(true)))
    if spoken.unknown:
        more = len(spoken.unknown) - NAMED
        listed = content.Filled(", ".join(TEXT("word", word=word) for word in spoken.unknown[:NAMED]))
        said.append(TEXT("unknown, more" if more > 0 else "unknown", words=listed, more=more))
    return " ".join(said)


def _another() -> None:
    """The next of some held-out texts."""
    offered = list(_held())
    chosen = [offered[i * len(offered) // OFFERED] for i in range(OFFERED)]
    now = " ".join(str(st.session_state.get(TYPED, "")).split())
    index = chosen.index(now) if now in chosen else -1
    st.session_state[TYPED] = chosen[(index + 1) % len(chosen)]


def _measured(name: str, at: int) -> None:
    """How often it is right about what was held out, by length, beside those who know less."""
    try:
        scores = measured(name, at)
    except GlassformerError as error:
        st.caption(sentence(error))
        return
    st.markdown(TEXT("measured", texts=scores.texts[0], right=scores.right[0]))
    rows = {
        TEXT["count"]: [f"{texts:,}" for texts in scores.texts],
        TEXT["frequent"]: [f"{value:.1%}" for value in scores.frequent],
        TEXT["counting"]: [f"{value:.1%}" for value in scores.counting],
        TEXT["this model"]: [f"{value:.1%}" for value in scores.right],
    }
    lengths = [TEXT["all"], *(TEXT("lines", count=count) for count in scores.lines)]
    st.table(pd.DataFrame(rows, index=lengths).T, border="horizontal")


@dataclass(frozen=True)
class Measured:
    """Scores on all held-out texts, then on those of each of `lines`: how many, and the shares that are
    right.
    """

    lines: tuple[int, ...]
    texts: tuple[int, ...]
    frequent: tuple[float, ...]
    counting: tuple[float, ...]
    right: tuple[float, ...]


@memo.measured(TEXT["measuring"], copied=True)
def measured(name: str, at: int) -> Measured:
    """Raises GlassformerError where the model or the texts are not there."""
    checkpoint, known = _opened(name, at), speakers()
    lines = tuple(sorted(set(known.lines)))

    def shares(right: list[bool]) -> tuple[float, ...]:
        return share(right), *by_size(right, known.lines).values()

    return Measured(
        lines,
        (len(known.lines), *(known.lines.count(line) for line in lines)),
        shares(frequent_right(known.text)),
        shares(counting_right(known.text)),
        shares(labelled_right(checkpoint.model, known.text.rows["validation"])),
    )


def _held() -> dict[str, str]:
    """Held-out text -> who says it; none where the plays are not on this server."""
    try:
        session.corpus("shakespeare")  # a download that has failed is not waited for at every click
        return {line.text: line.label for line in speakers().text.validation}
    except CorpusError:
        return {}


@memo.measured()
def _spoken(name: str, at: int, text: str) -> WordAblation:
    return ablate_words(_opened(name, at), text)


def _opened(name: str, at: int) -> LabelCheckpoint:
    return _shipped() if at == NEWEST else _snapshot(name.removeprefix(RUN), at)


@memo.loaded()
def _shipped() -> LabelCheckpoint:
    return load_labels(FOLDER)


@memo.loaded()
def _snapshot(run: str, step: int) -> LabelCheckpoint:
    result = session.manager().trained(run, step)
    if not isinstance(result, LabelCheckpoint):
        raise RunError(TEXT["other kind"])
    return result


def effects(shares: np.ndarray, moves: np.ndarray, words: Sequence[str], labels: Sequence[str]) -> go.Figure:
    """Draws shares (label,) in [0, 1] as bars; moves (word, label) as cells of percentage points, a row for
    each label and a column for each word. The first label is at the top.
    """
    points = 100 * moves.T.astype(np.float32)  # (label, word)
    reach = max(float(np.abs(points).max(initial=0)), 0.1)
    heat = {
        "type": "heatmap",
        "z": points,
        "zmin": -reach,
        "zmax": reach,
        "zmid": 0,
        "colorscale": DIVERGING,
        **named_cells(list(labels), placed(words), ", with "),
        "hovertemplate": TEXT["cell"],
        "xaxis": "x2",
        "colorbar": {
            **{"orientation": "h", "x": 1, "xanchor": "right", "y": 0, "yanchor": "top", "len": 0.66},
            **{"thickness": 8, "nticks": 5, "tickfont": {"size": 12}},
            "title": {"text": TEXT["points"], "side": "bottom", "font": {"size": 13}},
        },
    }
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": 100 * shares,
        "y": list(range(len(labels))),
        "marker": {"color": colour("output")},
        "text": [f"{share:.0%}" for share in shares],
        "textposition": "outside",
        "cliponaxis": False,
        "customdata": list(labels),
        "hovertemplate": TEXT["bar"],
    }
    upright = crowded(words, WIDE)
    names: dict[str, Any] = go.ticks(
        list(range(len(labels))), [plain(label) for label in labels], autorange="reversed"
    )
    most = max(100 * float(shares.max()), 1.0)
    return go.figure(
        [bars, heat],
        margin={"l": 128, "r": 4, "t": 92 if upright else 54, "b": 62},
        showlegend=False,
        bargap=0.35,
        yaxis=names,
        xaxis={
            **{"domain": [0, BARS], "range": [0, 1.5 * most], "side": "bottom", "showgrid": False},
            **{"showticklabels": False, "ticks": "", "title": {"text": TEXT["share axis"]}},
        },
        xaxis2=token_axis(
            words,
            TEXT["effect axis"],
            12,
            most=MOST if upright else 64,
            side="top",
            tickangle=-90 if upright else 0,
            domain=[BARS + 0.03, 1],
            anchor="y",
        ),
    )


VIEW = View("speaks", TEXT, draw, code=(ablate_words, Classifier.forward), needs_model=False)
