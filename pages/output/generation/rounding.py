"""Arithmetic of a large model while it writes, and its cost."""

from __future__ import annotations

import streamlit as st

from engine.data.progress import Progress, Steps
from engine.errors import ConfigError
from engine.sample.rounding import rounding
from engine.sample.row_products import ARITHMETICS, Arithmetic, check_arithmetic
from pages.output.generation import words
from pages.output.generation.session import products_of
from ui import widgets
from ui.background_jobs import measured
from ui.model_bar import Subject


def choose_arithmetic(subject: Subject) -> Arithmetic:
    """Draws the choice of a large model's arithmetic, of those that this machine has; small
    models have one.
    """
    if not subject.is_pretrained:
        return "float32"
    offered = {name: words.ARITHMETICS[name] for name in ARITHMETICS if _has(name, subject)}
    return widgets.select("Weights in", offered, "generation_arithmetic", hint=words.ARITHMETIC_HINT)


def _has(arithmetic: Arithmetic, subject: Subject) -> bool:
    try:
        check_arithmetic(arithmetic, subject.model.embedding.device)
    except ConfigError:
        return False
    return True


def draw_rounding(subject: Subject, arithmetic: Arithmetic) -> bool:
    """Draws one line on what rounded weights change; nothing where they are not rounded, or nothing is
    foretold. Returns False while the weights are being rounded: nothing can be written with them yet.
    """
    if arithmetic == "float32":
        return True
    if (
        measured(("products", subject.key, arithmetic), lambda: _round(subject, arithmetic), words.ROUNDING)
        is None
    ):
        return False
    if len(subject.ids) < 2:
        return True
    products = products_of(subject.key, arithmetic, subject.model)
    difference = measured(
        ("rounding", subject.key, subject.ids, arithmetic),
        lambda: rounding(subject.model, subject.ids, products),
        words.READING_BOTH,
    )
    if difference is not None:
        st.caption(words.rounded(difference))
    return True


def _round(subject: Subject, arithmetic: Arithmetic) -> Steps[bool]:
    """Seconds of work, done once for all visitors and not in the run of a page."""
    yield Progress(0, 1)
    products_of(subject.key, arithmetic, subject.model)
    return True
