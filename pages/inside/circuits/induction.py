"""The view of induction: random tokens read twice, and what becomes of that without the heads that copy."""

from __future__ import annotations

import numpy as np
import streamlit as st

from engine.data.tokenizers import Tokenizer, token_bytes
from engine.measure.circuits.induction import (
    Repeat,
    drawn,
    ordinary,
    read_twice,
)
from engine.measure.circuits.knockout import Knockout, knock_out
from pages.inside.circuits import figures_induction as figures
from pages.inside.circuits import guesses
from pages.inside.circuits import words_behaviour as words
from ui import explain, memo, widgets
from ui.background_jobs import measured
from ui.fit_text import most_tokens
from ui.guess import ask
from ui.model_bar import Subject
from ui.models import UNTRAINED
from ui.players.plot import plot

COUNTS = (8, 16, 24, 32, 48)
MOST_SEED = 9999
HEIGHT, BELOW = 360, 250


def draw_induction(subject: Subject) -> None:
    """Draws both readings, then the heads one by one."""
    pool = _pool(subject.key[0], subject.tokenizer)
    limit = min(most_tokens(subject.config) // 2, len(pool))
    counts = [count for count in COUNTS if count <= limit] or ([limit] if limit > 1 else [])
    if not counts:
        st.info(words.TOO_SMALL)
        return
    row = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    count = widgets.select(
        words.COUNT, counts, "induction_count", first=24, container=row, hint=words.COUNT_HINT
    )
    seed = widgets.whole(
        words.SEED, 0, MOST_SEED, 0, "induction_seed", container=row, hint=words.SEED_HINT, width=140
    )
    once = drawn(pool, count, seed)
    repeat = _read(subject.key, once, subject)
    _draw_readings(subject, repeat)
    explain.answer(" ".join(words.sentences(repeat, _trained_on(subject), subject.config)))
    if repeat.strong:
        ask("head", guesses.head, subject.model, repeat)
    explain.measure_it(_measured, subject, repeat)


def _measured(subject: Subject, repeat: Repeat) -> None:
    """Draws the second reading without the heads that copy, and every head's score."""
    if (knockout := _knocked_out(subject, repeat)) is not None and repeat.strong:
        st.markdown(words.without_them(knockout))
    _every_head(repeat)


@memo.loaded()
def _pool(name: str, _tokenizer: Tokenizer) -> np.ndarray:
    return ordinary(token_bytes(_tokenizer))


@memo.measured(words.READING)
def _read(key: tuple[str, int], once: tuple[int, ...], _subject: Subject) -> Repeat:
    return read_twice(_subject.model, once)


def _draw_readings(subject: Subject, repeat: Repeat) -> None:
    labels = [subject.vocabulary[i] for i in repeat.once]
    plot(
        figures.readings(repeat.first, repeat.second, labels),
        key="induction_readings",
        height=HEIGHT,
        name="read-twice",
        data={"token": labels, "first_nats": repeat.first, "second_nats": repeat.second},
        alt=words.readings_alt(repeat),
    )


def _knocked_out(subject: Subject, repeat: Repeat) -> Knockout | None:
    if repeat.scores.size < 2:
        return None
    result = measured(
        ("induction", subject.key, repeat.once),
        lambda: knock_out(subject.model, repeat),
        words.KNOCKING_OUT,
    )
    if result is None:
        return None
    names = [words.name_of(*head) for head in result.heads]
    off = np.arange(len(result.without))
    plot(
        figures.knocked_out(result.without, result.others, result.others_mean, names, repeat.first_loss),
        key="induction_knockout",
        height=BELOW,
        name="heads-off",
        data={
            "heads_off": off,
            "last": ["", *names],
            "best_nats": result.without,
            "random_mean_nats": result.others_mean,
        }
        | {f"random_{i}_nats": draw for i, draw in enumerate(result.others)},
        alt=words.KNOCKOUT_ALT.format(heads=len(names)),
    )
    return result


def _trained_on(subject: Subject) -> str | None:
    """Why a model has not learned it, where that is known."""
    if subject.key[0].startswith(UNTRAINED):
        return words.UNTRAINED
    if subject.repeat:
        return words.repeats(subject.repeat)
    return None if subject.corpus is None else words.repeats_little(subject.corpus, subject.config.context)


def _every_head(repeat: Repeat) -> None:
    st.markdown(words.INDUCTION_METHOD)
    layer, head = (grid.ravel() for grid in np.indices(repeat.scores.shape))
    plot(
        figures.scores_map(repeat.scores),
        key="induction_scores",
        height=110 + 14 * max(8, len(repeat.scores)),
        name="induction-scores",
        data={
            "layer": layer,
            "head": head,
            "induction": repeat.scores.ravel(),
            "previous_token": repeat.previous.ravel(),
        },
        alt=words.SCORES_ALT,
    )
    best = words.best_heads(repeat)
    shares = dict.fromkeys(best.columns[1:], st.column_config.NumberColumn(format="%.3f"))
    st.dataframe(best, hide_index=True, column_config=shares, key="induction_table")
