"""The view "Rungs": all rungs, what each adds in the configuration and in the code, and what it buys."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pandas as pd
import streamlit as st

from engine.errors import CheckpointError
from engine.slices import seed_median
from studies.experiments.lab_races import RUNGS, SEEDS, rung_losses
from studies.experiments.ladder_gains import Idea, idea
from studies.experiments.race_table import standings
from studies.experiments.stored_races import Stored
from studies.tasks.ladder import KINDS, lines
from studies.tasks.rungs import LADDER, Rung
from ui import content, explain, race_words, widgets
from ui.fields import label_of
from ui.fields import show as written
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.layout import link_to
from ui.page_frame import View
from ui.players.plot import plot
from ui.race import stored_race
from ui.run_text import counting

TEXT = content.beside(__file__)
HEIGHT = 440
FIRST = "positions"
LINES = ("unigram", "bigram", "trigram")
REMARKS_OF = {"attention-4": "attention-2", "attention-8": "attention-2", "block-8": "block-4"}


def draw() -> None:
    """Draws a point for each rung; beside it the difference from the one below."""
    race = stored_race(RUNGS)
    by_seed = _losses()
    medians = {name: seed_median(over) for name, over in by_seed.items()}
    picture, beside = st.columns([3, 2], gap="medium")
    titles = {name: rung.title for name, rung in LADDER.items()}
    with beside:
        name = widgets.select(TEXT["rung"], titles, "ladder_rung", first=FIRST, kind="list")
        upto = widgets.switch(TEXT["up to"], False, "ladder_upto", hint=TEXT["up to hint"])
        _difference(name)
    drawn = [n for n in by_seed if not upto or list(LADDER).index(n) <= list(LADDER).index(name)]
    with picture:
        if not by_seed:
            st.info(TEXT["not stored"])
        plot(
            rungs(by_seed, name, counting(), drawn),
            key="ladder_ideas",
            height=HEIGHT,
            alt=TEXT(
                "alt",
                losses=", ".join(TEXT("alt rung", title=titles[n], loss=medians[n]) for n in drawn),
            ),
            data=pd.DataFrame(
                {
                    "rung": [titles[n] for n in by_seed],
                    "nats": [medians[n] if n in drawn else None for n in by_seed],
                    "lowest": [min(by_seed[n]) if n in drawn else None for n in by_seed],
                    "highest": [max(by_seed[n]) if n in drawn else None for n in by_seed],
                }
            ),
            name="rungs",
        )
    explain.answer(answer(idea(name, by_seed), name, medians.get(name)))
    if race:
        explain.measure_it(_table, race)


def _difference(name: str) -> None:
    """Draws what is new: in words, in the configuration, in the code."""
    rung = LADDER[name]
    st.markdown(rung.idea)
    if rung.below is None:
        st.caption(TEXT["lowest"])
    else:
        below = LADDER[rung.below]
        changes = []
        for field, new in rung.changes.items():
            before = written(getattr(below.model, field))
            changes.append(TEXT("change", field=label_of(field), before=before, after=written(new)))
        if rung.parts != below.parts:
            values = {"before": _values(below.parts), "after": _values(rung.parts)}
            changes.append(TEXT("change of values", **values))
        st.markdown("  \n".join(changes))
    source = lines(name)
    if source:
        st.code(source, language="python", height=200, wrap_lines=True)
    else:
        st.caption(TEXT["nothing new"])
    if name in KINDS:
        link_to("attention", TEXT["itself"], attention_view="scores", attention_scores="self")


def _values(parts: str) -> str:
    """Says what the values are made of in a model of these parts."""
    return TEXT(f"values {parts}") if f"values {parts}" in TEXT else parts


def answer(idea: Idea | None, name: str, loss: float | None) -> str:
    """Says what the chosen rung gained."""
    rung = LADDER[name]
    if idea is None:
        story = content.Filled(rung.idea)
        return TEXT("first, not stored" if loss is None else "first", title=rung.title, loss=loss, idea=story)
    once = " once" if idea.seeds == 1 and idea.verdict in ("better", "worse") else ""
    says = TEXT(
        f"gain {idea.verdict}{once}",
        title=rung.title,
        below=LADDER[str(rung.below)].title,
        before=idea.before,
        after=idea.after,
        seeds=idea.seeds,
    )
    remark = f"remark {REMARKS_OF.get(name, name)}"
    return f"{says} {TEXT(remark)}" if remark in TEXT else says


def _losses() -> dict[str, tuple[float, ...]]:
    """Returns the losses of the stored race of all rungs, by seed; nothing where it is missing or broken."""
    try:
        return rung_losses()
    except CheckpointError:
        return {}


def _table(race: Stored) -> None:
    """The race's table, and the rungs with other seeds."""
    st.dataframe(pd.DataFrame(race_words.table(standings(race.runs))), hide_index=True)
    st.caption(race_words.made(race.made))
    st.caption(TEXT["seeds"])
    by_seed = _losses()
    rows = {f"seed {seed}": [over[at] for over in by_seed.values()] for at, seed in enumerate(SEEDS)}
    st.dataframe(pd.DataFrame({"rung": [LADDER[name].title for name in by_seed]} | rows), hide_index=True)


def rungs(
    seeds: Mapping[str, Sequence[float]],
    chosen: str,
    lines: Mapping[str, float],
    drawn: Collection[str],
) -> go.Figure:
    """Draws the losses of each rung by seed, lowest rung at the bottom: the median as a point, the range as a
    thin line; `lines` (n-gram -> loss) across; the chosen rung's step from the one below as a bar. Rungs that
    are not `drawn` keep their place, and tell no loss.
    """
    losses = {name: seed_median(over) for name, over in seeds.items()}
    names = list(losses)
    rows = {name: i for i, name in enumerate(names)}
    quiet, loud = colour("quiet"), colour("validation")
    shown = [name for name in names if name in drawn]
    sides = [_beside(name, chosen, losses) for name in shown]
    traces = [
        go.Scatter(
            x=[losses[name] for name in shown],
            y=[rows[name] for name in shown],
            mode="markers",
            marker={
                "size": [15 if name == chosen else 10 for name in shown],
                "color": [loud if name == chosen else quiet for name in shown],
            },
            customdata=[TEXT("point", title=LADDER[name].title, loss=losses[name]) for name in shown],
            hovertemplate="%{customdata}<extra></extra>",
            cliponaxis=False,
            error_x={
                "symmetric": False,
                "array": [max(seeds[name]) - losses[name] for name in shown],
                "arrayminus": [losses[name] - min(seeds[name]) for name in shown],
                "thickness": 1.5,
                "width": 4,
                "color": quiet,
            },
        )
    ]
    ends = [
        max(seeds[name]) if side.endswith("right") else min(seeds[name])
        for name, side in zip(shown, sides, strict=True)
    ]
    traces.append(
        go.Scatter(
            x=ends,  # beside the range, not on it
            y=[rows[name] for name in shown],
            mode="text",
            text=[f"  {losses[name]:.2f}  " for name in shown],
            textposition=sides,
            textfont={"size": 12},
            hoverinfo="skip",
            cliponaxis=False,
        )
    )
    below = LADDER[chosen].below
    if below is not None and chosen in losses and below in losses:
        traces.insert(
            0,
            go.Scatter(
                x=[losses[name] for name in (below, below, chosen)],
                y=[rows[below], rows[chosen], rows[chosen]],
                mode="lines",
                line={"color": loud, "width": 4},
                hoverinfo="skip",
            ),
        )
    across = {name: at for name, at in lines.items() if name in LINES}
    return go.figure(
        traces,
        margin={"l": 140, "r": 40, "t": 24, "b": 40},
        showlegend=False,
        xaxis={
            "title": {"text": TEXT["loss axis"]},
            "range": [
                min([*losses.values(), 2.0]) - 0.22,
                max([*losses.values(), *across.values(), 3.0]) + 0.25,
            ],
            "zeroline": False,
        },
        yaxis=go.ticks(
            list(rows.values()),
            [f"<b>{LADDER[n].title}</b>" if n == chosen else LADDER[n].title for n in names],
            range=[-0.8, len(names) - 0.3],
        ),
        shapes=[
            go.rule(x=at, line={"color": quiet, "width": 1.2, "dash": "dot"}, layer="below")
            for at in across.values()
        ],
        annotations=[
            go.note(name, at, 1, yref="paper", yanchor="bottom", font={"size": 12, "color": quiet})
            for name, at in across.items()
        ],
    )


def _beside(name: str, chosen: str, losses: Mapping[str, float]) -> str:
    """The side of a point on which its number is free: not over the chosen step, nor out of the picture."""
    from_right = name == chosen and losses[name] < losses.get(LADDER[name].below or "", 0.0)
    return "middle left" if from_right else "middle right"


VIEW = View("ideas", TEXT, draw, code=(Rung,), needs_model=False)
