"""The view "Step by step": one head from q, k and v to what it writes into the stream."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.attention import single_head
from engine.measure.attention.single_head import Stages
from engine.measure.recording import Recording
from engine.model import Transformer
from pages.inside.attention import axes, words
from pages.inside.attention import words_steps as steps_words
from pages.inside.attention.figures import parts_heatmap
from pages.inside.attention.heads_map import TOPIC
from ui import explain, memo, widgets
from ui.figures.patterns import matrix_heatmap, pattern_heatmap, pattern_table
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.tokens import token_strip

HEIGHT, TALL, WIDE = 410, 320, 230  # pixels: of the figure, and of its cells where they have least room
STRONGEST = -1  # whichever key gets most of the weight


def draw_steps(subject: Subject) -> None:
    config = subject.config
    recording = subject.recording()
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        layer, head = widgets.head(config, TOPIC)
        stages = _stages(subject.key, subject.ids, layer, head, recording, subject.model)
        names = steps_words.names_of(stages)
        stage = widgets.select(steps_words.STAGE, names, "attention_stage", first=steps_words.STAGES[1])
    figure, beside = st.columns([2, 1], gap="medium")
    with beside:
        query = token_strip(
            subject.labels,
            key="attention_query",
            chosen=single_head.telling_query(stages.pattern),
            label=words.LOOKS,
        )
        key = _choose_key(subject, stages, query)
        st.markdown(steps_words.formula(stage, stages) + steps_words.variant(subject, stage, stages))
    with figure:
        _picture(subject, recording, stages, stage, layer, head)
    written = single_head.written_out(stages, query, key)
    explain.answer(words.step_by_step(subject.labels, written, query, key))
    explain.measure_it(_more, subject, recording, stages, layer, head, query)
    explain.by_hand(_by_hand, subject, stages, query, key)


def _more(subject: Subject, recording: Recording, stages: Stages, layer: int, head: int, query: int) -> None:
    st.caption(steps_words.recomputed(single_head.gap(stages, recording, layer, head)))
    lengths = single_head.lengths(subject.model, recording, stages, layer, query)
    explain.takeaway(steps_words.written(lengths, layer))


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
    st.markdown(
        steps_words.arithmetic(subject.labels, single_head.written_out(stages, query, key), query, key)
    )


def _choose_key(subject: Subject, stages: Stages, query: int) -> int:
    """The key to write out: the strongest, or one of the keys that are seen, then in the URL."""
    best = single_head.strongest_key(stages, query)
    visible = single_head.keys_seen(stages, query)

    titles = {
        key: steps_words.KEY_TITLE.format(
            label=subject.labels[key], key=key, weight=stages.pattern[query, key]
        )
        for key in visible
    }
    options = {STRONGEST: steps_words.STRONGEST.format(title=titles[best])} | titles
    chosen = widgets.select(steps_words.KEY, options, "attention_key", kind="list")
    return best if chosen == STRONGEST else chosen


def _picture(
    subject: Subject, recording: Recording, stages: Stages, stage: str, layer: int, head: int
) -> None:
    labels = subject.labels
    name, height = f"stage-{steps_words.STAGES.index(stage) + 1}-layer-{layer}-head-{head}", HEIGHT
    if stage in ("q, k, v", "· v", "W_O"):
        if stage == "q, k, v":
            turns = "rotate" in subject.model.parts.position(subject.config).enters
            changed = subject.config.qk_norm or turns
            names = ("q", "q_rot", "k", "k_rot", "v") if changed else ("q", "k", "v")
            every = single_head.vectors(recording, layer, head)
            parts = {part: every[part] for part in names}
        else:
            parts = {"z": stages.z} if stage == "· v" else {steps_words.TO_STREAM: stages.written}
        columns = [f"{part} {i}" for part, values in parts.items() for i in range(values.shape[1])]
        table = pd.DataFrame(np.concatenate(list(parts.values()), axis=1), columns=columns)
        plot(
            parts_heatmap(parts, labels),
            key="attention_stage_plot",
            alt=steps_words.parts_alt(list(parts), layer, head),
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
        alt=steps_words.STAGE_ALT.format(name=steps_words.names_of(stages)[stage], layer=layer, head=head),
        height=height,
        data=pattern_table(values, labels),
        name=name,
    )


def _table(subject: Subject, stages: Stages, query: int) -> pd.DataFrame:
    """One row for each key, one column for each stage."""
    columns = {"position": np.arange(len(subject.ids)), "key": subject.labels}
    columns["q·k"] = stages.raw[query]
    columns[steps_words.names_of(stages)["÷ √d"]] = stages.scaled[query]
    if stages.bias is not None:
        columns["+ bias"] = single_head.biased(stages)[query]
    if subject.config.causal:
        columns["masked"] = stages.masked[query]
    if stages.exponentials is not None:
        columns["e^(s − max)"] = stages.exponentials[query]
    return pd.DataFrame(columns | {"weight": stages.pattern[query]})


@memo.measured()
def _stages(
    key: tuple[str, int],
    ids: tuple[int, ...],
    layer: int,
    head: int,
    _recording: Recording,
    _model: Transformer,
) -> Stages:
    return single_head.head_stages(_model, _recording, layer, head)
