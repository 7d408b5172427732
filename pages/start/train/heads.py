"""Heads that form while it trains: the score of every head beside the loss, and what the best one looks at.

Shown for a run whose text repeats itself (TrainConfig.repeat): there heads learn to copy.
"""

from __future__ import annotations

import math

import streamlit as st

from engine.corpora import Corpus
from engine.errors import GlassformerError
from engine.measure.head_scores import Grown, Twice, formed, grown, patterns_twice
from engine.presets import Preset
from engine.service.state import RunSpec, RunView
from engine.tokenizers import token_bytes
from engine.training.repeats import parted
from engine.training.shifted import shifted_batch
from pages.start.train import heads_figures as figures
from pages.start.train import words_heads as words
from ui.fields import NEWLINE
from ui.models import RUN, model_after
from ui.players.plot import plot
from ui.text.tokens import show_bytes

ACROSS = 52  # letters of a window that are shown in a line


def question(preset: Preset) -> str:
    """What a preset asks whose text repeats itself; '' for others."""
    return words.QUESTION if preset.train is not None and preset.train.repeat else ""


def windows(spec: RunSpec, corpus: Corpus, rows: int) -> str:
    """The first windows of the first step, a line each; a bar where a window begins again."""
    try:
        found = shifted_batch(corpus, spec.model, spec.train, 1, rows=rows, parts=spec.parts)
    except GlassformerError:
        return ""
    lines = ("│".join("".join(piece) for piece in parted(row)) for row in found.x)
    return "\n".join(line[:ACROSS].replace("\n", NEWLINE) + " …" for line in lines)


def scored(view: RunView) -> Grown | None:
    """What the heads of a run do now; None where they are not scored, or the training has failed."""
    looks = view.history.evaluations
    failed = bool(looks) and not math.isfinite(looks[-1].validation_loss)
    return None if failed else grown(looks)


def answer(found: Grown) -> str:
    """The sentence that goes with it."""
    return words.copies(found) if found.is_formed else words.none_yet(found)


def heads(view: RunView, found: Grown, height: int) -> None:
    """Scores and the losses of both readings by step; beside them what the best head looks at."""
    course, pattern = st.columns([8, 5], gap="small")
    looks = [(look.step, look.heads) for look in view.history.evaluations if look.heads is not None]
    with course:
        plot(
            figures.scores(looks, formed(looks), found.head, float(view.total_steps)),
            key="head_scores",
            height=height,
            alt=words.scores_alt(found),
            name="head-scores",
            data=figures.scores_table(looks),
        )
    with pattern:
        _pattern(view, found, height)


def _pattern(view: RunView, found: Grown, height: int) -> None:
    """The best head on random letters read twice, at the newest snapshot."""
    step = max((step for step in view.snapshots if step <= found.step), default=None)
    seen = _seen(RUN + view.id, step) if step is not None else None
    if seen is None or step is None:
        return
    labels, twice = seen
    st.caption(words.pattern_title(found.head, step))
    plot(
        figures.pattern(twice.patterns[found.head.layer, found.head.head], labels),
        key="head_pattern",
        height=height - 60,
        alt=words.pattern_alt(found.head, step),
        name="head-pattern",
    )


@st.cache_resource(max_entries=8, show_spinner=False)
def _seen(name: str, step: int) -> tuple[list[str], Twice] | None:
    """None for a snapshot that has just gone, and where nothing can be read twice."""
    try:
        found = model_after(name, step)
    except GlassformerError:
        return None
    twice = patterns_twice(found.model, found.tokenizer)
    if twice is None:
        return None
    tokens = token_bytes(found.tokenizer)
    return [show_bytes(tokens[i]) for i in twice.ids], twice
