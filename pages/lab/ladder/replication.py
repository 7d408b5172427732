"""The view "Replication": a lecture's experiment and ours, rung by rung."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pandas as pd
import streamlit as st

from engine.config import Init
from engine.model import count_parameters
from engine.parts.registry import parts_of
from studies.experiments.lab_races import RUNGS
from studies.experiments.ladder import (
    LAST,
    LOST,
    NEAR,
    Climbed,
    Experiment,
    Overfit,
    of_checkpoint,
    shipped,
    train_rung,
)
from studies.tasks.rungs import DEPTHS, LADDER, LECTURE
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.page_frame import View
from ui.players.plot import plot
from ui.race import stored_race

TEXT = content.beside(__file__)
HEIGHTS = {"ends": 420, "curves": 350}
OURS = "shakespeare-modern"
INITS: tuple[Init, ...] = ("torch", "normal")  # those of the lecture's code, and of its text
DEEPEST = "block-8"
LESS_DEEP = "block-4"
SHADES = ("run0", "run1", "run2", "run3", "run4", "run5", "validation", "training")


def draw() -> None:
    """Draws what was published beside what was measured here; or the curves."""
    experiment = shipped()
    shows = {each: TEXT(f"shown {each}") for each in HEIGHTS}
    shown = widgets.select(TEXT["shown"], shows, "ladder_lecture", hidden=True)
    figure = beside(experiment) if shown == "ends" else over_steps(experiment, _chosen(experiment))
    rungs = "; ".join(_in_words(name, each) for name, each in experiment.rungs.items())
    plot(
        figure,
        key=f"ladder_lecture_{shown}",
        height=HEIGHTS[shown],
        alt=TEXT("alt", rungs=rungs, missing=len(experiment.missing)),
        data=_table(experiment),
        name="lecture",
    )
    overfit = of_checkpoint(OURS, experiment.letters)
    explain.answer(_answer(experiment, overfit))
    explain.measure_it(_measured, experiment, overfit)


def _chosen(experiment: Experiment) -> list[str]:
    """Returns the rungs whose curves are drawn: chosen ones, at first those of an exact published loss."""
    titles = {name: _title(name) for name in LECTURE if name in experiment.rungs}
    published = [name for name in titles if LECTURE[name].loss is not None and not LECTURE[name].about]
    most = len(SHADES)
    chosen = widgets.select_several(
        TEXT["curves"], titles, "ladder_lecture_rungs", first=published, kind="list", max_selections=most
    )
    return (chosen or published)[:most]


def _measured(experiment: Experiment, overfit: Overfit) -> None:
    """The table, what each wrote, and a training that goes on learning what it has read."""
    st.dataframe(_table(experiment), hide_index=True)
    st.caption(_made(experiment))
    for text in (_reasons(experiment), _depth(experiment), _cuts(experiment)):
        if text:
            st.markdown(text)
    said = TEXT(
        "readings",
        name=content.Filled(overfit.name),
        epochs=overfit.passes[-1],
        training=overfit.train[-1],
        validation=overfit.validation[-1],
        gap=overfit.gap,
    )
    plot(readings(overfit), key="ladder_readings", height=280, alt=said, name="readings")
    st.caption(said)
    wrote = {name: each for name, each in experiment.rungs.items() if each.text}
    if wrote:
        titles = {name: _title(name) for name in wrote}
        name = widgets.select(TEXT["sample"], titles, "ladder_wrote", kind="list")
        left, right = st.columns(2, gap="medium")
        left.caption(_wrote(wrote[name]))
        left.code(wrote[name].text, language=None, wrap_lines=True)
        _short_ladder(right, name)


def _short_ladder(container: Any, name: str) -> None:
    """Draws what the same rung wrote in the short ladder, where it is one of its rungs."""
    race = stored_race(RUNGS)
    for view in race.runs if race else ():
        if name in LADDER and view.name == LADDER[name].title and view.history.samples:
            sample, look = view.history.samples[-1], view.history.evaluations[-1]
            said = {"characters": len(sample.text), "steps": sample.step, "loss": look.validation_loss}
            container.caption(TEXT("wrote, short ladder", **said))
            container.code(sample.text, language=None, wrap_lines=True)


def _title(name: str) -> content.Filled:
    return content.Filled(LECTURE[name].rung.title)  # ours


# What is said of it -------------------------------------------------------------------------------


def _answer(experiment: Experiment, overfit: Overfit) -> str:
    """Says how far ours is the same, and what the best of the published numbers is."""
    deepest = experiment.rungs.get(DEEPEST)
    replicated = deepest is not None and deepest.finished
    losses: Climbed | Overfit = deepest if deepest is not None and replicated else overfit
    best = TEXT(
        "best" if replicated else "best not run",
        published=LECTURE[DEEPEST].loss,
        title=content.Filled(_title(DEEPEST).lower()),
        epochs=experiment.passes,
        ours=content.Filled(overfit.name),
        our_epochs=overfit.passes[-1],
        training=losses.train[-1],
        validation=losses.validation[-1],
    )
    return f"{_agreement(experiment)} {best}"


def _agreement(experiment: Experiment) -> str:
    """Says how many published losses ours agree with, which is furthest off, and which rungs diverge."""
    compared = experiment.compared
    if not compared:
        return TEXT["nothing to compare"]
    if len(compared) == 1:
        each = experiment.rungs[compared[0]]
        said = TEXT(
            "one near" if each.agrees else "one off",
            title=_title(each.name),
            loss=each.train[-1],
            published=each.published,
            near=NEAR,
            off=each.off,
        )
        worst = ""
    else:
        count, tried = len(experiment.agreeing), len(compared) + len(experiment.lost)
        said, worst = TEXT("agreement", agreeing=count, all=tried, near=NEAR), _apart(experiment)
    diverged = [_diverges(name, len(experiment.of(name))) for name in experiment.lost]
    return f"{'; '.join(filter(None, (said, worst, *diverged)))}."


def _diverges(name: str, seeds: int) -> str:
    return TEXT("diverges" if seeds > 1 else "diverges once", title=_title(name), seeds=seeds)


def _apart(experiment: Experiment) -> str:
    """Names the rungs that end apart from their published losses, the furthest first; nothing where all
    agree.
    """
    offs = {name: off for name in experiment.compared if (off := experiment.rungs[name].off) is not None}
    apart = sorted(set(offs) - set(experiment.agreeing), key=lambda name: -abs(offs[name]))
    ends = (("above" if offs[name] > 0 else "below", _title(name), abs(offs[name])) for name in apart)
    return ", ".join(TEXT(f"apart {way}", title=title, off=off) for way, title, off in ends)


def _reasons(experiment: Experiment) -> str:
    """Says for each rung that does not agree how far off it is, and how fast its loss still fell at the end,
    then what the initial weights change, and what the lecture leaves open.
    """
    lines = []
    for name in experiment.compared:
        each = experiment.rungs[name]
        if not each.agrees:
            off = TEXT(
                "off" if each.falling is None else "off, falling",
                title=_title(name),
                loss=each.train[-1],
                off=each.off,
                published=each.published,
                last=LAST,
                falling=each.falling,
            )
            lines.append(f"{off} {_spread(experiment, name)}")
    parts = (" ".join(lines), _diverged(experiment), _initial_weights(experiment), TEXT["left open"])
    return "\n\n".join(filter(None, parts))


def _spread(experiment: Experiment, name: str) -> str:
    """Says between which losses the seeds of a rung ended, and how many did not end."""
    runs = experiment.of(name)
    ends = [each.train[-1] for each in runs if each.finished]
    if len(runs) == 1:
        return TEXT["one seed"]
    if len(ends) == 1:
        return TEXT("one held", seeds=len(runs))
    return TEXT("seeds", seeds=len(ends), low=min(ends), high=max(ends))


def _diverged(experiment: Experiment) -> str:
    """Names the trainings that diverged, by rung and initial weights, and their precision."""
    rows = []
    for name in experiment.rungs:
        for init in INITS:
            runs = experiment.of(name, init)
            steps = {each.diverged: each.precision for each in runs if each.diverged is not None}
            if steps:
                first, last = min(steps), max(steps)
                rows.append(
                    TEXT(
                        "diverged at" if first == last else "diverged between",
                        title=_title(name),
                        whose=TEXT(f"init {init}"),
                        count=len(steps),
                        seeds=sum(each.finished or each.diverged is not None for each in runs),
                        first=first,
                        last=last,
                        precisions=" and ".join(sorted(set(steps.values()))),
                    )
                )
    if not rows:
        return ""
    said = TEXT("diverged", runs=content.Filled("; ".join(rows)))
    return " ".join(filter(None, (said, _in_float32(experiment))))


def _in_float32(experiment: Experiment) -> str:
    """Says where trainings in float32 stand, and the same ones in bfloat16, in which all that diverged were;
    nothing where another did.
    """
    if any(each.diverged is not None and each.precision != "bfloat16" for each in experiment.runs):
        return ""
    rows, saved = [], False
    for each in experiment.runs:
        twins = [
            other
            for other in experiment.runs
            if (other.name, other.init, other.seed, other.biases)
            == (each.name, each.init, each.seed, each.biases)
            and other.precision != each.precision
        ]
        if each.precision != "float32" or not twins:
            continue
        step = min(each.steps[-1], twins[0].steps[-1])
        ours, other = (dict(zip(run.steps, run.train, strict=True))[step] for run in (each, twins[0]))
        rows.append(TEXT("in float32 of", title=_title(each.name), step=step, loss=ours, other=other))
        saved = saved or ours < other - LOST
    if not rows:
        return ""
    said = TEXT("in float32", runs=content.Filled("; ".join(rows)))
    return f"{said} {TEXT['likeliest']}" if saved else said


def _initial_weights(experiment: Experiment) -> str:
    """Says how rungs with several seeds end from the code's and from the text's initial weights; and what
    biases in the feed-forward networks change, which the lecture's code has.
    """
    rows = []
    for name in experiment.rungs:
        code, text = (
            [each.train[-1] for each in experiment.of(name, init) if each.finished] for init in INITS
        )
        if min(len(code), len(text)) > 0 and max(len(code), len(text)) > 1:
            rows.append(
                TEXT("initial weights of", title=_title(name), code=_between(code), text=_between(text))
            )
    if not rows:
        return ""
    pairs = [
        TEXT("biases of", without=plain.train[-1], biased=each.train[-1], title=_title(each.name))
        for each in experiment.runs
        if each.biases and each.finished
        for plain in experiment.of(each.name, each.init)
        if plain.seed == each.seed and plain.finished
    ]
    said = TEXT("initial weights", rungs=content.Filled("; ".join(rows)))
    return f"{said} {TEXT('biases', pairs=content.Filled(', '.join(pairs)))}" if pairs else said


def _between(ends: Sequence[float]) -> str:
    """Says between which losses trainings ended, or where the only one did."""
    low, high = min(ends), max(ends)
    return TEXT("ends" if len(ends) > 1 else "end", low=low, high=high)


def _depth(experiment: Experiment) -> str:
    """Says what depth brings with and without the feed-forward network, on held-out text."""
    parts = {}
    for kind in ("attention", "block"):
        ends = {
            n: each.validation[-1]
            for n in DEPTHS
            if (each := experiment.rungs.get(f"{kind}-{n}")) and each.finished
        }
        if len(ends) < 2:
            return ""
        counts, losses = ", ".join(f"×{n}" for n in ends), ", ".join(f"{loss:.2f}" for loss in ends.values())
        parts[kind] = TEXT(f"depth {kind}", counts=counts, losses=content.Filled(losses))
    said = [TEXT("depth", **parts)]
    for name in experiment.lost:
        if name.startswith("attention"):
            loss, step = min(each.best[::-1] for each in experiment.of(name))
            said.append(TEXT("before it diverged", title=_title(name), loss=loss, step=step))
    best = [
        TEXT("best step", title=_title(each.name), loss=each.best[1], step=each.best[0])
        for each in (experiment.rungs.get(name) for name in (DEEPEST, LESS_DEEP))
        if each and each.finished
    ]
    return " ".join([*said, TEXT("at their best", runs=content.Filled("; ".join(best)))] if best else said)


def _cuts(experiment: Experiment) -> str:
    """Says how the lecture's comparison of characters with gpt2's tokens ended here (its figure 7.1); nothing
    without it.
    """
    letters, tokens = (experiment.cuts.get(name) for name in ("cut-characters", "cut-gpt2"))
    if letters is None or tokens is None or letters.bits is None or tokens.bits is None:
        return ""
    return TEXT(
        "cuts",
        title=_title("block-4-sinusoidal"),
        steps=letters.of,
        letter_millions=letters.parameters / 1e6,
        letter_training=letters.train[-1],
        letter_loss=letters.whole,
        letter_bits=letters.bits,
        token_millions=tokens.parameters / 1e6,
        token_training=tokens.train[-1],
        token_loss=tokens.whole,
        token_bits=tokens.bits,
        whose=TEXT(f"init {letters.init}"),
        best=tokens.best[1],
        best_step=tokens.best[0],
    )


def _table(experiment: Experiment) -> pd.DataFrame:
    """Returns a row for each rung of the lecture, run or not."""
    rows = []
    for name in LECTURE:
        each = experiment.rungs.get(name)
        off = None if each is None or each.off is None else TEXT("difference", off=each.off)
        held = each if each and each.diverged is None else None
        rows.append(
            {
                TEXT["column rung"]: LECTURE[name].rung.title,
                TEXT["column parameters"]: _parameters(name),
                TEXT["column published"]: _published(name),
                TEXT["column training"]: held.train[-1] if held else None,
                TEXT["column difference"]: off,
                TEXT["column held-out"]: held.validation[-1] if held else None,
                TEXT["column steps"]: _reached(each),
                TEXT["column init"]: TEXT(f"init {each.init}") if each else None,
                TEXT["column seeds"]: len(experiment.of(name)),
                TEXT["column precision"]: each.precision if each else None,
                TEXT["column processor"]: each.processor if each else None,
            }
        )
    return pd.DataFrame(rows)


@lru_cache(maxsize=len(LECTURE))
def _parameters(name: str) -> int:
    rung = LECTURE[name].rung
    return count_parameters(rung.model, parts_of(rung.parts))


def _published(name: str) -> str:
    rung = LECTURE[name]
    case = "published none" if rung.loss is None else "published about" if rung.about else "published"
    return TEXT(case, loss=rung.loss)


def _reached(each: Climbed | None) -> str:
    if each is None:
        return TEXT["not run"]
    if each.diverged is not None:
        return TEXT("diverged by", step=each.diverged)
    return TEXT("reached" if each.finished else "reached a part", step=each.steps[-1], of=each.of)


def _in_words(name: str, each: Climbed) -> str:
    return TEXT(
        "alt rung" if each.diverged is None else "alt diverged",
        title=_title(name),
        training=each.train[-1],
        validation=each.validation[-1],
        published=_published(name),
    )


def _made(experiment: Experiment) -> str:
    about = experiment.made
    machines = ", ".join(
        TEXT("made on", count=count, precision=precision, processor=processor)
        for (precision, processor), count in experiment.machines.items()
    )
    return TEXT(
        "made",
        command=content.Filled(about["command"]),  # stands in code
        date=str(about["date"]),
        machines=content.Filled(machines),
        measured=str(about["measured"]).replace("`", ""),
    )


def _wrote(each: Climbed) -> str:
    """Says what the sample of a replicated rung is, and what the lecture says of those that it prints, at the
    same temperature.
    """
    ours = TEXT(
        "wrote",
        characters=len(each.text),
        steps=each.steps[-1],
        loss=each.train[-1],
        precision=each.precision,
    )
    says = f"says {each.name}"
    return f"{ours} {TEXT('the lecture says', says=TEXT(says))}" if says in TEXT else ours


# Figures ------------------------------------------------------------------------------------------


def beside(experiment: Experiment) -> go.Figure:
    """Draws a row for each rung of the lecture, in the order of its cost; losses across. Where there are
    several seeds, the others are small points; a cross is the lowest loss of a rung that always diverged.
    """
    names = list(LECTURE)[::-1]
    rows = {name: i for i, name in enumerate(names)}
    published = [name for name in names if LECTURE[name].loss is not None]
    ran = [each for name in names if (each := experiment.rungs.get(name))]
    held = [each for each in ran if each.diverged is None]
    lost = [each for each in ran if each.diverged is not None]
    seeds = [each for run in ran for each in experiment.of(run.name) if each is not run and each.finished]

    def points(
        label: str, xs: Sequence[float | None], at: Sequence[str], about: Sequence[str], **marker: object
    ) -> go.Trace:
        return go.Scatter(
            x=list(xs),
            y=[rows[name] for name in at],
            mode="markers",
            name=label,
            marker={"size": 12} | marker,
            customdata=[
                TEXT("point", title=_title(name), about=what) for name, what in zip(at, about, strict=True)
            ],
            hovertemplate=TEXT["point hover"],
            cliponaxis=False,
        )

    def ours(label: str, runs: Sequence[Climbed], losses: Sequence[float], **marker: object) -> go.Trace:
        about = [TEXT("point of run", label=label, run=_run(each)) for each in runs]
        return points(label, losses, [each.name for each in runs], about, **marker)

    loud, light, quiet = colour("training"), colour("validation"), colour("quiet")
    open_ring = {"symbol": "circle-open", "color": light, "line": {"width": 2}}
    traces = [
        points(
            TEXT["published points"],
            [LECTURE[n].loss for n in published],
            published,
            [TEXT["published points"]] * len(published),
            symbol="diamond-open",
            size=15,
            color=quiet,
            line={"width": 2},
        ),
        ours(TEXT["training points"], held, [each.train[-1] for each in held], color=loud),
        ours(TEXT["held-out points"], held, [each.validation[-1] for each in held], **open_ring),
    ]
    if seeds:
        ends, size = [each.validation[-1] for each in seeds], {"size": 6}
        traces += [
            ours(TEXT["other seeds"], seeds, [each.train[-1] for each in seeds], color=loud, **size),
            ours(TEXT["other seeds, held-out"], seeds, ends, **open_ring | size) | {"showlegend": False},
        ]
    if lost:
        lowest = [min(each.train) for each in lost]
        traces.append(ours(TEXT["lowest points"], lost, lowest, symbol="x", color=loud))
    return go.figure(
        traces,
        margin={"l": 210, "r": 20, "t": 30, "b": 40},
        xaxis={"title": {"text": TEXT["losses axis"]}, "zeroline": False},
        yaxis={
            "tickmode": "array",
            "tickvals": list(rows.values()),
            "ticktext": [_row(name, experiment) for name in names],
            "range": [-0.7, len(names) - 0.3],
            "zeroline": False,
        },
    )


def _row(name: str, experiment: Experiment) -> str:
    """Returns the label beside a row of the figure."""
    each, title = experiment.rungs.get(name), _title(name)
    if each is None:
        return TEXT("row not run", title=title)
    case = "row diverged" if each.diverged is not None else "row" if each.finished else "row not finished"
    return TEXT(case, title=title, step=each.steps[-1])


def _run(each: Climbed) -> str:
    """Returns what a point says beside its loss."""
    init = TEXT(f"init {each.init}")
    return TEXT("run", init=init, seed=each.seed, precision=each.precision, processor=each.processor)


def over_steps(experiment: Experiment, names: Sequence[str]) -> go.Figure:
    """Draws some of the rungs that were run, as far as they held: full on training text, dashed on unseen
    text; diamonds published. The legend has a line for each rung.
    """
    traces = []
    shown = {name: experiment.rungs[name] for name in names}
    end = max((each.of for each in shown.values()), default=1)
    for shade, (name, each) in zip(map(colour, SHADES), shown.items(), strict=False):
        title = _title(name)
        held = sum(each.diverged is None or step < each.diverged for step in each.steps)
        for losses, dash, trace_name, line in (
            (each.train, "solid", str(title), TEXT["training line"]),
            (each.validation, "dash", TEXT("line of held-out", title=title), TEXT["held-out line"]),
        ):
            traces.append(
                go.Scatter(
                    x=list(each.steps)[1:held],
                    y=list(losses)[1:held],
                    mode="lines",
                    name=trace_name,
                    legendgroup=name,
                    showlegend=dash == "solid",
                    line={"color": shade, "width": 2, "dash": dash},
                    hovertemplate=TEXT("line hover", title=title, line=line),
                )
            )
        if each.published is not None:
            traces.append(
                go.Scatter(
                    x=[end],
                    y=[each.published],
                    mode="markers",
                    name=TEXT("line of published", title=title),
                    legendgroup=name,
                    showlegend=False,
                    marker={"symbol": "diamond-open", "size": 14, "color": shade, "line": {"width": 2}},
                    cliponaxis=False,
                )
            )
    return go.figure(
        traces,
        margin={"l": 50, "r": 20, "t": 10, "b": 40},
        legend={"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1, "yanchor": "top"},
        xaxis={"title": {"text": TEXT["steps axis"]}, "range": [0, end], "zeroline": False},
        yaxis={"title": {"text": TEXT["loss axis"]}},
    )


def readings(overfit: Overfit) -> go.Figure:
    """Draws both losses of one training over how often its text was read."""
    traces = [
        go.Scatter(
            x=list(overfit.passes)[1:],
            y=list(losses)[1:],
            mode="lines+markers",
            name=label,
            line={"color": colour(shade), "width": 2.5},
        )
        for losses, label, shade in (
            (overfit.train, TEXT["on training text"], "training"),
            (overfit.validation, TEXT["on held-out text"], "validation"),
        )
    ]
    return go.figure(
        traces,
        xaxis={"title": {"text": TEXT["epochs axis"]}, "zeroline": False},
        yaxis={"title": {"text": TEXT["loss axis"]}},
    )


VIEW = View("lecture", TEXT, draw, code=(train_rung,), needs_model=False)
