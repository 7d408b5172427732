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
from ui import explain, widgets
from ui.background_jobs import measured
from ui.fit_text import most_tokens
from ui.model_bar import Subject
from ui.players.plot import plot

KINDS = {
    "mixer.w_qkv.weight": "queries, keys, values",
    "mixer.w_qk.weight": "shared queries and keys",
    "mixer.w_v.weight": "values",
    "mixer.w_o.weight": "attention output",
    "ffn.w_in.weight": "feed-forward, in",
    "ffn.w_out.weight": "feed-forward, out",
    "embedding": "embedding",
    "unembedding": "unembedding",
}
LOOKS = {"matrix": "A matrix", "block": "One block"}
SCOPES: dict[Scope, str] = {"matrix": "only this one", "kind": "all of this kind", "all": "all matrices"}
MANY: dict[Scope, str] = {"matrix": "one matrix", "kind": "one kind of matrix", "all": "all matrices"}
SHARES = {BLOCK: f"{BLOCK} weights", 0: "the whole matrix"}


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

    taken: RoundingError
    histogram: Histogram


def draw_quantisation(subject: Subject) -> None:
    known = matrices(subject.model)
    if not known:
        st.info("This model has no matrices to quantise.")
        return
    look, name, scope = _what(known)
    if look == "block":
        draw_block(subject, name)
        return
    setting = _way(name, scope)
    parameter = dict(subject.model.named_parameters())[name]
    found = _rounded(subject.key, name, setting.way, parameter)
    stays, goes = st.columns(2, gap="small")
    with stays:
        _before_after(setting, found)
    with goes:
        lost = _losses(subject, setting)
        _by_bits(subject, setting, lost)
    explain.answer(words.few_bits(setting.bits, setting.block == 0, found.taken, lost))
    explain.measure_it(_more, subject, setting, found.taken, parameter)


def _more(subject: Subject, setting: Setting, lost: RoundingError, parameter: Tensor) -> None:
    """Draws what single weights lose, and how the model's own file stores them."""
    if setting.bits != FULL:
        st.markdown(words.single_weights(lost))
    _stored(subject, setting.name, parameter)


def _what(known: dict[str, tuple[str, ...]]) -> tuple[str, str, Scope]:
    """Returns the chosen part, the full name of a matrix, and what else is rounded with it."""
    a, b, c, d = st.columns([4, 4, 2, 4], gap="small")
    look = widgets.select("Show", LOOKS, "bits_look", container=a)
    words = {kind: KINDS.get(kind, kind) for kind in known}
    first = next((kind for kind in known if kind.startswith("ffn.")), next(iter(known)))
    kind = widgets.select("Matrix", words, "bits_kind", first=first, kind="list", container=b)
    name = known[kind][0]
    if len(known[kind]) > 1:
        blocks = {each: f"block {each.split('.')[1]}" for each in known[kind]}
        name = widgets.select("Block", blocks, f"bits_{kind.split('.')[1]}", kind="list", container=c)
    if look == "block":
        return look, name, "matrix"
    hint = "The loss is measured with only this matrix rounded, or with more of them."
    return look, name, widgets.select("Rounded", SCOPES, "bits_scope", kind="list", container=d, hint=hint)


def _way(name: str, scope: Scope) -> Setting:
    a, b, c = st.columns([4, 5, 3], gap="small", vertical_alignment="bottom")
    bits = widgets.select("Bits per weight", (FULL, *BITS), "bits", first=4, container=a)
    hint = "Weights that share a scale share the same levels."
    block = widgets.select("One scale for", SHARES, "bits_share", container=b, hint=hint)
    hint = (
        "d · q + m, as in Q4_1: the levels run from the smallest to the largest weight. Without an offset"
        " they are symmetric about zero."
    )
    offset = widgets.switch("With an offset", False, "bits_offset", container=c, hint=hint)
    return Setting(name, bits, block, offset, scope)


@st.cache_resource(max_entries=32, show_spinner=False)
def _rounded(key: tuple[str, int], name: str, way: Rounding | None, _matrix: Tensor) -> RoundedMatrix:
    matrix = _matrix.detach()
    found = None if way is None else rounded(matrix, way)
    return RoundedMatrix(rounding_error(matrix, found), histogram(matrix, found))


def _losses(subject: Subject, setting: Setting) -> Losses | None:
    """None while it is measured, or where there is no loss to be had."""
    ids = long_text(subject, most_tokens(subject.config)) if subject.config.causal else ()
    if len(ids) < 2:
        why = (
            "This model fills in masked tokens rather than predicting the next one, so there is no loss to"
            " measure on plain text."
            if not subject.config.causal
            else "A loss needs at least two tokens."
        )
        st.info(why)
        return None
    names = chosen(subject.model, setting.name, setting.scope)
    return measured(
        ("quantisation", subject.key, ids, names, setting.offset),
        lambda: losses(subject.model, ids, names, setting.offset),
        f"Reading the text with {MANY[setting.scope]} rounded",
    )


def _before_after(setting: Setting, matrix: RoundedMatrix) -> None:
    plot(
        figures.weights_before_after(matrix.histogram, f"in {setting.bits} bits"),
        key="bits_weights",
        height=300,
        name="weights",
        data={
            "weight": matrix.histogram.middles,
            "before": matrix.histogram.before,
            "after": matrix.histogram.after,
        },
        alt=f"Histogram of the weights of {setting.name}, original and in {setting.bits} bits.",
    )


def _by_bits(subject: Subject, setting: Setting, lost: Losses | None) -> None:
    if lost is None:
        return
    lines = {f"one scale for {SHARES[BLOCK]}": lost.by_block, f"for {SHARES[0]}": lost.whole}
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
        alt=f"Loss on the text with {MANY[setting.scope]} in 32, 8, 4, 3 and 2 bits; dotted: uniform guess.",
    )


def _stored(subject: Subject, name: str, parameter: Tensor) -> None:
    """In what a published model's own file has this matrix."""
    opened = opened_of(subject)
    held = dict.fromkeys(kinds(opened, name)) if opened is not None else {}
    if not held:
        return
    words = f":material/info: The model's file stores this matrix as {' and '.join(held)}"
    if list(held) == ["Q4_1"]:
        again = _rounded(subject.key, name, Rounding(4, BLOCK, offset=True), parameter).taken
        does = f"each weight by at most {again.largest:.2g}" if again.largest else "nothing"
        words += f": 4 bits, blocks of 32, with an offset. Rounding it that way again changes **{does}**."
    else:
        words += "; here its decoded values are rounded."
    st.caption(words)
