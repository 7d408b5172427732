"""The view "Step by step": one head from q, k and v to what it writes into the stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from engine.model import Transformer
from engine.parts.attention import Attention
from engine.recording import Recording
from pages.inside.attention import axes
from pages.inside.attention.heads_map import TOPIC
from studies.attention import single_head
from studies.attention.single_head import Stages, WrittenOut
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.patterns import matrix_heatmap, named_cells, pattern_heatmap, pattern_table, placed
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.model_needs import QUERIES_KEYS
from ui.page_frame import View
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.text.numbers import scientific

TEXT = content.beside(__file__)
STAGES = ("q, k, v", "q·k", "÷ √d", "mask", "softmax", "· v", "W_O")
TERMS = 3  # of a dot product that are written out
HEIGHT, TALL, WIDE = 410, 320, 230  # pixels: of the figure, and of its cells where they have least room
STRONGEST = -1  # whichever key gets most of the weight


def draw(subject: Subject) -> None:
    config = subject.config
    recording = subject.recording()
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        layer, head = widgets.head(config, TOPIC)
        stages = _stages(subject.key, subject.ids, layer, head, recording, subject.model)
        stage = widgets.select(TEXT["stage"], names_of(stages), "attention_stage", first=STAGES[1])
    figure, beside = st.columns([2, 1], gap="medium")
    with beside:
        query = token_strip(
            subject.labels,
            key="attention_query",
            chosen=single_head.telling_query(stages.pattern),
            label=TEXT["query"],
        )
        key = _choose_key(subject, stages, query)
        st.markdown(" ".join(filter(None, (_formula(stage, stages), variant(subject, stage, stages)))))
    with figure:
        _picture(subject, recording, stages, stage, layer, head)
    written = single_head.written_out(stages, query, key)
    explain.answer(
        TEXT(
            "one weight",
            query=subject.labels[query],
            key=subject.labels[key],
            weight=written.weight,
            product=written.raw,
            score=written.masked,
            seen=written.seen,
        )
    )
    explain.measure_it(_more, subject, recording, stages, layer, head, query)
    explain.by_hand(_by_hand, subject, stages, query, key)


def _more(subject: Subject, recording: Recording, stages: Stages, layer: int, head: int, query: int) -> None:
    st.caption(TEXT("recomputed", gap=scientific(single_head.gap(stages, recording, layer, head), 0)))
    norms = single_head.lengths(subject.model, recording, stages, layer, query)
    explain.takeaway(
        TEXT("written", head=norms.head, layer=layer, together=norms.together, before=norms.before)
    )


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
    visible = single_head.keys_seen(stages, query)
    titles = {
        key: TEXT("key title", label=subject.labels[key], key=key, weight=stages.pattern[query, key])
        for key in visible
    }
    options = {STRONGEST: TEXT("strongest", title=titles[best])} | titles
    chosen = widgets.select(TEXT["key"], options, "attention_key", kind="list")
    return best if chosen == STRONGEST else chosen


def _picture(
    subject: Subject, recording: Recording, stages: Stages, stage: str, layer: int, head: int
) -> None:
    labels = subject.labels
    name, height = f"stage-{STAGES.index(stage) + 1}-layer-{layer}-head-{head}", HEIGHT
    if stage in ("q, k, v", "· v", "W_O"):
        if stage == "q, k, v":
            turns = "rotate" in subject.model.parts.position(subject.config).enters
            changed = subject.config.qk_norm or turns
            names = ("q", "q_rot", "k", "k_rot", "v") if changed else ("q", "k", "v")
            every = single_head.vectors(recording, layer, head)
            parts = {part: every[part] for part in names}
        else:
            parts = {"z": stages.z} if stage == "· v" else {TEXT["stream"]: stages.written}
        columns = [f"{part} {i}" for part, values in parts.items() for i in range(values.shape[1])]
        table = pd.DataFrame(np.concatenate(list(parts.values()), axis=1), columns=columns)
        plot(
            parts_figure(parts, labels),
            key="attention_stage_plot",
            alt=TEXT("alt parts", parts=", ".join(parts), layer=layer, head=head),
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
        alt=TEXT("alt stage", stage=names_of(stages)[stage], layer=layer, head=head),
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


def names_of(stages: Stages) -> dict[str, str]:
    """Returns the names of the stages: the one of the division by √d only where there is one."""
    divides = single_head.scaled_by(stages.divisor, stages.q.shape[1]) == "root"
    return {stage: stage if divides or stage != "÷ √d" else TEXT["scores"] for stage in STAGES}


def _formula(stage: str, stages: Stages) -> str:
    """The formula of a stage, or that it is not written out."""
    case = stage
    if stage == "softmax" and stages.exponentials is None:
        case = "own weights"
    elif stage == "÷ √d":
        case = f"scaled {single_head.scaled_by(stages.divisor, stages.q.shape[1])}"
    return TEXT(f"formula {case}", divisor=stages.divisor)


def variant(subject: Subject, stage: str, stages: Stages) -> str:
    """Says how this model differs at a stage, in a sentence; nothing where it does not."""
    config = subject.config
    turns = "rotate" in subject.model.parts.position(config).enters
    if stage == "q, k, v" and config.mixer == "shared_qk":
        return TEXT["variant same"]
    if stage == "q·k" and config.qk_norm:
        return TEXT["variant both" if turns else "variant normalised"]
    if stage == "q·k" and turns:
        return TEXT["variant rotated"]
    if stage == "÷ √d" and stages.bias is not None:
        return TEXT["variant bias"]
    if stage == "mask" and not config.causal:
        return TEXT["variant no mask"]
    if stage == "W_O" and not config.output_projection:
        return TEXT["variant unprojected"]
    return ""


def arithmetic(labels: list[str], w: WrittenOut, query: int, key: int) -> str:
    """Returns the way from q and k to one weight, written out (Markdown)."""
    width = len(w.pairs)
    lines = [
        TEXT(
            "worked title", query=labels[query], query_at=query, weight=w.weight, key=labels[key], key_at=key
        ),
        TEXT(
            "worked product long" if width > TERMS else "worked product",
            terms=content.Filled(" + ".join(TEXT("term", q=q, k=k) for q, k in w.pairs[:TERMS])),
            more=width - TERMS,
            product=w.raw,
        ),
        TEXT(
            f"worked score {single_head.scaled_by(w.divisor, width)}",
            product=w.raw,
            width=width,
            divisor=w.divisor,
            score=w.scaled,
        ),
    ]
    if w.bias is not None:
        lines.append(TEXT("worked bias", score=w.scaled, bias=w.bias, biased=w.masked))
    if w.exponential is None:
        lines.append(TEXT("worked weight own", weight=w.weight, seen=w.seen))
    else:
        e = w.exponential
        lines.append(TEXT("worked exponential", biased=w.masked, largest=w.largest, exponential=e))
        lines.append(TEXT("worked weight", exponential=e, total=w.total, weight=w.weight, seen=w.seen))
    return "\n\n".join(lines)


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


def parts_figure(parts: Mapping[str, np.ndarray], labels: Sequence[str]) -> go.Figure:
    """Draws matrices (position, width) side by side, signed, on one scale; each named above its columns."""
    values = np.concatenate(list(parts.values()), axis=1)
    figure = matrix_heatmap(
        values,
        labels,
        "value",
        signed=True,
        columns=[str(i) for i in range(values.shape[1])],
        across="dimension",
    )
    edges = np.cumsum([0, *(p.shape[1] for p in parts.values())])
    line = {"color": colour("quiet"), "width": 1}
    layout = {
        "xaxis": {
            "tickmode": "array",
            "tickvals": (edges[:-1] + edges[1:] - 1) / 2,
            "ticktext": list(parts),
            "tickfont": {"size": 14},
        },
        "yaxis": {"title": {"text": "token"}},
        "shapes": [go.rule(x=x - 0.5, line=line) for x in edges[1:-1]],
    }
    names = [f"{part} {i}" for part, matrix in parts.items() for i in range(matrix.shape[1])]
    cells = named_cells([f"token {name}" for name in placed(labels)], names, ", ")
    return figure.changed(layout, hovertemplate="%{hovertext}<br>%{z:.4f}<extra></extra>", **cells)


VIEW = View(
    "steps",
    TEXT,
    draw,
    code=(Attention, Attention.forward, single_head.head_stages),
    takes=(QUERIES_KEYS,),
)
