"""The settings of "Token by token": what is drawn, how long it may grow, and where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from engine.config import SampleConfig
from engine.data.tokenizers import ends as ends_of
from engine.errors import TokenizerError
from engine.weights.pretrained.vocabulary import PretrainedTokenizer
from pages.output.generation import words
from pages.output.generation.records import LENGTHS, Limits
from pages.output.generation.rounding import choose_arithmetic
from ui import session, widgets
from ui.fields import visible
from ui.model_bar import Subject
from ui.players import sampler

LENGTH = 200
FARTHEST = 10**9  # a number of tokens that can be asked for; how many are written is said beside it
MAX_SEED = 2**31 - 1


def converses(subject: Subject) -> bool:
    """True if the model was trained to answer."""
    return isinstance(subject.tokenizer, PretrainedTokenizer) and subject.tokenizer.template is not None


def conversation(subject: Subject, container: Any) -> tuple[Subject, frozenset[int], str]:
    """Returns the subject to continue, the tokens that end it, and a sentence about it: the text as it is,
    or, for a model that was trained to answer and where somebody wants that, as a person's turn, unless
    its chat template refuses it. The switch stands in `container`.
    """
    tokenizer = subject.tokenizer
    if not isinstance(tokenizer, PretrainedTokenizer) or tokenizer.template is None:
        return subject, frozenset(), ""
    hint = words.CONVERSATION_HINT
    if not widgets.switch("Conversation", False, "generation_chat", container=container, hint=hint):
        return subject, frozenset(), ""
    try:
        turn = tokenizer.user_turn(subject.text)
    except TokenizerError as error:  # its template has rules of its own
        return subject, frozenset(), words.no_turn(error)
    ends = ends_of(tokenizer)
    text = " or ".join(f"`{subject.vocabulary[i]}`" for i in sorted(ends & set(turn.ids)) or sorted(ends))
    return replace(subject, ids=turn.ids), ends, words.turn(turn, text)


def row(subject: Subject) -> list[Any]:
    """Returns the places of the settings in their line; of a model that converses one more, for
    the switch.
    """
    wide = [2, 2, 3, 2, 2] + [2.4] * converses(subject)
    return list(st.columns(wide, gap="small", vertical_alignment="bottom"))


def settings(
    subject: Subject, ends: frozenset[int], containers: Sequence[Any]
) -> tuple[SampleConfig, Limits]:
    """Draws them. Whatever a link says, they can be used."""
    a, b, c, d, e = containers[:5]
    wanted = widgets.whole(
        "Tokens to write",
        -FARTHEST,
        FARTHEST,
        LENGTH,
        "generation_length",
        step=50,
        container=a,
        hint=words.LONGEST,
    )
    stop = b.text_input(
        "Stop after",
        "",
        max_chars=40,
        key="generation_stop",
        bind="query-params",
        placeholder="nothing",
        help=words.STOP,
    )
    start, hint = sampler.START.temperature, words.TEMPERATURE
    heat = widgets.slide(
        "Temperature", 0.0, 2.0, start, "generation_temperature", step=0.05, container=c, hint=hint
    )
    seed = widgets.whole("Seed", 0, MAX_SEED, 0, "generation_seed", container=d, hint=words.SEED)
    # Streamlit's own: a box that opens over the page and takes no room on it
    with e.popover("Truncation", width="stretch"):
        values = {"temperature": heat} | _cuts(subject.config.vocab_size)
        arithmetic = choose_arithmetic(subject)
    most = LENGTHS.get(session.profile().name, min(LENGTHS.values()))
    _say_length(wanted, most)
    limits = Limits(min(max(wanted, 0), most), most, visible(str(stop or ""))[:40], ends, arithmetic)
    return sampler.valid(values, seed), limits


def _cuts(vocab: int) -> dict[str, float]:
    start = sampler.START
    with st.container(width=320):
        hint = words.TOP_K.format(f"{vocab:,}")
        return {
            "top_k": widgets.whole("Top-k", 0, FARTHEST, 0, "generation_top_k", hint=hint),
            "top_p": widgets.slide(
                "Top-p", 0.0, 1.0, start.top_p, "generation_top_p", step=0.01, hint=words.TOP_P
            ),
            "min_p": widgets.slide("Min-p", 0.0, 1.0, 0.0, "generation_min_p", step=0.01, hint=words.MIN_P),
            "repetition_penalty": widgets.slide(
                "Repetition penalty", 0.5, 2.0, 1.0, "generation_penalty", step=0.05, hint=words.REPETITION
            ),
        }


def _say_length(wanted: int, most: int) -> None:
    if not 1 <= wanted <= most:
        st.caption(words.other_length(wanted, most, Limits(most, most).tree))
