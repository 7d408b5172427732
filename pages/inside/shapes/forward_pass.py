"""The view "Forward pass": every operation of the model in the bar or of a known one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine import slices
from engine.config import ModelConfig
from engine.parts.registry import HEALTHY, Parts
from studies.costs.presets import PRESETS
from studies.pairs.config import Seq2SeqConfig
from studies.pairs.generate import pair_steps
from studies.shapes.op_trace import OperationTrace
from studies.shapes.operations import Shape, SourceLines, TraceStep, tensor_of, totals, trace, trace_pair
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures import theme
from ui.figures.labels import LETTER, MOST_LETTERS, crowded, plain, short
from ui.figures.theme import SEQUENTIAL
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.component import mounted
from ui.players.plot import plot

TEXT = content.beside(__file__)
WALK, STEP = "shapes_walk", "shapes_step"
OWN, WRITES = "own", "writes"
PARTS = ("embedding", "position", "attention", "feedforward", "norm", "residual", "output")
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
SHARES = ("pattern", "probabilities")  # numbers in [0, 1]
MOST_TICKS, MOST_NUMBERS = 20, 8
ROOM = 220  # pixels across
Labels = Mapping[str, Sequence[str]]  # axis -> what its places are called


@dataclass(frozen=True)
class Source:
    """Something that can be traced. `only` keeps a part of the steps. For a `pair` it is the half that
    writes, `written` tokens after a source of `tokens`.
    """

    config: ModelConfig
    tokens: int
    only: str = ""  # "block", or "attention" within it
    parts: Parts = HEALTHY
    pair: Seq2SeqConfig | None = None
    written: int = 0


EXAMPLES = {
    "gpt2": Source(PRESETS["gpt2"].model, 1024),
    "llama2-7b": Source(PRESETS["llama2-7b"].model, 4096),
    "llama2-70b": Source(PRESETS["llama2-70b"].model, 4096),
    "block": Source(
        ModelConfig(context=16, d_model=512, n_layers=1, n_heads=8, position="none", norm_bias=True),
        16,
        "block",
    ),
    "gpt": Source(ModelConfig(vocab_size=1000, context=5, d_model=256, n_layers=6, n_heads=8), 5),
    "multihead": Source(
        ModelConfig(context=3, d_model=4, n_layers=1, n_heads=2, position="none"), 3, "attention"
    ),
}


@st.fragment
def draw(subject: Subject) -> None:
    """Draws the walk, beside it what is traced and the tensor of the chosen step, and what shape that has:
    in a fragment, since only this runs again at a step.
    """
    answer = st.container()
    left, right = st.columns([11, 9], gap="medium")
    with right:
        key, source = chosen_source(subject)
    steps = steps_of(source)
    index = _chosen(steps, key, source)
    step = steps[index]
    with answer:
        explain.answer(_answer(step))
    with left:
        data = _sent(source, TEXT[f"source {key}"]) | {
            "shown": index,
            "palette": _colours(),
            "source": f"{key}-{hash((source.config, source.tokens, source.written, source.parts))}",
        }
        mounted("shapes", stepper=True)(key=WALK, data=data, on_step_change=lambda: None)
    with right:
        st.latex(step.formula)
        _tensor(step, subject if key == OWN else None, key == WRITES)
    explain.measure_it(_measured, key, source, subject)
    explain.by_hand(_lines, step)


def chosen_source(subject: Subject) -> tuple[str, Source]:
    halves = ("own",) if subject.pair is None else ("reads", WRITES)
    names = dict(zip((OWN, WRITES), (TEXT[f"source {half}"] for half in halves), strict=False))
    names |= {key: TEXT[f"source {key}"] for key in EXAMPLES}
    key = widgets.select(TEXT["trace"], names, "shapes_source", kind="list", hidden=True)
    if key in EXAMPLES:
        return key, EXAMPLES[key]
    if key == WRITES and subject.pair is not None:
        model = subject.pair.model
        written = sum(1 for _ in pair_steps(model, subject.ids))
        pair = Source(model.config.decoder, len(subject.ids), "", model.parts, model.config, written)
        return WRITES, pair
    return OWN, Source(subject.config, len(subject.ids), parts=subject.model.parts)


def steps_of(source: Source) -> tuple[TraceStep, ...]:
    if source.pair is not None:
        both = trace_pair(source.pair, source.tokens, source.written, source.parts)
        return tuple(step for step in both if step.stack != "encoder")
    steps = trace(source.config, source.tokens, source.parts)
    if source.only == "block":
        return tuple(s for s in steps if s.stage == "block")
    return tuple(s for s in steps if s.stage == "block" and s.part == "attention") if source.only else steps


def _answer(step: TraceStep) -> str:
    """Says what shape a step's output has, and how it grows with the text."""
    output = step.output
    axes = " × ".join(
        TEXT("axis", name=axis, size=size) for axis, size in zip(output.axes, output.sizes, strict=True)
    )
    grows = {1: "constant", 2: "doubled"}.get(output.doubled, "grows")
    return TEXT(
        f"shape {grows}",
        name=content.Filled(step.bare),
        axes=content.Filled(axes),
        numbers=output.numbers,
        times=output.doubled,
    )


def _measured(key: str, source: Source, subject: Subject) -> None:
    """The totals of the pass, and how they are counted."""
    note = TEXT(
        f"note {key}",
        source=PRESETS[key].source if key in PRESETS else "",
        title=subject.title,
        tokens=source.tokens,
        written=source.written,
    )
    sums = totals(steps_of(source))
    said = TEXT(
        "totals",
        parameters=sums["parameters"],
        products=sums["products"],
        elementwise=sums["elementwise"],
        bytes=sums["bytes"],
    )
    st.markdown(f"{note} {said}")
    st.caption(TEXT["flops"])


def _chosen(steps: Sequence[TraceStep], key: str, source: Source) -> int:
    """The step that was just walked to, else the URL's. For another model, the step of the same name."""
    index = widgets.picked(WALK, "step")
    before = st.session_state.get("shapes_traced")
    if widgets.outdated(STEP, (key, source.config)) and before is not None:
        index = next((i for i, s in enumerate(steps) if s.name == before[0]), 0)
    elif not isinstance(index, int) or isinstance(index, bool):
        index = widgets.url_index(STEP, len(steps), nearest=True)
        if index is None:
            index = _first(steps) if before is None else before[1]
    index = min(max(index, 0), len(steps) - 1)
    st.session_state["shapes_traced"] = (steps[index].name, index)
    widgets.put_index(STEP, index)
    return index


def _first(steps: Sequence[TraceStep]) -> int:
    """The first scores, whose shape says most; the first step where there are none."""
    return next((i for i, step in enumerate(steps) if step.bare == "scores"), 0)


# The list ---------------------------------------------------------------------------------------


@lru_cache(maxsize=32)  # by the parts themselves, which Streamlit's caches cannot take
def _sent(source: Source, traced: str) -> dict[str, Any]:
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
    title = "attention" if source.only == "attention" else "first" if layers > 1 else "only"
    return {
        "groups": groups,
        "layers": layers,
        "title": TEXT[f"block {title}"],
        "parts": {part: TEXT[f"part {part}"] for part in PARTS},
        "alt": TEXT("alt", source=traced),
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
    return {part: every[part] for part in PARTS} | {
        f"axis-{axis}": every[name] for axis, name in AXIS_COLOURS.items()
    }


# Beside the list --------------------------------------------------------------------------------


def _tensor(step: TraceStep, subject: Subject | None, writes: bool) -> None:
    if writes:
        st.caption(TEXT["shapes of writer"])
        return
    if subject is None:
        st.caption(TEXT["shapes only"])
        return
    tensor = tensor_of(step, subject.recording())
    if tensor is None:
        st.caption(TEXT["not recorded"])
        return
    values, axes = tensor
    limit = slices.largest(values)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        which = slices.head_axis(axes)
        title = TEXT("tensor", name=content.Filled(step.bare))
        st.markdown(
            title if which is None else TEXT("along", tensor=title, axis=axes[which]), width="content"
        )
        if which is not None:
            index = _slice(axes[which], values.shape[which])
            values, axes = slices.take_index(values, axes, which, index)
    labels = {"query": subject.labels, "key": subject.labels, "vocab": subject.vocabulary}
    plot(
        tensor_map(values, axes, labels, name=step.bare, limit=limit),
        key="shapes_tensor",
        alt=TEXT(
            "alt tensor",
            name=step.name,
            axes=" by ".join(axes),
            shape=" by ".join(map(str, values.shape)),
            limit=limit,
        ),
        height=180 if values.ndim == 1 else 330,
        data=table(values, axes),
        name=step.name.replace(".", "-"),
    )


def _slice(axis: str, count: int) -> int:
    """Which head of a tensor with three axes is drawn. It is kept from step to step, and in the URL."""
    return widgets.select(axis, range(count), f"shapes_{axis}", hidden=True)


def _lines(step: TraceStep) -> None:
    if not step.ran:
        st.caption(TEXT["nothing ran"])
        return
    st.markdown(TEXT["lines"])
    names = ", ".join(ran.code.co_qualname for ran in step.ran)
    data = {
        "functions": [_listing(ran) for ran in step.ran],
        "alt": TEXT("alt lines", names=names),
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


def tensor_map(
    values: np.ndarray, axes: tuple[str, ...], labels: Labels, *, name: str, limit: float | None = None
) -> go.Figure:
    """Draws a matrix (or a vector, drawn as one row) as a heatmap, its axes named. `limit` is the largest
    size of the whole tensor's numbers.

    Numbers in [0, 1] run from the page's colour, signed ones around zero; −∞ stays empty.
    """
    matrix, (down, across) = as_matrix(values, axes)
    is_share = name in SHARES
    scale = {"colorscale": SEQUENTIAL, "zmin": 0} if is_share or name == "tokens" else {}
    trace = go.signed(
        matrix,
        1 if is_share else limit or 1.0,
        x=_names(across, matrix.shape[1], labels),
        y=_names(down, matrix.shape[0], labels),
        hovertemplate=TEXT("hover", down=down, across=across, name=name),
        colorbar={"thickness": 12, "len": 0.9, "x": 1.01, "nticks": 3 if len(matrix) == 1 else 6},
        **scale,
    )
    tall = crowded(labels.get(across, ())[: matrix.shape[1]], ROOM)
    return go.figure(
        [trace],
        margin={"l": 62, "r": 76, "t": 8, "b": 56 + LETTER * tall},
        showlegend=False,
        uirevision=f"{name}-{matrix.shape}",
        xaxis=_axis(across, matrix.shape[1], labels) | {"tickangle": -90 if tall else 0},
        yaxis=_axis(down, matrix.shape[0], labels) | {"autorange": "reversed"},
    )


def as_matrix(values: np.ndarray, axes: tuple[str, ...]) -> tuple[np.ndarray, tuple[str, str]]:
    return (values[None, :], ("", axes[0])) if values.ndim == 1 else (values, (axes[0], axes[1]))


def table(values: np.ndarray, axes: tuple[str, ...]) -> pd.DataFrame:
    """Returns the numbers as columns along the shorter axis: a table of many columns is slow."""
    matrix, (down, across) = as_matrix(values, axes)
    if matrix.shape[1] > matrix.shape[0] and down:
        matrix, down, across = matrix.T, across, down
    frame = pd.DataFrame(matrix, columns=[f"{across} {j}" for j in range(matrix.shape[1])])
    frame.insert(0, down or "row", np.arange(len(matrix)))
    return frame


def _names(axis: str, count: int, labels: Labels) -> list[str]:
    """Each place's own name: its index, and its token where there is one."""
    known = labels.get(axis, ())
    return [f"{i}: {plain(known[i])}" if i < len(known) else str(i) for i in range(count)]


def _axis(name: str, count: int, labels: Labels) -> dict[str, object]:
    """Every place has its token where all have room, else every n-th its number: every fourth letter says
    nothing.
    """
    known = labels.get(name, ()) if count <= MOST_TICKS else ()
    indexes = list(range(0, count, max(1, -(-count // (MOST_TICKS if known else MOST_NUMBERS)))))
    shown = [plain(short(known[i], MOST_LETTERS)) if i < len(known) else str(i) for i in indexes]
    names = _names(name, count, labels)
    axis = go.axis(name, type="category", tickvals=[names[i] for i in indexes], ticktext=shown, tickangle=0)
    return axis | ({"visible": False} if not name else {})


VIEW = View("pass", TEXT, draw, code=(trace, OperationTrace), both_halves=True, figures_only=True)
