"""The view "Classifier": one line, eight speakers, and what each word does to their shares."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from engine.data.pair_corpora import frequent_right, speakers
from engine.errors import CorpusError, GlassformerError, RunError
from engine.measure.families.classifier import (
    WordAblation,
    ablate_words,
    by_size,
    counting_right,
    labelled_right,
    share,
)
from engine.training.kinds import LABELS
from engine.weights.checkpoints import LabelCheckpoint, load_labels
from pages.models.families import words_speaks as words
from pages.models.families.figures_speaks import speaks_figure
from ui import explain, memo, session, widgets
from ui.models import RUN, runs
from ui.players.plot import plot
from ui.site import ROOT
from ui.text.markdown import sentence
from ui.timeline import scrubbed
from ui.training_step import NEWEST

MODEL, TEXT = "speaks_model", "speaks_text"
SHIPPED = "shipped"
FOLDER = ROOT / "checkpoints" / "paired" / "speakers"
HEIGHT, LETTERS = 400, 420
OFFERED = 40  # held-out texts that "Another" goes through


def draw_speaks() -> None:
    asked_for = widgets.read_url(MODEL)
    shipped = {SHIPPED: words.SHIPPED} if (FOLDER / "config.json").is_file() else {}
    there = shipped | runs(LABELS, asked_for)
    if not there:
        explain.answer(words.NONE)
        return
    above = st.container(gap=None)  # the scrubber's place is in the line of the question (app.css)
    pictured, controls = st.columns([9, 3], gap="medium")
    with controls:
        if asked_for.startswith(RUN) and asked_for not in there:
            st.caption(words.NOT_YET)
        name = widgets.select("Model", there, MODEL, kind="list")
        typed = st.text_area(
            words.TYPED, words.FIRST, key=TEXT, max_chars=LETTERS, height=150, **widgets.KEPT
        )
        st.button(words.ANOTHER, on_click=_another, icon=":material/shuffle:", disabled=not _held())
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
        explain.answer(words.speaker_sentence(spoken, _held().get(text)))
        explain.measure_it(_measured, name, at)
        explain.by_hand(lambda: st.markdown(words.BY_HAND))


def _picture(word_ablation: WordAblation) -> None:
    labels = [words.named(word_ablation.labels[i]) for i in word_ablation.order]
    moves = word_ablation.moves[:, word_ablation.order]
    plot(
        speaks_figure(word_ablation.shares[word_ablation.order], moves, word_ablation.words, labels),
        key="speaks",
        alt=words.alt(word_ablation),
        height=HEIGHT,
        name="who-speaks",
        data={"speaker": labels, "probability": word_ablation.shares[word_ablation.order]}
        | {f"{i} {word}": moves[i] for i, word in enumerate(word_ablation.words)},
    )


def _another() -> None:
    """The next of some held-out texts."""
    offered = list(_held())
    chosen = [offered[i * len(offered) // OFFERED] for i in range(OFFERED)]
    now = " ".join(str(st.session_state.get(TEXT, "")).split())
    index = chosen.index(now) if now in chosen else -1
    st.session_state[TEXT] = chosen[(index + 1) % len(chosen)]


def _measured(name: str, at: int) -> None:
    """How often it is right about what was held out, by length, beside those who know less."""
    try:
        scores = measured(name, at)
    except GlassformerError as error:
        st.caption(sentence(error))
        return
    st.markdown(words.measured(scores.texts, scores.right[0]))
    rows = {
        words.COUNTED: [f"{texts:,}" for texts in scores.texts],
        words.FREQUENT: [f"{value:.1%}" for value in scores.frequent],
        words.COUNTING: [f"{value:.1%}" for value in scores.counting],
        words.MODEL: [f"{value:.1%}" for value in scores.right],
    }
    st.table(pd.DataFrame(rows, index=words.lengths(scores.lines)).T, border="horizontal")


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


@memo.measured(words.MEASURING, copied=True)
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
        raise RunError(words.OTHER_KIND)
    return result
