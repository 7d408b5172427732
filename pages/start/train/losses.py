"""The losses of a run: as a chart, alone or beside other runs, and as numbers. In nats per token, or in bits
per character.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.experiments import race_table
from engine.experiments.race_table import name_of
from engine.service.state import RunSpec, RunView
from engine.training.numerics import perplexity
from engine.training.records import Evaluation
from pages.start.train import curve_points, curves, words
from pages.start.train.beside import compared, laid_over
from pages.start.train.pairs import baselines as of_pairs
from pages.start.train.pairs import noun_of, paired_of
from pages.start.train.tasks import task_of
from ui import run_text, widgets
from ui.players.plot import payload, plot
from ui.run_text import FLOOR
from ui.text.markdown import token_word

LIVE_POINTS = 500  # of a curve that is sent again several times a second; once it rests, all of them are
LOSS_IN = {"nats per token": "nats", "bits per character": "bits"}  # id in a link -> on the button
Picture: TypeAlias = Callable[[RunView, RunView | None], bytes]  # of a run and the other of its pair


def losses(
    view: RunView, other: RunView | None, height: int, menu: DeltaGenerator
) -> tuple[list[str], Picture]:
    """Draws the chart of a run, the other of its pair and earlier runs laid over: in the unit that was
    chosen, or in bits per character where only that is comparable. While it trains, the choices stand in its
    `menu`. Returns what must be said of it, and how it is drawn at any later moment.
    """
    with menu if view.active else st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        laid = laid_over(view)
        x = widgets.select("Loss against", ["step", "time"], "axis", hidden=True)
        words_only = paired_of(view.spec.corpus) is not None  # pairs have no characters to share bits among
        runs = [*compared(view, other), *laid]
        mixed = any(run.spec.train.tokenizer != view.spec.train.tokenizer for run in runs)
        unit: race_table.Unit = "bits" if mixed else "nats" if words_only else _unit()
    along: race_table.Along = "seconds" if x == "time" else "steps"
    lines, word = baselines(view.spec, unit), noun_of(view.spec)
    ways: dict[str, Any] = {
        "lines": lines,
        "vocab_size": vocabulary(view.spec),
        "along": along,
        "unit": unit,
        "token": word,
    }
    plot(**_chart(runs, height, **ways))

    def picture(now: RunView, other_now: RunView | None) -> bytes:
        return payload(**_chart([*compared(now, other_now), *laid], height, **ways))

    return _notes(runs, word if mixed else ""), picture


def _chart(
    runs: Sequence[RunView],
    height: int,
    *,
    lines: Mapping[str, float],
    vocab_size: int,
    along: race_table.Along,
    unit: race_table.Unit,
    token: str,
) -> dict[str, Any]:
    """Returns the arguments of `plot`, for the first of `runs` with the others laid over it."""
    view, *others = runs
    points = LIVE_POINTS if view.active else len(view.history.steps)
    return {
        "figure": curves.loss_curves(
            race_table.run_curves(view, along, unit, points=points),
            lines,
            vocab_size,
            along=along,
            others=[race_table.run_curves(run, along, unit, points=1) for run in others],
            changes=[run.changes for run in runs],
            end=float(view.total_steps) if along == "steps" else None,
            unit=unit,
            token=token,
        ),
        "key": "loss_chart",
        "alt": _loss_words(view, unit),
        "height": height,
        # a table is too much to send at every look
        "data": None if view.active else curve_points.curve_table(view.history),
        "name": f"loss-{slug(view.name)}",
    }


def _notes(views: list[RunView], mixed: str) -> list[str]:
    """Returns what must be known of curves that lie over each other. `mixed`: the token of the first, where
    the others cut the text otherwise.
    """
    result = []
    if len(views) > 1:
        result = [
            words.changed_by_hand(name_of(view), "; ".join(c.words for c in view.changes))
            for view in views
            if view.changes
        ]
    if mixed:
        why = f" {words.COMPARABLE}" if mixed == "character" else ""  # else it stands below the numbers
        result.append(words.IN_BITS + why)
    return result


def _unit() -> race_table.Unit:
    chosen = widgets.select("Loss in", LOSS_IN, "loss_in", hidden=True)
    return "bits" if chosen == "bits per character" else "nats"


def vocabulary(spec: RunSpec) -> int:
    """Returns the tokens that the text is made of: the vocabulary without a masked model's mask."""
    return spec.kind.outcomes(spec.model, spec.corpus) - (spec.train.objective == "masked")


def baselines(spec: RunSpec, unit: race_table.Unit = "nats") -> Mapping[str, float]:
    """Returns the losses that predictors without a network reach on the data of a run. On a task's random
    questions counting says little: its lines would lie on one another.
    """
    if paired_of(spec.corpus) is not None:
        return of_pairs(spec)
    lines, task = run_text.baselines(spec, unit), task_of(spec)
    return lines if task is None or task.stream else {n: lines[n] for n in ("uniform", FLOOR) if n in lines}


def _loss_words(view: RunView, unit: race_table.Unit) -> str:
    looks = view.history.evaluations
    if not looks:
        return words.unmeasured_alt(view.name)
    first, last = looks[0], looks[-1]
    nats = unit == "nats"
    began, ends = (look.validation_loss if nats else bits(look) for look in (first, last))
    of = f"nats per {noun_of(view.spec)}" if nats else "bits per character"
    kinds = first.complete != last.complete
    return words.loss_alt(view.name, number(began, ".2f"), number(ends, ".2f"), of, last.step, kinds)


def numbers(view: RunView) -> None:
    """Draws the newest validation loss in the three ways in which it is told."""
    look = view.history.evaluations[-1] if view.history.evaluations else None
    loss = look.validation_loss if look else math.nan
    word, paired = noun_of(view.spec), paired_of(view.spec.corpus)
    masked = view.spec.train.objective == "masked"
    help_bits = f"{words.BITS_HINT} {words.MASKED_HINT}" if masked else words.BITS_HINT
    with st.grid("auto", min_column_width=135):
        st.metric(
            words.VALIDATION_LOSS,
            number(loss, ".3f"),
            help=words.loss_hint(word),
        )
        st.metric(
            "Perplexity",
            number(perplexity(loss), ".2f" if loss < 50 else ".3g"),
            help=words.perplexity_hint(word),
        )
        if paired is None:
            st.metric(words.BITS_A_CHARACTER, number(bits(look) if look else math.nan, ".3f"), help=help_bits)
    if look is not None:
        st.caption(words.after_step(look.step, measured_on(look, view.spec)))
    if word != "character" and paired is None:
        st.caption(words.COMPARABLE)


def measured_on(look: Evaluation, spec: RunSpec) -> str:
    """Says what part of the validation split a loss is of."""
    if look.complete:
        return words.ON_THE_WHOLE
    paired = paired_of(spec.corpus)
    noun = "symbol" if paired else token_word(spec.train.tokenizer)
    return words.quick_estimate(spec.train.eval_tokens, noun)


def bits(look: Evaluation) -> float:
    """Returns validation loss in bits per character; NaN where it was not measured."""
    return math.nan if look.validation_bits is None else look.validation_bits


def number(value: float, form: str) -> str:
    """Returns a number in a format; a dash where there is none.

    >>> number(1.23456, ".2f"), number(float("nan"), ".2f")
    ('1.23', '–')
    """
    return format(value, form) if math.isfinite(value) else "–"


def slug(text: str) -> str:
    """Returns a name that any file system takes.

    >>> slug("Fast: 2 layers!")
    'fast-2-layers'
    """
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split()
    return "-".join(words)[:60] or "run"
