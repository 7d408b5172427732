"""The view "What vocabulary size costs": a longer list of tokens against a shorter text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import TokenizerError
from engine.measure.vocabulary import Cost, costs, cut_tokens, lengths, passage, training_lengths
from engine.tokenizers.published import PUBLISHED, PublishedTokenizer
from pages.input.tokens import figures, shared
from ui import explain
from ui.players.plot import plot
from ui.text.markdown import safe
from ui.text.tokens import show_bytes

GRID = (256, 300, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
NAMED = (512, 1024, 2048, 4096, 8192)  # sizes that have a row in the table
WORDS = {"100 words": 100, "1,000 words": 1000, "10,000 words": 10_000, "all of it": 0}
WIDTHS = (64, 128, 256, 512, 768, 1024, 2048, 4096, 8192)
LAYERS = (1, 2, 4, 6, 8, 12, 24, 32, 48, 96)
TEXTBOOK = {
    "V": ("65", "50,257"),
    "T": ("about 5,000", "about 1,300"),
    "V·d": ("16,640", "12,865,792"),
    "T²": ("25 M", "1.7 M"),
}
TEXTBOOK_WIDTH = 256
RUNNING = shared.LINE + "\nAll:\nSpeak, speak.\n"  # how Tiny Shakespeare goes on


@dataclass(frozen=True, eq=False)
class _Measured:
    """A passage in tokens. `curve` is our BPE's, size by size; `rows` are the tokenizers that are named: name
    -> (V, T).
    """

    words: int
    characters: int
    curve: dict[int, int]
    rows: dict[str, tuple[int, int]]


def draw_cost() -> None:
    """Sequence length, embedding and attention against the size of the vocabulary; the textbook's table; one
    line, counted.
    """
    name = shared.choose_source(
        "cost_corpus", "Text", "Our BPE learns from this text, and the passage is its beginning."
    )
    own = shared.own_text(110) if name == "yours" else ""
    if own is None:
        return
    known = shared.source(name, own)
    if known is None:
        return
    words, d, layers = _controls()
    encodings = shared.encodings(list(PUBLISHED))
    found = _measure(known.name, known.own, words, tuple(encodings), known, encodings)
    kinds = {
        row: "published" if row in PUBLISHED else "ours" if row.startswith("BPE") else "plain"
        for row in found.rows
    }
    table = costs(found.rows, d, layers)
    curve = costs({str(size): (size, tokens) for size, tokens in found.curve.items()}, d, layers)
    of = "the whole text" if not words else f"the first {found.words:,} words"
    fewer = f" It has no more than {found.words:,} words." if words > found.words else ""
    st.caption(f"Measured on {of} of {shared.SOURCES[known.name]}: {found.characters:,} characters.{fewer}")
    _curves(curve, table, kinds, d)
    _table(table, d, layers)
    _takeaway(table, d)
    _textbook(known, encodings)
    _line(encodings)


def _controls() -> tuple[int, int, int]:
    """(words of the passage, 0 for all; d_model; layers)"""
    words = st.segmented_control(
        "Passage",
        list(WORDS),
        default="1,000 words",
        required=True,
        key="cost_words",
        wrap=True,
        **shared.KEPT,
    )
    width, depth = st.columns(2, gap="medium")
    with width:
        d = st.select_slider("Width d_model", WIDTHS, 256, key="cost_width", **shared.KEPT)
    with depth:
        layers = st.select_slider(
            "Layers",
            LAYERS,
            4,
            key="cost_layers",
            help="For the whole model's parameters only.",
            **shared.KEPT,
        )
    return WORDS.get(words, 1000), d if d in WIDTHS else 256, layers if layers in LAYERS else 4


@st.cache_resource(max_entries=24, show_spinner="Counting tokens …")
def _measure(
    name: str,
    own: str,
    words: int,
    published: tuple[str, ...],
    _known: shared.Sources,
    _encodings: dict[str, PublishedTokenizer],
) -> _Measured:
    text, count = passage(_known.text, words or len(_known.text))
    text = text if words else _known.text
    whole = shared.trained(_known)
    size = len(text.encode("utf-8"))
    curve = lengths(whole, text, GRID) if words else training_lengths(whole, GRID, size)
    rows = {"characters": (len(set(_known.text)), len(text)), "bytes": (256, size)}
    rows |= {f"BPE {v:,}": (v, tokens) for v, tokens in curve.items() if v in NAMED or v == max(curve) > 256}
    for encoding in published:
        try:
            rows[encoding] = (_encodings[encoding].vocab_size, len(_encodings[encoding].encode(text)))
        except TokenizerError:
            continue  # its pattern gave up on this text: it has no row
    return _Measured(count, len(text), curve, rows)


def _curves(curve: list[Cost], table: list[Cost], kinds: dict[str, str], d: int) -> None:
    sizes = np.array([cost.vocab_size for cost in curve])
    panels = (
        ("tokens", "Sequence length T", "tokens", "vocabulary-length"),
        ("embedding", f"Embedding V·d, d = {d:,} (log)", "parameters", "vocabulary-embedding"),
        ("scores", "Attention T²", "scores in one head", "vocabulary-attention"),
    )
    for column, (field, title, unit, name) in zip(st.columns(3, gap="small"), panels, strict=True):
        points = [
            (cost.name, kinds[cost.name], cost.vocab_size, float(getattr(cost, field)))
            for cost in table
            if kinds[cost.name] != "ours"
        ]
        every = [*curve, *(cost for cost in table if kinds[cost.name] != "ours")]
        data = pd.DataFrame(
            {
                "tokenizer": [c.name if c in table else "our BPE" for c in every],
                "V": [c.vocab_size for c in every],
            }
        )
        values = np.array([getattr(cost, field) for cost in curve], np.float64)
        alt = (
            f"{title} against the size of the vocabulary: "
            + "; ".join(f"{n} {v:,.0f}" for n, _, _, v in points)
            + "."
        )
        with column:
            figure = figures.cost_curve(
                sizes, values, points, title=title, unit=unit, log=field == "embedding"
            )
            plot(
                figure,
                key=f"cost_{field}",
                alt=alt,
                height=300,
                name=name,
                data=data.assign(**{unit: [getattr(cost, field) for cost in every]}),
            )


def _table(table: list[Cost], d: int, layers: int) -> None:
    st.table(
        pd.DataFrame(
            [
                {
                    "": cost.name,
                    "V": f"{cost.vocab_size:,}",
                    "T": f"{cost.tokens:,}",
                    "V·d": f"{cost.embedding:,}",
                    "model, tied": f"{cost.tied:,}",
                    "model, untied": f"{cost.untied:,}",
                    "embedding's share, tied": f"{cost.share:.1%}",
                    "T²": f"{cost.scores:,}",
                }
                for cost in table
            ]
        ).set_index("")
    )
    st.caption(
        f"The model: {layers} layer{'s' * (layers != 1)} of width {d:,}, $12\\,L\\,d^2$ in its blocks and a"
        " few norms. *Tied*: one matrix reads tokens in and writes them out. *Untied*: a second matrix of"
        " V·d writes them out. T² is the number of scores that one head of one layer computes for the"
        " passage."
    )


def _takeaway(table: list[Cost], d: int) -> None:
    first = table[0]
    last = next((cost for cost in table if cost.name == "gpt2"), table[-1])
    if not last.tokens or not first.tokens or last is first:
        return
    explain.takeaway(
        f"**From {first.name} to {last.name}: {first.tokens / last.tokens:.1f} times fewer tokens,"
        f" {first.scores / last.scores:.1f} times less attention, {last.embedding / first.embedding:,.0f}"
        f" times the embedding.** At width {d:,} the embedding is then {last.share:.0%} of the tied model,"
        f" against {first.share:.1%} before. The blocks do not grow with V, so a large model hardly notices a"
        " large vocabulary; a small one is mostly table."
    )


def _textbook(known: shared.Sources, encodings: dict[str, PublishedTokenizer]) -> None:
    """Characters against gpt2 for 1,000 words: measured here, and as a textbook has it."""
    found = _measure(known.name, known.own, 1000, tuple(encodings), known, encodings)
    st.markdown("##### 1,000 words, measured, and as a textbook has them")
    names = [name for name in ("characters", "gpt2") if name in found.rows]
    measured = {
        cost.name: cost for cost in costs({name: found.rows[name] for name in names}, TEXTBOOK_WIDTH, 4)
    }
    rows = []
    for label, (characters, gpt2) in TEXTBOOK.items():
        row: dict[str, str] = {"": label if label != "V·d" else f"V·d, d = {TEXTBOOK_WIDTH}"}
        for name, said in (("characters", characters), ("gpt2", gpt2)):
            cost = measured.get(name)
            known_values = (
                {"V": cost.vocab_size, "T": cost.tokens, "V·d": cost.embedding, "T²": cost.scores}
                if cost
                else {}
            )
            row |= {
                f"{name}, measured": f"{known_values[label]:,}" if known_values else "gpt2 is not here",
                f"{name}, textbook": said,
            }
        rows.append(row)
    st.table(pd.DataFrame(rows).set_index(""))
    letters = measured["characters"].tokens
    tail = (
        f", and gpt2 makes {measured['gpt2'].tokens / max(found.words, 1):.2f} tokens of one"
        if "gpt2" in measured
        else ""
    )
    short = f" The text has only {found.words:,} words." if found.words < 1000 else ""
    st.caption(
        f"The textbook counts with 5 characters and 1.3 tokens a word. In {shared.SOURCES[known.name]} a"
        f" word, with the blanks around it, has {letters / max(found.words, 1):.2f} characters{tail}.{short}"
        " The sizes V and V·d are exact; the textbook's V of 65 is Tiny Shakespeare's."
    )


def _line(encodings: dict[str, PublishedTokenizer]) -> None:
    """One line whose count differs from book to book, and why."""
    st.markdown("##### One line, counted")
    line = shared.LINE
    tokens = len(encodings["gpt2"].encode(line)) if "gpt2" in encodings else None
    if tokens is None:
        st.caption(
            f"`{show_bytes(line.encode())}` has {len(line)} characters. gpt2's encoding is not here, so its"
            " tokens cannot be counted now."
        )
        return
    gpt2 = encodings["gpt2"]
    inside = cut_tokens(RUNNING, gpt2, len(line) + 1)
    cases = [
        ("the line with its line break", len(line), gpt2.encode(line)),
        ("with an empty line after it", len(line) + 1, gpt2.encode(line + "\n")),
        ("the same characters inside the running text", len(line) + 1, inside.ids.tolist()),
    ]
    st.table(
        pd.DataFrame(
            [
                {
                    "": what,
                    "characters": f"{count}",
                    "gpt2 tokens": f"{len(ids)}",
                    "the last ones": " ".join(f"`{show_bytes(gpt2.decode_bytes([i]))}`" for i in ids[-4:]),
                }
                for what, count, ids in cases
            ]
        ).set_index("")
    )
    explain.takeaway(
        f"**“{safe(line.strip())}” is {len(line)} characters and {tokens} tokens**, computed now. A"
        " well-known lecture says 62 characters and 16 tokens, and lists 14 of them. 16 fits the first 62"
        " characters of Tiny Shakespeare, with *both* line breaks, while the text goes on"
        f" ({len(cases[2][2])}). Alone, the two line breaks are one token ({len(cases[1][2])}); before"
        " another word, gpt2's splitting pattern takes them apart. Where a text ends changes its tokens."
    )
