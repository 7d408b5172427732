"""The view "BPE": merges learned from a text, played in the browser over one's own passage, and what they are
worth.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.data import corpora
from engine.data.tokenizers.bpe import Level, Split
from engine.measure.tokens.subwords import ThreeWays, achieved
from pages.input.tokens import guesses, words
from pages.input.tokens.bpe_result import draw_result
from pages.input.tokens.bpe_text import OWN, SHAKESPEARE, Texts, choose_texts
from pages.input.tokens.shared import Sources, known_words
from pages.input.tokens.text_box import text_box
from pages.input.tokens.watching import Watching, learned, watching
from pages.input.tokens.words_examples import MERGES
from ui import explain, session
from ui.guess import ask
from ui.players.component import SAVES, STEPPER, mounted
from ui.text.markdown import safe
from ui.widgets import index_of, number_of, picked, put_index, read_url, select, whole

LEVELS: dict[Level, str] = {"byte": "Bytes", "char": "Characters"}
SPLITS: dict[Split, str] = {"words": "Split into words first", "none": "No splitting"}
NEW_TOKENS, MOST = 100, 2_000
PLAYER, STEP, TOKEN = "bpe_player", "bpe_step", "bpe_token"
FOLLOW = -1  # the token whose tree is shown is the one that the step makes


def draw_bpe() -> None:
    """Controls in one line; the player, and beside it what it comes to."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        typed = text_box(MERGES, "bpe_text")
        source, level, split, new_tokens = _settings()
    # so that a sentence more, or a spinner, does not move the player out of its place
    notes = st.container()
    with notes:
        texts = None if typed is None else choose_texts(typed, level, split, source)
        if texts is None or not learned(texts.learned, new_tokens, level, split):
            return
        watched = watching(texts.learned, texts.passage, new_tokens, level, split)
    if not watched.seen.tokenizer.merges:
        st.info(words.NOTHING_TO_MERGE)
        return
    left, right = st.columns([15, 8], gap="medium")
    with left:
        _play(watched, texts)
    with right:
        merges = len(watched.seen.tokenizer.merges)
        explain.answer(words.why_pieces(watched.ways, merges, texts.name))
        _draw_ways(watched.ways)
    explain.measure_it(_measured, watched, texts, new_tokens, level)


def _settings() -> tuple[str, Level, Split, int]:
    """(what is learned from, the starting symbols, whether words are kept apart, tokens to learn)"""
    with st.popover("Training settings", icon=":material/tune:"):
        source = select("Train on", words.MERGES_FROM, "bpe_from", first=OWN, wrap=True)
        level = select("Start from", LEVELS, "bpe_level", wrap=True)
        split = select("Pre-tokenization", SPLITS, "bpe_split", wrap=True)
        hint = words.merges_hint(MOST)
        new_tokens = whole("Tokens to learn", 1, MOST, NEW_TOKENS, "bpe_new", step=50, width=180, hint=hint)
    return source, level, split, new_tokens


def _large_list(texts: Texts) -> int | None:
    """How many words all of Tiny Shakespeare has; None where it is not here, or is what is learned from."""
    if texts.name == words.TEXTS[SHAKESPEARE] or corpora.shakespeare_path() is None:
        return None
    known = known_words(Sources(SHAKESPEARE, "", session.corpus(SHAKESPEARE).text))
    return None if known is None else known.vocab_size


def _draw_ways(ways: ThreeWays) -> None:
    """Characters, pieces and whole words of the same text, and of a word that it does not have."""
    rows = {"characters": ways.characters, "BPE": ways.pieces}
    if ways.words is not None:
        rows["whole words"] = ways.words
    table = pd.DataFrame({"tokens T": [f"{way.tokens:,}" for way in rows.values()]}, index=list(rows))
    if ways.new:
        table[f"“␣{safe(ways.new)}”"] = [words.spelled(way) for way in rows.values()]
    st.table(table)


def _measured(watched: Watching, texts: Texts, new_tokens: int, level: Level) -> None:
    st.markdown(words.achieved(achieved(watched.seen), new_tokens))
    st.markdown(
        words.lists(watched.ways, len(watched.seen.tokenizer.base), LEVELS[level], _large_list(texts))
    )
    st.caption(words.learned_from(texts.name, watched.seen.characters))
    draw_result(watched, texts, new_tokens)


@st.fragment
def _play(watched: Watching, texts: Texts) -> None:
    """The player. It is told all frames once and plays by itself; where it came to rest, it tells, for the
    link.
    """
    own = watched.seen.tokenizer
    step, token = _at(len(own.merges), own.vocab_size)
    _keep(step, token)
    data = {"frames": watched.frames, "key": watched.key, "step": step, "token": token, "name": texts.name}
    mounted("bpe", styles=(SAVES, STEPPER, "scrubber", "bpe"))(key=PLAYER, data=data, on_at_change=_rested)
    ask("merge", guesses.next_merge, watched.seen, step)


def _at(merges: int, vocabulary: int) -> tuple[int, int]:
    """(step, token) of the link; what does not fit falls back."""
    chosen = index_of(read_url(TOKEN), vocabulary)
    return min(number_of(read_url(STEP)) or 0, merges - 1), FOLLOW if chosen is None else chosen


def _keep(step: int | None, token: int | None) -> None:
    put_index(STEP, step or None)
    put_index(TOKEN, None if token == FOLLOW else token)


def _rested() -> None:
    """The player has come to rest."""
    step, _, token = str(picked(PLAYER, "at")).partition(",")
    _keep(number_of(step), number_of(token))
