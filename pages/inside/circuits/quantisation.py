"""The view of weights in few bits: a matrix before and after, and what the loss becomes; or one block."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import streamlit as st
from torch import Tensor

from engine.measure.circuits.quantisation import (
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
    matrices,
    rounded,
    rounding_error,
)
from engine.weights.pretrained.blocks import kinds
from pages.inside.circuits import figures_weights as figures
from pages.inside.circuits import words_weights as words
from pages.inside.circuits.measured_text import long_text
from pages.inside.circuits.quantised_block import draw_block, opened_of
from ui import explain, memo, widgets
from ui.background_jobs import measured
from ui.fit_text import most_tokens
from ui.model_bar import Subject
from ui.players.plot import plot


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


def draw_quantisation(subject: Subject) -> None:
    known = matrices(subject.model)
    if not known:
        st.info(words.NO_MATRICES)
        return
    look, name, scope = _what(known)
    if look == "block":
        draw_block(subject, name)
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
    explain.answer(words.few_bits(setting.bits, setting.block == 0, matrix.error, lost))
    explain.measure_it(_more, subject, setting, matrix.error, parameter)


def _more(subject: Subject, setting: Setting, lost: RoundingError, parameter: Tensor) -> None:
    """Draws what single weights lose, and how the model's own file stores them."""
    if setting.bits != FULL:
        st.markdown(words.single_weights(lost))
    _stored(subject, setting.name, parameter)


def _what(known: dict[str, tuple[str, ...]]) -> tuple[str, str, Scope]:
    """Returns the chosen part, the full name of a matrix, and what else is rounded with it."""
    a, b, c, d = st.columns([4, 4, 2, 4], gap="small")
    look = widgets.select(words.LOOK, words.LOOKS, "bits_look", container=a)
    kinds = {kind: words.KINDS.get(kind, kind) for kind in known}
    first = next((kind for kind in known if kind.startswith("ffn.")), next(iter(known)))
    kind = widgets.select(words.MATRIX, kinds, "bits_kind", first=first, kind="list", container=b)
    name = known[kind][0]
    if len(known[kind]) > 1:
        blocks = {each: words.BLOCK_TITLE.format(block=each.split(".")[1]) for each in known[kind]}
        name = widgets.select(words.BLOCK_OF, blocks, f"bits_{kind.split('.')[1]}", kind="list", container=c)
    if look == "block":
        return look, name, "matrix"
    scope = widgets.select(
        words.SCOPE, words.SCOPES, "bits_scope", kind="list", container=d, hint=words.SCOPE_HINT
    )
    return look, name, scope


def _way(name: str, scope: Scope) -> Setting:
    a, b, c = st.columns([4, 5, 3], gap="small", vertical_alignment="bottom")
    bits = widgets.select(words.BITS_OF, (FULL, *BITS), "bits", first=4, container=a)
    block = widgets.select(words.SHARE, words.SHARES, "bits_share", container=b, hint=words.SHARE_HINT)
    offset = widgets.switch(words.OFFSET, False, "bits_offset", container=c, hint=words.OFFSET_HINT)
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
        st.info(words.ONE_TOKEN if subject.config.causal else words.NOT_CAUSAL)
        return None
    names = chosen(subject.model, setting.name, setting.scope)
    return measured(
        ("quantisation", subject.key, ids, names, setting.offset),
        lambda: losses(subject.model, ids, names, setting.offset),
        words.reading_rounded(setting.scope),
    )


def _before_after(setting: Setting, matrix: RoundedMatrix) -> None:
    plot(
        figures.weights_before_after(matrix.histogram, words.IN_BITS.format(bits=setting.bits)),
        key="bits_weights",
        height=300,
        name="weights",
        data={
            "weight": matrix.histogram.middles,
            "before": matrix.histogram.before,
            "after": matrix.histogram.after,
        },
        alt=words.HISTOGRAM_ALT.format(name=setting.name, bits=setting.bits),
    )


def _by_bits(subject: Subject, setting: Setting, lost: Losses | None) -> None:
    if lost is None:
        return
    lines = dict(zip(words.SCALES, (lost.by_block, lost.whole), strict=True))
    chosen_line = list(lines)[setting.block == 0]
    plot(
        figures.loss_by_bits(
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
        alt=words.bits_alt(setting.scope),
    )


def _stored(subject: Subject, name: str, parameter: Tensor) -> None:
    """In what a published model's own file has this matrix."""
    opened = opened_of(subject)
    held = dict.fromkeys(kinds(opened, name)) if opened is not None else {}
    if not held:
        return
    as_q4 = list(held) == ["Q4_1"]
    again = _rounded(subject.key, name, Rounding(4, BLOCK, offset=True), parameter).error if as_q4 else None
    st.caption(words.stored(list(held), again))
