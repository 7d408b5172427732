"""The view "Drafts": speculative decoding, a text by two writers, and its time with drafts and without."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from engine.config import SampleConfig
from engine.data.progress import finish
from engine.model import Transformer
from studies.generation.drafts import (
    FARTHEST,
    Comparison,
    Length,
    Plan,
    Source,
    acceptance,
    by_length,
    comparing,
    expected,
    passes,
    residual,
)
from studies.guesses import sampling as guesses
from ui import content, explain, models, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures import theme
from ui.guess import Guess, ask
from ui.model_bar import Subject
from ui.model_needs import KEEPS, SAYS
from ui.page_frame import View
from ui.players.component import mounted
from ui.players.plot import plot

TEXT = content.beside(__file__)
LONGEST, FIRST, FIRST_LARGE = 128, 96, 40  # tokens that are written: at most, and at first
ROUNDS, ROUNDS_LARGE = 15, 3
LEAST, LEAST_LETTERS = 2, 4  # tokens that a lookup has to match, and characters
LETTERS = 300  # a vocabulary below this is one of characters
MAX_SEED = 2**31 - 1
SMALL = "timelapse"  # the model that drafts for those of the same alphabet
EVEN = 0.05  # of the time: a smaller difference is none


def draw(subject: Subject) -> None:
    """Draws the controls, and the chosen part."""
    titles = {part: TEXT(f"part {part}") for part in ("text", "length")}
    left, middle, right, more = st.columns([3, 4, 3, 2], gap="small", vertical_alignment="bottom")
    part = widgets.select(TEXT["part"], titles, "drafts_part", container=left, hidden=True)
    small = small_model(subject)
    source = _source(subject, small, middle)
    ahead = 6
    if part == "text":
        hint = TEXT["ahead hint"]
        ahead = widgets.slide(TEXT["ahead"], 1, FARTHEST, ahead, "drafts_ahead", container=right, hint=hint)
    # Streamlit's own: a box that opens over the page and takes no room on it
    with more.popover(TEXT["more"], width="stretch"):
        length, sampling, depth, pays = _more(subject, source, part)
    least = LEAST_LETTERS if subject.config.vocab_size < LETTERS else LEAST
    plan = Plan(source, ahead, depth, least, pays)
    (_two_writers if part == "text" else _lengths)(subject, small, length, sampling, plan)


def small_model(subject: Subject) -> Transformer | None:
    """Returns the shipped model that can draft for a larger one of the same alphabet; None for others."""
    if subject.key[0] == SMALL or SMALL not in models.source_of(SMALL).offers(None):
        return None
    lapse = models.lapse_of(SMALL)
    if lapse.tokenizer != subject.tokenizer or lapse.config.n_layers >= subject.config.n_layers:
        return None
    return models.model_after(SMALL, max(lapse.steps)).model


def _source(subject: Subject, small: Transformer | None, container: Any) -> Source:
    offered: list[Source] = ["lookup"]
    if small is not None:
        offered.append("small")
    if subject.config.n_layers > 1 and subject.model.parts.is_plain_stack:
        offered.append("layers")
    titles = {name: TEXT(f"source {name}") for name in offered}
    first: Source = "small" if "small" in offered else "lookup"
    return widgets.select(
        TEXT["source"],
        titles,
        "drafts_source",
        first=first,
        container=container,
        hint=TEXT["source hint"],
        always=True,
    )


def _more(subject: Subject, source: Source, part: str) -> tuple[int, SampleConfig, int, bool]:
    """Draws what most leave as it is: tokens, temperature, seed, blocks of the draft, and drafts that pay."""
    first = FIRST_LARGE if subject.is_pretrained else FIRST
    length = widgets.slide(TEXT["length control"], 8, LONGEST, first, "drafts_length", step=8)
    hint = TEXT["temperature hint"]
    heat = widgets.slide(TEXT["temperature"], 0.0, 2.0, 0.0, "drafts_temperature", step=0.1, hint=hint)
    seed = widgets.whole(TEXT["seed"], 0, MAX_SEED, 0, "drafts_seed", disabled=heat == 0)
    depth = 1
    if source == "layers":
        layers = subject.config.n_layers
        depth = widgets.slide(TEXT["depth"], 1, layers - 1, max(1, layers // 2), "drafts_depth")
    pays = part == "text" and widgets.switch(TEXT["pays"], False, "drafts_pays", hint=TEXT["pays hint"])
    return length, SampleConfig(temperature=heat, seed=seed), depth, pays


# Two writers ------------------------------------------------------------------------------------


def _two_writers(
    subject: Subject, small: Transformer | None, length: int, sampling: SampleConfig, plan: Plan
) -> None:
    rounds = ROUNDS_LARGE if subject.is_pretrained else ROUNDS
    compared = measured(
        ("drafts", subject.key, subject.ids, length, sampling, plan),
        partial(comparing, subject.model, small, subject.ids, length, sampling, plan, rounds),
        TEXT["writing"],
        offer=TEXT["write"] if subject.is_pretrained else "",
    )
    if compared is None:
        return
    mounted("drafts")(key="drafts_text", data=payload(subject, compared))
    metrics = {
        "passes": f"{len(compared.passes)}",
        "passes plain": f"{len(compared.plain)}",
        "seconds": f"{compared.medians[0]:.3f}",
        "seconds plain": f"{compared.medians[1]:.3f}",
    }
    for column, (name, value) in zip(st.columns(4, gap="small"), metrics.items(), strict=True):
        column.metric(TEXT(f"metric {name}"), value)
    explain.answer(verdict(compared, sampling, plan))
    if not subject.is_pretrained:
        ask("drafts", longer, subject, small, length, sampling, plan, compared)
    explain.measure_it(_measured, subject, compared, sampling)


def payload(subject: Subject, compared: Comparison) -> dict[str, Any]:
    """Returns the text as the browser needs it: each token, who wrote it, and what happened to it."""
    tokens: list[dict[str, str]] = []
    table: list[list[str | int | float]] = [["pass", "token", "id", "writer", "probability of acceptance"]]
    for number, record in enumerate(compared.passes, 1):
        # refused tokens after the first were never checked, and stand with it
        writers = ["accepted" if at < record.accepted else "refused" for at in range(len(record.drafted))]
        for at, (token, who) in enumerate(
            zip((*record.drafted, record.token), (*writers, "large"), strict=True)
        ):
            label = subject.vocabulary[token]
            words = TEXT(f"legend {who}")
            known = at < len(record.chances)
            chance = record.chances[at] if known else math.nan
            hint = TEXT("hint chance" if known else "hint token", number=number, who=words, chance=chance)
            tokens.append({"text": label, "who": who, "hint": str(hint)})
            table.append([number, label, token, who, round(chance, 4) if known else ""])
    return {
        "prompt": "".join(subject.labels),
        "tokens": tokens,
        "legend": {who: TEXT(f"legend {who}") for who in ("accepted", "refused", "large")},
        "label": TEXT(
            "alt",
            tokens=len(compared.tokens),
            passes=len(compared.passes),
            accepted=compared.accepted,
            refused=compared.drafted - compared.accepted,
        ),
        "table": table,
        "palette": theme.palette(),
    }


def verdict(compared: Comparison, sampling: SampleConfig, plan: Plan) -> str:
    """Says whether drafts saved time, and what they cost the text."""
    if not compared.drafted:
        return TEXT("none", why=TEXT("none pays" if plan.pays else "none matches"))
    case = "faster" if compared.ratio > 1 else "slower"
    if abs(compared.ratio - 1) <= EVEN:
        case = "even"
    elif not compared.steady:
        case = "unclear"
    exact = "drawn" if sampling.temperature else "greedy" if compared.same else "differs"
    return TEXT(case, ratio=compared.ratio, each=compared.per_pass, exact=TEXT(f"exact {exact}"))


def _measured(subject: Subject, compared: Comparison, sampling: SampleConfig) -> None:
    rounds = len(compared.seconds)
    said: str = TEXT("measured none", rounds=rounds)
    if compared.drafted:
        said = TEXT(
            "measured",
            rounds=rounds,
            drafted=compared.drafted,
            checked=compared.checked,
            accepted=compared.accepted,
            rate=compared.rate,
            foreseen=compared.foreseen,
        )
    if compared.times is not None:
        first, last = compared.times.passes[0], compared.times.passes[-1]
        drafted = compared.times.drafted / first
        said += " " + TEXT("costs", count=len(compared.times.passes), times=last / first, draft=drafted)
    st.markdown(said)
    if sampling.temperature:
        st.markdown(TEXT["text drawn"])
    else:
        same = TEXT["same yes" if compared.same else "same no"]
        st.markdown(TEXT("text greedy", tokens=len(compared.plain), same=same))
    st.code(subject.tokenizer.decode(list(compared.plain)), language=None, wrap_lines=True)


def longer(
    subject: Subject,
    small: Transformer | None,
    length: int,
    sampling: SampleConfig,
    plan: Plan,
    compared: Comparison,
) -> Guess | None:
    """Makes a guess about drafts of FARTHEST tokens from those that are shown."""
    if plan.ahead == FARTHEST or not compared.drafted:
        return None
    writing = by_length(subject.model, small, subject.ids, length, sampling, plan, (FARTHEST,))
    truth = guesses.longer_drafts(compared.per_pass, compared.rate, plan.ahead, finish(writing)[0])
    if truth is None:
        return None
    choices = {
        name: TEXT("choice", value=truth.numbers[name]) for name in ("same", "formula", "proportional")
    }
    question = TEXT("guess", ahead=plan.ahead, same=compared.per_pass)
    outcome = TEXT("outcome", found=truth.numbers["found"])
    return Guess.of(TEXT, truth, question, outcome, {"drafts_ahead": FARTHEST}, choices)


# Draft length -----------------------------------------------------------------------------------


def _lengths(
    subject: Subject, small: Transformer | None, length: int, sampling: SampleConfig, plan: Plan
) -> None:
    points = measured(
        ("draft lengths", subject.key, subject.ids, length, sampling, plan),
        partial(by_length, subject.model, small, subject.ids, length, sampling, plan),
        TEXT["lengths"],
        offer=TEXT["write lengths"] if subject.is_pretrained else "",
    )
    if points is None:
        return
    last = points[-1]
    plot(
        figure(points),
        key="drafts_lengths",
        height=330,
        name="draft-lengths",
        data=pd.DataFrame(
            {
                "ahead": [point.ahead for point in points],
                "acceptance_rate": [point.rate for point in points],
                "tokens_per_pass": [point.per_pass for point in points],
                "formula": [point.formula for point in points],
            }
        ),
        alt=TEXT("alt length", most=last.ahead, last=last.per_pass, formula=last.formula),
    )
    none = all(math.isnan(point.rate) for point in points)
    case = "length none" if none else "length"
    explain.answer(TEXT(case, first=points[0].per_pass, last=last.per_pass, most=last.ahead))


def figure(points: Sequence[Length]) -> go.Figure:
    """Draws tokens per pass by the draft's length, measured and by the formula."""
    ahead, rates = [point.ahead for point in points], [point.rate for point in points]
    hover = TEXT["hover"]
    lines = [
        go.line(ahead, [point.formula for point in points], "quiet", TEXT["by formula"], hover, dash="dash"),
        go.line(
            ahead, [point.per_pass for point in points], "attention", TEXT["measured line"], hover, points=9
        ),
    ]
    for line in lines:
        line["customdata"] = rates
    return go.figure(
        lines,
        margin={"l": 56, "r": 12, "t": 30, "b": 44},
        xaxis=go.axis(TEXT["axis ahead"], dtick=1),
        yaxis=go.axis(TEXT["axis tokens"], rangemode="tozero"),
    )


VIEW = View(
    "drafts",
    TEXT,
    draw,
    (passes, acceptance, residual, expected),
    takes=(SAYS, KEEPS),
    shows=("speculative decoding", "speculative sampling", "prompt lookup", "acceptance rate"),
)
