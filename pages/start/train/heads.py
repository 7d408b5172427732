"""Heads that form while it trains: the score of every head beside the loss, and what two of them look at: the
one that most reads the letter before, and the one that copies most.

Shown for a run whose text repeats itself (TrainConfig.repeat): there heads learn to copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from engine.data.corpus import Corpus
from engine.data.tokenizers import token_bytes
from engine.errors import GlassformerError
from engine.experiments.race_table import name_of
from engine.lab.faults import parts_of
from engine.measure.attention.head_scores import (
    HeadGrowth,
    Kind,
    RepeatedReading,
    formed,
    grown,
    patterns_twice,
)
from engine.measure.attention.heads import HeadValue
from engine.measure.shapes.batch_example import shifted_batch
from engine.presets import Preset
from engine.service.state import RunSpec, RunView
from engine.training.repeats import parted
from engine.training.snapshot_series import Lapse
from pages.start.train import heads_figures as figures
from pages.start.train import words_heads as words
from pages.start.train.beside import compared
from ui import memo, widgets
from ui.fields import NEWLINE
from ui.models import LAPSES, RUN, lapse_of, model_after
from ui.players.plot import plot
from ui.text.tokens import show_bytes

SHIPPED = next(iter(LAPSES))
ACROSS = 52  # letters of a window that are shown in a line


def question(preset: Preset) -> str:
    """Returns the question of a preset whose text repeats itself; '' for others."""
    return words.QUESTION if preset.train is not None and preset.train.repeat else ""


def windows(spec: RunSpec, corpus: Corpus, rows: int) -> str:
    """Returns the first windows of the first step, a line each; a bar where a window begins again."""
    try:
        batch = shifted_batch(corpus, spec.model, spec.train, 1, rows=rows, parts=parts_of(spec.parts))
    except GlassformerError:
        return ""
    lines = ("│".join("".join(piece) for piece in parted(row)) for row in batch.x)
    return "\n".join(line[:ACROSS].replace("\n", NEWLINE) + " …" for line in lines)


def scored(view: RunView) -> HeadGrowth | None:
    """Returns what the heads of a run do now; None where they are not scored, or the training has failed."""
    looks = view.history.evaluations
    failed = bool(looks) and not math.isfinite(looks[-1].validation_loss)
    return None if failed else grown(looks)


def answer(growth: HeadGrowth) -> str:
    """Returns the sentence that goes with it."""
    return words.copies(growth) if growth.is_formed else words.none_yet(growth)


def looked_at(view: RunView, other: RunView | None) -> tuple[RunView, HeadGrowth] | None:
    """Returns the run whose heads are shown, and what they do: of a pair the one that is chosen,
    above them.
    """
    growths = {run.id: (run, heads) for run in compared(view, other) if (heads := scored(run))}
    if len(growths) < 2:
        return next(iter(growths.values()), None)
    ids = dict(zip(("first", "second"), growths.values(), strict=True))
    names = {name: name_of(run) for name, (run, _) in ids.items()}
    return ids[widgets.select("Heads of", names, "heads_of")]


def both(view: RunView, other: RunView) -> str:
    """Says what the heads of two runs do; nothing where those of one are not scored."""
    first, second = scored(view), scored(other)
    return words.both((name_of(view), name_of(other)), (first, second)) if first and second else ""


def heads(view: RunView, growth: HeadGrowth, height: int) -> None:
    """Draws scores and the losses of both readings by step; beside them what the two best heads look at."""
    course, pattern = st.columns([8, 5], gap="small")
    looks = [(look.step, look.heads) for look in view.history.evaluations if look.heads is not None]
    with course:
        _scores(looks, growth, view.total_steps, height)
    with pattern:
        _patterns(RUN + view.id, view.snapshots, growth, height)


def shipped() -> Lapse | None:
    """Returns the training that comes with the app, in which heads form; None where it is missing
    or damaged.
    """
    try:
        lapse = lapse_of(SHIPPED)
    except GlassformerError:
        return None
    return lapse if grown(lapse.looks) else None


def went(lapse: Lapse, height: int) -> HeadGrowth | None:
    """Draws what stands there before the first run: how it went in the shipped training."""
    growth = grown(lapse.looks)
    if growth is None:
        return None
    st.markdown(words.went(lapse.config, lapse.train))
    course, pattern = st.columns([8, 5], gap="small")
    with course:
        looks = [(look.step, look.heads) for look in lapse.looks if look.heads is not None]
        _scores(looks, growth, lapse.train.steps, height)
    with pattern:
        _patterns(SHIPPED, lapse.steps, growth, height)
    return growth


def _scores(looks: figures.Looks, growth: HeadGrowth, steps: int, height: int) -> None:
    plot(
        figures.scores(looks, formed(looks), growth.head, float(steps)),
        key="head_scores",
        height=height,
        alt=words.scores_alt(growth),
        name="head-scores",
        data=figures.scores_table(looks),
    )


def _patterns(name: str, steps: Sequence[int], growth: HeadGrowth, height: int) -> None:
    """The best reader of the letter before and the best copier, at the newest of the `steps` that are kept of
    the training of that `name`.
    """
    step = max((step for step in steps if step <= growth.step), default=None)
    reading = _seen(name, step) if step is not None else None
    if reading is None or step is None:
        return
    labels, twice = reading
    st.caption(words.patterns_title(step))
    best: dict[Kind, HeadValue] = {"previous": growth.previous, "induction": growth.head}
    plot(
        figures.patterns(
            {
                kind: (words.pattern_title(kind, head), twice.patterns[head.layer, head.head])
                for kind, head in best.items()
            },
            labels,
        ),
        key="head_patterns",
        height=height - 40,
        alt=words.patterns_alt(growth, step),
        name="head-patterns",
    )


@memo.measured()
def _seen(name: str, step: int) -> tuple[list[str], RepeatedReading] | None:
    """None for a snapshot that has just gone, and where nothing can be read twice."""
    try:
        snapshot = model_after(name, step)
    except GlassformerError:
        return None
    twice = patterns_twice(snapshot.model, snapshot.tokenizer)
    if twice is None:
        return None
    tokens = token_bytes(snapshot.tokenizer)
    return [show_bytes(tokens[i]) for i in twice.ids], twice
