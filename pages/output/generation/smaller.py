"""The part "Smaller" of the KV cache: its bytes against the loss, with numbers in few bits and with only some
positions held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from engine.data import corpora
from engine.errors import CheckpointError, CorpusError
from studies.experiments import smaller_caches
from studies.experiments.smaller_caches import LENGTH, PASSAGES
from studies.generation.smaller_cache import (
    BITS,
    FULL,
    SINKS,
    Shrinking,
    cheapest,
    losses,
    mean_losses,
    passages,
    ways,
)
from studies.guesses import sizes as guesses
from ui import content, explain, memo, model_choice, models, session, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.guess import Guess, ask
from ui.model_bar import Subject
from ui.models import REAL_MODEL
from ui.players.plot import plot
from ui.text.markdown import sentence
from ui.text.numbers import gigabytes
from ui.training_step import NEWEST

TEXT = content.beside(__file__)
SMALL_COUNT = 8  # passages that a small model reads
STORED, LIVE = 0, 1  # in the address: all that are stored, or the first of those that are read now
ALLOWED = (0.05, 0.1, 0.25, 0.5)  # nats that a smaller cache may cost
CLEAR = 0.1  # nats that the first positions save at least where they are attention sinks
FLOOR = 0.001  # nats: the lowest that is drawn
SHADES = {"bits": "run0", "latest": "run4", "first": "run2", "heavy": "attention"}
Losses = Mapping[Shrinking, float]


def draw(subject: Subject, container: Any) -> None:
    """Draws loss by bytes, and the smallest cache at the price that is allowed."""
    figure, controls = st.columns([7, 3], gap="medium")
    with controls:
        name, model, tokenizer, corpus, large = _model(subject)
        runs = _stored() if name == REAL_MODEL else ()
        number = _passage(bool(runs)) if large else LIVE
        firsts = {SINKS: TEXT("first", first=SINKS), 0: TEXT["none first"]}
        first = widgets.select(TEXT["always"], firsts, "cache_first", hint=TEXT["always hint"])
        rounds = {bits: TEXT("bits", bits=bits) for bits in BITS[:3]}
        bits = widgets.select(TEXT["in bits"], rounds, "cache_bits", hint=TEXT["in bits hint"])
        allowed = widgets.select(TEXT["allowed"], ALLOWED, "cache_allowed", first=0.1)
    length = min(model.config.context, LENGTH)
    cuts = ways(length, bits)
    sizes = {way: way.size(model.config, length, model.parts) for way in cuts}
    title = TEXT["real"] if name == REAL_MODEL else subject.title
    shown = partial(_draw, title, sizes, first, allowed, runs if number == STORED else ())
    found: Losses | None
    with figure:
        if number == STORED:
            found, count = mean_losses(runs, cuts), len(runs)
        else:
            count = 1 if large else SMALL_COUNT
            try:
                text = passages(session.corpus(corpus), tokenizer, length, number - LIVE, count)
            except CorpusError as error:
                st.info(sentence(error))
                return
            offer = TEXT("measure", count=len(cuts)) if large else ""
            key, count = ("smaller cache", name, text, cuts), len(text)
            found = measured(key, partial(losses, model, text, cuts), TEXT["reading"], shown, offer=offer)
            if found is None:
                return
        shown(found)
    held = length // 4
    latest, kept = (found[Shrinking(bits, held, each)] - found[Shrinking()] for each in (0, SINKS))
    explain.answer(answer(drawn(found, first), sizes, allowed, latest - kept > CLEAR))
    ask("sinks", without_first, latest, kept, held)
    explain.measure_it(_table, found, sizes, count, length)


@memo.measured()
def _stored() -> tuple[Losses, ...]:
    """The losses of SmolLM2 by passage; none where their file is missing or damaged."""
    with suppress(CheckpointError):
        return smaller_caches.shipped()
    return ()


def _passage(stored: bool) -> int:
    """Draws the choice of a passage: all that are stored, or one that is read now, counted from LIVE."""
    count = len(PASSAGES)
    reads = {STORED: TEXT("stored", count=count)} if stored else {}
    reads |= {LIVE + each: TEXT("live", number=each + 1) for each in PASSAGES}
    return widgets.select(TEXT["passage"], reads, "cache_passage", kind="list")


def _model(subject: Subject) -> tuple[Any, Any, Any, str, bool]:
    """Returns key, model and tokenizer of what is measured, the corpus that it reads, and if it is large."""
    corpus = subject.corpus or corpora.default_name()
    mine = (subject.key, subject.model, subject.tokenizer, corpus, subject.is_pretrained)
    if subject.key[0] == REAL_MODEL:
        return mine
    if model_choice.first_of((REAL_MODEL,)) != REAL_MODEL:
        st.caption(TEXT["not here"])
        return mine
    kinds = {"real": TEXT["real"], "shown": subject.title}
    if widgets.select(TEXT["model"], kinds, "cache_model", kind="list") == "shown":
        return mine
    real = models.model_of(REAL_MODEL, NEWEST, ())
    return REAL_MODEL, real.model, real.tokenizer, corpora.default_name(), True


def kind_of(way: Shrinking) -> str:
    """Names the line that a way belongs to."""
    return "bits" if not way.held else "heavy" if way.heavy else "first" if way.first else "latest"


def named(way: Shrinking) -> str:
    """Names a way in a sentence."""
    name = TEXT(f"way {kind_of(way)}", held=way.held, latest=way.held - way.first)
    return name if way.bits == FULL else TEXT("in few bits", way=name, bits=way.bits)


def drawn(known: Losses, first: int) -> dict[Shrinking, float]:
    """Returns what each way that is shown costs more than the full cache, in nats."""
    hidden = "latest" if first else "first"
    return {way: loss - known[Shrinking()] for way, loss in known.items() if kind_of(way) != hidden}


def answer(costs: Losses, sizes: Mapping[Shrinking, float], allowed: float, sinks: bool) -> str:
    """Says how small a cache may be at a price, and what the first tokens are worth (Markdown)."""
    best = cheapest(costs, sizes, allowed)
    return TEXT(
        "all" if best == Shrinking() else "smaller",
        way=named(best),
        more=costs[best],
        share=sizes[best] / sizes[Shrinking()],
        sinks=TEXT["sinks" if sinks else "no sinks"],
    )


def without_first(latest: float, with_first: float, held: int) -> Guess | None:
    """Makes a guess about a cache that holds as many positions, but not the first ones."""
    truth = guesses.without_first(latest, with_first)
    if truth is None:
        return None
    question, outcome = TEXT("guess", held=held, **truth.numbers), TEXT("outcome", **truth.numbers)
    return Guess.of(TEXT, truth, question, outcome, {"cache_first": 0})


def _draw(
    title: str,
    sizes: Mapping[Shrinking, float],
    first: int,
    allowed: float,
    runs: Sequence[Losses],
    found: Losses | None,
) -> None:
    if not found:
        return
    costs = drawn(found, first)
    each = [drawn({way: run[way] for way in found}, first) for run in runs]
    rows = [(kind_of(way), way.bits, way.held, sizes[way], found[way]) for way in costs]
    plot(
        bytes_against_nats(costs, sizes, allowed, each, title),
        key="cache_smaller",
        height=350,
        name="smaller-cache",
        data=pd.DataFrame(rows, columns=["kind", "bits", "positions", "bytes", "loss"]),
        alt=TEXT("alt", ways=len(costs), most=max(costs.values())),
    )


def bytes_against_nats(
    costs: Losses,
    sizes: Mapping[Shrinking, float],
    allowed: float,
    each: Sequence[Losses],
    title: str,
) -> go.Figure:
    """Draws what each way costs, nats, by the bytes of the cache of the model called `title`; a line for each
    kind, and thin ones for `each` passage. Both axes are log.
    """
    traces = []
    for kind, shade in SHADES.items():
        if not (line := [way for way in costs if kind_of(way) == kind and way != Shrinking()]):
            continue
        x, y = [sizes[way] for way in line], [max(costs[way], FLOOR) for way in line]
        thin = {"opacity": 0.4, "showlegend": False, "hoverinfo": "skip"}
        for run in each:
            traces.append(go.line(x, [max(run[way], FLOOR) for way in line], shade, width=1) | thin)
        label = "at bits" if kind == "bits" else "at held"
        trace = go.line(x, y, shade, TEXT(f"line {kind}"), TEXT["hover"], points=11)
        trace["mode"] = "lines+markers+text"
        trace["text"] = [TEXT(label, bits=way.bits, held=way.held) for way in line]
        trace["customdata"] = [[named(way), gigabytes(sizes[way]), f"{costs[way]:+.3f}"] for way in line]
        place = "bottom left" if kind == "heavy" else "top right"  # two lines have the same labels
        traces.append(trace | {"textposition": place, "cliponaxis": False})
    full = sizes[Shrinking()]
    halves, powers = [full / 2**n for n in range(6)], [FLOOR, 0.01, 0.1, 1, 10]
    return go.figure(
        traces,
        margin={"l": 64, "r": 40, "t": 36, "b": 44},
        xaxis=go.ticks(
            halves, [gigabytes(each) for each in halves], title=TEXT("axis", model=title), type="log"
        ),
        yaxis=go.ticks(powers, [f"{each:g}" for each in powers], title=TEXT["cost"], type="log"),
        shapes=go.level("", allowed)["shapes"],
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )


def _table(found: Losses, sizes: Mapping[Shrinking, float], count: int, length: int) -> None:
    full, loss = sizes[Shrinking()], found[Shrinking()]
    rows = {
        named(way): {
            TEXT["bytes"]: f"{gigabytes(sizes[way])} ({sizes[way] / full:.0%})",
            TEXT["loss"]: f"{found[way]:.3f}",
            TEXT["nats"]: f"{found[way] - loss:+.3f}",
        }
        for way in found
    }
    st.table(pd.DataFrame.from_dict(rows, orient="index"), border="horizontal")
    st.caption(TEXT("measured", count=count, length=length, scored=count * (length - length // 2), full=FULL))
