"""The view "Compare tokenizers": one text, cut in many ways."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import TokenizerError
from engine.measure.vocabulary import Cut, cut_bytes, cut_characters, cut_tokens, cut_words
from engine.tokenizers.published import END_OF_TEXT, PUBLISHED, PublishedTokenizer
from pages.input.tokens import figures, shared
from pages.input.tokens.chips import Row, token_chips
from ui import explain
from ui.players.plot import plot
from ui.text.markdown import safe
from ui.text.tokens import show_bytes

SIZES = (300, 512, 1024, 4096)
TOKENIZERS = {
    "characters": "Characters",
    "bytes": "Bytes",
    "words": "Words",
    **{f"bpe-{size}": f"BPE {size:,}" for size in SIZES},
    **{name: name for name in PUBLISHED},
}
FIRST = ["characters", "words", "bpe-512", "bpe-4096", *PUBLISHED]
SHOWN = 1500  # characters whose tokens are drawn; the numbers are of the whole text
MOST_LINES, LONGEST_LINE = 16, 2000

Encodings = dict[str, PublishedTokenizer]


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
        chosen = st.pills(
            "Tokenizers",
            list(TOKENIZERS),
            selection_mode="multi",
            default=FIRST,
            key="compare_show",
            format_func=TOKENIZERS.__getitem__,
            wrap=True,
            **shared.KEPT,
        )
    if text is None:
        return
    names = [key for key in TOKENIZERS if key in (chosen or [])]
    notice = next((words for example, words in shared.EXAMPLES.values() if example == text), "")
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
    _special(encodings)


def _compare(text: str, names: list[str], known: shared.Sources, encodings: Encodings) -> None:
    cuts: dict[str, Cut] = {}
    sizes: dict[str, int] = {}
    with st.spinner("Cutting the text …") if len(text) > 50_000 else st.empty():
        for name in names:
            try:
                cuts[name] = _cut(name, known.name, known.own, text, known, encodings)
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
    _summary(text, cuts, sizes, titles)
    _lines(text, titles, known, encodings)


def vocabulary_of(name: str, known: shared.Sources, encodings: Encodings) -> int:
    """Entries of a tokenizer's vocabulary."""
    if name in encodings:
        return encodings[name].vocab_size
    if name.startswith("bpe-"):
        return shared.smaller(known, _size(name)).vocab_size
    words = shared.known_words(known) if name == "words" else None
    return {
        "bytes": 256,
        "characters": len(shared.alphabet(known.name, known.own, known.text)),
        "words": words.vocab_size if words else 0,
    }[name]


@st.cache_resource(max_entries=256, show_spinner=False)
def _cut(name: str, source: str, own: str, text: str, _known: shared.Sources, _encodings: Encodings) -> Cut:
    if name in _encodings:
        return cut_tokens(text, _encodings[name], SHOWN)
    if name.startswith("bpe-"):
        return cut_tokens(text, shared.smaller(_known, _size(name)), SHOWN)
    if name == "bytes":
        return cut_bytes(text, SHOWN)
    if name == "characters":
        return cut_characters(text, shared.alphabet(_known.name, _known.own, _known.text), SHOWN)
    words = shared.known_words(_known)
    if words is None:
        raise TokenizerError("there is no word in this text")
    return cut_words(text, words, SHOWN)


def _size(name: str) -> int:
    return int(name.removeprefix("bpe-"))


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
    if name.startswith("bpe-") and size < _size(name):
        return (
            f"{_size(name):,} entries were asked for. In this text no pair was left to merge after {size:,}."
        )
    if cut.unknown and name == "words":
        return (
            "A dashed frame: not in the list, so the model is told “some word”, not which. Blanks belong to"
            " no token and are lost."
        )
    if cut.unknown:
        return "A dashed frame: a character that the alphabet does not have."
    return "Blanks belong to no token and are lost." if name == "words" else ""


def _summary(text: str, cuts: dict[str, Cut], sizes: dict[str, int], titles: dict[str, str]) -> None:
    """How many tokens each makes."""
    table = pd.DataFrame(
        [
            {
                "tokenizer": titles[name],
                "vocabulary": sizes[name],
                "tokens": cut.tokens,
                "characters per token": cut.characters_per_token,
                "bytes per token": cut.bytes_per_token,
                "unknown": cut.unknown,
            }
            for name, cut in cuts.items()
        ]
    )
    st.markdown(f"##### {len(text):,} characters, {len(text.encode()):,} bytes: how many tokens?")
    chart, numbers = st.columns([4, 5], gap="medium", vertical_alignment="center")
    with chart:
        each = table["characters per token"].to_numpy()
        figure = figures.token_bars(
            table["tokenizer"].tolist(), [_kind(name) for name in cuts], table["tokens"].to_numpy(), each
        )
        alt = (
            "Tokens of the text: "
            + "; ".join(f"{titles[name]} {cut.tokens:,}" for name, cut in cuts.items())
            + "."
        )
        plot(
            figure,
            key="compare_bars",
            alt=alt,
            height=max(190, 34 * len(cuts) + 70),
            data=table,
            name="tokenizers",
        )
    with numbers:
        st.table(
            pd.DataFrame(
                {
                    "": table["tokenizer"],
                    "entries": _written(table["vocabulary"]),
                    "tokens": _written(table["tokens"]),
                    "chars each": _written(table["characters per token"], 2),
                    "bytes each": _written(table["bytes per token"], 2),
                    "unknown": _written(table["unknown"]),
                }
            ).set_index("")
        )
    known = {name: cut for name, cut in cuts.items() if not cut.unknown and cut.tokens and name != "words"}
    if len(known) > 1:
        most, least = max(known, key=lambda n: known[n].tokens), min(known, key=lambda n: known[n].tokens)
        times = known[most].tokens / known[least].tokens
        explain.takeaway(
            f"**{titles[least]} needs {known[least].tokens:,} tokens, {titles[most]} {known[most].tokens:,}:"
            f" {times:.1f} times as many.** Attention compares every token with every other, so that is"
            f" {times**2:.1f} times the work in each head; the price of the short way is a table of"
            f" {sizes[least]:,} entries instead of {sizes[most]:,}."
        )


def _written(column: pd.Series, digits: int = 0) -> list[str]:
    return [f"{value:,.{digits}f}" for value in column]


def _kind(name: str) -> str:
    return "published" if name in PUBLISHED else "ours" if name.startswith("bpe-") else "plain"


def _lines(text: str, titles: dict[str, str], known: shared.Sources, encodings: Encodings) -> None:
    """A table by line, where the text has a few."""
    lines = [line for line in text.split("\n") if line.strip()]
    if not 2 <= len(lines) <= MOST_LINES or max(map(len, lines)) > LONGEST_LINE:
        return
    st.markdown("##### Line by line")
    counts = np.array(
        [
            [_cut(name, known.name, known.own, line, known, encodings).tokens for name in titles]
            for line in lines
        ]
    )  # (line, tokenizer)
    each = counts / np.array([len(line) for line in lines])[:, None]
    table = pd.DataFrame(counts, columns=list(titles.values())).assign(
        characters=[len(line) for line in lines], line=lines
    )
    alt = f"Tokens of each of {len(lines)} lines by {len(titles)} tokenizers."
    figure = figures.line_table([line[:60] for line in lines], list(titles.values()), counts, each)
    plot(
        figure,
        key="compare_lines",
        alt=alt,
        height=max(200, 30 * len(lines) + 90),
        data=table,
        name="tokens-by-line",
    )
    st.caption(
        "  \n".join(f"{i}: {safe(line[:90])}{'…' if len(line) > 90 else ''}" for i, line in enumerate(lines))
    )
    st.caption(
        "Tokens of each line, cut by itself without its line break; the stronger the shade, the more tokens a"
        " character costs."
    )


def _special(encodings: Encodings) -> None:
    """What a user's `<|endoftext|>` becomes, and what the real one is."""
    st.markdown("##### Special tokens")
    st.markdown(
        f"Some ids stand for no text at all. `{END_OF_TEXT}` marks the border between two documents: the"
        " *program* puts its id between them when a model is trained, and a model that produces it has"
        " finished. It must never come out of what a person types, or anybody could end the document in the"
        " middle of an instruction and begin another. So user text is encoded as ordinary text"
        " (`encode_ordinary`): the same letters become ordinary tokens."
    )
    rows = [
        {
            "encoding": name,
            f"`{END_OF_TEXT}` typed by a person": " ".join(
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
        st.caption(
            "Computed now, by tiktoken. Our own BPE has no special tokens at all: it learned from one long"
            " text."
        )
    else:
        st.caption(
            "Choose a published encoding to see it done. Our own BPE has no special tokens at all: it learned"
            " from one long text."
        )
