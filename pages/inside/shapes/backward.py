"""The view Backpropagation: the gradient of one mistake through the model, one weight that is changed by it,
and an optimiser's step.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data.progress import Progress, Steps
from engine.measure.recording import next_token_losses, worst_position
from engine.measure.shapes.backward import (
    AMOUNTS,
    Backward,
    MatrixGradient,
    Nudges,
    backward,
    finite_difference,
    matrices,
    nudges,
)
from engine.measure.shapes.optimiser_step import (
    MAX_PARAMETERS,
    RULES,
    SCALES,
    SingleStep,
    Spectra,
    parameter_count,
    single_step,
    spectra,
)
from pages.inside.shapes import figures_backward as figures
from pages.inside.shapes import guesses_backward as guesses
from pages.inside.shapes import words_backward as words
from ui import explain, guess, widgets
from ui.background_jobs import measured
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.text.numbers import minus

LOOK, POSITION, MATRIX, ENTRY = "shapes_back", "shapes_position", "shapes_matrix", "shapes_entry"
NUDGE, UPDATED, RATE, MAP = "shapes_nudge", "shapes_updated", "shapes_rate", "shapes_gradient"
HEIGHT = 380
TOKENS = 6  # whose error at the logits is drawn
EXACT = 5_000_000  # parameters of a model that is copied into float64


def _has_gradient(subject: Subject) -> bool:
    """True if the text has a prediction with a finite loss; says so where it has none."""
    if len(subject.ids) < 2:
        st.info(words.TOO_SHORT)
    elif not np.isfinite(next_token_losses(subject.recording())).all():
        st.info(words.DIVERGED)
    else:
        return True
    return False


def _backpropagated(subject: Subject, *, strip: bool) -> Backward | None:
    """Returns the backward pass of the chosen position's loss; None where there is none, or none yet."""
    if not _has_gradient(subject):
        return None
    position = _position(subject, strip)
    return measured(
        ("backward", subject.key, subject.ids, position),
        lambda: _passed(subject, position),
        "Backpropagating the loss",
    )


def _passed(subject: Subject, position: int) -> Steps[Backward]:
    yield Progress(0, 1)
    return backward(subject.model, subject.ids, position)


def _position(subject: Subject, strip: bool) -> int:
    """The position whose mistake is followed: the worst of the text's second half, until another is chosen in
    a strip that may be drawn.
    """
    losses = next_token_losses(subject.recording())
    worst = worst_position(losses)
    if strip:
        return token_strip(
            subject.labels[:-1],
            key=POSITION,
            chosen=worst,
            label=words.STRIP,
            values=(1 - np.exp(-losses)).tolist(),
            hints=[words.mistake(subject.labels[i + 1], float(loss)) for i, loss in enumerate(losses)],
        )
    linked = widgets.number_of(widgets.read_url(POSITION))
    return worst if linked is None else min(linked, len(losses) - 1)


# The backward pass ------------------------------------------------------------------------------


def draw_pass(_: DeltaGenerator, subject: Subject) -> None:
    """Draws the gradient of one prediction's loss, by state and token, and the error that it begins with."""
    if (prediction := _backpropagated(subject, strip=True)) is None:
        return
    labels = subject.labels
    wide, narrow = st.columns([5, 2], gap="medium")
    with wide:
        plot(
            figures.lanes(prediction, labels),
            key="shapes_lanes",
            height=HEIGHT,
            name="backward-pass",
            data=pd.DataFrame(prediction.norms, columns=[f"{i}: {t}" for i, t in enumerate(labels)]).assign(
                state=prediction.states, all=prediction.totals
            ),
            alt=words.lanes_alt(prediction),
        )
    shown = prediction.largest_errors(TOKENS)
    with narrow:
        plot(
            figures.error_bars([subject.vocabulary[i] for i in shown], prediction.error[shown]),
            key="shapes_error",
            height=HEIGHT,
            name="error-at-the-logits",
            data={
                "token": subject.vocabulary[: len(prediction.error)],
                "p": prediction.probabilities,
                "p_minus_y": prediction.error,
            },
            alt=words.error_alt(subject.vocabulary[prediction.target], prediction),
        )
    explain.answer(words.passed(prediction))
    explain.measure_it(_by_matrix, prediction)
    explain.by_hand(st.markdown, words.error_by_hand(subject.vocabulary[prediction.target], prediction))


def _by_matrix(prediction: Backward) -> None:
    """Draws a table of all matrices: their gradient's norm and largest entry."""
    every = list(prediction.gradients.values())
    table = {
        "matrix": [words.titled(each.matrix) for each in every],
        "shape": [f"{each.shape[0]:,} × {each.shape[1]:,}" for each in every],
        "gradient norm": [each.norm for each in every],
        "largest entry (magnitude)": [each.largest for each in every],
    }
    three = st.column_config.NumberColumn(format="%.3g")
    st.dataframe(
        pd.DataFrame(table),
        hide_index=True,
        height=min(38 + 35 * len(every), 320),
        column_config=dict.fromkeys(list(table)[2:], three),
        key="shapes_matrices",
    )


# One weight -------------------------------------------------------------------------------------


def draw_weight(line: DeltaGenerator, subject: Subject) -> None:
    """Draws one matrix's gradient, and the loss as one of its weights is nudged."""
    if (prediction := _backpropagated(subject, strip=False)) is None:
        return
    names = {key: words.titled(each.matrix) for key, each in prediction.gradients.items()}
    key = widgets.select(
        "Matrix", names, MATRIX, first=prediction.steepest(), kind="list", container=line, width=220
    )
    amount = widgets.slide_over(
        words.NUDGE, AMOUNTS, AMOUNTS[12], NUDGE, container=line, width=360, written=words.amount
    )
    gradient = prediction.gradients[key]
    entry = _entry(gradient)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        plot(
            figures.gradient_map(gradient, entry),
            key=MAP,
            height=HEIGHT + 20,
            name="gradient",
            data=pd.DataFrame(gradient.values, columns=gradient.columns).assign(row=gradient.rows),
            alt=words.map_alt(gradient, entry),
        )
    with right:
        result = measured(
            ("nudges", subject.key, subject.ids, prediction.position, key, entry),
            lambda: nudges(subject.model, prediction, key, entry),
            "Nudging the weight",
        )
        if result is None:
            return
        at = result.index(amount)
        token = subject.vocabulary[prediction.target]
        plot(
            figures.nudge_curve(result, at, token),
            key="shapes_nudged",
            height=HEIGHT + 20,
            name="nudged-weight",
            data={
                "nudge": result.amounts,
                "loss": result.losses,
                "predicted": result.loss + result.predicted,
            },
            alt=words.curve_alt(result, at, token),
        )
    explain.answer(words.nudged(result, at))
    guess.ask("nudge", guesses.nudge, result, len(AMOUNTS) - 1, NUDGE)
    explain.measure_it(_by_matrix, prediction)
    explain.by_hand(_weight_by_hand, subject, prediction, key, entry, result)


def _entry(gradient: MatrixGradient) -> tuple[int, int]:
    """The weight that is looked at: clicked, or named by the address, else that of the largest gradient."""
    rows, columns = gradient.shape
    picked = widgets.index_of(widgets.picked(MAP, "clicked"), rows * columns)
    index = picked if picked is not None else widgets.index_of(widgets.read_url(ENTRY), rows * columns)
    entry = gradient.entry if index is None else divmod(index, columns)
    if not gradient.has(entry):
        entry = gradient.entry
    widgets.put_index(ENTRY, None if entry == gradient.entry else entry[0] * columns + entry[1])
    return entry


def _weight_by_hand(
    subject: Subject, prediction: Backward, key: str, entry: tuple[int, int], result: Nudges
) -> None:
    """Works the gradient out without calculus, where the model is small enough for float64."""
    st.markdown(words.first_order(result, entry))
    if parameter_count(subject.model) <= EXACT:
        slope = finite_difference(subject.model, prediction, key, entry)
        st.markdown(words.difference(result, slope))


# One step ---------------------------------------------------------------------------------------


def draw_step(line: DeltaGenerator, subject: Subject) -> None:
    """Draws the loss after one step of each optimiser, and the singular values of one matrix's update."""
    if not _has_gradient(subject):
        return
    names = {
        key: words.titled(each) for key, each in matrices(subject.model).items() if each.block is not None
    }
    scale = widgets.slide_over(
        words.RATE, SCALES, 1.0, RATE, container=line, width=320, written=words.multiple
    )
    key = None
    if names:
        key = widgets.select(
            "Matrix", names, UPDATED, first=_first(names), kind="list", container=line, width=180
        )
    left, right = st.columns(2, gap="medium")
    with left:
        taken = _taken(subject)
        if taken is not None:
            _losses(taken, scale)
    with right:
        update = _singular(subject, key) if key is not None else None
    if sentence := words.stepped(taken, scale, update) if taken is not None else words.evened(update):
        explain.answer(sentence)
    if taken is not None:
        guess.ask("overshoots", guesses.overshoots, taken, RATE)
        explain.measure_it(_steps_measured, taken, scale, update)
    explain.by_hand(st.markdown, words.STEP_BY_HAND)


def _first(names: dict[str, str]) -> str:
    """The output matrix of a block in the middle, where there is one."""
    writes = [key for key in names if key.endswith("W_out")] or list(names)
    return writes[len(writes) // 2]


def _taken(subject: Subject) -> SingleStep | None:
    size = parameter_count(subject.model)
    if size > MAX_PARAMETERS:
        st.info(words.too_large(size, MAX_PARAMETERS))
        return None
    return measured(
        ("one step", subject.key, subject.ids),
        lambda: single_step(subject.model, subject.ids),
        "Taking a step",
    )


def _losses(taken: SingleStep, scale: float) -> None:
    plot(
        figures.loss_by_rate(taken, scale),
        key="shapes_step_loss",
        height=HEIGHT + 20,
        name="loss-after-one-step",
        data={"times_default_rate": taken.scales} | {rule: taken.after[rule] for rule in RULES},
        alt=words.loss_alt(taken, scale),
    )


def _singular(subject: Subject, key: str) -> Spectra | None:
    update = measured(
        ("spectra", subject.key, subject.ids, key),
        lambda: spectra(subject.model, subject.ids, key),
        "Measuring singular values",
    )
    if update is not None:
        plot(
            figures.spectrum_lines(update),
            key="shapes_singular",
            height=HEIGHT + 20,
            name="singular-values",
            data={"index": np.arange(1, min(update.shape) + 1)}
            | {rule: update.values[rule] for rule in RULES},
            alt=words.singular_alt(update),
        )
    return update


def _steps_measured(taken: SingleStep, scale: float, update: Spectra | None) -> None:
    """Draws a table of the three rules: their rates, the loss before and after, and singular values."""
    table = {
        "optimiser": [words.RULE_NAMES[rule] for rule in RULES],
        "learning rate": [words.rate(rule, scale) for rule in RULES],
        "loss before": [f"{taken.before:.4f}" for _ in RULES],
        "loss after": [f"{taken.at(rule, scale):.4f}" for rule in RULES],
        "change": [minus(f"{taken.at(rule, scale) - taken.before:+.4f}") for rule in RULES],
    }
    if update is not None:
        table[words.MIDDLE] = [f"{update.middle(rule):.1%}" for rule in RULES]
    st.table(pd.DataFrame(table).set_index("optimiser"), border="horizontal")
    st.caption(words.STEP_MEASURED)
