"""The view "Tokenizers": one text, cut in many ways; as ids, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import streamlit as st

from engine.data.tokenizers import published
from engine.data.tokenizers.char import CharTokenizer
from engine.data.tokenizers.published import PUBLISHED, PublishedTokenizer
from engine.errors import TokenizerError
from engine.measure.tokens.vocabulary import Cut, cut_tokens, cut_words, of_characters, of_tokens
from pages.input.tokens import guesses, shared, words
from pages.input.tokens.chips import Row, token_chips
from pages.input.tokens.compared import Comparison, draw_answer, draw_lines, draw_others, draw_summary
from pages.input.tokens.cutting import SHOWN, TOKENIZERS, cut_of, requested_size, trip_of, vocabulary_of
from pages.input.tokens.special import draw_marks
from pages.input.tokens.words_examples import EXAMPLES
from ui import explain
from ui.guess import ask
from ui.text.markdown import safe
from ui.view_parts import Part
from ui.widgets import select_several

T = TypeVar("T")
FIRST = ("characters", "words", "bpe-512")  # and of the published ones those that are here
ENCODED = 32  # characters of the first line that are shown as ids: five tokenizers fit one screen


@dataclass(frozen=True)
class Chosen:
    """A text, the names of the tokenizers, and what ours learn from."""

    text: str
    names: list[str]
    source: str


def draw_compare() -> None:
    """Draws the text and the choice of tokenizers, the answer, and their tokens."""
    _draw(_compare, _measured)


def draw_back() -> None:
    """Draws the same text as ids, by each tokenizer, and what they are decoded to."""
    _draw(_round_trip, lambda *_: draw_marks())


def _draw(
    picture: Callable[[Chosen, shared.Sources], None], measured: Callable[[Chosen, shared.Sources], None]
) -> None:
    chosen = _controls()
    if chosen is None:
        return
    known = shared.source(chosen.source, chosen.text)
    if known is None:
        return
    if not chosen.names:
        st.info(words.NO_TOKENIZER)
    elif not chosen.text:
        st.info(words.NO_TEXT)
    else:
        picture(chosen, known)
    explain.measure_it(measured, chosen, known)


def _controls() -> Chosen | None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        text = shared.custom_text()
        with st.popover("Tokenizers", icon=":material/tune:"):
            first = [*FIRST, *(name for name in PUBLISHED if published.here(name))]
            names = select_several("Tokenizers", TOKENIZERS, "compare_show", first=first, wrap=True)
            source = shared.choose_source("compare_corpus", "Ours trained on", words.TRAINED_ON)
    return None if text is None else Chosen(text, names, source)


def _compare(chosen: Chosen, known: shared.Sources) -> None:
    compared = _compared(chosen, known)
    if compared is None:
        return
    draw_answer(compared)
    notice = next((note for example, note in EXAMPLES.values() if example == chosen.text), "")
    if notice:
        st.caption(f":material/visibility: {notice}")
    if len(chosen.text) > SHOWN:
        st.caption(words.cut_short(SHOWN, len(chosen.text)))
    rows = [
        Row(title, words.facts(cut, size), cut, _note(name, cut, size))
        for name, cut in compared.cuts.items()
        for title, size in [(compared.titles[name], compared.sizes[name])]
    ]
    token_chips(chosen.text, rows, key="compare_chips", label="The text as each tokenizer splits it")
    shared.tell_missing(chosen.names)
    encodings = shared.encodings(chosen.names)
    if encodings:
        name = list(encodings)[-1]
        ask("family", guesses.family, name, encodings[name].encode)


def _round_trip(chosen: Chosen, known: shared.Sources) -> None:
    text = chosen.text.splitlines(keepends=True)[0][:ENCODED]
    encodings = shared.encodings(chosen.names)
    trips = _by_name(chosen.names, encodings, lambda name: trip_of(name, text, known, encodings))
    if not trips:
        return
    sizes = {name: vocabulary_of(name, known, encodings) for name in trips}
    spells = [name for name in trips if name.startswith("bpe-") or name in encodings]
    last = (_title(spells[-1], sizes[spells[-1]]), trips[spells[-1]]) if spells else None
    explain.answer(words.round_trip(trips, sizes.get("characters", 0), last))
    rows = [
        Row(
            _title(name, sizes[name]),
            words.facts(trip.cut, sizes[name], "id"),
            trip.cut,
            words.came_back(trip),
        )
        for name, trip in trips.items()
    ]
    token_chips(text, rows, key="compare_ids", label="The text as ids, by each tokenizer", ids=True)
    if text != chosen.text:
        st.caption(words.encoded_short(len(text), len(chosen.text)))
    shared.tell_missing(chosen.names)


def _by_name(
    names: list[str], encodings: dict[str, PublishedTokenizer], make: Callable[[str], T]
) -> dict[str, T]:
    """Makes something with each tokenizer that is here; a line says which one cannot cut the text."""
    result: dict[str, T] = {}
    for name in names:
        if name in PUBLISHED and name not in encodings:
            continue
        try:
            result[name] = make(name)
        except TokenizerError as error:
            st.caption(f":material/info: {safe(str(error))}.")
    return result


def _compared(chosen: Chosen, known: shared.Sources) -> Comparison | None:
    """None where no tokenizer can cut the text."""
    encodings = shared.encodings(chosen.names)

    def cut(name: str) -> Cut:
        return cut_of(name, known.name, known.custom, chosen.text, known, encodings)

    with st.spinner("Tokenizing the text …") if len(chosen.text) > 50_000 else st.empty():
        cuts = _by_name(chosen.names, encodings, cut)
    if not cuts:
        return None
    sizes = {name: vocabulary_of(name, known, encodings) for name in cuts}
    return Comparison(chosen.text, cuts, sizes, {name: _title(name, sizes[name]) for name in cuts})


def _measured(chosen: Chosen, known: shared.Sources) -> None:
    compared = _compared(chosen, known) if chosen.text else None
    if compared is not None:
        draw_summary(compared)
        draw_lines(compared, known, shared.encodings(chosen.names))
    draw_others()


def _title(name: str, size: int) -> str:
    """A BPE is called by what it really learned: in a short text no pair is left early."""
    return f"BPE {size:,}" if name.startswith("bpe-") else TOKENIZERS[name]


def _note(name: str, cut: Cut, size: int) -> str:
    if name.startswith("bpe-") and size < requested_size(name):
        return words.fewer_entries(requested_size(name), size)
    if name == "words":
        return words.LOST_WORD if cut.unknown else words.LOST_SPACES
    return words.LOST_CHARACTER if cut.unknown else ""


PARTS = {
    "tokens": Part(
        "Tokens",
        draw_compare,
        words.COMPARE,
        (PublishedTokenizer.encode, cut_tokens, cut_words),
        words.COMPARE_ASKED,
    ),
    "ids": Part(
        "Ids and back",
        draw_back,
        words.ROUNDTRIP,
        (CharTokenizer, of_characters, of_tokens),
        words.ROUNDTRIP_ASKED,
    ),
}
