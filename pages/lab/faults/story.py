"""The view "Case study": a model that does not learn, and two causes found one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pandas as pd
import streamlit as st

from engine.data import corpora
from engine.lab.doctor.story import (
    READ,
    STAGES,
    StageRun,
    baselines,
    later,
    play,
    shipped,
)
from pages.lab.faults import words_doctor as words
from pages.lab.faults.figures_doctor import gradient_norms, loss_curves
from ui import explain, session, widgets
from ui.background_jobs import measured
from ui.figures.patterns import pattern_heatmap
from ui.players.plot import plot

HEIGHT = 400
LIVE_STEPS = 200


def draw_story() -> None:
    """Draws one picture for each chapter."""
    runs, lines = shipped(), baselines()
    there = {name: title for name, title in words.CHAPTERS.items() if all(n in runs for n in SHOWN[name])}
    chapter = widgets.select(words.STEP, there, "story_step", hidden=True, wrap=True)
    says: dict[str, Callable[[], str]] = {
        "stuck": lambda: words.stuck(runs["both"], lines["unigram"]),
        "norms": lambda: words.norms(runs["both"], runs["mended"]),
        "cheats": lambda: words.cheats(runs["mask"]),
        "shapes": lambda: words.shapes(runs["mask"], later(runs["mask"])),
        "mended": lambda: words.mended(runs["mended"]),
        "told": lambda: words.as_described(runs["told"], runs["mask"]),
    }
    _figure(chapter, runs, lines)
    explain.answer(says[chapter]())
    explain.measure_it(_more, chapter, runs)


def _figure(chapter: str, runs: Mapping[str, StageRun], lines: Mapping[str, float]) -> None:
    """Losses, gradient norms, or the pattern."""
    if chapter == "norms":
        some = [runs["both"], runs["mended"]]
        plot(
            gradient_norms([_until(run, 500) for run in some], words.NAMES),
            key="story_norms",
            height=HEIGHT,
            name="gradient-norms",
            data={"step": some[0].points, "norm": some[0].norms},
            alt=words.story_alt([words.NAMES[run.name] for run in some], "The gradient norm"),
        )
        return
    if chapter == "shapes":
        labels = list(READ.replace("\n", "⏎"))
        left, right = st.columns(2, gap="medium")
        for column, name in ((left, "mask"), (right, "mended")):
            with column:
                plot(
                    pattern_heatmap(runs[name].pattern, labels),
                    key=f"story_pattern_{name}",
                    height=HEIGHT,
                    name="pattern",
                    data={"query": labels} | dict(zip(range(len(labels)), runs[name].pattern.T, strict=True)),
                    alt=words.pattern_alt(words.NAMES[name]),
                )
                st.caption(words.NAMES[name])
        return
    shown = [_until(runs[name], 2000 if chapter == "mended" else 500) for name in SHOWN[chapter]]
    line = lines["unigram"] if chapter == "stuck" else lines["bigram"]
    plot(
        loss_curves(shown, words.NAMES, line, words.LINES["unigram" if chapter == "stuck" else "bigram"]),
        key="story_course",
        height=HEIGHT,
        name="story",
        data={"step": shown[0].points, "loss": shown[0].losses},
        alt=words.story_alt([words.NAMES[run.name] for run in shown], "The loss"),
    )


SHOWN = {  # the models of each chapter
    "stuck": ("both",),
    "norms": ("both", "mended"),
    "cheats": ("both", "mask"),
    "shapes": ("mask", "mended"),
    "mended": ("both", "mask", "mended"),
    "told": ("told", "mask", "mended"),
}


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
            "model": words.NAMES[name],
            "step": f"{look.step:,}",
            "loss": f"{look.loss:.2f}",
            "greedy": words.begins(look.greedy, 60),
            "drawn": words.begins(look.drawn, 60),
        }
        for name in names
        for look in runs[name].looks
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, height=300)
    st.table(
        pd.DataFrame(
            {
                f"block {i}": [f"{runs[name].blocks[i]:.2g}" for name in names]
                for i in range(len(runs["both"].blocks))
            },
            index=[words.NAMES[name] for name in names],
        ),
        border="horizontal",
    )
    st.caption(words.BLOCKS)
    st.caption(words.STORY_MADE)
    name = names[-1]
    if widgets.switch(words.LIVE, False, "story_live", hint=words.LIVE_HINT):
        corpus = session.corpus(corpora.default_name())
        run = measured(
            ("story", name, corpus.name), lambda: play(STAGES[name], corpus, LIVE_STEPS), words.LIVE_DOING
        )
        if run is not None:
            plot(
                loss_curves([run], words.NAMES, baselines()["bigram"], words.LINES["bigram"]),
                key="story_live_course",
                height=260,
                name="story-live",
                data={"step": run.points, "loss": run.losses},
                alt=words.story_alt([words.NAMES[name]], "The loss, trained now"),
            )
            st.caption(words.again(run, _until(runs[name], LIVE_STEPS)))
