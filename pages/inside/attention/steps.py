"""The view "Step by step": one head from q, k and v to what it writes into the stream."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.attention import single_head
from engine.measure.attention.single_head import Stages, WrittenOut
from engine.measure.recording import Recording
from engine.model import Transformer
from pages.inside.attention import axes, words
from pages.inside.attention.figures import parts_heatmap
from pages.inside.attention.shared import TOPIC
from ui import explain, widgets
from ui.figures.patterns import matrix_heatmap, pattern_heatmap, pattern_table
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.text.markdown import safe

HEIGHT, TALL, WIDE = 410, 320, 230  # pixels: of the figure, and of its cells where they have least room
STRONGEST = -1  # whichever key gets most of the weight
STAGES = ("q, k, v", "q·k", "÷ √d", "mask", "softmax", "· v", "W_O")
FORMULAS = {
    "q, k, v": "$q = x W_Q$, $k = x W_K$, $v = x W_V$. Each token makes a question, a label and a message.",
    "q·k": (
        "$s_{ij} = q_i \\cdot k_j$. How well the label of key $j$ answers the question of query $i$. Any"
        " sign, any size."
    ),
    "÷ √d": (
        "$s_{ij} / \\sqrt{d_{head}}$. The division keeps the spread near 1, whatever the width of the head."
    ),
    "mask": "$s_{ij} + M_{ij}$, with $M_{ij} = -\\infty$ where $j > i$. The grey half lies in the future.",
    "softmax": "$p_{ij} = e^{s_{ij}} / \\sum_k e^{s_{ik}}$. Each row becomes weights that sum to 1.",
    "· v": "$z_i = \\sum_j p_{ij} v_j$. The messages, mixed by the weights.",
    "W_O": "$z_i W_O$, with this head's rows of $W_O$. What this head adds to the residual stream.",
}
OWN_WEIGHTS = "this model's mixer makes weights of its scores in its own way, which is not written out here."


def draw_steps(subject: Subject) -> None:
    config = subject.config
    recording = subject.recording()
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        layer, head = widgets.head(config, TOPIC)
        found = _stages(subject.key, subject.ids, layer, head, recording, subject.model)
        stage = widgets.select("Stage", names_of(found), "attention_stage", first=STAGES[1])
    figure, beside = st.columns([2, 1], gap="medium")
    with beside:
        query = token_strip(
            subject.labels,
            key="attention_query",
            chosen=single_head.telling_query(found.pattern),
            label=words.LOOKS,
        )
        key = _choose_key(subject, found, query)
        st.markdown(_formula(stage, found) + _variant(subject, stage, found))
    with figure:
        _picture(subject, recording, found, stage, layer, head)
    written = single_head.written_out(found, query, key)
    explain.answer(words.step_by_step(subject.labels, written, query, key))
    explain.measure_it(_more, recording, found, layer, head, query)
    explain.by_hand(_by_hand, subject, found, query, key)


def _more(recording: Recording, stages: Stages, layer: int, head: int, query: int) -> None:
    st.caption(
        "Computed again from the recorded `q_rot`, `k_rot` and `v`: the pattern differs from the recorded"
        f" one by at most {single_head.gap(stages, recording, layer, head):.0e}."
    )
    _written(recording, stages, query, layer)


def _by_hand(subject: Subject, stages: Stages, query: int, key: int) -> None:
    """Every number of one row, and the way to one weight."""
    table = _table(subject, stages, query)
    numbers = {c: st.column_config.NumberColumn(format="%.4f") for c in table.columns[2:]}
    st.dataframe(
        table,
        hide_index=True,
        width="stretch",
        height=min(38 + 35 * len(table), 320),
        column_config=numbers,
        key="attention_rows",
    )
    st.markdown(arithmetic(subject.labels, single_head.written_out(stages, query, key), query, key))


def _choose_key(subject: Subject, stages: Stages, query: int) -> int:
    """The key to write out: the strongest, or one of the keys that are seen, then in the URL."""
    best = single_head.strongest_key(stages, query)
    seen = single_head.keys_seen(stages, query)

    def told(key: int) -> str:
        return f"{subject.labels[key]} at {key}, weight {stages.pattern[query, key]:.4f}"

    options = {STRONGEST: f"the strongest: {told(best)}"} | {key: told(key) for key in seen}
    chosen = widgets.select("The token looked at", options, "attention_key", kind="list")
    return best if chosen == STRONGEST else chosen


def _formula(stage: str, stages: Stages) -> str:
    """Returns the formula of a stage, or that it is not written out."""
    if stage == "softmax" and stages.exponentials is None:
        return f"$p_{{ij}}$: {OWN_WEIGHTS}"
    return _scaled(stages) if stage == "÷ √d" else FORMULAS[stage]


def _scaled(stages: Stages) -> str:
    kind = single_head.scaled_by(stages.divisor, stages.q.shape[1])
    if kind == "own":
        return "$s_{ij}$, which this model's mixer makes of the products."
    if kind == "none":
        return (
            "$s_{ij}$ as it is: this model's mixer does not divide. The spread of the scores grows with the"
            " width of the head."
        )
    return FORMULAS["÷ √d"] if kind == "root" else f"$s_{{ij}} / {stages.divisor:.4f}$, in this model."


def names_of(stages: Stages) -> dict[str, str]:
    """Returns the names of the stages: the one of the division by √d only where there is one."""
    divides = single_head.scaled_by(stages.divisor, stages.q.shape[1]) == "root"
    return {stage: stage if divides or stage != "÷ √d" else "scores" for stage in STAGES}


def _variant(subject: Subject, stage: str, stages: Stages) -> str:
    """Says how this model differs, in a sentence."""
    config = subject.config
    turns = "rotate" in subject.model.parts.position(config).enters
    text = ""
    if stage == "q, k, v" and config.mixer == "shared_qk":
        text = " This model's queries and keys are the same vectors."
    elif stage == "q·k" and (config.qk_norm or turns):
        done = {
            "brought to a standard size (QK-norm)": config.qk_norm,
            "turned by their position (RoPE)": turns,
        }
        text = f" Before that, q and k are {' and '.join(what for what, is_done in done.items() if is_done)}."
    elif stage == "÷ √d" and stages.bias is not None:
        text = " This model's positions also add a bias for the distance here; it is included."
    elif stage == "mask" and not config.causal:
        text = " **This model is an encoder: it has no mask, and the stage changes nothing.**"
    elif stage == "W_O" and not config.output_projection:
        text = " **This model has no output projection: the head's slice of the stream gets z as it is.**"
    return text


def _picture(
    subject: Subject, recording: Recording, stages: Stages, stage: str, layer: int, head: int
) -> None:
    labels, where = subject.labels, f"layer {layer}, head {head}"
    name, height = f"stage-{STAGES.index(stage) + 1}-layer-{layer}-head-{head}", HEIGHT
    if stage in ("q, k, v", "· v", "W_O"):
        if stage == "q, k, v":
            turns = "rotate" in subject.model.parts.position(subject.config).enters
            changed = subject.config.qk_norm or turns
            names = ("q", "q_rot", "k", "k_rot", "v") if changed else ("q", "k", "v")
            every = single_head.vectors(recording, layer, head)
            parts = {part: every[part] for part in names}
        else:
            parts = {"z": stages.z} if stage == "· v" else {"written to the stream": stages.written}
        alt = f"{', '.join(parts)} of {where}: one row for each token, one column for each dimension."
        columns = [f"{part} {i}" for part, values in parts.items() for i in range(values.shape[1])]
        table = pd.DataFrame(np.concatenate(list(parts.values()), axis=1), columns=columns)
        plot(
            parts_heatmap(parts, labels),
            key="attention_stage_plot",
            alt=alt,
            height=height,
            data=table,
            name=name,
        )
        return
    values = {
        "q·k": stages.raw,
        "÷ √d": single_head.biased(stages),
        "mask": stages.masked,
        "softmax": stages.pattern,
    }[stage]
    alt = f"{names_of(stages)[stage]} of {where}: one row for each query, one column for each key."
    masked = stage in ("mask", "softmax") and subject.config.causal
    shown = axes.unmasked(values, masked)
    figure = (
        pattern_heatmap(shown, labels)
        if stage == "softmax"
        else matrix_heatmap(shown, labels, "score", signed=True)
    )
    margin = {"l": 34 + axes.room_for(labels, TALL), "t": 30 + axes.room_for(labels, WIDE), "r": 8, "b": 8}
    rest = {"margin": margin, "plot_bgcolor": axes.MASKED} if masked else {"margin": margin}
    plot(
        figure.changed({"xaxis": axes.across(labels, WIDE), "yaxis": axes.down(labels, TALL)} | rest),
        key="attention_stage_plot",
        alt=alt,
        height=height,
        data=pattern_table(values, labels),
        name=name,
    )


def _table(subject: Subject, stages: Stages, query: int) -> pd.DataFrame:
    """One row for each key, one column for each stage."""
    columns = {"position": np.arange(len(subject.ids)), "key": subject.labels}
    columns["q·k"] = stages.raw[query]
    columns[names_of(stages)["÷ √d"]] = stages.scaled[query]
    if stages.bias is not None:
        columns["+ bias"] = single_head.biased(stages)[query]
    if subject.config.causal:
        columns["masked"] = stages.masked[query]
    if stages.exponentials is not None:
        columns["e^(s − max)"] = stages.exponentials[query]
    return pd.DataFrame(columns | {"weight": stages.pattern[query]})


def arithmetic(labels: list[str], w: WrittenOut, query: int, key: int) -> str:
    """Returns the way from q and k to one weight, written out (Markdown)."""
    here, there = (f"{safe(labels[i])} (position {i})" for i in (query, key))
    lines = [f"**How {here} comes to give {w.weight:.4f} of its weight to {there}**\n"]
    width = len(w.pairs)
    terms = " + ".join(f"({q:.2f})({k:.2f})" for q, k in w.pairs[:3])
    rest = f" + \\ldots\\ ({width - 3}\\ more)" if width > 3 else ""
    lines.append(f"$q \\cdot k = {terms}{rest} = {w.raw:.4f}$\n")
    lines.append(_divided(w))
    if w.bias is not None:
        lines.append(f"$s + \\text{{bias}} = {w.scaled:.4f} + ({w.bias:.4f}) = {w.masked:.4f}$\n")
    if w.exponential is None:
        lines.append(f"$p = {w.weight:.4f}$, of the {w.seen} keys that it sees: {OWN_WEIGHTS}")
        return "\n".join(lines)
    lines.append(f"$e^{{s - \\max}} = e^{{{w.masked:.4f} - ({w.largest:.4f})}} = {w.exponential:.4f}$\n")
    lines.append(
        f"$p = {w.exponential:.4f} / {w.total:.4f} = {w.weight:.4f}$, a sum over the {w.seen} keys that it"
        " sees."
    )
    return "\n".join(lines)


def _divided(w: WrittenOut) -> str:
    """From the product to the score."""
    width = len(w.pairs)
    return {
        "root": f"$s = {w.raw:.4f} / \\sqrt{{{width}}} = {w.scaled:.4f}$\n",
        "none": f"$s = {w.scaled:.4f}$: the product as it is.\n",
        "number": f"$s = {w.raw:.4f} / {w.divisor or 1:.4f} = {w.scaled:.4f}$\n",
        "own": f"$s = {w.scaled:.4f}$, which this model's mixer makes of the product.\n",
    }[single_head.scaled_by(w.divisor, width)]


def _written(recording: Recording, stages: Stages, query: int, layer: int) -> None:
    lengths = single_head.lengths(recording, stages, layer, query)
    explain.takeaway(
        f"At this token the head writes a vector of length {lengths.head:.3f}; all heads of layer {layer}"
        f" together write one of length {lengths.together:.3f}. The stream before has length"
        f" {lengths.before:.3f}."
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def _stages(
    key: tuple[str, int],
    ids: tuple[int, ...],
    layer: int,
    head: int,
    _recording: Recording,
    _model: Transformer,
) -> Stages:
    return single_head.head_stages(_model, _recording, layer, head)
