"""The part "Tokens": one text, as each tokenizer cuts it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from pages.input.tokens.chips import Row, token_chips
from pages.input.tokens.cutting import (
    SHOWN,
    Encodings,
    at_hand,
    colour_of,
    cut_of,
    encodings,
    is_ours,
    requested_size,
    tell_missing,
    vocabulary_of,
)
from pages.input.tokens.examples import EXAMPLES
from pages.input.tokens.same_text import Chosen, by_name, draw_part, facts, title_of
from pages.input.tokens.training_text import Sources
from studies.guesses.tokens import picture
from studies.tokens.published import GPT2, PublishedTokenizer
from studies.tokens.vocabulary import Cut, Lines, cut_tokens, cut_words, spread
from ui import content, explain
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import SEQUENTIAL
from ui.guess import Guess, ask
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.markdown import safe
from ui.text.tokens import show_bytes
from ui.widgets import KEPT

TEXT = content.beside(__file__)
FAMILY = "👩‍👩‍👧‍👦"
MOST_LINES, LONGEST_LINE = 16, 2000
LONGEST_WORD = 24  # letters
STRONG = 0.58  # of the scale: above, a cell's number is written in the page's own colour
OTHERS = ("BPE", "WordPiece", "Unigram", "SentencePiece")


@dataclass(frozen=True)
class Comparison:
    """A text cut by several tokenizers; the cuts, the sizes of the vocabularies and the titles are by
    name.
    """

    text: str
    cuts: dict[str, Cut]
    sizes: dict[str, int]
    titles: dict[str, str]


def draw() -> None:
    """Draws the text and the choice of tokenizers, the answer, and their tokens."""
    draw_part(_compare, _measured)
    explain.by_hand(_draw_merges)


def _compare(chosen: Chosen, known: Sources) -> None:
    compared = _compared(chosen, known)
    if compared is None:
        return
    explain.answer(_answer(compared))
    for name, example in EXAMPLES.items():
        if example == chosen.text:
            st.caption(TEXT("notice", what=TEXT(f"notice {name}")))
    if len(chosen.text) > SHOWN:
        st.caption(TEXT("cut short", shown=SHOWN, characters=len(chosen.text)))
    rows = [
        Row(compared.titles[name], facts(cut, size), cut, _note(name, cut, size))
        for name, cut in compared.cuts.items()
        for size in [compared.sizes[name]]
    ]
    token_chips(chosen.text, rows, key="compare_chips", label=TEXT["rows"])
    tell_missing(chosen.names)
    here = encodings(chosen.names)
    if here:
        name = list(here)[-1]
        ask("family", family, name, here[name].encode)


def _compared(chosen: Chosen, known: Sources) -> Comparison | None:
    """None where no tokenizer can cut the text."""
    here = encodings(chosen.names)

    def cut(name: str) -> Cut:
        return cut_of(name, known.name, known.custom, chosen.text, known, here)

    with st.spinner(TEXT["cutting"]) if len(chosen.text) > 50_000 else st.empty():
        cuts = by_name(chosen.names, here, cut)
    if not cuts:
        return None
    sizes = {name: vocabulary_of(name, known, here) for name in cuts}
    return Comparison(chosen.text, cuts, sizes, {name: title_of(name, sizes[name]) for name in cuts})


def _answer(compared: Comparison) -> str:
    """The dearest tokenizer against the cheapest; where only one holds the whole text, its count."""
    far = spread(compared.cuts, without=("words",))  # which lose the blanks
    if far is None:
        name, cut = next(iter(compared.cuts.items()))
        each = cut.characters_per_token
        return TEXT("only one", title=compared.titles[name], tokens=cut.tokens, each=each)
    return TEXT(
        "dearest",
        least=compared.titles[far.least],
        least_tokens=far.least_tokens,
        most=compared.titles[far.most],
        most_tokens=far.most_tokens,
        times=far.times,
        work=far.work,
        entries=compared.sizes[far.least],
        instead=compared.sizes[far.most],
    )


def _note(name: str, cut: Cut, size: int) -> str:
    if is_ours(name) and size < requested_size(name):
        return TEXT("fewer entries", requested=requested_size(name), entries=size)
    if name == "words":
        return TEXT["lost word" if cut.unknown else "lost spaces"]
    return TEXT["lost character"] if cut.unknown else ""


def family(name: str, encode: Callable[[str], Sequence[int]]) -> Guess | None:
    """Makes a guess about the tokens into which the tokenizer `name` cuts one picture of a family."""
    truth = picture(FAMILY, encode)
    if truth is None:
        return None
    n = truth.numbers
    return Guess.of(
        TEXT,
        truth,
        TEXT("guess", name=name, family=FAMILY),
        TEXT("outcome", found=n["found"], characters=n["character"], bytes=n["byte"]),
        {"compare_text": EXAMPLES["Emoji"]},
        {kind: f"{n[kind]:.0f}" for kind in sorted(truth.offered, key=n.__getitem__)},
    )


def _measured(chosen: Chosen, known: Sources) -> None:
    """How many tokens each makes, of the text and of each line; and how other methods learn their pieces."""
    compared = _compared(chosen, known) if chosen.text else None
    if compared is not None:
        _draw_summary(compared)
        _draw_lines(compared, known, encodings(chosen.names))
    st.markdown(TEXT["others"])
    others = [TEXT(f"other {name}").split(" | ") for name in OTHERS]
    st.table(pd.DataFrame(others, columns=["", "how", "used by"]).set_index(""))


def _draw_summary(compared: Comparison) -> None:
    text, cuts, sizes, titles = compared.text, compared.cuts, compared.sizes, compared.titles
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
    st.markdown(TEXT("how many", characters=len(text), bytes=next(iter(cuts.values())).bytes))
    chart, numbers = st.columns([4, 5], gap="medium", vertical_alignment="center")
    with chart:
        counts = "; ".join(TEXT("count", title=titles[name], tokens=cut.tokens) for name, cut in cuts.items())
        plot(
            token_bars(
                table["tokenizer"].tolist(),
                [colour_of(name) for name in cuts],
                table["tokens"].to_numpy(),
                table["characters per token"].to_numpy(),
            ),
            key="compare_bars",
            alt=TEXT("alt", counts=counts),
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


def _written(column: pd.Series, digits: int = 0) -> list[str]:
    return [f"{value:,.{digits}f}" for value in column]


def token_bars(
    names: Sequence[str], colours: Sequence[str], tokens: np.ndarray, each: np.ndarray
) -> go.Figure:
    """Draws tokens of one text (tokenizer,), with the characters that each token holds on average
    (tokenizer,).
    """
    bars = go.Bar(
        orientation="h",
        x=tokens.astype(np.float64),
        y=list(names),
        marker={"color": list(colours)},
        text=[f"{n:,}" for n in tokens.tolist()],
        textposition="outside",
        cliponaxis=False,
        customdata=each.astype(np.float32),
        hovertemplate=TEXT["hover tokens"],
    )
    return go.figure(
        [bars],
        margin={"l": 104, "r": 56, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.3,
        xaxis={"title": {"text": "tokens"}, "rangemode": "tozero", "nticks": 6},
        yaxis={"autorange": "reversed", "type": "category", "nticks": len(names)},
    )


def _draw_lines(compared: Comparison, known: Sources, here: Encodings) -> None:
    """A table by line, where the text has a few."""
    text, names = compared.text, list(compared.titles.values())
    lines = [line for line in text.split("\n") if line.strip()]
    if not 2 <= len(lines) <= MOST_LINES or max(map(len, lines)) > LONGEST_LINE:
        return
    st.markdown(TEXT["line by line"])
    counts = [
        [cut_of(name, known.name, known.custom, line, known, here).tokens for name in compared.titles]
        for line in lines
    ]
    by_line = Lines(tuple(lines), np.array(counts))
    table = pd.DataFrame(by_line.counts, columns=names).assign(characters=by_line.characters, line=lines)
    plot(
        line_table([line[:60] for line in lines], names, by_line.counts, by_line.per_character),
        key="compare_lines",
        alt=TEXT("alt lines", lines=len(lines), tokenizers=len(names)),
        height=max(200, 30 * len(lines) + 90),
        data=table,
        name="tokens-by-line",
    )
    st.caption(
        "  \n".join(f"{i}: {safe(line[:90])}{'…' if len(line) > 90 else ''}" for i, line in enumerate(lines))
    )
    st.caption(TEXT["by line"])


def line_table(
    lines: Sequence[str], names: Sequence[str], counts: np.ndarray, per_character: np.ndarray
) -> go.Figure:
    """Draws tokens of each line by each tokenizer: counts (line, tokenizer), shaded by tokens per character
    (line, tokenizer).
    """
    rows = [f"{i}" for i in range(len(lines))]
    hover = [
        [
            TEXT("hover line", name=plain(name), number=i, line=plain(line), count=count, rate=rate)
            for name, count, rate in zip(names, row, rates, strict=True)
        ]
        for i, (line, row, rates) in enumerate(
            zip(lines, counts.tolist(), per_character.tolist(), strict=True)
        )
    ]
    top = max(1.0, float(per_character.max(initial=0.0)))
    # A trace of their own: of text on a heatmap Plotly makes all cells alike or chooses badly, and a middle
    # shade needs a choice for each page.
    numbers = go.Scatter(
        mode="text",
        x=[name for _ in rows for name in names],
        y=[row for row in rows for _ in names],
        text=[f"{n:,}" for n in counts.ravel().tolist()],
        hoverinfo="skip",
        textfont={
            "color": [
                SEQUENTIAL[0][1] if rate > STRONG * top else SEQUENTIAL[-1][1]
                for rate in per_character.ravel().tolist()
            ]
        },
    )
    cells = go.Heatmap(
        z=per_character.astype(np.float32),
        x=list(names),
        y=rows,
        colorscale=SEQUENTIAL,
        zmin=0.0,
        zmax=top,
        xgap=2,
        ygap=2,
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
        colorbar={"thickness": 12, "nticks": 5, "title": {"text": TEXT["per character"]}},
    )
    return go.figure(
        [cells, numbers],
        margin={"l": 44, "r": 8, "t": 8, "b": 64},
        showlegend=False,
        xaxis={"type": "category", "showgrid": False},
        yaxis=go.axis("line", type="category", autorange="reversed", nticks=len(rows)),
    )


def _draw_merges() -> None:
    """The merges of GPT-2 that make one word, in order, without and with a blank before it."""
    here = at_hand([GPT2])
    if not here:
        st.caption(TEXT["no merges"])
        return
    typed = st.text_input(TEXT["word"], "unbelievably", key="merged_word", max_chars=LONGEST_WORD, **KEPT)
    letters = re.search(r"[^\W\d_]+", typed)
    if letters is None:
        st.caption(TEXT["no letters"])
        return
    for column, word in zip(st.columns(2, gap="medium"), (letters[0], f" {letters[0]}"), strict=True):
        with column:
            _draw_merged(word, here[GPT2])


def _draw_merged(word: str, encoding: PublishedTokenizer) -> None:
    data = word.encode()
    merged = encoding.merges(data)
    last = merged[-1][1] if merged else tuple(bytes([byte]) for byte in data)
    st.markdown(TEXT("merged", word=show_bytes(data), merges=len(merged), tokens=len(last)))
    rows = [
        (f"{rank - 255:,}", " ".join(f"`{show_bytes(piece)}`" for piece in pieces)) for rank, pieces in merged
    ]
    if rows:
        st.table(
            pd.DataFrame(rows, columns=[TEXT["merge number"], TEXT["pieces"]]).set_index(TEXT["merge number"])
        )


PART = View(
    "tokens", TEXT, draw, code=(PublishedTokenizer.encode, PublishedTokenizer.merges, cut_tokens, cut_words)
)
