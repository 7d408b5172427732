"""What the tests of the Positions page share: opening it, numbers on it, and the shipped models it reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine import checkpoints, presets
from engine.checkpoints import Checkpoint
from engine.config import ModelConfig
from engine.measure.recording import Recording, record
from tests.pages.helpers import FOLDS, opened
from ui import models
from ui.reading import FIRST_TEXT, most_tokens, read
from ui.site import ROOT

CLASSIC, MODERN = "shakespeare-classic", "shakespeare-modern"
SMALL = {"d_model": 32, "n_layers": 2, "n_heads": 4, "context": 64}


def positions(view: str, **query: str) -> AppTest:
    """The page, by a link to that view, its folds open."""
    return opened("input/positions", **{"positions_view": view} | FOLDS | query)


def metrics(page: AppTest) -> list[str]:
    return [str(metric.value) for metric in page.metric]


def plain(text: str) -> float:
    """A number as it is written on a page.

    >>> plain("−1.5"), plain("1.2 × 10⁻⁷"), plain("12,345")
    (-1.5, 1.2e-07, 12345.0)
    """
    text = text.replace("−", "-").replace(",", "")
    mantissa, _, power = text.partition(" × 10")
    return (
        float(f"{mantissa}e{power.translate(str.maketrans('⁻⁰¹²³⁴⁵⁶⁷⁸⁹', '-0123456789'))}")
        if power
        else float(text)
    )


@cache
def shipped(name: str) -> Checkpoint:
    return checkpoints.load(ROOT / "checkpoints" / name)


def ids_of(name: str, text: str = FIRST_TEXT) -> tuple[int, ...]:
    """What a shipped model reads of a text."""
    found = shipped(name)
    return read(text, found.tokenizer, most_tokens(found.config))[0]


@cache
def recorded(name: str) -> Recording:
    return record(shipped(name).model, ids_of(name))


@contextmanager
def the_only_preset(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> Iterator[None]:
    """`untrained-classic` is a model with these fields."""
    preset = replace(presets.PRESETS["classic"], model=ModelConfig(**{**SMALL, **fields}))
    monkeypatch.setattr(models, "PRESETS", {"classic": preset})
    monkeypatch.setattr(models, "TRAINABLE", {"classic": preset})
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()
