"""The view "Quantisation": a matrix before and after, and what the loss becomes; or one block of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from pages.inside.circuits.diamond import diamond
from pages.inside.circuits.measured_text import long_text
from studies.circuits.quantisation import (
    BITS,
    BLOCK,
    FULL,
    Histogram,
    Losses,
    Rounding,
    RoundingError,
    Scope,
    chosen,
    histogram,
    losses,
    made,
    matrices,
    rounded,
    rounding_error,
    twin,
)
from studies.weights.pretrained.blocks import QuantisedBlock, block_at, kinds
from studies.weights.pretrained.load import Opened, open_model
from ui import content, explain, memo, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.fit_text import most_tokens
from ui.model_bar import Subject
from ui.model_needs import SAYS
from ui.models import model_of
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import minus
from ui.training_step import NEWEST

if TYPE_CHECKING:
    from torch import Tensor

TEXT = content.beside(__file__)
SCOPES: tuple[Scope, ...] = ("matrix", "kind", "all")
FEW = 20  # tokens: a loss over fewer of them says little
SMALL_LOSS = 0.01  # of the loss: what fewer bits may cost
MOST_LINES = 32  # levels that are drawn as lines; more would be a grey field


@dataclass(frozen=True)
class Setting:
    """The numbers to round, and how."""

    name: str  # of a matrix
    bits: int
    block: int
    offset: bool
    scope: Scope

    @property
    def way(self) -> Rounding | None:
        """None for 32 bits: as it is."""
        return None if self.bits == FULL else Rounding(self.bits, self.block, self.offset)


@dataclass(frozen=True)
class RoundedMatrix:
    """A matrix before and after."""

    error: RoundingError
    histogram: Histogram


def draw(subject: Subject) -> None:
    known = matrices(subject.model)
    if not known:
        st.info(TEXT["no matrices"])
        return
    look, name, scope = _what(known)
    if look == "block":
        _draw_block(subject, name)
        return
    setting = _way(name, scope)
    parameter = dict(subject.model.named_parameters())[name]
    matrix = _rounded(subject.key, name, setting.way, parameter)
    left, right = st.columns(2, gap="small")
    with left:
        _before_after(setting, matrix)
    with right:
        lost = _losses(subject, setting)
        _by_bits(subject, setting, lost)
    explain.answer(answer(setting.bits, setting.block == 0, matrix.error, lost))
    explain.measure_it(_more, subject, setting, matrix.error, parameter)


def _what(known: dict[str, tuple[str, ...]]) -> tuple[str, str, Scope]:
    """Returns the chosen part, the full name of a matrix, and what else is rounded with it."""
    a, b, c, d = st.columns([4, 4, 2, 4], gap="small")
    looks = {look: TEXT(f"look {look}") for look in ("matrix", "block")}
    look = widgets.select(TEXT["look"], looks, "bits_look", container=a)
    kinds = {kind: TEXT(f"kind {kind}") if f"kind {kind}" in TEXT else kind for kind in known}
    first = next((kind for kind in known if kind.startswith("ffn.")), next(iter(known)))
    kind = widgets.select(TEXT["matrix"], kinds, "bits_kind", first=first, kind="list", container=b)
    name = known[kind][0]
    if len(known[kind]) > 1:
        blocks = {each: TEXT("block title", block=each.split(".")[1]) for each in known[kind]}
        key = f"bits_{kind.split('.')[1]}"
        name = widgets.select(TEXT["block"], blocks, key, kind="list", container=c)
    if look == "block":
        return look, name, "matrix"
    scopes, hint = {scope: TEXT(f"scope {scope}") for scope in SCOPES}, TEXT["scope hint"]
    scope = widgets.select(TEXT["scope"], scopes, "bits_scope", kind="list", container=d, hint=hint)
    return look, name, scope


def _way(name: str, scope: Scope) -> Setting:
    a, b, c = st.columns([4, 5, 3], gap="small", vertical_alignment="bottom")
    bits = widgets.select(TEXT["bits"], (FULL, *BITS), "bits", first=4, container=a)
    shares = {BLOCK: TEXT("share block", block=BLOCK), 0: TEXT["share whole"]}
    block = widgets.select(TEXT["share"], shares, "bits_share", container=b, hint=TEXT["share hint"])
    offset = widgets.switch(TEXT["offset"], False, "bits_offset", container=c, hint=TEXT["offset hint"])
    return Setting(name, bits, block, offset, scope)


@memo.measured()
def _rounded(key: tuple[str, int], name: str, way: Rounding | None, _matrix: Tensor) -> RoundedMatrix:
    matrix = _matrix.detach()
    after = None if way is None else rounded(matrix, way)
    return RoundedMatrix(rounding_error(matrix, after), histogram(matrix, after))


def _losses(subject: Subject, setting: Setting) -> Losses | None:
    """None while it is measured, or where there is no loss to be had."""
    ids = long_text(subject, most_tokens(subject.config)) if subject.config.causal else ()
    if len(ids) < 2:
        st.info(TEXT["one token" if subject.config.causal else "not causal"])
        return None
    names = chosen(subject.model, setting.name, setting.scope)
    return measured(
        ("quantisation", subject.key, ids, names, setting.offset),
        partial(losses, subject.model, ids, names, setting.offset),
        TEXT("reading", what=TEXT(f"many {setting.scope}")),
    )


@memo.loaded()
def _opened(path: str) -> Opened:
    return open_model(path)


def _opened_of(subject: Subject) -> Opened | None:
    """Returns the file of a published model; None for one that was trained here."""
    if not subject.is_pretrained:
        return None
    path = getattr(model_of(subject.key[0], NEWEST, ()), "path", None)
    return None if path is None else _opened(str(path))


def _draw_block(subject: Subject, name: str) -> None:
    """Draws its numbers on their levels, and the arithmetic of one of them."""
    matrix = dict(subject.model.named_parameters())[name]
    rows, columns = matrix.shape
    a, b, c = st.columns(3, gap="small")
    row = widgets.whole(TEXT["row"], 0, rows - 1, 0, "bits_row", container=a)
    index = widgets.whole(TEXT["block of row"], 0, (columns - 1) // BLOCK, 0, "bits_index", container=b)
    opened = _opened_of(subject)
    in_file = None if opened is None else block_at(opened, name, row, index)
    block = in_file or made(matrix.detach(), row, index)
    number = widgets.whole(TEXT["number"], 0, len(block.q) - 1, 0, "bits_number", container=c)
    plot(
        block_of_numbers(block, number),
        key="bits_of_block",
        height=300,
        name="block",
        data=_block_table(block),
        alt=TEXT("alt block", count=len(block.q), levels=len(block.levels)),
    )
    explain.answer(_block_answer(block, number))
    explain.measure_it(_all_of_it, block, opened is not None)


def _all_of_it(block: QuantisedBlock, published: bool) -> None:
    """All its numbers, and its bytes; `published`: the model has a file."""
    if block.raw:
        name = content.Filled(block.name or "")
        st.caption(TEXT("read from file", row=block.row, name=name, bytes=len(block.raw)))
    else:
        st.caption(TEXT["other format" if published else "computed"])
    st.dataframe(pd.DataFrame(_block_table(block)), hide_index=True, height=300)
    if block.raw:
        st.code(block.raw.hex(" "), language=None, wrap_lines=True)


def _block_table(block: QuantisedBlock) -> dict[str, Any]:
    table: dict[str, Any] = {"number": np.arange(len(block.q)), "q": block.q, "d q + m": block.numbers}
    return table if block.original is None else table | {"weight": block.original}


def _block_answer(block: QuantisedBlock, number: int) -> str:
    """Says what the block is, and works out one of its numbers (Markdown)."""
    said = TEXT(
        "asymmetric" if block.minimum else "symmetric",
        kind=content.Filled(block.kind),
        count=len(block.q),
        low=block.low,
        high=block.high,
        scale=block.scale,
        minimum=block.minimum,
        bits=block.bits,
        number=number,
        q=int(block.q[number]),
        value=block.numbers[number],
    )
    largest = block.largest_error
    return f"{said} {TEXT['exact'] if largest is None else TEXT('largest error', error=largest)}"


# What is said of it -------------------------------------------------------------------------------


def answer(bits: int, whole: bool, lost: RoundingError, losses: Losses | None) -> str:
    """Says how few bits are enough, and what the chosen ones do to the matrix and to the loss (Markdown).
    `whole`: one scale for a matrix.
    """
    does = "in full" if bits == FULL else "error" if lost.largest else "unchanged"
    said = TEXT(does, bits=bits, error=lost.relative)
    if losses is None:
        return said
    enough = losses.enough(whole, SMALL_LOSS)
    how = "enough none" if enough == FULL else "enough all" if enough == BITS[-1] else "enough some"
    sentences = [TEXT(how, enough=enough, fewest=BITS[0], small=SMALL_LOSS), said]
    if bits == FULL:
        sentences.append(TEXT("loss in full", full=losses.full))
    else:
        many, after = losses.matrices, losses.at(bits, whole)
        which = "several rounded" if many > 1 else "one rounded"
        sentences.append(TEXT(which, matrices=many, full=losses.full, after=after))
        if losses.tokens < FEW:
            sentences.append(TEXT("few tokens", tokens=losses.tokens))
    return " ".join(sentences)


def _more(subject: Subject, setting: Setting, lost: RoundingError, parameter: Tensor) -> None:
    """Says what single weights lose, and how the model's own file stores them."""
    if setting.bits != FULL:
        st.markdown(TEXT("single weights", bits=lost.bits, largest=lost.largest, zeros=lost.zeros))
    opened = _opened_of(subject)
    if opened is not None and (formats := list(dict.fromkeys(kinds(opened, setting.name)))):
        again = Rounding(4, BLOCK, offset=True) if formats == ["Q4_1"] else None
        error = None if again is None else _rounded(subject.key, setting.name, again, parameter).error
        st.caption(stored(formats, error))


def stored(formats: Sequence[str], again: RoundingError | None) -> str:
    """Says how the model's file has a matrix; `again` is the error of rounding to Q4_1 what is in Q4_1."""
    held = content.Filled(" and ".join(formats))
    if again is None:
        return TEXT("stored", formats=held)
    changes = "stored changed" if again.largest else "stored unchanged"
    return TEXT(changes, formats=held, largest=again.largest)


# Figures ------------------------------------------------------------------------------------------


def _before_after(setting: Setting, matrix: RoundedMatrix) -> None:
    plot(
        weights_before_after(matrix.histogram, TEXT("in bits", bits=setting.bits)),
        key="bits_weights",
        height=300,
        name="weights",
        data={
            "weight": matrix.histogram.middles,
            "before": matrix.histogram.before,
            "after": matrix.histogram.after,
        },
        alt=TEXT("alt weights", name=setting.name, bits=setting.bits),
    )


def _by_bits(subject: Subject, setting: Setting, lost: Losses | None) -> None:
    if lost is None:
        return
    lines: dict[str, np.ndarray] = {TEXT("by block", block=BLOCK): lost.by_block}
    lines[TEXT["by matrix"]] = lost.whole
    chosen_line = list(lines)[setting.block == 0]
    plot(
        loss_by_bits(
            BITS, lost.full, lines, (chosen_line, setting.bits), math.log(subject.config.vocab_size)
        ),
        key="bits_loss",
        height=300,
        name="loss-by-bits",
        data={
            "bits": np.array([FULL, *BITS]),
            "by_block_nats": np.array([lost.full, *lost.by_block]),
            "whole_nats": np.array([lost.full, *lost.whole]),
        },
        alt=TEXT("alt losses", what=TEXT(f"many {setting.scope}")),
    )


def weights_before_after(histogram: Histogram, after: str) -> go.Figure:
    """Draws how the numbers of a matrix lie, before as a filled line, after as bars."""
    bars = go.Bar(
        x=histogram.middles,
        y=histogram.after,
        name=after,
        marker={"color": colour("output")},
        hovertemplate="%{x:.3f}: %{y:.2%}<extra></extra>",
    )
    line = go.line(histogram.middles, histogram.before, "embedding", TEXT["original"], "%{x:.3f}: %{y:.2%}")
    line["line"]["shape"] = "hvh"
    return go.figure(
        [bars, line],
        margin={"l": 56, "r": 8, "t": 28, "b": 44},
        bargap=0,
        xaxis={"title": {"text": TEXT["weight axis"]}, "zeroline": False, "nticks": 6},
        yaxis={"title": {"text": TEXT["share axis"]}, "tickformat": ".0~%", "rangemode": "tozero"},
    )


def loss_by_bits(
    bits: Sequence[int],
    full: float,
    lines: Mapping[str, np.ndarray],
    chosen: tuple[str, int],
    guessing: float,
) -> go.Figure:
    """Draws the loss (number of bits,) of each way, with the model as it is at its left; a diamond on the
    chosen way and bits. Beyond twice the loss of guessing the scale ends.
    """
    names = [str(n) for n in (FULL, *bits)]
    hover = TEXT["hover of bits"]
    traces = [
        go.line(names, np.concatenate([[full], values]), shade, name, hover, points=6)
        for (name, values), shade in zip(lines.items(), ("residual", "attention"), strict=True)
    ]
    way, n = chosen
    here = full if n == FULL else float(lines[way][list(bits).index(n)])
    highest = float(np.nanmax([full, *(values.max() for values in lines.values())]))
    ends = min(highest, 2 * guessing)
    guess = go.level(TEXT("uniform guess", guessing=guessing), guessing, width=1, yanchor="top")
    return go.figure(
        [*traces, diamond(str(n), here)],
        margin={"l": 54, "r": 8, "t": 28, "b": 44},
        xaxis=go.axis(TEXT["bits axis"], type="category"),
        yaxis={"title": {"text": TEXT["loss axis"]}, "range": [0, 1.08 * ends], "nticks": 6},
        **(guess if guessing < 1.08 * ends else {}),
    )


def block_of_numbers(block: QuantisedBlock, chosen: int) -> go.Figure:
    """Draws the numbers of a block on the levels that they may have, q above each; hollow, what was rounded.

    A diamond on number `chosen`.
    """
    at = np.arange(len(block.q))
    levels = block.levels if len(block.levels) <= MOST_LINES else block.levels[:0]
    lines = [
        go.rule(y=float(level), line={"color": colour("quiet", 40), "width": 1}, layer="below")
        for level in levels
    ]
    traces: list[go.Trace] = []
    if block.original is not None:
        traces.append(
            go.Scatter(
                x=at,
                y=block.original,
                mode="markers",
                name=TEXT["original weight"],
                marker={"symbol": "circle-open", "size": 11, "color": colour("embedding")},
                hovertemplate=TEXT["hover of a weight"],
            )
        )
    traces.append(
        go.Scatter(
            x=at,
            y=block.numbers,
            mode="markers+text",
            name="d · q + m" if block.minimum else "d · q",
            text=[minus(str(q)) for q in block.q],
            textposition="top center",
            textfont={"size": 12},
            cliponaxis=False,
            marker={"size": 8, "color": colour("output")},
            hovertemplate=TEXT["hover of a level"],
        )
    )
    traces.append(diamond(chosen, float(block.numbers[chosen])))
    return go.figure(
        traces,
        margin={"l": 62, "r": 8, "t": 28, "b": 44},
        xaxis=go.axis(TEXT["index axis"], zeroline=False, dtick=4, range=[-0.8, len(at) - 0.2]),
        yaxis=go.axis(TEXT["weight axis"], zeroline=True, nticks=7),
        shapes=lines,
    )


VIEW = View("quantisation", TEXT, draw, code=(rounded, twin), takes=(SAYS,), figures_only=True)
