"""Results of learning merges: the curve, the list, the four ways to start, and a tiktoken.Encoding."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pandas as pd
import streamlit as st

from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.bpe_watch import Watched, Way
from engine.data.tokenizers.bpe_watch import four_ways as train_four_ways
from engine.measure.tokens.subwords import Shrinking, achieved, agreement
from pages.input.tokens import figures_bpe as figures
from pages.input.tokens import words
from pages.input.tokens.bpe_text import Texts
from pages.input.tokens.watching import Watching
from ui import memo
from ui.players.plot import plot
from ui.text.markdown import safe
from ui.text.tokens import show_bytes
from ui.widgets import select

COMPARED = 20_000  # characters on which the four ways are compared
UNITS: dict[str, Callable[[Shrinking], np.ndarray]] = {
    "tokens left, % of the original": lambda shrinking: shrinking.percent,
    "characters per token": lambda shrinking: shrinking.characters_per_token,
    "bytes per token": lambda shrinking: shrinking.bytes_per_token,
}


def draw_result(watched: Watching, texts: Texts, new_tokens: int) -> None:
    """Draws one of four parts, as chosen."""
    part = select("Shown", words.PARTS, "bpe_part", hidden=True)
    if part == "merges":
        _draw_merges(watched.seen)
    elif part == "ways":
        _draw_ways(texts, new_tokens)
    elif part == "tiktoken":
        _draw_tiktoken(watched.seen.tokenizer, texts.passage)
    else:
        _draw_compression(watched, texts)


def _draw_compression(watched: Watching, texts: Texts) -> None:
    unit = select("Measure", list(UNITS), "bpe_unit")
    record, passage = watched.seen, texts.passage
    shrinking = {texts.name: achieved(record).shrinking}
    if not texts.same:
        shrinking[words.PASSAGE] = Shrinking(
            watched.shown.lengths(len(record.tokenizer.merges)),
            len(passage),
            len(passage.encode("utf-8", "surrogatepass")),
        )
    table = pd.DataFrame({"merges": np.arange(len(record.lengths))})
    for name, shrunk in shrinking.items():
        columns = {"tokens left": shrunk.tokens} | {written: of(shrunk) for written, of in UNITS.items()}
        table = table.assign(**{f"{measure}, {name}": column for measure, column in columns.items()})
    curves = {name: UNITS[unit](shrunk) for name, shrunk in shrinking.items()}
    first = curves[texts.name]
    plot(
        figures.compression(curves, unit),
        key="bpe_compression",
        height=320,
        data=table,
        name="bpe-compression",
        alt=words.compression_alt(unit, first[0], first[-1], texts.name),
    )
    st.caption(words.saved(shrinking[texts.name], texts.name))


def _draw_merges(watched: Watched) -> None:
    st.dataframe(
        merges_table(watched),
        hide_index=True,
        height=360,
        key="bpe_merges",
        column_config={
            "count": st.column_config.NumberColumn(format="localized"),
            "tokens left": st.column_config.NumberColumn(format="localized"),
        },
    )
    st.caption(words.MERGES_LIST)


def merges_table(watched: Watched) -> pd.DataFrame:
    """Returns a row for each merge."""
    tokenizer = watched.tokenizer
    tokens = [show_bytes(token) for token in tokenizer.tokens]
    following = [
        f"{tokens[r[0][0][0]]} + {tokens[r[0][0][1]]}: {r[0][1]:,}" if r else "" for r in watched.runners_up
    ]
    rows = [
        (number, tokens[m.pair[0]], tokens[m.pair[1]], tokens[m.token], m.token, m.count, m.length, after)
        for number, (m, after) in enumerate(zip(tokenizer.merges, following, strict=True), 1)
    ]
    return pd.DataFrame(
        rows, columns=["merge", "left", "right", "token", "id", "count", "tokens left", "runner-up"]
    )


@memo.measured(words.TRAINING_FOUR)
def _ways(text: str, new_tokens: int) -> list[Way]:
    return train_four_ways(text, new_tokens)


def _draw_ways(texts: Texts, new_tokens: int) -> None:
    text = texts.learned[:COMPARED]
    ways = _ways(text, new_tokens)
    names = [words.WAYS[way.level, way.split] for way in ways]
    table = pd.DataFrame(
        {
            "way": names,
            "tokens at the start": [w.start for w in ways],
            "tokens left": [w.length for w in ways],
            "vocabulary": [w.vocab_size for w in ways],
            "characters per token": [w.characters_per_token for w in ways],
            "tokens across a word boundary": [len(w.crossing) for w in ways],
        }
    )
    plot(
        figures.four_ways(names, [w.start for w in ways], [w.length for w in ways]),
        key="bpe_ways",
        height=330,
        data=table,
        name="bpe-four-ways",
        alt=words.four_ways_alt(new_tokens, {n: w.length for n, w in zip(names, ways, strict=True)}),
    )
    st.dataframe(
        table,
        hide_index=True,
        key="bpe_ways_table",
        column_config={"characters per token": st.column_config.NumberColumn(format="%.2f")},
    )
    cut = (
        f"the first {COMPARED:,} characters of {texts.name}" if len(text) < len(texts.learned) else texts.name
    )
    st.caption(words.four_ways(cut, new_tokens, any(way.by_heart for way in ways)))
    st.markdown(words.crossing([safe(show_bytes(token)) for token in ways[1].crossing]))


@memo.measured()
def _theirs(frozen: str, passage: str) -> list[int]:
    """The passage's ids by tiktoken, from the tokenizer written down."""
    return BpeTokenizer.from_dict(json.loads(frozen)).as_tiktoken().encode_ordinary(passage)


def _draw_tiktoken(tokenizer: BpeTokenizer, passage: str) -> None:
    frozen = json.dumps(tokenizer.to_dict())
    if tokenizer.level == "char":
        st.info(words.BYTES_ONLY)
    else:
        mine, theirs = tokenizer.encode(passage), _theirs(frozen, passage)
        both = agreement(mine, theirs)
        if both.first is None:
            st.success(words.same_ids(both.ours), icon=":material/check:")
        else:
            st.error(words.other_ids(both.first, both.ours, both.theirs))
        st.dataframe(
            pd.DataFrame(
                {
                    "position": np.arange(len(mine)),
                    "token": [show_bytes(tokenizer.tokens[i]) for i in mine],
                    "our id": mine,
                    "tiktoken's id": pd.Series(theirs).reindex(range(len(mine))),
                }
            ),
            hide_index=True,
            height=240,
            key="bpe_ids",
        )
        st.caption(words.BOTH_COMPUTED)
        st.code(words.NOTEBOOK, language="python")
    st.download_button(
        words.DOWNLOAD,
        frozen,
        "tokenizer.json",
        "application/json",
        icon=":material/download:",
        on_click="ignore",
        key="bpe_download",
    )
