"""The view "Numbers": what each head does, measured, and why so many look at the first token."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.attention.attention_targets import NEAREST
from engine.measure.attention.habits import STRONG, Resting, extremes, followers, largest, resting
from engine.measure.attention.heads import (
    HeadNumbers,
    HeadValue,
    Sink,
    resting_place,
    sink,
)
from engine.measure.recording import Recording
from engine.measure.slices import extent
from pages.inside.attention import words
from pages.inside.attention.figures import head_heatmap, head_table, sink_bars
from pages.inside.attention.habits import REPEATED, can_repeat, numbers_of
from pages.inside.attention.shared import has_heads
from ui import explain, widgets
from ui.model_bar import Subject
from ui.players.plot import plot
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
    "Start of the word": (
        "word_start",
        "share",
        1.0,
        "Weight on the first token of the word, and on the blank before it.",
    ),
    "Own word": ("own_word", "share", 1.0, "Weight on the tokens of the word that the token is in."),
    "Nearby": ("near", "share", 1.0, f"Weight on tokens that are at most {NEAREST} places away."),
    "Blanks and punctuation": ("breaks", "share", 1.0, "Weight on tokens without letter or digit."),
    "Same token": ("same", "share", 1.0, "Weight on the same token where it stood before."),
    "Itself": ("itself", "share", 1.0, "Weight on the token's own place."),
    "Induction": (
        "induction",
        "share",
        1.0,
        (
            "On random tokens read twice: weight on the token that followed last time. Measured apart from"
            " your text."
        ),
    ),
    "Duplicate token": (
        "duplicate",
        "share",
        1.0,
        "On random tokens read twice: weight on the same token where it stood before (Wang et al. 2023).",
    ),
    "Name mover": (
        "name_mover",
        "share",
        1.0,
        (
            "Of the last token's weight, what lies on earlier tokens that the head copies: what it writes"
            " there, sent to the output by itself, makes that very token one of the likeliest (Wang et al."
            " 2023)."
        ),
    ),
}
VERBS = {
    "word_start": ("reads the start of the word", "read the start of the word"),
    "breaks": ("reads blanks and punctuation", "read blanks and punctuation"),
    "same": ("reads the same token earlier", "read the same token earlier"),
    "itself": ("reads the token itself", "read the token itself"),
    "own_word": ("stays within its own word", "stay within their own word"),
    "broad": ("looks broadly", "look broadly"),
    "near": ("looks at what is nearby", "look at what is nearby"),
    "previous": ("reads the previous token", "read the previous token"),
    "first": ("rests on the first token", "rest on the first token"),
    "induction": (
        "continues what came after the same token before (induction)",
        "continue what came after the same token before (induction)",
    ),
    "duplicate": ("finds the same token before (duplicate)", "find the same token before (duplicate)"),
    "name_mover": (
        "copies what the last token looks at (name mover)",
        "copy what the last token looks at (name movers)",
    ),
}
HEIGHT = 400
MENTIONED = 4  # heads of one habit that are named


def draw_numbers(subject: Subject) -> None:
    if not has_heads(subject):
        return
    numbers = numbers_of(subject)
    arrays = {
        field: values for field, *_ in NUMBERS.values() if (values := number_of(numbers, field)) is not None
    }
    figure, beside = st.columns([3, 1], gap="medium")
    with beside:
        name = widgets.select("Number", list(NUMBERS), "attention_number", kind="list")
        field, unit, _, meaning = NUMBERS[name]
        st.caption(meaning)
    with figure:
        if field not in arrays:
            _not_measured(subject, field)
        elif not np.isfinite(arrays[field]).any():
            st.info("The text has one token only: give it more, and there is something to measure.")
        else:
            _map(name, arrays)
    if field in arrays and np.isfinite(arrays[field]).any():
        most = largest(arrays[field])
        mean = float(np.nanmean(arrays[field]))
        explain.answer(words.most_of(name, most.layer, most.head, most.value, unit, mean))
    explain.measure_it(_more, subject, numbers, arrays)


def number_of(numbers: HeadNumbers, field: str) -> np.ndarray | None:
    """Returns (layer, head); None where it was not measured."""
    return numbers.places.get(field, getattr(numbers, field, None))


def _map(name: str, arrays: dict[str, np.ndarray]) -> None:
    """One cell for each head."""
    field, unit, top, _ = NUMBERS[name]
    least, most = extent(arrays[field])
    plot(
        head_heatmap(arrays[field], f"{name.lower()} ({unit})", top=top),
        key="attention_numbers",
        alt=f"{name} of every head, one cell for each layer and head: from {least:.3g} to {most:.3g} {unit}.",
        height=HEIGHT,
        data=head_table(arrays),
        name="heads",
    )


def _more(subject: Subject, numbers: HeadNumbers, arrays: dict[str, np.ndarray]) -> None:
    """Draws the notable heads, all numbers as a table, and attention to the first token."""
    st.markdown("**Heads that stand out**")
    st.markdown("\n".join(f"- {line}" for line in standing_out(numbers, subject.config.causal)))
    table = head_table(arrays).rename(
        columns={
            "relative_entropy": "rel. entropy",
            "name_mover": "name mover",
            "word_start": "word start",
            "own_word": "own word",
        }
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
        " 1; means over the queries of this text, the name mover's of its last token, induction and duplicate"
        f" of {REPEATED} random tokens read twice, those that Circuits reads first."
    )
    _why_first(subject, numbers)


def _not_measured(subject: Subject, field: str) -> None:
    if field == "name_mover":
        st.info("This model is an encoder: its last token predicts nothing, and no head moves a name there.")
    elif can_repeat(subject):
        st.info("The random tokens are being read.")
    else:
        st.info(
            f"{'Induction' if field == 'induction' else 'This'} needs a sequence of at least two different"
            " tokens twice; this model's context or alphabet is too small for that."
        )


def standing_out(numbers: HeadNumbers, causal: bool) -> list[str]:
    """Returns the sentences that name heads, each with what was measured."""
    lines = []
    for found in followers(numbers):
        one, several = VERBS[found.habit]
        if found.heads:
            named = ", ".join(f"{_name(head)} ({head.value:.0%})" for head in found.heads[:MENTIONED])
            more = len(found.heads) - MENTIONED
            lines.append(
                f"**{named[0].upper()}{named[1:]}** {one if len(found.heads) == 1 else several}."
                + (f" So do {more} more." if more > 0 else "")
            )
        else:
            lines.append(
                f"No head clearly {one}: the most is {found.most.value:.0%}, in {_name(found.most)}."
            )
    ends = extremes(numbers)
    if ends is not None:
        lines.append(
            f"**L{_name(ends.even)[1:]}** spreads most evenly ({ends.even.value:.0%} of the largest possible"
            " entropy)."
        )
        lines.append(
            f"**L{_name(ends.decided)[1:]}** is the most decided ({ends.decided.value:.0%};"
            f" {ends.nats:.2f} nats)."
        )
        lines.append(
            f"**L{_name(ends.farthest)[1:]}** looks farthest{' back' if causal else ''}:"
            f" {ends.farthest.value:.1f} tokens on average."
        )
    return lines or ["The text has one token only: there is nothing to compare."]


def _name(head: HeadValue) -> str:
    return f"layer {head.layer}, head {head.head}"


def _why_first(subject: Subject, numbers: HeadNumbers) -> None:
    st.markdown("### Why does everything look at the first token?")
    st.markdown(
        "A row of the pattern must sum to 1: attention has **no null answer**. A head that finds nothing to"
        " do must put its weight somewhere, like a database that is asked with a blurred key and always"
        " answers: one way to see why models make things up. Trained models often choose a token that all can"
        " see, the first, and let it say little: its value vector $v$ becomes short, so that looking there"
        " changes almost nothing. Such a token is called a sink. Whether this model does so is measured here."
    )
    if len(subject.ids) < 2:
        st.info("The text has one token only: everything looks at the first token, since there is no other.")
        return
    sink = _sink(subject.key, subject.ids, subject.recording())
    said = sink_words(resting(sink, numbers.even_first), safe(subject.labels[0]))
    place = resting_place(subject.recording().stacked("pattern"), max(8, len(subject.ids) // 3))
    if place is not None:
        layer, head, key, share = place
        said.append(
            f"The later token that a single head rests on most is {safe(subject.labels[key])} at position"
            f" {key}: layer {layer}, head {head} gives it {share:.0%}, averaged over all tokens after it."
        )
    st.markdown(" ".join(said))
    layers, kv = sink.first_norm.shape
    values = pd.DataFrame(
        {
            "layer": np.repeat(np.arange(layers), kv),
            "kv_head": np.tile(np.arange(kv), layers),
            "first_norm": sink.first_norm.reshape(-1),
            "other_norm": sink.other_norm.reshape(-1),
        }
    )
    alt = (
        "For every key-value head: the length of the value vector at the first position beside the mean"
        " length at the others."
    )
    plot(sink_bars(sink), key="attention_sink", alt=alt, height=300, data=values, name="value-norms")


def sink_words(resting: Resting, first: str) -> list[str]:
    """Says what this model does with the first token, also where theory expects something else."""
    words = [
        f"**Here:** on average a head gives {resting.share:.0%} of its weight to {first} at position 0;"
        f" spread evenly it would be {resting.even:.0%}."
    ]
    if resting.resting:
        words.append(
            f"{resting.resting} of {resting.heads} heads give it at least {STRONG:.0%}, so there are heads"
            " that rest."
        )
        if resting.ratio is not None:
            words.append(
                f"Their first value vector is {resting.ratio:.2f} times as long as the others' mean: "
                + (
                    "they look there and take little, as the theory says."
                    if resting.is_short
                    else "**not** short, so looking there does change something."
                )
            )
        words.append(
            "Of all that these heads gather (weight times length of $v$),"
            f" {resting.written:.0%} comes from there."
        )
    elif resting.is_more_than_even:
        words.append(
            "That is more than even, but no single head rests there: the habit is weak in this model."
        )
    else:
        words.append(
            "So **no head of this model rests on the first token** with this text: not every model makes"
            " itself a sink."
        )
    if resting.shortest is not None:
        words.append(
            f"Over all heads, the first value vector is {resting.shortest:.2f} to {resting.longest:.2f}"
            " times as long as the mean of the others."
        )
    return words


@st.cache_resource(max_entries=64, show_spinner=False)
def _sink(key: tuple[str, int], ids: tuple[int, ...], _recording: Recording) -> Sink:
    return sink(_recording)
