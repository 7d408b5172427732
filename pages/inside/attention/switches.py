"""The view "Switch things off": the model runs again without some of its parts, and the page says what
changed.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.attention.ablation import (
    Ablation,
    Comparison,
    Consequence,
    Order,
    Switches,
    changes_nothing,
    compare,
    consequence,
    each_head_off,
    is_silent,
    missed,
    surest_position,
    writes_a_bias,
)
from engine.measure.recording import Recording
from engine.measure.shapes.formulas import formulas
from engine.model import Transformer
from pages.inside.attention import guesses
from pages.inside.attention import words_switches as words
from pages.inside.attention.figures import head_heatmap, head_table, heads_height, kl_bars, two_bars
from ui import explain, widgets
from ui.background_jobs import measured
from ui.guess import ask
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.text.markdown import safe

ORDERS: dict[str, Order] = {"as written": "kept", "shuffled": "shuffled", "reversed": "reversed"}
HOW: dict[str, Ablation] = {"zero": "zero", "its mean": "mean"}
SHOWN = 6  # candidates before and after
OFF = "attention_off"
KEYS = (OFF, "attention_mask", "attention_scaled", "attention_position", "attention_how", "attention_order")


def draw_switches(subject: Subject) -> None:
    place = token_strip(
        subject.labels,
        key="attention_at",
        chosen=surest_position(subject.recording()) if subject.gap is None else subject.gap,
        label="The position whose prediction is compared",
    )
    controls, figure = st.columns([5, 6], gap="medium")
    with controls:
        switches = _controls(subject, place)
    found = _compared(subject.key, subject.ids, switches, subject.recording(), subject.model)
    read = consequence(found, place, SHOWN)
    with figure:
        _candidates(subject, read, place)
    explain.answer(words.switched(subject, switches, found, read, place))
    if subject.config.causal:
        ask("parts", guesses.parts, subject)
    explain.measure_it(_measured, subject, found, read, switches, place)
    explain.by_hand(_how, subject)


def _candidates(subject: Subject, read: Consequence, place: int) -> None:
    """The likeliest tokens at a place, before and after."""
    names = [subject.vocabulary[i] for i in read.tokens]
    table = pd.DataFrame({"token": names, "before": read.before, "after": read.after})
    st.markdown(words.question(subject.config.causal, safe(subject.labels[place])))
    plot(
        two_bars(table),
        key="attention_tops",
        alt=f"The likeliest tokens after position {place}, before and after the change.",
        height=330,
        data=table,
        name="before-and-after",
    )


def _measured(subject: Subject, found: Comparison, read: Consequence, switches: Switches, place: int) -> None:
    _summary(subject, found, read, switches, place)
    st.markdown("**Where the prediction changed**")
    table = pd.DataFrame({"position": np.arange(len(found.kl)), "token": subject.labels, "kl_nats": found.kl})
    plot(
        kl_bars(found.kl, subject.labels, place),
        key="attention_kl",
        alt="KL divergence between the prediction before and after, one bar for each position.",
        height=320,
        data=table,
        name="kl",
    )
    _each(subject, switches.ablation)


def _controls(subject: Subject, place: int) -> Switches:
    config, scheme = subject.config, subject.model.parts.position(subject.config)
    names = [f"{i}.{h}" for i in range(config.n_layers) for h in range(config.n_heads)]
    if not any(widgets.held_or_linked(key) is not None for key in KEYS):
        st.session_state[OFF] = _of_layer(0, names)  # something is off at first sight
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        hint = words.MASK_HINT if config.causal else words.NO_MASK_HINT
        mask = widgets.switch("Mask", True, "attention_mask", hint=hint, disabled=not config.causal)
        scale = widgets.switch("Scale", True, "attention_scaled", hint=words.SCALE_HINT)
        hint = f"Off: {scheme.card.off}."
        there = scheme.present
        position = widgets.switch("Position", True, "attention_position", hint=hint, disabled=not there)
    off = widgets.select_several(
        "Ablated heads (block.head)",
        names,
        OFF,
        kind="list",
        placeholder="none: all heads are on",
    )
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.button("All", key="attention_off_all", on_click=_put, args=(names,), help=words.ALL_HINT)
        layers = list(range(config.n_layers))
        if len(layers) > widgets.FEW:
            layers = [widgets.index("Block", config.n_layers, "attention_off_layer")]
        for i in layers:
            hint = f"Ablates only the heads of block {i}."
            mine = _of_layer(i, names)
            st.button(f"Block {i}", key=f"attention_off_{i}", on_click=_put, args=(mine,), help=hint)
        st.button("None", key="attention_off_none", on_click=_put, args=([],), help=words.NONE_HINT)
    if off == _of_layer(0, names) and mask and scale and position:
        st.caption(words.FIRST)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        how = widgets.select("Replace with", list(HOW), "attention_how", kind="list", width=150)
        order = widgets.select("Earlier tokens", list(ORDERS), "attention_order", kind="list", width=150)
        seed = 0
        if order == "shuffled":
            seed = widgets.whole("Seed", 0, 9999, 0, "attention_shuffle", width=110)
    bounds = (config.n_layers, config.n_heads)
    chosen = [widgets.indexes_of(name, bounds, ".") for name in off]
    return Switches(
        mask=mask or not config.causal,
        scale=scale,
        position=position or not subject.model.parts.position(config).enters,
        heads_off=tuple((at[0], at[1]) for at in chosen if at is not None),
        ablation=HOW[how],
        order=ORDERS[order],
        seed=seed,
        order_end=place,
    )


def _of_layer(layer: int, names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(f"{layer}.")]


def _put(names: list[str]) -> None:
    st.session_state[OFF] = names


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
                else "this model fills in masked tokens; it does not predict the next one"
            )
            st.caption(f"Not measured: {why}.")
        else:
            delta = f"{read.change:+.3f}" if abs(read.change) >= 0.0005 else None
            st.metric(
                "Loss on this text, nats per token", f"{found.loss_after:.3f}", delta, delta_color="inverse"
            )
            st.caption(
                f"{found.loss_before:.3f} before"
                + (f", from position {found.start} onwards" if found.start else "")
            )
    with columns[1]:
        st.metric(f"KL at {safe(subject.labels[place])} (position {place})", f"{read.kl:.3f} nats")
        st.caption("KL(before ‖ after) of the prediction there")
    with columns[2]:
        st.metric("KL, mean over positions", f"{read.mean_kl:.3f} nats")
        st.caption("over the positions that hold the same tokens as before")
    if changes_nothing(switches):
        st.caption(":material/info: Nothing is ablated, so nothing has changed yet.")
    if not switches.mask:
        st.caption(
            ":material/info: Without the mask, each position sees the very token it should predict, but the"
            " model never learned to use it, so the loss need not fall."
        )
    if not subject.model.parts.mixer(subject.config).card.scored and not switches.scale:
        st.caption(
            ":material/info: This model's mixer is a plain mean: it has no scores, so there is nothing to"
            " scale."
        )
    elif not subject.config.score_scale and not switches.scale:
        st.caption(
            ":material/info: Like T5, this model does not scale its scores, so there is nothing to switch"
            " off."
        )
    if is_silent(subject.config, switches):
        rest = (
            "except the output bias $b_O$, which every token still gets"
            if writes_a_bias(subject.model)
            else "exactly as if there were no attention"
        )
        st.caption(f":material/info: Every head is off: attention writes nothing, {rest}.")


def _how(subject: Subject) -> None:
    scheme = subject.model.parts.position(subject.config)
    left_out = "`pos_embed` is left out." if "embed" in scheme.enters else ""
    scores = formulas(subject.config, subject.model.parts)["scores"][1]
    st.markdown(f"""
- **Mask**: `masked_scores` is replaced by `scores`, so the softmax runs over all keys.
- **Scale**: `scores`, here {scores}, is replaced by the unscaled q · kᵀ. A position bias on the scores
  stays.
- **Position** ({subject.config.position}): {scheme.card.off}. {left_out}
- **Heads**: the head's `z` is set to zero, or at every position to its mean over this text. Zero removes
  more, including anything the head writes on every text. The mean is taken over the whole text, so it
  carries a little information from later tokens.
- **Earlier tokens**, those before the chosen one, are reordered; the chosen one and everything after it
  stay in place. Only positions from there onwards are compared.
""")


def _each(subject: Subject, how: Ablation) -> None:
    hint = "Ablates each head on its own."
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
    alt = "Mean KL divergence when one head is switched off, one cell for each block and head."
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
        f"Ablated on its own, head {found.layer}.{found.head} matters most on this text: without it the"
        f" prediction moves by {found.most:.3f} nats on average. The least important head moves it by"
        f" {found.least:.4f}. Heads can stand in for each other, so these effects are not additive."
    )
