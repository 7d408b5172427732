"""One text and the chosen tokenizers: what both parts of "Tokenizers" begin with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import streamlit as st

from engine.errors import TokenizerError
from pages.input.tokens.cutting import TOKENIZERS, Encodings, is_ours
from pages.input.tokens.text_box import compared_text
from pages.input.tokens.training_text import Sources, choose_source, source
from studies.tokens import published
from studies.tokens.published import PUBLISHED
from studies.tokens.vocabulary import Cut
from ui import content, explain
from ui.text.markdown import safe
from ui.widgets import select_several

T = TypeVar("T")
TEXT = content.beside(__file__)
FIRST = ("characters", "words", "bpe-512")  # and of the published ones those that are here


@dataclass(frozen=True)
class Chosen:
    """A text, the names of the tokenizers, and what ours learn from."""

    text: str
    names: list[str]
    source: str


def draw_part(
    picture: Callable[[Chosen, Sources], None], measured: Callable[[Chosen, Sources], None]
) -> None:
    """Draws the text and the choice of tokenizers, the `picture` of both, and, folded, what is `measured`."""
    chosen = _controls()
    if chosen is None:
        return
    known = source(chosen.source, chosen.text)
    if known is None:
        return
    if not chosen.names:
        st.info(TEXT["no tokenizer"])
    elif not chosen.text:
        st.info(TEXT["no text"])
    else:
        picture(chosen, known)
    explain.measure_it(measured, chosen, known)


def _controls() -> Chosen | None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        text = compared_text()
        with st.popover(TEXT["tokenizers"], icon=":material/tune:"):
            first = [*FIRST, *(name for name in PUBLISHED if published.here(name))]
            names = select_several(TEXT["tokenizers"], TOKENIZERS, "compare_show", first=first, wrap=True)
            trained = choose_source("compare_corpus", TEXT["ours trained on"], TEXT["trained on"])
    return None if text is None else Chosen(text, names, trained)


def by_name(names: list[str], encodings: Encodings, make: Callable[[str], T]) -> dict[str, T]:
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


def title_of(name: str, size: int) -> content.Filled:
    """A BPE is called by what it really learned: in a short text no pair is left early."""
    return content.Filled(f"BPE {size:,}" if is_ours(name) else TOKENIZERS[name])


def facts(cut: Cut, entries: int, piece: str = "tokens") -> str:
    """Returns two lines beside a row of `piece`: tokens, or ids."""
    case = f"cut {piece} and unknown" if cut.unknown else f"cut {piece}"
    pieces = TEXT(case, pieces=cut.tokens, unknown=cut.unknown)
    return "\n".join((pieces, TEXT("entries", entries=entries)))
