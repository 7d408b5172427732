"""The part "Ids and back": a text as ids, and what they are decoded to; tokens that encode no text."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.data.tokenizers.char import CharTokenizer
from pages.input.tokens.chips import Row, token_chips
from pages.input.tokens.cutting import (
    Encodings,
    at_hand,
    encodings,
    is_ours,
    tell_missing,
    trip_of,
    vocabulary_of,
)
from pages.input.tokens.same_text import Chosen, by_name, draw_part, facts, title_of
from pages.input.tokens.training_text import Sources
from studies.tokens.published import END_OF_TEXT
from studies.tokens.vocabulary import RoundTrip, of_characters, of_tokens
from ui import content, explain
from ui.page_frame import View
from ui.text.tokens import show_bytes

TEXT = content.beside(__file__)
ENCODED = 32  # characters of the first line that are shown as ids: five tokenizers fit one screen
LOST = 6  # characters without an id that are named
GLITCHES = (" SolidGoldMagikarp", " petertodd", " Glassformer")
# Tokens that encode no text: (model, before a text, after it)
BEGIN_END = (
    ("GPT-2", "<|endoftext|>", "<|endoftext|>"),
    ("BERT", "[CLS]", "[SEP]"),
    ("T5", "none", "</s>"),
    ("LLaMA 2", "<s>", "</s>"),
)


def draw() -> None:
    """Draws the same text as ids, by each tokenizer, and what they are decoded to."""
    draw_part(_round_trip, lambda *_: _draw_marks())


def _round_trip(chosen: Chosen, known: Sources) -> None:
    text = chosen.text.splitlines(keepends=True)[0][:ENCODED]
    here = encodings(chosen.names)
    trips = by_name(chosen.names, here, lambda name: trip_of(name, text, known, here))
    if not trips:
        return
    sizes = {name: vocabulary_of(name, known, here) for name in trips}
    titles = {name: title_of(name, sizes[name]) for name in trips}
    spells = [name for name in trips if is_ours(name) or name in here]
    last = (titles[spells[-1]], trips[spells[-1]]) if spells else None
    explain.answer(_answer(trips, sizes.get("characters", 0), last))
    rows = [
        Row(titles[name], facts(trip.cut, sizes[name], "ids"), trip.cut, _came_back(trip))
        for name, trip in trips.items()
    ]
    token_chips(text, rows, key="compare_ids", label=TEXT["rows"], ids=True)
    if text != chosen.text:
        st.caption(TEXT("encoded in part", shown=len(text), characters=len(chosen.text)))
    tell_missing(chosen.names)


def _answer(
    trips: dict[str, RoundTrip], alphabet: int, spells: tuple[content.Filled, RoundTrip] | None
) -> str:
    """Returns the answer; `trips` are by the tokenizer's name. `alphabet` is the number of known characters,
    `spells` the title and the trip of a tokenizer that starts from bytes.
    """
    whole, letters = sum(trip.same for trip in trips.values()), trips.get("characters")
    if letters is not None and letters.lost:
        title, tokens = (content.Filled(), 0) if spells is None else (spells[0], spells[1].cut.tokens)
        case = "no id" if spells is None else "no id, spelled"
        return TEXT(case, lost=letters.lost[0], alphabet=alphabet, title=title, tokens=tokens)
    return TEXT("all restore" if whole == len(trips) else "some restore", whole=whole, all=len(trips))


def _came_back(trip: RoundTrip) -> str:
    """Says what one tokenizer's ids are decoded to."""
    case = "back" if trip.same else "back but lost" if trip.lost else "back without spaces"
    lost = ", ".join(TEXT("quoted", character=character) for character in trip.lost[:LOST])
    return TEXT(case, back=trip.back, lost=lost)


def _draw_marks() -> None:
    """Draws ids that stand for no text, and one that was hardly ever trained."""
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(TEXT["never trained"])
        draw_glitch(at_hand(["gpt2"]))
    with right:
        st.markdown(TEXT["begin and end"])
        st.table(
            pd.DataFrame(
                [(model, f"`{begin}`", f"`{end}`") for model, begin, end in BEGIN_END],
                columns=["", "before a text", "after it"],
            ).set_index("")
        )
    st.markdown(TEXT["special title"])
    draw_special(at_hand())


def draw_special(encodings: Encodings) -> None:
    """Draws a user's `<|endoftext|>` in tokens beside the real one."""
    st.markdown(TEXT("special", end=content.Filled(END_OF_TEXT)))
    rows = [
        {
            "encoding": name,
            TEXT("typed", end=END_OF_TEXT): " ".join(
                f"`{show_bytes(encoding.decode_bytes([i]))}`" for i in ids
            ),
            "its ids": ", ".join(f"{i:,}" for i in ids),
            "the real one": f"{encoding.special[END_OF_TEXT]:,}",
            "other special tokens": (
                ", ".join(f"`{text}`" for text in encoding.special if text != END_OF_TEXT) or "none"
            ),
        }
        for name, encoding in encodings.items()
        for ids in [encoding.encode(END_OF_TEXT)]
    ]
    if rows:
        st.table(pd.DataFrame(rows).set_index("encoding"))
    st.caption(TEXT["computed live" if rows else "no special tokens"])


def draw_glitch(encodings: Encodings) -> None:
    """Draws how gpt2 cuts a user's name that became one token, beside a word that did not."""
    st.markdown(TEXT["glitch"])
    rows = [
        {
            "": f"`{show_bytes(text.encode())}`",
            "tokens": f"{len(ids)}",
            f"{name}'s ids": ", ".join(f"{i:,}" for i in ids),
        }
        for name, encoding in encodings.items()
        for text in GLITCHES
        for ids in [encoding.encode(text)]
    ]
    if rows:
        st.table(pd.DataFrame(rows).set_index(""))


PART = View("ids", TEXT, draw, code=(CharTokenizer, of_characters, of_tokens))
