"""Comparison of tokenizers: the number of tokens that each makes, of the text and of each line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.tokens.vocabulary import Cut, Lines, spread
from pages.input.tokens import figures, shared, words
from pages.input.tokens.cutting import Encodings, cut_of, kind_of
from ui import explain
from ui.players.plot import plot
from ui.text.markdown import safe
from ui.text.numbers import counted

MOST_LINES, LONGEST_LINE = 16, 2000


@dataclass(frozen=True)
class Comparison:
    """A text cut by several tokenizers; the cuts, the sizes of the vocabularies and the titles are by
    name.
    """

    text: str
    cuts: dict[str, Cut]
    sizes: dict[str, int]
    titles: dict[str, str]


def draw_answer(comparison: Comparison) -> None:
    """Draws the dearest tokenizer against the cheapest; where only one holds the whole text, its count."""
    far = spread(comparison.cuts, without=("words",))  # which lose the blanks
    if far is not None:
        entries = comparison.sizes[far.most], comparison.sizes[far.least]
        explain.answer(words.dearest(far, comparison.titles[far.most], comparison.titles[far.least], entries))
        return
    name, cut = next(iter(comparison.cuts.items()))
    explain.answer(words.only(comparison.titles[name], cut))


def draw_others() -> None:
    """Draws how other methods learn their pieces."""
    st.markdown("### Other subword algorithms")
    st.table(pd.DataFrame(words.OTHERS, columns=["", "how", "used by"]).set_index(""))


def draw_summary(comparison: Comparison) -> None:
    """Draws how many tokens each makes."""
    text, cuts, sizes, titles = comparison.text, comparison.cuts, comparison.sizes, comparison.titles
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
    size = next(iter(cuts.values())).bytes
    st.markdown(f"### {counted(len(text), 'character')}, {counted(size, 'byte')}: how many tokens?")
    chart, numbers = st.columns([4, 5], gap="medium", vertical_alignment="center")
    with chart:
        each = table["characters per token"].to_numpy()
        figure = figures.token_bars(
            table["tokenizer"].tolist(), [kind_of(name) for name in cuts], table["tokens"].to_numpy(), each
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


def _written(column: pd.Series, digits: int = 0) -> list[str]:
    return [f"{value:,.{digits}f}" for value in column]


def draw_lines(compared: Comparison, known: shared.Sources, encodings: Encodings) -> None:
    """Draws a table by line, where the text has a few."""
    text, titles = compared.text, compared.titles
    lines = [line for line in text.split("\n") if line.strip()]
    if not 2 <= len(lines) <= MOST_LINES or max(map(len, lines)) > LONGEST_LINE:
        return
    st.markdown("### Line by line")
    by_line = Lines(
        tuple(lines),
        np.array(
            [
                [cut_of(name, known.name, known.custom, line, known, encodings).tokens for name in titles]
                for line in lines
            ]
        ),
    )
    table = pd.DataFrame(by_line.counts, columns=list(titles.values())).assign(
        characters=by_line.characters, line=lines
    )
    alt = f"Tokens of each of {len(lines)} lines by {len(titles)} tokenizers."
    figure = figures.line_table(
        [line[:60] for line in lines], list(titles.values()), by_line.counts, by_line.per_character
    )
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
    st.caption(words.BY_LINE)
