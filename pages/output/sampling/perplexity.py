"""The view "Perplexity": the probability of a whole text, its loss and its perplexity, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine import checkpoints
from engine.errors import CorpusError, ShapeError
from engine.training.numerics import perplexity
from pages.output.sampling import two_tokenizers
from studies.exercises.arithmetic import decimals_for, rounds_to
from studies.exercises.worked.perplexity import few_tokens
from studies.exercises.worked_example import WorkedExample
from studies.generation.branches import Likelihood
from studies.generation.scoring import Scored, ladder, score
from ui import content, explain, fill_in, memo, session, widgets
from ui.figures import specs as go
from ui.figures.axes import token_axis
from ui.figures.labels import LETTER, crowded, plain
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.model_needs import CAUSAL, SAYS
from ui.models import FIRST_MODEL
from ui.page_frame import View
from ui.players.plot import plot
from ui.site import ROOT
from ui.text.markdown import safe
from ui.text.numbers import minus

TEXT = content.beside(__file__)
HEIGHT, WIDTH = 330, 560  # pixels of the bars
FACTORS = 3  # of the product that are written out
MOST_DIGITS = 12
NUMBERED = 24  # bars at most that have their probability above them


def draw(subject: Subject) -> None:
    """Draws a bar for each token, the four steps from there to the perplexity, and what others reach; or the
    text under two tokenizers.
    """
    try:
        scored = score(subject.recording().logits, subject.ids)
    except ShapeError:
        st.info(TEXT["one token"])
        return
    if not scored.finite:
        st.warning(TEXT["diverged"])
        return
    titles = {part: TEXT(f"part {part}") for part in ("text", "tokenizers")}
    left, right = st.columns([4, 7], gap="medium")
    part = widgets.select(TEXT["part"], titles, "scored_part", container=left, hidden=True)
    if part == "tokenizers":
        two_tokenizers.draw(subject, right)
        return
    bars, steps = st.columns([13, 7], gap="medium")
    tokens = subject.labels[1:]
    with bars:
        plot(
            figure(tokens, scored, upright=crowded(tokens, WIDTH)),
            key="sampling_scored",
            height=HEIGHT,
            name="likelihood",
            data=pd.DataFrame({"token": tokens, "id": subject.ids[1:], "p": scored.p, "nats": scored.nats}),
            alt=TEXT("alt", tokens=len(tokens), nats=scored.likelihood.nats),
        )
    steps.markdown(chain(scored))
    explain.answer(
        TEXT(
            "loss",
            nats=scored.likelihood.nats,
            token=TEXT["character" if subject.config.vocab_size < 300 else "token"],
            perplexity=scored.likelihood.perplexity,
            guessing=scored.guessing,
        )
    )
    explain.measure_it(_others)
    names = [safe(each) for each in tokens]
    explain.by_hand(
        fill_in.draw,
        "sampling",
        partial(_few_tokens, names, scored),
        partial(_by_hand, subject, scored),
    )


def chain(scored: Scored) -> str:
    """Returns the four steps from probabilities to the perplexity (a Markdown table), each in as many
    decimals as it takes for what follows.
    """
    likelihood, (mantissa, power) = scored.likelihood, scored.product
    total, tokens = f"{likelihood.total:.2f}", likelihood.tokens
    digits = decimals_for(
        lambda x: math.log(x[0]) + power * math.log(10) if x[0] < 10 else math.nan, [mantissa], total, 1
    )
    product = f"{mantissa:.{digits}f}"
    result = f"{likelihood.perplexity:.2f}"
    exact = decimals_for(lambda x: perplexity(x[0]), [likelihood.nats], result)
    nats = f"{likelihood.nats:.{exact}f}"
    cost = decimals_for(lambda x: x[0] / tokens, [-likelihood.total], nats, 2)
    factors = _factors(scored.p[:FACTORS].tolist(), product, power, whole=tokens <= FACTORS)
    return TEXT(
        "chain",
        factors=content.Filled(" · ".join(factors)),
        mantissa=content.Filled(product),
        power=power,
        total=content.Filled(minus(total)),
        cost=content.Filled(f"{-likelihood.total:.{cost}f}"),
        tokens=tokens,
        nats=content.Filled(nats),
        perplexity=content.Filled(result),
    )


def _factors(p: Sequence[float], product: str, power: int, *, whole: bool) -> list[str]:
    """Writes the first factors of the product, in two digits. Where they are `whole`, they have as many as it
    takes for the product.
    """
    for digits in range(2, MOST_DIGITS + 1):
        result = [f"{x:.{digits}g}" for x in p]
        if not whole or min(p) <= 0:
            return [*result, *["…"] * (not whole)]
        if rounds_to(10 ** (math.fsum(math.log10(float(x)) for x in result) - power), product):
            break
    return result


def _others() -> None:
    """Perplexities that others published beside our own."""
    rungs = ladder(_ours())
    table = pd.DataFrame(
        {
            TEXT["character model"]: [TEXT(f"rung {rung.name}") for rung in rungs],
            TEXT["published"]: [rung.published for rung in rungs],
            TEXT["here"]: [np.nan if rung.ours is None else rung.ours for rung in rungs],
        }
    )
    numbers = {name: st.column_config.NumberColumn(format="%.1f") for name in table.columns[1:]}
    st.dataframe(table, hide_index=True, key="sampling_ladder", column_config=numbers)
    st.caption(TEXT["ladder"])


@memo.measured("Counting bigrams …", copied=True)
def _ours() -> dict[str, float]:
    """Validation losses in nats, by the names of the ladder."""
    losses: dict[str, float] = {}
    with suppress(CorpusError):
        baselines = session.corpus("shakespeare").baselines
        losses = {"guessing": baselines["uniform"], "pairs": baselines["bigram"]}
    metrics = checkpoints.load(ROOT / "checkpoints" / FIRST_MODEL).metrics
    return losses | {"4 layers": float(metrics["validation_loss"])}


def _few_tokens(names: Sequence[str], scored: Scored, seed: int) -> WorkedExample | None:
    """The example of a few tokens; says where the text has none that can be worked out by hand."""
    example = few_tokens(names, scored.p.tolist(), seed)
    if example is None:
        st.info(TEXT["no few tokens"])
    return example


def _by_hand(subject: Subject, scored: Scored) -> None:
    """Every token's line of the sum."""
    names = [safe(label) for label in subject.labels]
    before = ["".join(names[:i]) for i in range(1, len(names))]
    rows = {
        TEXT["after"]: ["…" + text[-12:] if len(text) > 12 else text for text in before],
        TEXT["token"]: names[1:],
        "p": scored.p,
        "−ln p": scored.nats,
        TEXT["sum so far"]: scored.sums,
    }
    form = {name: st.column_config.NumberColumn(format="%.4f") for name in ("p", "−ln p", TEXT["sum so far"])}
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="sampling_chain", column_config=form)


def figure(tokens: Sequence[str], scored: Scored, *, upright: int) -> go.Figure:
    """Draws -ln p of each scored token (token,), with p above it, their mean, and the cost of guessing; names
    are turned where they are `upright`: that many letters high.
    """
    at, mean = np.arange(len(tokens)), scored.likelihood.nats
    few = len(tokens) <= NUMBERED
    bars = go.Bar(
        x=at,
        y=scored.nats.astype(np.float32),
        marker={"color": colour("output")},
        text=[f"{p:.2f}" for p in scored.p] if few else None,
        textposition="outside",
        textangle=0,
        cliponaxis=False,
        customdata=scored.p,
        hovertext=[plain(token) for token in tokens],
        hovertemplate=TEXT["hover"] + "<extra></extra>",
    )
    lines = [
        go.rule(y=y) | {"line": {"color": colour(shade), "width": 2, "dash": dash}}
        for y, shade, dash in ((mean, "attention", "solid"), (scored.guessing, "quiet", "dot"))
    ]
    notes = [
        go.note(f" {text}", 1, y, xref="paper") | {"xanchor": "left", "yanchor": "middle", "align": "left"}
        for y, text in (
            (mean, TEXT("mean", nats=mean)),
            (scored.guessing, TEXT("guessing", nats=scored.guessing)),
        )
    ]
    title = TEXT["token with p" if few else "token"]
    return go.figure(
        [bars],
        margin={"l": 44, "r": 82, "t": 18, "b": 40 + LETTER * upright},
        showlegend=False,
        bargap=0.25,
        shapes=lines,
        annotations=notes,
        xaxis=token_axis(tokens, title, upright=upright > 0),
        yaxis={"title": {"text": TEXT["surprisal"]}, "rangemode": "tozero"},
    )


VIEW = View("likelihood", TEXT, draw, code=(score, Scored, Likelihood), takes=(SAYS, CAUSAL))
