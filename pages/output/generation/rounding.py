"""Arithmetic of a large model while it writes, and its cost."""

from __future__ import annotations

import streamlit as st

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


def draw_rounding(subject: Subject, arithmetic: Arithmetic) -> None:
    """Draws one line on what rounded weights change; nothing where they are not rounded, or nothing is
    foretold.
    """
    if arithmetic == "float32" or len(subject.ids) < 2:
        return
    products = products_of(subject.key, arithmetic, subject.model)
    found = measured(
        ("rounding", subject.key, subject.ids, arithmetic),
        lambda: rounding(subject.model, subject.ids, products),
        words.READING_BOTH,
    )
    if found is not None:
        st.caption(words.rounded(found))
