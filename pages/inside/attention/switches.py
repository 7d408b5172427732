"""The view "Switch things off": the model runs again without some of its parts, and the page says what
changed.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.ablation import Ablation, Comparison, Order, Switches, compare, each_head_off
from engine.measure.consequences import (
    Consequence,
    changes_nothing,
    consequence,
    is_silent,
    missed,
    writes_a_bias,
)
from engine.measure.formulas import formulas
from engine.measure.recording import Recording
from engine.model import Transformer
from pages.inside.attention.figures import head_heatmap, head_table, heads_height, kl_bars, two_bars
from pages.inside.attention.shared import has_heads
from ui import explain, widgets
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.slow import measured
from ui.subject import Subject
from ui.text.markdown import safe

ORDERS: dict[str, Order] = {"as written": "kept", "shuffled": "shuffled", "reversed": "reversed"}
HOW: dict[str, Ablation] = {"zero": "zero", "its mean": "mean"}
SHOWN = 8  # candidates before and after


def draw_switches(subject: Subject) -> None:
    config = subject.config
    if not has_heads(subject):
        return
    st.markdown(
        "The weights stay as they are. The forward pass runs again with something missing, and the prediction"
        " tells how much the model leaned on it."
    )
    place = token_strip(
        subject.labels,
        key="attention_at",
        chosen=len(subject.ids) - 1,
        label="The position whose prediction is compared",
    )
    switches = _controls(subject, place)
    found = _compared(subject.key, subject.ids, switches, subject.recording(), subject.model)
    read = consequence(found, place, SHOWN)
    _summary(subject, found, read, switches, place)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        words = [subject.vocabulary[i] for i in read.tokens]
        table = pd.DataFrame({"token": words, "before": read.before, "after": read.after})
        alt = f"The likeliest tokens after position {place}, before and after the change."
        st.markdown(
            f"**What comes after {safe(subject.labels[place])}?**"
            if config.causal
            else f"**What stands at {safe(subject.labels[place])}?**"
        )
        plot(
            two_bars(table),
            key="attention_tops",
            alt=alt,
            height=90 + 28 * len(words),
            data=table,
            name="before-and-after",
        )
    with right:
        st.markdown("**Where the prediction changed**")
        table = pd.DataFrame(
            {"position": np.arange(len(found.kl)), "token": subject.labels, "kl_nats": found.kl}
        )
        alt = "KL divergence between the prediction before and after, one bar for each position."
        plot(
            kl_bars(found.kl, subject.labels, place),
            key="attention_kl",
            alt=alt,
            height=320,
            data=table,
            name="kl",
        )
    _how(subject)
    _each(subject, switches.ablation)


def _controls(subject: Subject, place: int) -> Switches:
    config, scheme = subject.config, subject.model.parts.position(subject.config)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        words = (
            "Off: every token also sees the ones after it."
            if config.causal
            else "This model is an encoder: it has no mask."
        )
        mask = widgets.switch("Mask", True, "attention_mask", hint=words, disabled=not config.causal)
        scale = widgets.switch(
            "Scale", True, "attention_scaled", hint="Off: the scores are the products q·k as they are."
        )
        position = widgets.switch(
            "Position",
            True,
            "attention_position",
            hint=f"Off: {scheme.off}.",
            disabled=not scheme.present,
        )
    names = [f"{i}.{h}" for i in range(config.n_layers) for h in range(config.n_heads)]
    off = widgets.some_of(
        "Heads that are off (layer.head)",
        names,
        "attention_off",
        kind="list",
        placeholder="none: all heads work",
    )
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.button(
            "All", key="attention_off_all", on_click=_put, args=(names,), help="Switches every head off."
        )
        layers = list(range(config.n_layers))
        if len(layers) > widgets.FEW:
            layers = [widgets.index("A layer", config.n_layers, "attention_off_layer")]
        for i in layers:
            mine = [name for name in names if name.startswith(f"{i}.")]
            words = f"Switches the heads of layer {i} off, and only those."
            st.button(f"Layer {i}", key=f"attention_off_{i}", on_click=_put, args=(mine,), help=words)
        st.button("None", key="attention_off_none", on_click=_put, args=([],), help="All heads work again.")
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        how = widgets.one_of("A head that is off gives", list(HOW), "attention_how")
        order = widgets.one_of("Tokens before the chosen one", list(ORDERS), "attention_order")
        seed = 0
        if order == "shuffled":
            seed = widgets.whole("Shuffle number", 0, 9999, 0, "attention_shuffle", width=160)
    there = (config.n_layers, config.n_heads)
    chosen = [widgets.indexes_of(name, there, ".") for name in off]
    return Switches(
        mask=mask or not config.causal,
        scale=scale,
        position=position or not subject.model.parts.position(config).enters,
        heads_off=tuple((at[0], at[1]) for at in chosen if at is not None),
        ablation=HOW[how],
        order=ORDERS[order],
        seed=seed,
        place=place,
    )


def _put(names: list[str]) -> None:
    st.session_state["attention_off"] = names


@st.cache_resource(max_entries=64, show_spinner=False)
def _compared(
    key: tuple[str, int], ids: tuple[int, ...], switches: Switches, _before: Recording, _model: Transformer
) -> Comparison:
    return compare(_model, _before, switches)


def _summary(subject: Subject, found: Comparison, read: Consequence, switches: Switches, place: int) -> None:
    columns = st.columns(3)
    with columns[0]:
        if read.change is None:
            st.metric("Loss on this text", "–")
            why = (
                "no token follows the chosen one"
                if subject.config.causal
                else "this model fills gaps; it does not predict the next token"
            )
            st.caption(f"Not measured: {why}.")
        else:
            delta = f"{read.change:+.3f}" if abs(read.change) >= 0.0005 else None
            st.metric(
                "Loss on this text, nats per token", f"{found.loss_after:.3f}", delta, delta_color="inverse"
            )
            st.caption(
                f"{found.loss_before:.3f} before"
                + (f"; from position {found.start} on" if found.start else "")
            )
    with columns[1]:
        st.metric(f"KL at {safe(subject.labels[place])} (position {place})", f"{read.kl:.3f} nats")
        st.caption("KL(before ‖ after) of the prediction there")
    with columns[2]:
        st.metric("KL, mean over positions", f"{read.mean_kl:.3f} nats")
        st.caption("over the positions that hold the same tokens as before")
    if changes_nothing(switches):
        st.caption(":material/info: Everything is on, so nothing has changed yet.")
    if not switches.mask:
        st.caption(
            ":material/info: Without the mask, a token sees the very token it should predict; but it never"
            " learned to use that, so the loss need not fall."
        )
    if not subject.model.parts.mixer(subject.config).scored and not switches.scale:
        st.caption(
            ":material/info: This model's mixer is a plain mean: it has no scores, so there is nothing to"
            " scale."
        )
    elif not subject.config.score_scale and not switches.scale:
        st.caption(":material/info: This model divides no scores, as T5 does: there is nothing to leave out.")
    if is_silent(subject.config, switches):
        rest = (
            "but for the output bias $b_O$, which every token still gets"
            if writes_a_bias(subject.model)
            else "exactly as if there were no attention"
        )
        st.caption(f":material/info: Every head is off: attention writes nothing, {rest}.")


def _how(subject: Subject) -> None:
    scheme = subject.model.parts.position(subject.config)
    left_out = "`pos_embed` is left out." if "embed" in scheme.enters else ""
    scores = formulas(subject.config, subject.model.parts)["scores"][1]
    with st.expander("How each part is switched off"):
        st.markdown(f"""
- **Mask**: `masked_scores` is replaced by `scores`, so the softmax runs over all keys.
- **Scale**: `scores`, here {scores}, is replaced by q · kᵀ as it is. A position's bias on the scores stays
  as it is.
- **Position** ({subject.config.position}): {scheme.off}. {left_out}
- **Heads**: `z` of the head is set to zero, or at every position to its mean over this text. Zero takes
  away more: also what the head always writes, whatever the text. The mean is taken over the whole text, so it
  carries a little of what comes later.
- **Tokens before the chosen one** change places; the chosen one and all after it stay. Only positions
  from there on are compared.
""")


def _each(subject: Subject, how: Ablation) -> None:
    hint = "Switches each head off alone."
    if not widgets.switch("Every head, one at a time", False, "attention_each", hint=hint):
        return
    key, measure = (
        ("each head off", subject.key, subject.ids, how),
        partial(each_head_off, subject.model, subject.recording(), how),
    )
    values = measured(key, measure, "Each head in turn")
    if values is None:
        return
    found = missed(values)
    alt = "Mean KL divergence when one head is switched off, one cell for each layer and head."
    table = head_table({"kl_nats": values})
    plot(
        head_heatmap(values, "KL (nats)"),
        key="attention_each_plot",
        alt=alt,
        height=heads_height(values),
        data=table,
        name="each-head-off",
    )
    explain.takeaway(
        f"Alone, layer {found.layer}, head {found.head} is missed most on this text: without it the"
        f" prediction moves by {found.most:.3f} nats on average. The least missed moves it by"
        f" {found.least:.4f}."
        " Heads can stand in for each other, so these numbers do not add up."
    )
