"""The view "Tokenizers": one text, cut in many ways."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from engine.data.tokenizers import published
from engine.data.tokenizers.published import PUBLISHED
from engine.errors import TokenizerError
from engine.measure.tokens.vocabulary import Cut
from pages.input.tokens import guesses, shared
from pages.input.tokens.chips import Row, token_chips
from pages.input.tokens.compared import Comparison, draw_answer, draw_lines, draw_others, draw_summary
from pages.input.tokens.cutting import SHOWN, TOKENIZERS, cut_of, requested_size, vocabulary_of
from pages.input.tokens.words_examples import EXAMPLES
from ui import explain
from ui.guess import ask
from ui.text.markdown import safe
from ui.widgets import select_several

FIRST = ("characters", "words", "bpe-512")  # and of the published ones those that are here


@dataclass(frozen=True)
class _Asked:
    text: str
    names: list[str]
    source: str


def draw_compare() -> None:
    """Draws the text and the choice of tokenizers, the answer, and their tokens."""
    chosen = _controls()
    if chosen is None:
        return
    known = shared.source(chosen.source, chosen.text)
    if known is None:
        return
    if not chosen.names:
        st.info("Choose at least one tokenizer.")
    elif not chosen.text:
        st.info("The box is empty, so there are no tokens: type something, or choose an example.")
    else:
        _compare(chosen, known)
    explain.measure_it(_measured, chosen, known)


def _controls() -> _Asked | None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        text = shared.custom_text()
        with st.popover("Tokenizers", icon=":material/tune:"):
            first = [*FIRST, *(name for name in PUBLISHED if published.here(name))]
            names = select_several("Tokenizers", TOKENIZERS, "compare_show", first=first, wrap=True)
            hint = (
                "The text on which our own tokenizers are trained. The published ones were trained on web"
                " text."
            )
            source = shared.choose_source("compare_corpus", "Ours trained on", hint)
    return None if text is None else _Asked(text, names, source)


def _compare(chosen: _Asked, known: shared.Sources) -> None:
    found = _compared(chosen, known)
    if found is None:
        return
    draw_answer(found)
    notice = next((said for example, said in EXAMPLES.values() if example == chosen.text), "")
    if notice:
        st.caption(f":material/visibility: {notice}")
    if len(chosen.text) > SHOWN:
        st.caption(
            f"Only the tokens of the first {SHOWN:,} characters are drawn; the numbers count all"
            f" {len(chosen.text):,}."
        )
    rows = [
        Row(found.titles[name], _facts(cut, found.sizes[name]), cut, _note(name, cut, found.sizes[name]))
        for name, cut in found.cuts.items()
    ]
    token_chips(chosen.text, rows, key="compare_chips", label="The text as each tokenizer splits it")
    shared.tell_missing(chosen.names)
    encodings = shared.encodings(chosen.names)
    if encodings:
        name = list(encodings)[-1]
        ask("family", guesses.family, name, encodings[name].encode)


def _compared(chosen: _Asked, known: shared.Sources) -> Comparison | None:
    """None where no tokenizer can cut the text; a line says which one cannot."""
    encodings = shared.encodings(chosen.names)
    cuts: dict[str, Cut] = {}
    sizes: dict[str, int] = {}
    with st.spinner("Tokenizing the text …") if len(chosen.text) > 50_000 else st.empty():
        for name in chosen.names:
            if name in PUBLISHED and name not in encodings:
                continue
            try:
                cuts[name] = cut_of(name, known.name, known.custom, chosen.text, known, encodings)
                sizes[name] = vocabulary_of(name, known, encodings)
            except TokenizerError as error:
                st.caption(f":material/info: {safe(str(error))}.")
    if not cuts:
        return None
    return Comparison(chosen.text, cuts, sizes, {name: _title(name, sizes[name]) for name in cuts})


def _measured(chosen: _Asked, known: shared.Sources) -> None:
    found = _compared(chosen, known) if chosen.text else None
    if found is not None:
        draw_summary(found)
        draw_lines(found, known, shared.encodings(chosen.names))
    draw_others()


def _title(name: str, size: int) -> str:
    """A BPE is called by what it really learned: in a short text no pair is left early."""
    return f"BPE {size:,}" if name.startswith("bpe-") else TOKENIZERS[name]


def _facts(cut: Cut, size: int) -> str:
    unknown = f", {cut.unknown:,} unknown" if cut.unknown else ""
    return f"{cut.tokens:,} token{'s' * (cut.tokens != 1)}{unknown}\n{size:,} entries"


def _note(name: str, cut: Cut, size: int) -> str:
    if name.startswith("bpe-") and size < requested_size(name):
        return (
            f"{requested_size(name):,} entries were requested, but this text has no pair left to merge after"
            f" {size:,}."
        )
    if cut.unknown and name == "words":
        return (
            "A dashed frame: out of vocabulary, so the model sees “some word”, not which one. Spaces belong"
            " to no token and are lost."
        )
    if cut.unknown:
        return "A dashed frame: a character outside the vocabulary."
    return "Spaces belong to no token and are lost." if name == "words" else ""
