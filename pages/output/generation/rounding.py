"""Arithmetic of a large model while it writes, and its cost."""

from __future__ import annotations

import streamlit as st

from engine.errors import ConfigError
from engine.sample.rounding import Rounding, rounding
from engine.sample.row_products import ARITHMETICS, Arithmetic, check
from pages.output.generation.session import products_of
from ui import widgets
from ui.background_jobs import measured
from ui.model_bar import Subject

NAMES: dict[Arithmetic, str] = {"float32": "32 bits", "bfloat16": "bfloat16", "int8": "8 bits"}


def choose_arithmetic(subject: Subject) -> Arithmetic:
    """Draws the choice of a large model's arithmetic, of those that this machine has; small
    models have one.
    """
    if not subject.is_pretrained:
        return "float32"
    offered = {name: NAMES[name] for name in ARITHMETICS if _has(name, subject)}
    hint = (
        "For each token the model reads all its weights once, and that takes the time: weights of fewer bits"
        " are read sooner. They are rounded for it, and what that changes is measured on your text."
    )
    return widgets.select("Weights in", offered, "generation_arithmetic", hint=hint)


def _has(arithmetic: Arithmetic, subject: Subject) -> bool:
    try:
        check(arithmetic, subject.model.embedding.device)
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
        "Reading the text in both",
    )
    if found is not None:
        st.caption(f":material/info: {rounding_sentence(found)}")


def rounding_sentence(rounding: Rounding) -> str:
    """
    >>> rounding_sentence(Rounding("int8", 5, 1.62, 0.2, 3.1, 2.5, 2.512, 0.8))[:73]
    'With weights in 8 bits the logits of your text are off by **1.62** at mos'
    """
    return (
        f"With weights in {NAMES[rounding.arithmetic]} the logits of your text are off by"
        f" **{rounding.largest:.2f}** at most, on a spread of {rounding.spread:.1f}; its loss is"
        f" **{rounding.loss:.3f}** nats a token in place of {rounding.exact:.3f}, and the likeliest token"
        f" stays the same at {rounding.alike:.0%} of the places."
    )
