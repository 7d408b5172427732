"""The view "Compare tokenizers": one text, cut in many ways."""

from __future__ import annotations

import streamlit as st

from engine.errors import TokenizerError
from engine.measure.vocabulary import Cut
from engine.tokenizers.published import PUBLISHED
from pages.input.tokens import shared
from pages.input.tokens.chips import Row, token_chips
from pages.input.tokens.compared import draw_lines, draw_summary
from pages.input.tokens.cutting import SHOWN, TOKENIZERS, Encodings, asked, cut_of, vocabulary_of
from pages.input.tokens.examples import EXAMPLES
from pages.input.tokens.special import draw_special
from ui.text.markdown import safe
from ui.widgets import some_of

FIRST = ["characters", "words", "bpe-512", "bpe-4096", *PUBLISHED]


def draw_compare() -> None:
    """The text, the choice of tokenizers, their tokens, how many they are, and what special tokens are."""
    left, right = st.columns([5, 4], gap="medium")
    with left:
        text = shared.own_text()
    with right:
        hint = (
            "Our own tokenizers have to learn from some text. The published ones learned from the web, long"
            " ago."
        )
        name = shared.choose_source("compare_corpus", "Characters, words and our BPE learned from", hint)
        names = some_of("Tokenizers", TOKENIZERS, "compare_show", first=FIRST, wrap=True)
    if text is None:
        return
    notice = next((said for example, said in EXAMPLES.values() if example == text), "")
    if notice:
        st.markdown(f":material/visibility: **What to notice.** {notice}")
    known = shared.source(name, text)
    encodings = shared.encodings(names)
    if known is None:
        return
    if not names:
        st.info("Choose at least one tokenizer.")
    elif not text:
        st.info("The box is empty, and so is every list of tokens: type something, or choose an example.")
    else:
        _compare(text, [n for n in names if n not in PUBLISHED or n in encodings], known, encodings)
    draw_special(encodings)


def _compare(text: str, names: list[str], known: shared.Sources, encodings: Encodings) -> None:
    cuts: dict[str, Cut] = {}
    sizes: dict[str, int] = {}
    with st.spinner("Cutting the text …") if len(text) > 50_000 else st.empty():
        for name in names:
            try:
                cuts[name] = cut_of(name, known.name, known.own, text, known, encodings)
                sizes[name] = vocabulary_of(name, known, encodings)
            except TokenizerError as error:
                st.caption(f":material/info: {safe(str(error))}.")
    if not cuts:
        return
    titles = {name: _title(name, sizes[name]) for name in cuts}
    if len(text) > SHOWN:
        st.caption(
            f"Drawn are the tokens of the first {SHOWN:,} characters; the numbers are of all {len(text):,}."
        )
    rows = [
        Row(titles[name], _facts(cut, sizes[name]), cut, _note(name, cut, sizes[name]))
        for name, cut in cuts.items()
    ]
    st.caption(
        "Point at a token, or reach it with Tab and the arrow keys: its id, its bytes, and what the others"
        " make of the same place."
    )
    token_chips(text, rows, key="compare_chips", label="The text as each tokenizer cuts it")
    draw_summary(text, cuts, sizes, titles)
    draw_lines(text, titles, known, encodings)


def _title(name: str, size: int) -> str:
    """A BPE is called by what it really learned: in a short text no pair is left early."""
    return f"BPE {size:,}" if name.startswith("bpe-") else TOKENIZERS[name]


def _facts(cut: Cut, size: int) -> str:
    unknown = f" · {cut.unknown:,} unknown" if cut.unknown else ""
    return (
        f"{size:,} entries · {cut.tokens:,} token{'s' * (cut.tokens != 1)}{unknown} · "
        f"{cut.characters_per_token:.2f} characters and {cut.bytes_per_token:.2f} bytes each"
    )


def _note(name: str, cut: Cut, size: int) -> str:
    if name.startswith("bpe-") and size < asked(name):
        return (
            f"{asked(name):,} entries were asked for. In this text no pair was left to merge after {size:,}."
        )
    if cut.unknown and name == "words":
        return (
            "A dashed frame: not in the list, so the model is told “some word”, not which. Blanks belong to"
            " no token and are lost."
        )
    if cut.unknown:
        return "A dashed frame: a character that the alphabet does not have."
    return "Blanks belong to no token and are lost." if name == "words" else ""
