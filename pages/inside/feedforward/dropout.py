"""The view "Dropout": what random masks do to a sum, to a prediction and, over seeds, to a training."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import ConfigError
from engine.recording import on_recording
from engine.slices import median_curve
from studies.experiments import dropout_runs
from studies.experiments.dropout_runs import LITTLE, MODEL, TRAINING, WHOLE, DropoutRun, Ends, ends, shipped
from studies.feedforward.dropout import DroppedSum, Dropper, PassSpread, drop_sum, logit_terms, passes
from studies.guesses import training as guesses
from ui import content, explain, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.labels import plain as readable
from ui.figures.labels import short
from ui.figures.theme import colour
from ui.guess import Guess, ask
from ui.model_bar import Subject
from ui.model_needs import FEEDFORWARD, SAYS
from ui.page_frame import View
from ui.players.plot import plot
from ui.players.tokens import token_strip

TEXT = content.beside(__file__)
HEIGHT = 370
SHARES = (0.1, 0.3, 0.5)
SHOWN = ("sum", "prediction", "training")
BINS = 60
TOKENS = 6
SHADES = dict(zip(dropout_runs.SHARES, ("quiet", "run0", "run1"), strict=True))


def draw(subject: Subject) -> None:
    """Draws one of three: a sum, a prediction, or the stored trainings."""
    controls = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    shown = widgets.select(TEXT["shown"], SHOWN, "dropout_shown", container=controls)
    if shown == "training":
        _training(controls)
        return
    share = widgets.select(
        TEXT["share"], SHARES, "dropout_share", container=controls, format_func=lambda p: f"{p:g}"
    )
    position = token_strip(subject.labels, key="dropout_token", chosen=_first(subject), label=TEXT["token"])
    (_sum if shown == "sum" else _prediction)(subject, share, position)


def _first(subject: Subject) -> int:
    return len(subject.ids) - 1 if subject.gap is None else subject.gap


def _sum(subject: Subject, share: float, position: int) -> None:
    """The last write of the stream, taken through the final norm to the logit of the model's own guess."""
    recording = subject.recording()
    guess = recording.likeliest(position)
    try:
        terms = logit_terms(subject.model, recording, position, guess)
    except ConfigError:
        st.info(TEXT["no sum"])
        return
    dropped = drop_sum(terms, share)
    name = subject.vocabulary[guess]
    plot(
        sum_bars(dropped),
        key="dropout_sum",
        height=HEIGHT,
        data=pd.DataFrame({"scaled": dropped.scaled, "not_scaled": dropped.plain}),
        name="dropout-sum",
        alt=TEXT(
            "alt sum",
            token=name,
            masks=len(dropped.scaled),
            mean=dropped.mean,
            undivided=dropped.plain_mean,
            total=dropped.total,
        ),
    )
    explain.answer(
        TEXT(
            "answer sum",
            share=dropped.share,
            terms=len(dropped.terms),
            kept=1 - dropped.share,
            mean=dropped.mean,
            total=dropped.total,
            token=name,
            deviation=dropped.deviation,
            undivided=dropped.plain_mean,
        )
    )


def _prediction(subject: Subject, share: float, position: int) -> None:
    spread = measured(
        ("dropout", subject.key, subject.ids, position, share),
        partial(on_recording, passes, subject.model, subject.ids, position, share, TOKENS),
        TEXT["reading"],
    )
    if spread is None:
        return
    names = [subject.vocabulary[i] for i in spread.tokens]
    passes_of = {f"pass_{i}": row for i, row in enumerate(spread.passes)}
    plot(
        pass_dots(spread, names),
        key="dropout_prediction",
        height=HEIGHT,
        data=pd.DataFrame({"token": names, "without": spread.exact} | passes_of),
        name="dropout-prediction",
        alt=TEXT("alt prediction", tokens="; ".join(_ranges(spread, names))),
    )
    explain.answer(
        TEXT(
            "answer prediction",
            share=share,
            passes=len(spread.passes),
            token=names[0],
            lowest=spread.lowest[0],
            highest=spread.highest[0],
            exact=spread.exact[0],
        )
    )


def _ranges(spread: PassSpread, names: Sequence[str]) -> list[str]:
    """Lists the tokens with the range of their probabilities."""
    rows = zip(names, spread.exact, spread.lowest, spread.highest, strict=True)
    return [TEXT("of token", token=name, exact=p, low=low, high=high) for name, p, low, high in rows]


def _training(controls: st.delta_generator.DeltaGenerator) -> None:
    runs = shipped()
    texts = {LITTLE: TEXT("little", characters=LITTLE), WHOLE: TEXT["whole"]}
    size = widgets.select(TEXT["text"], texts, "dropout_text", container=controls)
    finals = ends(runs, size)
    some = [run for run in runs if run.plan.characters == size]
    plot(
        loss_lines(some),
        key=f"dropout_training_{size}",
        height=HEIGHT + 40,
        data=_table(some),
        name="dropout-training",
        alt=TEXT("alt training", shares="; ".join(_finals(finals))),
    )
    explain.answer(_best(finals, some[0].passes))
    other = WHOLE if size == LITTLE else LITTLE
    ask("dropout", _guess, ends(runs, other), other)
    explain.measure_it(_ends, finals, runs[0])


def _finals(finals: Sequence[Ends]) -> list[str]:
    return [
        TEXT(
            "of share",
            share=each.dropout,
            train=each.train,
            held_out=each.validation,
            low=each.spread[0],
            high=each.spread[1],
        )
        for each in finals
    ]


def _best(finals: Sequence[Ends], epochs: float) -> str:
    """Names the best share on held-out text, and what it does to the two losses."""
    bare, *dropped = finals
    best = min(finals, key=lambda each: each.validation)
    losses = (
        TEXT("losses of", share=each.dropout, train=each.train, held_out=each.validation)
        for each in (bare, dropped[-1])
    )
    return TEXT(
        "none best" if best is bare else "some best",
        epochs=f"{epochs:.0f}" if epochs >= 2 else f"{epochs:.1f}",
        best=best.dropout,
        losses=content.Filled("; ".join(losses)),
        seeds=bare.seeds,
    )


def _guess(finals: Sequence[Ends], characters: int) -> Guess | None:
    """A guess about the largest share on the other text; a choice shows that text."""
    truth = guesses.dropped(finals)
    if truth is None:
        return None
    n = truth.numbers
    which = "guess whole" if characters == WHOLE else "guess little"
    question = TEXT(which, characters=characters, share=n["share"])
    outcome = TEXT("outcome", without=n["without"], with_it=n["with"], share=n["share"], seeds=n["seeds"])
    return Guess.of(TEXT, truth, question, outcome, {"dropout_text": characters})


def _table(runs: list[DropoutRun]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"dropout": run.plan.dropout, "seed": run.plan.seed, "step": step, "train": a, "held_out": b}
            for run in runs
            for step, a, b in zip(run.steps, run.train, run.validation, strict=True)
        ]
    )


def _ends(finals: Sequence[Ends], run: DropoutRun) -> None:
    """A row for each share; how low each came before it overfitted; what was trained, and where."""
    table = {
        TEXT["column dropout"]: [each.dropout for each in finals],
        TEXT["column seeds"]: [each.seeds for each in finals],
        TEXT["column train"]: [each.train for each in finals],
        TEXT["column held out"]: [each.validation for each in finals],
        TEXT["column range"]: [TEXT("range", low=each.spread[0], high=each.spread[1]) for each in finals],
        TEXT["column lowest"]: [each.lowest for each in finals],
    }
    st.dataframe(pd.DataFrame(table), hide_index=True)
    lowest = ", ".join(TEXT("lowest of", lowest=each.lowest, share=each.dropout) for each in finals)
    st.caption(TEXT("on the way", lowest=content.Filled(lowest)))
    st.caption(
        TEXT(
            "made",
            blocks=MODEL.n_layers,
            width=MODEL.d_model,
            context=MODEL.context,
            steps=TRAINING.steps,
            batch=TRAINING.batch_size,
            rate=TRAINING.learning_rate,
            made=run.made,
        )
    )


# Figures ------------------------------------------------------------------------------------------


def sum_bars(dropped: DroppedSum) -> go.Figure:
    """Draws how often a sum takes each value under random masks, scaled and not; a line at the full sum."""
    edges, scaled, plain = dropped.histograms(BINS)
    middles, width = (edges[:-1] + edges[1:]) / 2, float(edges[1] - edges[0])
    traces = []
    for shares, name, shade in (
        (plain, TEXT["not divided"], "quiet"),
        (scaled, TEXT["divided"], "feedforward"),
    ):
        traces.append(
            go.Bar(
                x=middles,
                y=shares,
                width=width,
                name=name,
                marker={"color": colour(shade, 60)},
                hovertemplate=TEXT("hover sum", name=name),
            )
        )
    return go.figure(
        traces,
        barmode="overlay",
        bargap=0,
        margin={"l": 60, "r": 22, "t": 52, "b": 44},
        legend={"y": 1.1},
        xaxis={"title": {"text": TEXT["contribution"]}},
        yaxis=go.axis(TEXT["masks"], tickformat=".0%", showgrid=True),
        shapes=[go.rule(x=dropped.total, line={"color": colour("quiet"), "width": 2, "dash": "dot"})],
        annotations=[go.note(TEXT["without"], dropped.total, 1.0, yref="paper", yanchor="bottom")],
    )


def pass_dots(spread: PassSpread, names: Sequence[str]) -> go.Figure:
    """Draws the probabilities of tokens in each pass as dots, and without dropout as bars."""
    positions = np.arange(len(names))
    count, shown = len(spread.passes), [readable(short(name, 12)) for name in names]
    scattered = positions + np.linspace(-0.28, 0.28, count)[:, None]
    bars = go.Bar(
        x=positions,
        y=spread.exact,
        name=TEXT["without"],
        marker={"color": colour("quiet", 40)},
        hovertemplate=TEXT["hover without"],
    )
    dots = go.Scatter(
        x=scattered.ravel(),
        y=spread.passes.ravel(),
        mode="markers",
        name=TEXT("passes", passes=count),
        marker={"color": colour("output", 70), "size": 6},
        hovertemplate="%{y:.1%}<extra></extra>",
    )
    return go.figure(
        [bars, dots],
        margin={"l": 60, "r": 12, "t": 30, "b": 44},
        xaxis=go.ticks(positions.tolist(), shown, title=TEXT["next token"]),
        yaxis=go.axis(TEXT["probability"], tickformat=".0%", range=[0, 1.02], showgrid=True),
    )


def loss_lines(runs: Sequence[DropoutRun]) -> go.Figure:
    """Draws validation losses as full lines, training losses as dotted ones: a thin line for each seed, thick
    the median.
    """
    traces = []
    for share in dropout_runs.SHARES:
        some = [run for run in runs if run.plan.dropout == share]
        if not some:
            continue
        steps = list(some[0].steps)[1:]
        for split, dash in (("validation", "solid"), ("train", "dot")):
            lines = [np.array(getattr(run, split))[1:] for run in some]
            name = TEXT(f"split {split}", share=share)
            shade = SHADES[share]
            thin: go.Trace = {"showlegend": False, "opacity": 0.4, "hoverinfo": "skip"}
            traces += [go.line(steps, values, shade, name, width=1, dash=dash, **thin) for values in lines]
            width, hover = 3 if split == "validation" else 2, TEXT["hover loss"]
            traces.append(go.line(steps, median_curve(lines), shade, name, hover, width=width, dash=dash))
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 56, "b": 44},
        xaxis={"title": {"text": TEXT["steps"]}},
        yaxis=go.axis(TEXT["loss"], showgrid=True, tickmode="auto", nticks=7),
    )


VIEW = View(
    "dropout", TEXT, draw, code=(drop_sum, Dropper, passes), takes=(SAYS, FEEDFORWARD), figures_only=True
)
