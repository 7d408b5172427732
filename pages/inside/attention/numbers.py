"""The view "Numbers": what each head does, measured, and why so many look at the first token."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure import heads as measured
from engine.measure.heads import HeadNumbers, Sink, resting_place, sink
from engine.measure.recording import Recording
from pages.inside.attention.figures import head_heatmap, head_table, sink_bars
from pages.inside.attention.heads import numbers_of
from pages.inside.attention.shared import has_heads
from ui import explain, widgets
from ui.players.plot import plot
from ui.subject import Subject
from ui.text.markdown import safe

# name on screen -> (field, unit, largest value or None, what it means)
NUMBERS: dict[str, tuple[str, str, float | None, str]] = {
    "Entropy": ("entropy", "nats", None, "How widely the weight is spread. 0: all on one token."),
    "Relative entropy": (
        "relative_entropy",
        "share",
        1.0,
        "Entropy over the largest possible, $\\ln n$ for $n$ visible tokens. 1: perfectly even.",
    ),
    "Distance": (
        "distance",
        "tokens",
        None,
        "Mean distance from the token that looks to what it looks at, weighted.",
    ),
    "Previous token": ("previous", "share", 1.0, "Weight on the token just before."),
    "First token": (
        "first",
        "share",
        1.0,
        "Weight on position 0, from all later positions: the “sink” score.",
    ),
    "Induction": (
        "induction",
        "share",
        1.0,
        (
            "On random tokens read twice: weight on the token that followed last time. Measured apart from"
            " your text."
        ),
    ),
}
STRONG = {"previous": 0.4, "first": 0.4, "induction": 0.4}


def numbers_view(subject: Subject) -> None:
    if not has_heads(subject.config):
        return
    numbers = numbers_of(subject)
    arrays = {
        field: getattr(numbers, field)
        for field, *_ in NUMBERS.values()
        if getattr(numbers, field) is not None
    }
    name = widgets.one_of("Number", list(NUMBERS), "attention_number")
    field, unit, top, meaning = NUMBERS[name]
    st.caption(meaning)
    if field not in arrays:
        st.info(
            "Induction needs a sequence of at least two different tokens twice; this model's context or"
            " alphabet is too small for that."
        )
    elif not np.isfinite(arrays[field]).any():
        st.info("The text has one token only: give it more, and there is something to measure.")
    else:
        alt = (
            f"{name} of every head, one cell for each layer and head: from {np.nanmin(arrays[field]):.3g} to"
            f" {np.nanmax(arrays[field]):.3g} {unit}."
        )
        height = 110 + 42 * subject.config.n_layers
        figure = head_heatmap(arrays[field], f"{name.lower()} ({unit})", top=top)
        plot(figure, key="attention_numbers", alt=alt, height=height, data=head_table(arrays), name="heads")
    st.markdown("**Heads that stand out**")
    st.markdown("\n".join(f"- {line}" for line in standing_out(numbers, subject.config.causal)))
    table = head_table(arrays).rename(
        columns={"relative_entropy": "rel. entropy", "previous": "previous token", "first": "first token"}
    )
    wanted = {c: st.column_config.NumberColumn(format="%.3f") for c in table.columns[2:]}
    st.dataframe(
        table,
        hide_index=True,
        width="stretch",
        height=min(38 + 35 * len(table), 460),
        column_config=wanted,
        key="attention_table",
    )
    st.caption(
        "A click on a column's name sorts. Entropy in nats, distance in tokens, all others shares from 0 to"
        " 1; means over the queries of this text."
    )
    _why_first(subject, numbers)
    explain.reading(
        see=(
            "One number for each head. All but induction are measured on the text above; induction on random"
            " tokens, where nothing but copying can help."
        ),
        why=(
            "Two heads that look alike on one text may follow different rules. Numbers make models, and steps"
            " of a training, comparable."
        ),
        attempt=(
            "Choose “Previous token”, then “Induction”. In a model that can copy, a head that reads the"
            " previous token sits below an induction head."
        ),
    )
    explain.show_code(measured.head_numbers, measured.induction_score, measured.induction_scores, sink)


def standing_out(numbers: HeadNumbers, causal: bool) -> list[str]:
    """Sentences that name heads, each with what was measured."""
    kinds = {
        "previous": "reads the previous token",
        "first": "rests on the first token",
        "induction": "continues what came after the same token before (induction)",
    }
    lines = []
    for field, words in kinds.items():
        values = getattr(numbers, field)
        if values is None or not np.isfinite(values).any():
            continue
        strong = [(float(values[i]), i) for i in np.ndindex(values.shape) if values[i] >= STRONG[field]]
        if strong:
            named = ", ".join(f"{_name(at)} ({value:.0%})" for value, at in sorted(strong, reverse=True)[:4])
            verb = (
                words
                if len(strong) == 1
                else words.replace("reads", "read").replace("rests", "rest").replace("continues", "continue")
            )
            lines.append(
                f"**{named[0].upper()}{named[1:]}** {verb}."
                + (f" So do {len(strong) - 4} more." if len(strong) > 4 else "")
            )
        else:
            at = _largest(values)
            lines.append(f"No head clearly {words}: the most is {values[at]:.0%}, in {_name(at)}.")
    if np.isfinite(numbers.relative_entropy).any():
        wide, narrow = _largest(numbers.relative_entropy), _largest(-numbers.relative_entropy)
        lines.append(
            f"**L{_name(wide)[1:]}** spreads most evenly ({numbers.relative_entropy[wide]:.0%} of the largest"
            " possible entropy)."
        )
        lines.append(
            f"**L{_name(narrow)[1:]}** is the most decided ({numbers.relative_entropy[narrow]:.0%};"
            f" {numbers.entropy[narrow]:.2f} nats)."
        )
        far = _largest(numbers.distance)
        lines.append(
            f"**L{_name(far)[1:]}** looks farthest{' back' if causal else ''}: {numbers.distance[far]:.1f}"
            " tokens on average."
        )
    return lines or ["The text has one token only: there is nothing to compare."]


def _largest(values: np.ndarray) -> tuple[int, int]:
    layer, head = np.unravel_index(np.nanargmax(values), values.shape)
    return int(layer), int(head)


def _name(at: tuple[int, ...]) -> str:
    return f"layer {at[0]}, head {at[1]}"


def _why_first(subject: Subject, numbers: HeadNumbers) -> None:
    st.markdown("### Why does everything look at the first token?")
    st.markdown(
        "A row of the pattern must sum to 1: attention has **no null answer**. A head that finds nothing to"
        " do must put its weight somewhere. Trained models often choose a token that all can see, the first,"
        " and let it say little: its value vector $v$ becomes short, so that looking there changes almost"
        " nothing. Such a token is called a sink. Whether this model does so is measured here."
    )
    if len(subject.ids) < 2:
        st.info("The text has one token only: everything looks at the first token, since there is no other.")
        return
    found = _sink(subject.key, subject.ids, subject.recording())
    words = sink_words(found, numbers.even_first, safe(subject.labels[0]))
    place = resting_place(subject.recording().stacked("pattern"), max(8, len(subject.ids) // 3))
    if place is not None:
        layer, head, key, share = place
        words.append(
            f"The later token that a single head rests on most is {safe(subject.labels[key])} at position"
            f" {key}: layer {layer}, head {head} gives it {share:.0%}, averaged over all tokens after it."
        )
    st.markdown(" ".join(words))
    layers, kv = found.first_norm.shape
    values = pd.DataFrame(
        {
            "layer": np.repeat(np.arange(layers), kv),
            "kv_head": np.tile(np.arange(kv), layers),
            "first_norm": found.first_norm.reshape(-1),
            "other_norm": found.other_norm.reshape(-1),
        }
    )
    alt = (
        "For every key-value head: the length of the value vector at the first position beside the mean"
        " length at the others."
    )
    plot(sink_bars(found), key="attention_sink", alt=alt, height=300, data=values, name="value-norms")


def sink_words(found: Sink, even: float, first: str) -> list[str]:
    """What is seen in this model, also where it is not what the theory expects."""
    share, layers = float(np.nanmean(found.share)), found.first_norm.shape
    ratio = np.divide(
        found.first_norm, found.other_norm, out=np.full(layers, np.nan), where=found.other_norm > 0
    )
    resting = found.share >= STRONG["first"]
    words = [
        f"**Here:** on average a head gives {share:.0%} of its weight to {first} at position 0; spread evenly"
        f" it would be {even:.0%}."
    ]
    if resting.any():
        mine = ratio[tuple(_kv_of(found, resting))]
        words.append(
            f"{int(resting.sum())} of {resting.size} heads give it at least {STRONG['first']:.0%}, so there"
            " are heads that rest."
        )
        words.append(
            f"Their first value vector is {np.nanmean(mine):.2f} times as long as the others' mean: "
            + (
                "they look there and take little, as the theory says."
                if np.nanmean(mine) < 0.7
                else "**not** short, so looking there does change something."
            )
        )
        words.append(
            "Of all that these heads gather (weight times length of $v$),"
            f" {np.nanmean(found.written[resting]):.0%} comes from there."
        )
    elif share > 1.5 * even:
        words.append(
            "That is more than even, but no single head rests there: the habit is weak in this model."
        )
    else:
        words.append(
            "So **no head of this model rests on the first token** with this text: not every model makes"
            " itself a sink."
        )
    if np.isfinite(ratio).any():
        words.append(
            f"Over all heads, the first value vector is {np.nanmin(ratio):.2f} to {np.nanmax(ratio):.2f}"
            " times as long as the mean of the others."
        )
    return words


def _kv_of(found: Sink, heads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The key-value head of each of the marked query heads."""
    layer, head = np.nonzero(heads)
    return layer, head // math.ceil(heads.shape[1] / found.first_norm.shape[1])


@st.cache_resource(max_entries=64, show_spinner=False)
def _sink(key: tuple[str, int], ids: tuple[int, ...], _recording: Recording) -> Sink:
    return sink(_recording)
