"""The view "Shape errors": a mistake is chosen and run, and what comes back is told in plain words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from studies.shapes.shape_mistakes import Attempt, division, split_heads, transposed_unembedding, wrong_mask
from ui import content, explain, widgets
from ui.page_frame import View

TEXT = content.beside(__file__)
Size = tuple[str, int, int, int, str]  # name, least, largest, first, key


@dataclass(frozen=True)
class Outcome:
    """A mistake that was run. Its sections of the text are filled in with `fields`: what came is told by
    `came` where an error was raised, else by `fine`; it is `good` where that is no mistake.
    """

    kind: str
    attempt: Attempt
    fields: dict[str, Any] = field(default_factory=dict)
    came: str = "came"
    fine: str = "fine"
    good: bool = True

    def section(self, what: str) -> str:
        return TEXT(f"{self.kind} {what}", **self.fields)

    @property
    def result(self) -> str:
        return self.section(self.came if self.attempt.errors else self.fine)


def _heads(d_model: int, n_heads: int) -> Outcome:
    divided = division(d_model, n_heads)
    near = ", ".join(map(str, divided.near))
    fields = {
        "d_model": d_model,
        "n_heads": n_heads,
        "each": divided.each,
        "rest": divided.rest,
        "near": near,
    }
    return Outcome("heads", split_heads(d_model, n_heads), fields, "came" if divided.each else "too many")


def _unembedding(d_model: int, vocab: int) -> Outcome:
    attempt = transposed_unembedding(d_model, vocab)
    fields = {"d_model": d_model, "vocab": vocab, "harm": attempt.harm or 0}
    return Outcome("unembedding", attempt, fields, good=d_model == vocab == 1)


def _mask(length: int, size: int) -> Outcome:
    attempt = wrong_mask(length, size)
    fields = {"length": length, "size": size, "harm": attempt.harm or 0}
    fits = size == length
    return Outcome("mask", attempt, fields, fine="fine" if fits else "broadcast", good=fits)


MISTAKES: dict[str, tuple[Size, Size, Callable[[int, int], Outcome]]] = {
    "heads": (
        ("d_model", 1, 1024, 128, "shapes_d_model"),
        ("n_heads", 1, 64, 3, "shapes_n_heads"),
        _heads,
    ),
    "unembedding": (
        ("d_model", 1, 1024, 128, "shapes_d_model"),
        ("vocab_size", 1, 2000, 65, "shapes_vocab"),
        _unembedding,
    ),
    "mask": (
        ("length", 2, 64, 6, "shapes_length"),
        ("mask", 1, 64, 5, "shapes_mask_size"),
        _mask,
    ),
}


def draw() -> None:
    """Draws the mistake, its two sizes, the line that is run, and what comes back."""
    left, right = st.columns([2, 3], gap="large")
    names = {kind: TEXT(f"mistake {kind}") for kind in MISTAKES}
    kind = widgets.select(TEXT["mistake"], names, "shapes_mistake", kind="list", container=left)
    first, second, run = MISTAKES[kind]
    a, b = right.columns(2)
    outcome = run(_whole(first, a), _whole(second, b))
    st.code(outcome.section("code"), language="python")
    explain.answer(outcome.result)
    _draw_result(outcome)
    explain.measure_it(_all_errors, outcome)


def _whole(size: Size, container: DeltaGenerator) -> int:
    name, least, most, first, key = size
    return widgets.whole(TEXT[f"size {name}"], least, most, first, key, container=container)


def _draw_result(outcome: Outcome) -> None:
    """Draws the shapes, the result in PyTorch's words, and how to fix it."""
    attempt = outcome.attempt
    made = TEXT["no output"] if attempt.errors else f"{attempt.made}"
    rows = [*((name, f"{shape}") for name, shape in attempt.shapes), ("output", made)]
    st.table(pd.DataFrame(rows, columns=["tensor", "shape"]).set_index("tensor"), border="horizontal")
    if not attempt.errors:
        (st.success if outcome.good else st.warning)(TEXT("output", made=attempt.made))
        return
    _raised(*attempt.errors[-1])
    st.markdown(TEXT("fix", how=outcome.section("fix")))


def _all_errors(outcome: Outcome) -> None:
    """Draws what was expected, what came, and every error on the way."""
    errors = outcome.attempt.errors
    said = [TEXT("expected", what=outcome.section("expected"))]
    if errors:
        said.append(TEXT("arrived", what=outcome.result))
    st.markdown("\n\n".join(said))
    for error in errors[:-1]:
        _raised(*error)


def _raised(error: str, message: str) -> None:
    st.error(TEXT("raised early" if error == "ConfigError" else "raised late", error=error))
    st.code(message, language="text", wrap_lines=True)


VIEW = View(
    "wrong",
    TEXT,
    draw,
    code=(split_heads, transposed_unembedding, wrong_mask),
    needs_model=False,
)
