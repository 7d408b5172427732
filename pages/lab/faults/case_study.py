"""The view "Case study": a model that does not learn, and two causes found one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.data import corpora
from pages.lab.faults import loss_lines
from studies.lab.doctor.start import stream_gradients
from studies.lab.doctor.story import (
    READ,
    STEPS,
    StageRun,
    baselines,
    later,
    play,
    play_named,
    shipped,
    unscaled,
)
from studies.lab.faults.masks import transposed_mask
from ui import content, explain, session, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.patterns import pattern_heatmap
from ui.figures.theme import colour
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
HEIGHT = 400
LIVE_STEPS = 200
SHOWN = {  # the models of each chapter
    "stuck": ("both",),
    "norms": ("both", "mended"),
    "cheats": ("both", "mask"),
    "shapes": ("mask", "mended"),
    "mended": ("both", "mask", "mended"),
    "told": ("told", "mask", "mended"),
}
SAID_OF = {  # the model of each chapter that its answer is about
    "stuck": "both",
    "norms": "both",
    "cheats": "mask",
    "shapes": "mask",
    "mended": "mended",
    "told": "told",
}
COLOURS = {"mended": "run0", "both": "run4", "spread": "run3", "mask": "run1", "told": "run2"}


def draw() -> None:
    """Draws one picture for each chapter."""
    runs, lines = shipped(), baselines()
    there = {
        name: TEXT(f"chapter {name}") for name, some in SHOWN.items() if all(one in runs for one in some)
    }
    chapter = widgets.select(TEXT["step"], there, "story_step", hidden=True, wrap=True)
    if chapter == "norms":
        _norms(runs)
    elif chapter == "shapes":
        _patterns(runs)
    else:
        _losses(chapter, runs, lines)
    explain.answer(_answer(chapter, runs, lines["unigram"]))
    explain.measure_it(_more, chapter, runs)


def _answer(chapter: str, runs: Mapping[str, StageRun], unigram: float) -> str:
    run = runs[SAID_OF[chapter]]
    last = run.last
    if chapter == "norms":
        return TEXT("norms", growth=run.growth, healthy=runs["mended"].growth)
    if chapter == "shapes":
        return TEXT("shapes", future=later(run), tokens=len(run.pattern))
    if chapter == "told":
        mask = next(look for look in runs["mask"].looks if look.step == last.step)
        return TEXT("told", loss=last.loss, mask=mask.loss)
    if chapter == "mended":
        return TEXT("mended", loss=last.loss, steps=last.step, text=_begins(last.drawn))
    text = _begins(last.greedy)
    if chapter == "cheats":
        return TEXT("cheats", loss=last.loss, steps=last.step, text=text)
    return TEXT("stuck", loss=last.loss, steps=last.step, unigram=unigram, text=text)


def _begins(text: str, most: int = 28) -> str:
    """Returns the beginning of a text on one line, line breaks visible."""
    line = text.replace("\n", "⏎")
    return line if len(line) <= most else line[:most].rstrip() + " …"


def _model(name: str) -> str:
    return TEXT(f"model {name}")


def _models(runs: Sequence[StageRun]) -> str:
    return ", ".join(_model(run.name) for run in runs)


def _norms(runs: Mapping[str, StageRun]) -> None:
    some = [runs["both"], runs["mended"]]
    plot(
        gradient_norms([_until(run, 500) for run in some]),
        key="story_norms",
        height=HEIGHT,
        name="gradient-norms",
        data={"step": some[0].points, "norm": some[0].norms},
        alt=TEXT("alt norms", models=_models(some)),
    )


def _patterns(runs: Mapping[str, StageRun]) -> None:
    labels = list(READ.replace("\n", "⏎"))
    for column, name in zip(st.columns(2, gap="medium"), ("mask", "mended"), strict=True):
        with column:
            plot(
                pattern_heatmap(runs[name].pattern, labels),
                key=f"story_pattern_{name}",
                height=HEIGHT,
                name="pattern",
                data={"query": labels} | dict(zip(range(len(labels)), runs[name].pattern.T, strict=True)),
                alt=TEXT("alt pattern", model=_model(name)),
            )
            st.caption(_model(name))


def _losses(chapter: str, runs: Mapping[str, StageRun], lines: Mapping[str, float]) -> None:
    shown = [_until(runs[name], 2000 if chapter == "mended" else 500) for name in SHOWN[chapter]]
    baseline = "unigram" if chapter == "stuck" else "bigram"
    plot(
        loss_curves(shown, lines[baseline], TEXT["unigram" if chapter == "stuck" else "bigram"]),
        key="story_course",
        height=HEIGHT,
        name="story",
        data={"step": shown[0].points, "loss": shown[0].losses},
        alt=TEXT("alt losses", models=_models(shown)),
    )


def _until(stage_run: StageRun, step: int) -> StageRun:
    """Its first steps."""
    count = int(stage_run.points.searchsorted(step, side="right"))
    looks = tuple(look for look in stage_run.looks if look.step <= step)
    return replace(stage_run, losses=stage_run.losses[:count], norms=stage_run.norms[:count], looks=looks)


def _more(chapter: str, runs: Mapping[str, StageRun]) -> None:
    """Draws what each model wrote on its way, the gradient of each block, and the same training
    here and now.
    """
    names = SHOWN[chapter]
    rows = [
        {
            TEXT["model column"]: _model(name),
            TEXT["step column"]: f"{look.step:,}",
            TEXT["loss column"]: f"{look.loss:.2f}",
            TEXT["greedy column"]: _begins(look.greedy, 60),
            TEXT["drawn column"]: _begins(look.drawn, 60),
        }
        for name in names
        for look in runs[name].looks
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, height=300)
    blocks = {
        TEXT("block column", block=i): [f"{runs[name].blocks[i]:.2g}" for name in names]
        for i in range(len(runs["both"].blocks))
    }
    st.table(pd.DataFrame(blocks, index=[_model(name) for name in names]), border="horizontal")
    st.caption(TEXT["blocks"])
    st.caption(TEXT("made", steps=STEPS))
    if widgets.switch(TEXT["live"], False, "story_live", hint=TEXT["live hint"]):
        _live(names[-1], runs)


def _live(name: str, runs: Mapping[str, StageRun]) -> None:
    """The same training, here and now."""
    corpus = session.corpus(corpora.default_name())
    run = measured(
        ("story", name, corpus.name), partial(play_named, name, corpus, LIVE_STEPS), TEXT["training"]
    )
    if run is None:
        return
    plot(
        loss_curves([run], baselines()["bigram"], TEXT["bigram"]),
        key="story_live_course",
        height=260,
        name="story-live",
        data={"step": run.points, "loss": run.losses},
        alt=TEXT("alt live", model=_model(name)),
    )
    stored = _until(runs[name], LIVE_STEPS).losses[-1]
    st.caption(TEXT("again", now=run.losses[-1], steps=int(run.points[-1]), stored=stored))


def loss_curves(runs: Sequence[StageRun], baseline: float, named: str) -> go.Figure:
    """Draws the losses of some stages over their steps, as lines, and as points those on held-out text."""
    traces = [_line(run, run.losses) for run in runs]
    traces += [_looked(run) for run in runs if run.looks]
    return loss_lines.losses(traces, baseline, named)


def gradient_norms(runs: Sequence[StageRun]) -> go.Figure:
    """Draws the norm of the whole gradient over the steps, on a logarithmic scale."""
    return go.figure(
        [_line(run, run.norms) for run in runs],
        xaxis={"title": {"text": TEXT["step column"]}, "rangemode": "tozero"},
        yaxis={"title": {"text": TEXT["norm"]}, "type": "log", "dtick": 1},
    )


def _line(run: StageRun, values: np.ndarray) -> go.Trace:
    return loss_lines.line(run.points, values, _model(run.name), COLOURS[run.name])


def _looked(run: StageRun) -> go.Trace:
    shade = colour(COLOURS[run.name])
    return go.Scatter(
        x=[look.step for look in run.looks],
        y=[look.loss for look in run.looks],
        mode="markers",
        name=TEXT("on held-out", model=_model(run.name)),
        marker={"color": shade, "size": 8, "symbol": "circle-open", "line": {"width": 2}},
        hovertemplate=TEXT("hover held-out", model=_model(run.name)),
    )


VIEW = View("story", TEXT, draw, code=(play, transposed_mask, unscaled, stream_gradients), needs_model=False)
