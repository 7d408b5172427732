"""Who pushed the logit: direct logit attribution."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import ModelConfig
from engine.measure.attribution import Attribution, Versus, attribute
from engine.measure.residual import is_sum
from pages.inside.residual import figures
from pages.inside.residual.lens import position_word
from ui import explain
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.subject import Subject
from ui.text.markdown import safe

POSITION = "residual_position"
TOP, ITSELF, MEAN = "top guess", "nothing", "mean of all"


@st.cache_resource(max_entries=128, show_spinner=False)
def _attribution(
    key: tuple[str, int], ids: tuple[int, ...], position: int, target: int, versus: Versus, _subject: Subject
) -> Attribution:
    return attribute(_subject.model, _subject.recording(), position, target, versus)


def not_a_sum(config: ModelConfig) -> str:
    """Why the final stream cannot be taken apart into writes."""
    if config.wiring == "none":
        return (
            "This model has no residual stream: each sublayer replaces what it read, so nothing is a sum that"
            " could be taken apart."
        )
    return (
        "This model is post-norm: after every sum a norm rescales the whole stream, so the final stream is"
        " not the sum of what was written. Every write passes through all the norms above it; one frozen"
        " divisor is not enough to take that apart, so it is not offered here."
    )


def draw_attribution(subject: Subject) -> None:
    """The parts of one logit: bars by layer, and heads against layers."""
    if not is_sum(subject.config, subject.model.parts):
        st.info(not_a_sum(subject.config))
        return
    position = token_strip(
        subject.labels, key=POSITION, chosen=len(subject.ids) - 1, label=_strip_label(subject)
    )
    target, versus = _choose_tokens(subject, position)
    found = _attribution(subject.key, subject.ids, position, target, versus, subject)
    name = subject.vocabulary[target]
    against = (
        "" if versus is None else " − mean" if versus == "mean" else f" − “{subject.vocabulary[versus]}”"
    )
    facts = {
        "Sum of the parts": f"{found.total:+.4f}",
        f"Logit of “{name}”{against}": f"{found.logit:+.4f}",
        "Difference": f"{found.total - found.logit:+.1e}",
    }
    for column, (label, value) in zip(st.columns(3), facts.items(), strict=True):
        column.metric(safe(label), value)
    labels, parts, values = _bars(subject.config, found)
    wide, narrow = (
        st.columns([3, 2], gap="medium") if subject.config.mixer != "none" else (st.container(), None)
    )
    with wide:
        plot(
            figures.part_bars(labels, parts, values, title="pushes the logit (nats)"),
            key="residual_parts",
            height=390,
            name="logit-attribution",
            data=pd.DataFrame({"writer": labels, "part": parts, "contribution": values}),
            alt=(
                f"Bars: what each writer to the residual stream adds to the logit of {name} at position"
                f" {position}, bottom of the model first."
            ),
        )
    if narrow is not None:
        layers, heads = ([str(i) for i in range(n)] for n in found.heads.shape)
        with narrow:
            plot(
                figures.signed_map(found.heads, heads, layers, x="head", y="layer", unit="nats"),
                key="residual_heads",
                height=390,
                name="head-attribution",
                data=pd.DataFrame(found.heads, columns=[f"head_{h}" for h in heads])
                .rename_axis("layer")
                .reset_index(),
                alt=(
                    "Heatmap of the contribution of each head (columns) in each layer (rows) to the logit;"
                    " blue pushes down, orange up."
                ),
            )
    best, worst = int(values.argmax()), int(values.argmin())
    where, down = (
        f"{position_word(subject.config)} “{safe(subject.labels[position])}”",
        "down" if values[worst] < 0 else "least",
    )
    explain.takeaway(
        f"For “{safe(name)}” {where}, **{safe(labels[best])}** pushes most, {values[best]:+.2f} nats;"
        f" **{safe(labels[worst])}** pushes {down}, {values[worst]:+.2f}."
        f" {_frozen(subject.config, found.scale)}"
    )


def _strip_label(subject: Subject) -> str:
    return (
        "Position whose next token is predicted"
        if subject.config.causal
        else "Position whose token is predicted"
    )


def _frozen(config: ModelConfig, scale: float) -> str:
    if config.norm == "none":
        return "There is no final norm, so nothing had to be frozen."
    what = {
        "layernorm": "LayerNorm's subtraction of the mean is linear and stays in",
        "rmsnorm": "RMSNorm subtracts nothing",
    }[config.norm]
    return f"The final norm's divisor is frozen at {scale:.3f}, its value on this text; {what}."


def _choose_tokens(subject: Subject, position: int) -> tuple[int, Versus]:
    """(target id, what it is compared with) from two boxes of shown tokens; what another alphabet left behind
    falls back.
    """
    ids = {word: i for i, word in reversed(list(enumerate(subject.vocabulary)))}
    boxes = (("residual_target", [TOP, *ids]), ("residual_versus", [ITSELF, MEAN, *ids]))
    for key, options in boxes:
        if key in st.session_state and st.session_state[key] not in options:
            del st.session_state[key]
    left, right, _ = st.columns([2, 2, 3])
    top = int(subject.recording().logits[position].argmax())
    hint = f"The token whose logit is taken apart; “{TOP}” is the likeliest one at this position."
    chosen = left.selectbox("Target token", boxes[0][1], key=boxes[0][0], bind="query-params", help=hint)
    other = right.selectbox(
        "Compared with",
        boxes[1][1],
        key=boxes[1][0],
        bind="query-params",
        help=(
            "A constant added to all logits changes nothing, so the difference to another token says more"
            " than a logit by itself."
        ),
    )
    versus: Versus = "mean" if other == MEAN else ids.get(other or ITSELF)
    return ids.get(chosen or TOP, top), versus


def _bars(config: ModelConfig, found: Attribution) -> tuple[list[str], list[str], np.ndarray]:
    """(labels, parts, values) bottom first. With many heads, one bar for all heads of a layer: the heatmap
    has the heads.
    """
    single = found.heads.size <= 40
    rows: list[tuple[str, str, float]] = [("embed", "embedding", found.embedding)]
    if config.position in ("learned", "sinusoidal"):
        rows.append(("position", "position", found.position))
    for i in range(config.n_layers):
        if config.mixer != "none":
            heads = [(f"head {i}.{h}", "attention", float(v)) for h, v in enumerate(found.heads[i])]
            rows += heads if single else [(f"heads {i}", "attention", float(found.heads[i].sum()))]
        if found.attention_bias[i]:
            rows.append((f"attn bias {i}", "attention", float(found.attention_bias[i])))
        if config.ffn != "none":
            rows.append((f"ffn {i}", "feedforward", float(found.feedforward[i])))
    if config.norm_bias:
        rows.append(("norm bias", "norm", found.norm_bias))
    labels, parts, values = zip(*rows, strict=True)
    return list(labels), list(parts), np.asarray(values)
