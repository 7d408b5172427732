"""The losses of a run: as a chart, alone or beside other runs, and as numbers. In nats per token, or in bits
per character.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data.corpus import Corpus
from engine.errors import ConfigError, CorpusError
from engine.service.state import RunSpec, RunView
from engine.training.numerics import in_bits, perplexity
from engine.training.records import Evaluation
from pages.start.train import curve_points, curves, words
from pages.start.train.beside import laid_over
from pages.start.train.data import custom_corpus
from pages.start.train.pairs import baselines as of_pairs
from pages.start.train.pairs import noun_of, paired_of
from pages.start.train.tasks import floor
from ui import session, widgets
from ui.players.plot import payload, plot
from ui.text.markdown import token_word

LIVE_POINTS = 500  # of a curve that is sent again several times a second; once it rests, all of them are
LOSS_IN = {"nats per token": "nats", "bits per character": "bits"}  # id in a link -> on the button
Picture: TypeAlias = Callable[[RunView, RunView | None], bytes]  # of a run and the other of its pair
COMPARABLE = (
    "Nats per token and perplexity cannot be compared between tokenizers, because a longer token is harder to"
    " guess but covers more text; bits per character can, because every tokenizer has the same characters to"
    " account for."
)


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
        beside = [*([other] if other else []), *laid]
        mixed = any(one.spec.train.tokenizer != view.spec.train.tokenizer for one in beside)
        unit: curve_points.Unit = "bits" if mixed else "nats" if words_only else _unit()
    axis: curve_points.XAxis = "time" if x == "time" else "step"
    lines, word = baselines(view.spec, unit), noun_of(view.spec)
    ways: dict[str, Any] = {
        "lines": lines,
        "vocab_size": vocabulary(view.spec),
        "axis": axis,
        "unit": unit,
        "token": word,
    }
    plot(**_chart(view, beside, height, **ways))

    def picture(now: RunView, other_now: RunView | None) -> bytes:
        return payload(**_chart(now, [*([other_now] if other_now else []), *laid], height, **ways))

    return _notes([view, *beside], word if mixed else ""), picture


def _chart(
    view: RunView,
    beside: Sequence[RunView],
    height: int,
    *,
    lines: Mapping[str, float],
    vocab_size: int,
    axis: curve_points.XAxis,
    unit: curve_points.Unit,
    token: str,
) -> dict[str, Any]:
    """Returns the arguments of `plot`."""
    others = [
        curve_points.curve_of(one.given or one.name, one.history, 1, unit, one.changes) for one in beside
    ]
    own = curve_points.curve_of(
        view.given or view.name, view.history, LIVE_POINTS if view.active else 0, unit, view.changes
    )
    end = float(view.total_steps) if axis == "step" else None
    return {
        "figure": curves.loss_curves(
            own, lines, vocab_size, x=axis, others=others, end=end, unit=unit, token=token
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
            words.changed_by_hand(view.given or view.name, "; ".join(c.words for c in view.changes))
            for view in views
            if view.changes
        ]
    if mixed:
        why = f" {COMPARABLE}" if mixed == "character" else ""  # else it stands below the numbers
        result.append(words.IN_BITS + why)
    return result


def _unit() -> curve_points.Unit:
    chosen = widgets.select("Loss in", LOSS_IN, "loss_in", hidden=True)
    return "bits" if chosen == "bits per character" else "nats"


def vocabulary(spec: RunSpec) -> int:
    """Returns the tokens that the text is made of: the vocabulary without a masked model's mask."""
    return spec.kind.outcomes(spec.model, spec.corpus) - (spec.train.objective == "masked")


def corpus_of(spec: RunSpec) -> Corpus | None:
    """Returns the text of a run, cut into its tokens; None where it is no longer here."""
    cut = spec.train.tokenizer
    try:
        if spec.corpus == "text" and spec.text:
            return custom_corpus(spec.text, cut)
        return session.corpus(spec.corpus, cut)
    except (CorpusError, ConfigError):
        return None


def baselines(spec: RunSpec, unit: curve_points.Unit = "nats") -> Mapping[str, float]:
    """Returns the losses that predictors without a network reach on the corpus of a run; none where its text
    is no longer here.
    """
    if paired_of(spec.corpus) is not None:
        return of_pairs(spec)
    corpus = corpus_of(spec)
    if corpus is None:
        return {}
    lines = corpus.baselines if unit == "nats" else corpus.baselines_in_bits
    if corpus.task is None:
        return lines
    lowest = {name: in_bits(nats) if unit == "bits" else nats for name, nats in floor(spec).items()}
    if corpus.task.stream:
        return {**lines, **lowest}
    # what often follows what says little of a random question: those lines would lie on one another
    return {"uniform": lines["uniform"], **lowest}


def _loss_words(view: RunView, unit: curve_points.Unit) -> str:
    if not view.history.evaluations:
        return f"Training and validation loss of {view.name}: nothing measured yet"
    first, last = view.history.evaluations[0], view.history.evaluations[-1]
    if unit == "nats":
        course = (
            f"from {first.validation_loss:.2f} to {last.validation_loss:.2f} nats per {noun_of(view.spec)}"
            f" after step {last.step}"
        )
    else:
        course = (
            f"from {number(bits(first), '.2f')} to {number(bits(last), '.2f')} bits per character after step"
            f" {last.step}"
        )
    kinds = "" if first.complete == last.complete else " (the last one on the whole validation split)"
    return f"Training and validation loss of {view.name}: validation went {course}{kinds}"


def numbers(view: RunView) -> None:
    """Draws the newest validation loss in the three ways in which it is told."""
    look = view.history.evaluations[-1] if view.history.evaluations else None
    loss = look.validation_loss if look else math.nan
    word, paired = noun_of(view.spec), paired_of(view.spec.corpus)
    help_bits = [
        "The total loss over all tokens, divided by the number of characters and by ln 2: comparable between"
        " tokenizers."
    ]
    if view.spec.train.objective == "masked":
        help_bits.append(
            "With the masked objective, compare only within one tokenizer: hiding a longer token hides more"
            " at once."
        )
    with st.grid("auto", min_column_width=135):
        st.metric(
            "Validation loss",
            number(loss, ".3f"),
            help=f"Nats per {word} on held-out text.",
        )
        st.metric(
            "Perplexity",
            number(perplexity(loss), ".2f" if loss < 50 else ".3g"),
            help=f"e to the loss: the effective number of {word}s to choose among.",
        )
        if paired is None:
            st.metric(
                "Bits / character", number(bits(look) if look else math.nan, ".3f"), help=" ".join(help_bits)
            )
    if look is not None:
        st.caption(f"After step {look.step:,}. {measured_on(look, view.spec)}")
    if word != "character" and paired is None:
        st.caption(COMPARABLE)


def measured_on(look: Evaluation, spec: RunSpec) -> str:
    """Says what part of the validation split a loss is of."""
    if look.complete:
        return "Measured on the whole validation split."
    paired = paired_of(spec.corpus)
    tokens = f"about {spec.train.eval_tokens:,} {'symbol' if paired else token_word(spec.train.tokenizer)}s"
    return (
        f"A quick estimate from {tokens} of the validation split, the same each time. The whole split is read"
        " at the end; it may be easier or harder."
    )


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
