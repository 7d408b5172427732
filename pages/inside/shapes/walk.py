"""The walk through a forward pass: the list that is walked, and what stands beside it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import streamlit as st

from engine.measure import slices
from engine.measure.shapes.operations import (
    Shape,
    SourceLines,
    TraceStep,
    tensor_of,
    totals,
)
from pages.inside.shapes import figures, words
from pages.inside.shapes.sources import OWN, WRITES, Source, chosen_source, steps_of
from ui import explain, widgets
from ui.figures import theme
from ui.model_bar import Subject
from ui.players.component import mounted
from ui.players.plot import plot

WALK = "shapes_walk"
# Each axis a colour of its own, out of the palette.
AXIS_COLOURS = {
    "batch": "quiet",
    "query": "validation",
    "key": "training",
    "head": "run1",
    "kv_head": "run2",
    "d_model": "residual",
    "d_head": "run3",
    "d_ff": "feedforward",
    "vocab": "output",
}


def draw_walk(subject: Subject) -> None:
    """Draws the walk, beside it what is traced and the tensor of the chosen step, and what shape that has."""
    walk(subject)


@st.fragment
def walk(subject: Subject) -> None:
    """Draws the walk in a fragment: only this runs again at a step."""
    answer = st.container()
    left, right = st.columns([11, 9], gap="medium")
    with right:
        key, source = chosen_source(subject)
    steps = steps_of(source)
    index = _chosen(steps, key, source)
    step = steps[index]
    with answer:
        explain.answer(words.shape_of(step))
    with left:
        data = _sent(source) | {
            "shown": index,
            "palette": _colours(),
            "source": f"{key}-{hash((source.config, source.tokens, source.written, source.parts))}",
        }
        mounted("shapes", stepper=True)(key=WALK, data=data, on_step_change=lambda: None)
    with right:
        st.latex(step.formula)
        _tensor(step, subject if key == OWN else None, key == WRITES)
    explain.measure_it(_measured, source)
    explain.by_hand(_source, step)


def _measured(source: Source) -> None:
    """The totals of the pass, and how they are counted."""
    st.markdown(f"{source.note} {words.totals(totals(steps_of(source)))}")
    st.caption(words.FLOPS)


def _chosen(steps: Sequence[TraceStep], key: str, source: Source) -> int:
    """The step that was just walked to, else the URL's. For another model, the step of the same name."""
    index = widgets.picked(WALK, "step")
    traced = (key, source.config)
    before = st.session_state.get("shapes_traced")
    if before is not None and before[0] != traced:
        index = next((i for i, s in enumerate(steps) if s.name == before[1]), 0)
    elif not isinstance(index, int) or isinstance(index, bool):
        index = widgets.number_of(widgets.read_url("shapes_step"))
        if index is None:
            index = _first(steps) if before is None else before[2]
    index = min(max(index, 0), len(steps) - 1)
    st.session_state["shapes_traced"] = (traced, steps[index].name, index)
    widgets.put_index("shapes_step", index)
    return index


def _first(steps: Sequence[TraceStep]) -> int:
    """The first scores, whose shape says most; the first step where there are none."""
    return next((i for i, step in enumerate(steps) if step.bare == "scores"), 0)


# The list ---------------------------------------------------------------------------------------


@lru_cache(maxsize=32)  # by the parts themselves, which Streamlit's caches cannot take
def _sent(source: Source) -> dict[str, Any]:
    """Returns the payload for the browser: one block's steps, and once more as the next block has them (it
    reads from the block below).
    """
    steps = steps_of(source)
    groups: dict[str, list[dict[str, Any]]] = {"input": [], "block": [], "later": [], "output": []}
    for step in steps:
        group = step.stage if not step.block else "later" if step.block == 1 else ""
        if group:
            groups[group].append(_row(step))
    layers = 1 + max((s.block for s in steps if s.block is not None), default=0)
    title = "Attention" if source.only == "attention" else "Block 0" if layers > 1 else "The block"
    return {
        "groups": groups,
        "layers": layers,
        "title": title,
        "parts": words.PARTS,
        "alt": f"Steps of the forward pass: {source.title}",
    }


def _row(step: TraceStep) -> dict[str, Any]:
    def general(name: str) -> str:
        if step.block is None:
            return name
        return name.replace(f"blocks.{step.block}.", "@.").replace(f"blocks.{step.block - 1}.", "@-.")

    def shape(s: Shape) -> list[tuple[str, int]]:
        return list(zip(s.axes, s.sizes, strict=True))

    return {
        "name": general(step.name),
        "part": step.part,
        "words": step.words,
        "output": shape(step.output),
        "parameters": step.parameters,
        "inputs": [{"name": general(s.name), "axes": shape(s)} for s in step.inputs],
        "products": step.products,
        "elementwise": step.elementwise,
        "bytes": step.bytes,
        "view": step.view,
        "shared": list(step.shared),
        "weights": [{"name": general(w.name), "sizes": list(w.sizes)} for w in step.weights],
    }


@cache
def _colours() -> dict[str, tuple[str, str]]:
    every = theme.palette()
    return {part: every[part] for part in words.PARTS} | {
        f"axis-{axis}": every[name] for axis, name in AXIS_COLOURS.items()
    }


# Beside the list --------------------------------------------------------------------------------


def _tensor(step: TraceStep, subject: Subject | None, writes: bool) -> None:
    if writes:
        st.caption(words.SHAPES_OF_THE_WRITER)
        return
    if subject is None:
        st.caption(words.SHAPES_ONLY)
        return
    tensor = tensor_of(step, subject.recording())
    if tensor is None:
        st.caption(words.NOT_RECORDED)
        return
    values, axes = tensor
    limit = slices.largest(values)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        which = slices.head_axis(axes)
        title = words.tensor_title(step.bare, "" if which is None else axes[which])
        st.markdown(title, width="content")
        if which is not None:
            index = _slice(axes[which], values.shape[which])
            values, axes = slices.take_index(values, axes, which, index)
    labels = {"query": subject.labels, "key": subject.labels, "vocab": subject.vocabulary}
    plot(
        figures.tensor_map(values, axes, labels, name=step.bare, limit=limit),
        key="shapes_tensor",
        alt=words.tensor_alt(step, axes, values.shape, limit),
        height=180 if values.ndim == 1 else 330,
        data=figures.table(values, axes),
        name=step.name.replace(".", "-"),
    )


def _slice(axis: str, count: int) -> int:
    """Which head of a tensor with three axes is drawn. It is kept from step to step, and in the URL."""
    return widgets.select(axis, range(count), f"shapes_{axis}", hidden=True)


def _source(step: TraceStep) -> None:
    if not step.ran:
        st.caption(words.NOTHING_RAN)
        return
    st.markdown(words.LINES)
    names = ", ".join(ran.code.co_qualname for ran in step.ran)
    data = {
        "functions": [_listing(ran) for ran in step.ran],
        "alt": f"Source of {names}, the lines that ran marked",
        "colour": theme.PART_COLOURS[step.part],
    }
    mounted("shapes_source", styles=("shapes",))(key="shapes_lines", data=data)


@cache
def _listing(ran: SourceLines) -> dict[str, Any]:
    """A function's lines as (number in its file, text, whether it ran)."""
    text, first = inspect.getsourcelines(ran.code)
    indent = len(text[0]) - len(text[0].lstrip())
    lines = [(first + i, line.rstrip()[indent:], first + i in ran.lines) for i, line in enumerate(text)]
    return {
        "name": f"{ran.module.replace('.', '/')}.py · {ran.code.co_qualname}",
        "lines": lines,
    }
