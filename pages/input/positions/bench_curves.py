"""Part of the view "Extrapolation": the curves of loss by position, the table below, and what they say."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.config import Position
from engine.measure.positions.extrapolation import (
    BLOCK,
    TAIL,
    TIMES,
    Curve,
    Unit,
    above_tail,
    costs,
    in_unit,
)
from engine.weights.checkpoints import Checkpoint
from pages.input.positions import figures_bench as figures
from pages.input.positions import words_answers
from pages.input.positions.bench_choice import Choice, Variant, name_of
from pages.input.positions.figures_bench import Line
from ui.players.plot import plot


def draw_curves(
    models: dict[Position, Checkpoint],
    curves: dict[Variant, Curve],
    choice: Choice,
    context: int,
    partial: dict[Variant, Curve],
) -> None:
    """Draws the curves that are measured, and those that are being measured, in nats; and what the former
    say.
    """
    shown = {v: in_unit(c, choice.unit) for v, c in (curves | partial).items()}
    _draw_figure(shown, choice, context, set(partial))
    if ("learned", None) in shown:
        st.caption(
            f":material/info: The learned curve ends at {context}: the table has no row for position"
            f" {context}."
        )
    if any(scheme == "t5" for scheme, _ in shown):
        st.caption(f":material/info: {words_answers.unmet_buckets(models['t5'].model)}")
    if curves and not partial:
        st.table(_numbers(models, curves, choice.unit, context))
        st.caption(
            f"Validation loss: on the whole split, in windows of {context}, measured at training time. Then"
            f" the loss on the last {TAIL} characters of {context}, and how much more the same characters"
            f" cost at the end of {2 * context} and of {TIMES * context}, ± one standard error. One run each,"
            " with the same seed and batches: small differences between schemes may be chance, and so may"
            " how high a curve climbs once it fails."
        )
        st.markdown(words_answers.bench_summary(models, curves, context))


def _draw_figure(shown: dict[Variant, Curve], choice: Choice, context: int, partial: set[Variant]) -> None:
    """Curves in the unit that was chosen."""
    lines = [Line(name_of(v), v[0], c, v[1] is not None, v in partial) for v, c in shown.items()]
    what = f"excess loss over the model's own last {context}" if choice.above else "loss"
    plot(
        figures.position_losses(lines, context, unit=choice.unit, above=choice.above),
        key="bench_losses",
        height=460,
        name="loss-by-position",
        data=above_rows(shown, choice.unit),
        alt=(
            f"Lines: {what} by position up to {TIMES * context} for {', '.join(line.name for line in lines)};"
            f" a vertical line at {context} marks the training length."
        ),
    )
    base = (
        ""
        if choice.above
        else (
            f" Dotted: the same model, with a window of {context} sliding by {TAIL}, so that each prediction"
            f" sees {context - TAIL + 1} to {context} characters."
        )
    )
    st.caption(
        f"Points are means over {choice.width} position{'s' * (choice.width > 1)}, bands one standard error,"
        f" taken over blocks of {BLOCK} neighbouring windows.{base} Bumps that repeat every {context}"
        " positions come from the text: the same characters recur there, with more context."
    )


def above_rows(curves: dict[Variant, Curve], unit: Unit) -> pd.DataFrame:
    """Returns a row for each point: what the CSV button saves."""
    frames = [
        pd.DataFrame(
            {
                "scheme": name_of(v),
                "first_position": c.first,
                "last_position": c.first + c.width - 1,
                f"loss_{unit}": c.mean,
                f"standard_error_{unit}": c.error,
                f"above_own_tail_{unit}": above_tail(c),
                "windows": c.windows,
            }
        )
        for v, c in curves.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _numbers(
    models: dict[Position, Checkpoint], curves: dict[Variant, Curve], unit: Unit, context: int
) -> pd.DataFrame:
    """A row for each scheme or stopgap."""
    none = models["none"].metrics["validation_loss"] if "none" in models else None
    rows = {}
    for variant, c in curves.items():
        found = costs(c, models[variant[0]].metrics["validation_loss"], none, unit)
        mean, error = found.tail
        row = {
            f"validation loss ({unit})": f"{found.validation:.3f}",
            "vs no positions": "" if found.against_none is None else f"{found.against_none:+.3f}",
            f"end of {context}": f"{mean:.3f} ± {error:.3f}",
        }
        for times, more in found.more.items():
            answer = "n/a" if more is None else f"{more[0]:+.3f} ± {more[1]:.3f}"
            row[f"more at {times * context}"] = answer
        rows[name_of(variant)] = row
    return pd.DataFrame.from_dict(rows, orient="index")
