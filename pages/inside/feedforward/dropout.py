"""Dropout: what random masks do to a sum, to a prediction and, over seeds, to a training."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.errors import CheckpointError, ConfigError
from engine.experiments.dropout_runs import LITTLE, WHOLE, DropoutRun, ends, shipped
from engine.measure.feedforward.dropout import drop_sum, logit_terms, passes
from pages.inside.feedforward import figures_dropout as figures
from pages.inside.feedforward import guesses
from pages.inside.feedforward import words_dropout as words
from ui import explain, widgets
from ui.background_jobs import measured
from ui.guess import ask
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.tokens import token_strip

HEIGHT = 370
SHARES = (0.1, 0.3, 0.5)
SHOWN = ("sum", "prediction", "training")
TEXTS = {LITTLE: f"{LITTLE:,} characters", WHOLE: "all of it"}


def draw_dropout(subject: Subject) -> None:
    """Draws one of three: a sum, a prediction, or the stored trainings."""
    controls = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    shown = widgets.select(words.SHOWN, SHOWN, "dropout_shown", container=controls)
    if shown == "training":
        _training(controls)
        return
    share = widgets.select(
        words.SHARE, SHARES, "dropout_share", container=controls, format_func=lambda p: f"{p:g}"
    )
    position = token_strip(subject.labels, key="dropout_token", chosen=_first(subject), label=words.TOKEN)
    (_sum if shown == "sum" else _prediction)(subject, share, position)


def _first(subject: Subject) -> int:
    return len(subject.ids) - 1 if subject.gap is None else subject.gap


def _sum(subject: Subject, share: float, position: int) -> None:
    """The last write of the stream, taken through the final norm to the logit of the model's own guess."""
    recording = subject.recording()
    guess = recording.likeliest(position)
    try:
        terms = logit_terms(subject.model, recording, position, guess)
    except ConfigError:
        st.info(words.NO_SUM)
        return
    dropped = drop_sum(terms, share)
    name = subject.vocabulary[guess]
    plot(
        figures.sum_bars(dropped),
        key="dropout_sum",
        height=HEIGHT,
        data=pd.DataFrame({"scaled": dropped.scaled, "not_scaled": dropped.plain}),
        name="dropout-sum",
        alt=words.sum_alt(dropped, name),
    )
    explain.answer(words.sum_answer(dropped, name))


def _prediction(subject: Subject, share: float, position: int) -> None:
    recording = subject.recording()
    spread = measured(
        ("dropout", subject.key, subject.ids, position, share),
        lambda: passes(subject.model, recording, position, share, figures.TOKENS),
        words.READING,
    )
    if spread is None:
        return
    names = [subject.vocabulary[i] for i in spread.tokens]
    passes_of = {f"pass_{i}": row for i, row in enumerate(spread.passes)}
    plot(
        figures.pass_dots(spread, names),
        key="dropout_prediction",
        height=HEIGHT,
        data=pd.DataFrame({"token": names, "without": spread.exact} | passes_of),
        name="dropout-prediction",
        alt=words.prediction_alt(names, spread),
    )
    explain.answer(words.prediction_answer(names[0], spread, share))


def _training(controls: st.delta_generator.DeltaGenerator) -> None:
    try:
        runs = shipped()
    except CheckpointError as error:
        st.info(str(error))
        return
    size = widgets.select(words.TEXT, TEXTS, "dropout_text", container=controls)
    some = [run for run in runs if run.plan.characters == size]
    plot(
        figures.loss_lines(some),
        key=f"dropout_training_{size}",
        height=HEIGHT + 40,
        data=_table(some),
        name="dropout-training",
        alt=words.training_alt(ends(runs, size)),
    )
    explain.answer(words.training_answer(ends(runs, size), some[0].passes))
    other = WHOLE if size == LITTLE else LITTLE
    ask("dropout", guesses.dropout, ends(runs, other), other)
    explain.measure_it(_ends, runs, size)


def _table(runs: list[DropoutRun]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"dropout": run.plan.dropout, "seed": run.plan.seed, "step": step, "train": a, "held_out": b}
            for run in runs
            for step, a, b in zip(run.steps, run.train, run.validation, strict=True)
        ]
    )


def _ends(runs: tuple[DropoutRun, ...], size: int) -> None:
    st.dataframe(pd.DataFrame(words.ends_table(ends(runs, size))), hide_index=True)
    st.caption(words.on_the_way(ends(runs, size)))
    st.caption(words.made(runs[0]))
