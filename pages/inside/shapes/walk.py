"""The walk through a forward pass: which model is traced, the list that is walked, and what stands beside
it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import streamlit as st

from engine.config import ModelConfig
from engine.measure.shapes import Ran, Shape, TraceStep, tensor_of, totals, trace
from engine.presets import PRESETS
from pages.inside.shapes import figures
from ui import state
from ui.figures import theme
from ui.players.component import mounted
from ui.players.plot import plot
from ui.subject import Subject
from ui.text.markdown import safe

OWN = "own"
WALK = "shapes_walk"
PARTS = {
    "embedding": "embed",
    "position": "position",
    "attention": "attention",
    "feedforward": "feed-forward",
    "norm": "norm",
    "residual": "+",
    "output": "output",
}
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


@dataclass(frozen=True)
class Source:
    """Something that can be traced. `only` keeps a part of the steps."""

    title: str
    note: str
    config: ModelConfig
    tokens: int
    only: str = ""  # "block", or "attention" within it


_PLAIN = {"attention_bias": False, "ffn_bias": False}
EXAMPLES = {
    "gpt2": Source(
        "GPT-2 small",
        f"Published sizes ({PRESETS['gpt2'].source}), at its full context of 1,024 tokens.",
        PRESETS["gpt2"].model,
        1024,
    ),
    "llama2-7b": Source(
        "LLaMA-2 7B",
        f"Published sizes ({PRESETS['llama2-7b'].source}), at its full context of 4,096 tokens.",
        PRESETS["llama2-7b"].model,
        4096,
    ),
    "llama2-70b": Source(
        "LLaMA-2 70B",
        f"Published sizes ({PRESETS['llama2-70b'].source}): 64 query heads share 8 key-value heads.",
        PRESETS["llama2-70b"].model,
        4096,
    ),
    "block": Source(
        "One block",
        "T = 16 tokens, d = 512, H = 8 heads.",
        ModelConfig(context=16, d_model=512, n_layers=1, n_heads=8, position="none", norm_bias=True),
        16,
        "block",
    ),
    "gpt": Source(
        "A small GPT",
        "T = 5 tokens, d = 256, V = 1,000, 6 layers, 8 heads: it ends in (5, 1,000).",
        ModelConfig(vocab_size=1000, context=5, d_model=256, n_layers=6, n_heads=8),
        5,
    ),
    "multihead": Source(
        "Multi-head, tiny",
        "One attention of 2 heads on (1, 3, 4): follow (1, 3, 4) → (1, 3, 2, 2) → (1, 2, 3, 2) → … → (1,"
        " 3, 4).",
        ModelConfig(context=3, d_model=4, n_layers=1, n_heads=2, position="none"),
        3,
        "attention",
    ),
}


def choose(
    label: str, options: Mapping[str, str], key: str, widget: Callable[..., Any] = st.segmented_control
) -> str:
    """One of the options (name -> what is shown). The URL holds its name under `key`, unless it is the
    first.
    """
    first = next(iter(options))
    if st.session_state.get(key) not in options:
        st.session_state[key] = state.from_url(key, options) or first
    names = {"format_func": lambda option: options.get(option, option), "label_visibility": "collapsed"}
    chosen = str(widget(label, list(options), required=True, key=key, persist_state="session", **names))
    if chosen == first:
        st.query_params.pop(key, None)
    elif st.query_params.get(key) != chosen:
        st.query_params[key] = chosen
    return chosen


def chosen_source(subject: Subject) -> tuple[str, Source]:
    names = {OWN: "This model"} | {key: source.title for key, source in EXAMPLES.items()}
    key = choose("Trace", names, "shapes_source", st.pills)
    if key in EXAMPLES:
        return key, EXAMPLES[key]
    return OWN, Source(
        "This model",
        f"{safe(subject.title)}, on the {len(subject.ids)} tokens of the text above.",
        subject.config,
        len(subject.ids),
    )


def steps_of(source: Source) -> tuple[TraceStep, ...]:
    steps = trace(source.config, source.tokens)
    if source.only == "block":
        return tuple(s for s in steps if s.stage == "block")
    return tuple(s for s in steps if s.stage == "block" and s.part == "attention") if source.only else steps


@st.fragment
def walk(key: str, source: Source, subject: Subject) -> None:
    """The list, and beside it the chosen step's formula, its tensor and the lines that made it. Only this
    runs again at a step.
    """
    steps = steps_of(source)
    index = _chosen(steps, key, source)
    left, right = st.columns([11, 9], gap="medium")
    with left:
        data = _sent(source) | {
            "shown": index,
            "palette": _colours(),
            "source": f"{key}-{hash((source.config, source.tokens))}",
        }
        mounted("shapes")(key=WALK, data=data, on_step_change=lambda: None)
    with right:
        step = steps[index]
        st.latex(step.formula)
        _tensor(step, subject if key == OWN else None)
        if key != OWN:
            _source(step)
    if key == OWN:  # beside the list there is the tensor: the lines get the page's width
        _source(step)


def _chosen(steps: Sequence[TraceStep], key: str, source: Source) -> int:
    """The step that was walked to, else the URL's. Of another model, the step of the same name."""
    held = st.session_state.get(WALK)
    index = held.get("step") if held is not None and hasattr(held, "get") else None
    traced = (key, source.config)
    before = st.session_state.get("shapes_traced")
    if before is not None and before[0] != traced:
        index = next((i for i, s in enumerate(steps) if s.name == before[1]), 0)
        st.session_state.pop(WALK, None)
    elif not isinstance(index, int) or isinstance(index, bool):
        named = st.query_params.get("shapes_step", "")
        kept = 0 if before is None else before[2]
        index = int(named) if named.isdecimal() and named.isascii() and len(named) < 7 else kept
    index = min(max(index, 0), len(steps) - 1)
    st.session_state["shapes_traced"] = (traced, steps[index].name, index)
    if st.query_params.get("shapes_step") != str(index):
        st.query_params["shapes_step"] = str(index)
    return index


# The list ---------------------------------------------------------------------------------------


@st.cache_resource(max_entries=32, show_spinner=False)
def _sent(source: Source) -> dict[str, Any]:
    """What the browser needs: one block's steps, and once more as the next block has them (it reads from the
    block below).
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
        "parts": PARTS,
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
    return {part: every[part] for part in PARTS} | {
        f"axis-{axis}": every[name] for axis, name in AXIS_COLOURS.items()
    }


# Beside the list --------------------------------------------------------------------------------


def _tensor(step: TraceStep, subject: Subject | None) -> None:
    if subject is None:
        st.caption(
            ":material/grid_off: Shapes only: this model is traced without its numbers, in no memory. Choose"
            " *This model* to see tensors."
        )
        return
    found = tensor_of(step, subject.recording())
    if found is None:
        st.caption(
            ":material/grid_off: A table that is made ready once for all blocks; its numbers are not"
            " recorded."
        )
        return
    values, axes = found
    limit = float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        which = next((i for i, axis in enumerate(axes) if axis in ("head", "kv_head")), None)
        st.markdown(
            f"**The tensor** `{step.bare}`" + (f", {axes[which]}" if which is not None else ""),
            width="content",
        )
        if which is not None:
            place = _slice(axes[which], values.shape[which])
            values, axes = np.take(values, place, axis=which), (*axes[:which], *axes[which + 1 :])
    labels = {"query": subject.labels, "key": subject.labels, "vocab": subject.vocabulary}
    alt = (
        f"Heatmap of {step.name}: {' by '.join(axes)}, {' by '.join(str(n) for n in values.shape)} numbers,"
        f" largest size {limit:.3g}."
    )
    figure = figures.tensor_map(values, axes, labels, name=step.bare, limit=limit)
    plot(
        figure,
        key="shapes_tensor",
        alt=alt,
        height=200 if values.ndim == 1 else 400,
        data=figures.table(values, axes),
        name=step.name.replace(".", "-"),
    )


def _slice(axis: str, count: int) -> int:
    """Which head of a tensor with three axes is drawn. It is kept from step to step, and in the URL."""
    key = f"shapes_{axis}"
    if st.session_state.get(key, 0) not in range(count):
        st.session_state[key] = 0
    chosen = st.segmented_control(
        axis,
        list(range(count)),
        default=0,
        required=True,
        key=key,
        bind="query-params",
        persist_state="session",
        label_visibility="collapsed",
    )
    return chosen if chosen in range(count) else 0


def _source(step: TraceStep) -> None:
    if not step.ran:
        st.caption("Nothing runs here: these are the ids that the tokenizer made of the text.")
        return
    st.markdown("**The lines that just ran**")
    names = ", ".join(ran.source.__qualname__ for ran in step.ran)
    data = {
        "functions": [_listing(ran) for ran in step.ran],
        "alt": f"Source of {names}, the lines that ran marked",
        "colour": theme.PART_COLOURS[step.part],
    }
    mounted("shapes_source", styles=("shapes",))(key="shapes_lines", data=data)


@cache
def _listing(ran: Ran) -> dict[str, Any]:
    """A function's lines as (number in its file, text, whether it ran)."""
    text, first = inspect.getsourcelines(ran.source)
    indent = len(text[0]) - len(text[0].lstrip())
    lines = [(first + i, line.rstrip()[indent:], first + i in ran.lines) for i, line in enumerate(text)]
    return {
        "name": f"{ran.source.__module__.replace('.', '/')}.py · {ran.source.__qualname__}",
        "lines": lines,
    }


def total_sentence(source: Source) -> str:
    sums = totals(steps_of(source))
    return (
        f"**{sums['parameters']:,} parameters · {_short(sums['products'])}FLOP in products +"
        f" {_short(sums['elementwise'])}FLOP elementwise · {_short(sums['bytes'])}B** of activations in"
        " float32, if every tensor were kept."
    )


def _short(n: int) -> str:
    for size, unit in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n} "
