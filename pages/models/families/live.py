"""Overview, its live models: one sentence in an encoder, a decoder and an encoder-decoder, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from engine.config import SampleConfig
from engine.errors import GlassformerError
from engine.measure.families.three_families import (
    Continuation,
    FilledText,
    Hiding,
    Translation,
    WrittenSymbol,
    carry_on,
    fill_in,
    hidden_positions,
    sentences,
    translate,
)
from engine.weights.checkpoints import Checkpoint, load
from pages.models.families import words_live as words
from ui import explain, families, memo, widgets
from ui.figures import theme
from ui.players.component import mounted
from ui.site import ROOT
from ui.text.tokens import show_characters

PLAYER, TEXT, CLICKED, STEP = "live_player", "live_text", "live_clicked", "live_step"
LENGTH = 24  # letters that the decoder writes
LONGEST = 80  # letters that may be typed
OFFERED, SHORT = 24, 48  # sentences, and letters of the longest
MAX_SEED = 2**31 - 1
KEPT = 64


def draw_live() -> None:
    text, hiding, sampling = _controls()
    toggled = _toggled(text)
    filled, why_filled = _tried(
        lambda: _filled(text, hidden_positions(text, hiding, toggled) if text else ())
    )
    continued, why_continued = _tried(lambda: _continued(text, sampling))
    translated, why_translated = _tried(lambda: _translated(text))
    last = max(1, *(len(result.symbols) if result else 0 for result in (continued, translated)))
    columns = [
        _filled_column(text, filled, last) | {"cannot": why_filled},
        _continued_column(text, continued, last) | {"cannot": why_continued},
        _translated_column(text, translated, last) | {"cannot": why_translated},
    ]
    step = widgets.number_of(widgets.read_url(STEP))
    data = {
        "columns": columns,
        "last": last,
        "step": last if step is None else min(step, last),
        "name": STEP,
        "text": text,
        "toggled": list(toggled),
        "palette": theme.palette(),
    }
    mounted("threeways", stepper=True)(key=PLAYER, data=data, on_clicked_change=partial(_click, text))
    explain.answer(words.answered(filled, continued, translated))
    explain.by_hand(lambda: st.markdown(words.BY_HAND))


def _controls() -> tuple[str, Hiding, SampleConfig]:
    line = st.columns([6, 2, 3, 2], gap="small", vertical_alignment="bottom")
    typed = line[0].text_input("Sentence", words.FIRST, key=TEXT, max_chars=LONGEST, **widgets.KEPT)
    line[1].button("Another", on_click=_another, icon=":material/shuffle:", width="stretch")
    hiding = widgets.select("Hidden", words.HIDING, "live_hiding", kind="list", container=line[2])
    # Streamlit's own: a box that opens over the page and takes no room on it
    with line[3].popover("Sampling", width="stretch"):
        hint = "For the decoder. 0: always the most likely character."
        warm = widgets.slide("Temperature", 0.0, 2.0, 0.0, "live_temperature", step=0.1, hint=hint)
        hint = "Sampling seed, for temperatures above 0."
        seed = widgets.whole("Seed", 0, MAX_SEED, 0, "live_seed", hint=hint, disabled=warm == 0)
    return " ".join(typed.split())[:LONGEST], hiding, SampleConfig(temperature=warm, seed=seed)


def _another() -> None:
    """The next of the sentences that are offered."""
    offered = _offered()
    now = st.session_state.get(TEXT, words.FIRST)
    index = offered.index(now) if now in offered else -1
    st.session_state[TEXT] = offered[(index + 1) % len(offered)]


def _toggled(text: str) -> tuple[int, ...]:
    """The letters of this text that were clicked, as the link has them; none after another text came."""
    linked: Iterable[str] = widgets.read_url(CLICKED).split("-")
    if st.session_state.setdefault("live_drawn", text) != text:
        linked = ()
    st.session_state["live_drawn"] = text
    clicked = {widgets.index_of(part, len(text)) for part in linked} - {None}
    return _keep_clicked(clicked)


def _keep_clicked(places: Iterable[Any]) -> tuple[int, ...]:
    clicked = tuple(sorted(places))
    widgets.keep_in_url(CLICKED, "-".join(map(str, clicked)) or None)
    return clicked


def _click(text: str) -> None:
    held = widgets.picked(PLAYER, "clicked")
    if isinstance(held, dict) and held.get("text") == text and isinstance(held.get("places"), list):
        _keep_clicked({i for i in held["places"] if isinstance(i, int) and 0 <= i < len(text)})


def _tried(make: Callable[[], Any]) -> tuple[Any, str | None]:
    """(what came of it, None), or (None, the reason)."""
    try:
        return make(), None
    except GlassformerError as error:
        return None, words.cannot(str(error))


# The three, each made once ------------------------------------------------------------------------


@memo.loaded()
def _letters(name: str) -> Checkpoint:
    return load(ROOT / "checkpoints" / name)


@memo.measured()
def _offered() -> tuple[str, ...]:
    return sentences(OFFERED, SHORT)


@memo.measured()
def _filled(text: str, hidden: tuple[int, ...]) -> FilledText:
    checkpoint = _letters("encoders/blanks")
    return fill_in(checkpoint.model, checkpoint.tokenizer, text, hidden)


@memo.measured()
def _continued(text: str, sampling: SampleConfig) -> Continuation:
    checkpoint = _letters("shakespeare-modern")
    return carry_on(checkpoint.model, checkpoint.tokenizer, text, LENGTH, sampling)


@memo.measured()
def _translated(text: str) -> Translation:
    pair = families.pair_of(families.FIRST_PAIR)
    assert pair is not None
    return translate(pair.model, pair.tokenizer, text)


# What is sent of each -----------------------------------------------------------------------------


def _filled_column(text: str, filled: FilledText | None, last: int) -> dict[str, Any]:
    column = _column("encoder", [("", list(text))], filled, words.filled_line, last)
    if filled is not None:
        column["said"] = [
            _sent(guess, 0, position, 1, words.filled_sentence(filled, i))
            | {"wrong": guess.symbol != text[position]}
            for i, (position, guess) in enumerate(zip(filled.positions, filled.symbols, strict=True))
        ]
    return column


def _continued_column(text: str, continued: Continuation | None, last: int) -> dict[str, Any]:
    written = continued.written if continued else ""
    column = _column("decoder", [("", list(text + written))], continued, words.continued_line, last)
    if continued is not None:
        column["said"] = [
            _sent(step, 0, len(text) + i, i + 1, words.step_sentence(step))
            for i, step in enumerate(continued.symbols)
        ]
    return column


def _translated_column(text: str, translated: Translation | None, last: int) -> dict[str, Any]:
    if translated is None:
        return _column("both", [(words.SOURCE, text.split())], translated, words.translated_line, last)
    target = ["<begin>", *(step.symbol for step in translated.symbols)]
    rows = [(words.SOURCE, list(translated.source)), (words.TARGET, target)]
    column = _column("both", rows, translated, words.translated_line, last)
    column["said"] = [
        _sent(step, 1, i + 1, i + 1, words.step_sentence(step)) for i, step in enumerate(translated.symbols)
    ]
    return column


def _column(
    family: str,
    rows: Sequence[tuple[str, Sequence[str]]],
    result: Any,
    line: Callable[[Any, int], str],
    last: int,
) -> dict[str, Any]:
    title, does = words.TITLES[family]
    return {
        "family": family,
        "title": title,
        "does": does,
        "rows": [{"name": name, "cells": [show_characters(cell) for cell in cells]} for name, cells in rows],
        "lines": [line(result, step) for step in range(last + 1)] if result is not None else [],
        "said": [],
    }


def _sent(written: WrittenSymbol, row: int, at: int, step: int, sentence: str) -> dict[str, Any]:
    """`reads`: the weights over each row of the column, the source first where there is one."""
    both = (
        (written.cross_weights, written.self_weights)
        if len(written.cross_weights)
        else (written.self_weights,)
    )
    return {
        "symbol": show_characters(written.symbol),
        "row": row,
        "at": at,
        "step": step,
        "told": sentence,
        "wrong": False,
        "reads": [[round(float(weight), 4) for weight in weights] for weights in both],
    }
