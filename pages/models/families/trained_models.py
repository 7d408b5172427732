"""Trained models, a part of the view "Overview": one sentence in an encoder, a decoder and an
encoder-decoder, step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.checkpoints import Checkpoint, load
from engine.config import SampleConfig
from engine.errors import GlassformerError
from studies.families.three_families import (
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
from ui import content, explain, families, memo, widgets
from ui.figures import theme
from ui.page_frame import View
from ui.players.component import mounted
from ui.site import ROOT
from ui.text.tokens import show_characters

TEXT = content.beside(__file__)
PLAYER, TYPED, CLICKED, STEP = "live_player", "live_text", "live_clicked", "live_step"
LENGTH = 24  # letters that the decoder writes
LONGEST = 80  # letters that may be typed
OFFERED, SHORT = 24, 48  # sentences, and letters of the longest
MAX_SEED = 2**31 - 1


def draw(_: DeltaGenerator) -> None:
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
    step = widgets.url_index(STEP, last + 1, nearest=True)
    data = {
        "columns": columns,
        "last": last,
        "step": last if step is None else step,
        "name": STEP,
        "text": text,
        "toggled": list(toggled),
        "palette": theme.palette(),
    }
    mounted("threeways", stepper=True)(key=PLAYER, data=data, on_clicked_change=partial(_click, text))
    explain.answer(_answer(filled, continued, translated))
    explain.by_hand(st.markdown, TEXT["by hand"])


def _controls() -> tuple[str, Hiding, SampleConfig]:
    line = st.columns([6, 2, 3, 2], gap="small", vertical_alignment="bottom")
    typed = line[0].text_input(TEXT["sentence"], TEXT["first"], key=TYPED, max_chars=LONGEST, **widgets.KEPT)
    line[1].button(TEXT["another"], on_click=_another, icon=":material/shuffle:", width="stretch")
    ways: dict[Hiding, str] = {way: TEXT(f"hidden {way}") for way in get_args(Hiding)}
    hiding = widgets.select(TEXT["hidden"], ways, "live_hiding", kind="list", container=line[2])
    # Streamlit's own: a box that opens over the page and takes no room on it
    with line[3].popover(TEXT["sampling"], width="stretch"):
        hint = TEXT["temperature hint"]
        warm = widgets.slide(TEXT["temperature"], 0.0, 2.0, 0.0, "live_temperature", step=0.1, hint=hint)
        hint = TEXT["seed hint"]
        seed = widgets.whole(TEXT["seed"], 0, MAX_SEED, 0, "live_seed", hint=hint, disabled=warm == 0)
    return " ".join(typed.split())[:LONGEST], hiding, SampleConfig(temperature=warm, seed=seed)


def _another() -> None:
    """The next of the sentences that are offered."""
    offered = _offered()
    now = st.session_state.get(TYPED, TEXT["first"])
    index = offered.index(now) if now in offered else -1
    st.session_state[TYPED] = offered[(index + 1) % len(offered)]


def _toggled(text: str) -> tuple[int, ...]:
    """The letters of this text that were clicked, as the link has them; none after another text came."""
    linked = [] if widgets.outdated(CLICKED, text) else widgets.read_url(CLICKED).split("-")
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
        return None, TEXT("cannot", error=str(error))


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
    if filled is None:
        return _column("encoder", [("", list(text))])
    blanks = len(filled.positions)
    said = []
    for position, guess in zip(filled.positions, filled.symbols, strict=True):
        true = text[position]
        right = TEXT(
            "symbol right" if guess.symbol == true else "symbol wrong",
            symbol=show_characters(guess.symbol),
            probability=guess.probability,
            true=show_characters(true),
        )
        said.append(_sent(guess, 0, position, 1, right) | {"wrong": guess.symbol != true})
    lines = [TEXT("to fill", blanks=blanks), *[TEXT("all filled", blanks=blanks)] * last]
    return _column("encoder", [("", list(text))], lines, said)


def _continued_column(text: str, continued: Continuation | None, last: int) -> dict[str, Any]:
    if continued is None:
        return _column("decoder", [("", list(text))])
    said = [_sent(step, 0, len(text) + i, i + 1, _symbol(step)) for i, step in enumerate(continued.symbols)]
    lines = [TEXT("written", passes=continued.passes(step)) for step in range(last + 1)]
    return _column("decoder", [("", list(text + continued.written))], lines, said)


def _translated_column(text: str, translated: Translation | None, last: int) -> dict[str, Any]:
    if translated is None:
        return _column("both", [(TEXT["source"], text.split())])
    target = ["<begin>", *(step.symbol for step in translated.symbols)]
    rows = [(TEXT["source"], list(translated.source)), (TEXT["target"], target)]
    said = [_sent(step, 1, i + 1, i + 1, _symbol(step)) for i, step in enumerate(translated.symbols)]
    lines = [TEXT("translated", words=translated.passes(step) - 1) for step in range(1, last + 1)]
    return _column("both", rows, [TEXT["nothing read"], *lines], said)


def _symbol(written: WrittenSymbol) -> str:
    return TEXT("symbol", symbol=show_characters(written.symbol), probability=written.probability)


def _column(
    family: str,
    rows: Sequence[tuple[str, Sequence[str]]],
    lines: Sequence[str] = (),
    said: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    return {
        "family": family,
        "title": TEXT(f"title {family}"),
        "does": TEXT(f"does {family}"),
        "rows": [{"name": name, "cells": [show_characters(cell) for cell in cells]} for name, cells in rows],
        "lines": list(lines),
        "said": list(said),
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


def _answer(filled: FilledText | None, continued: Continuation | None, translated: Translation | None) -> str:
    """Sums up what those wrote that could (Markdown)."""
    parts = []
    if filled is not None:
        parts.append(TEXT("filled", blanks=len(filled.positions), right=filled.right))
    if continued is not None:
        parts.append(TEXT("continued", letters=len(continued.symbols)))
    if translated is not None:
        known = translated.answer is not None
        parts.append(
            TEXT(
                f"translated {'unknown' if not known else 'right' if translated.right else 'wrong'}",
                text=translated.text,
                words=len(translated.symbols),
                answer=translated.answer,
                why=translated.why.partition(". ")[0],
            )
        )
    return " ".join(parts) or TEXT["none"]


PART = View("live", TEXT, draw, code=(fill_in, carry_on, translate))
