"""The view "BPE, watched": merges learned from a text, played in the browser over one's own passage."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import streamlit as st

from engine.tokenizers.bpe import Level, Split
from engine.tokenizers.bpe_watch import RUNNERS_UP, UNKNOWN, Replay, Watched, replay, watch
from pages.input.tokens import bpe_result
from pages.input.tokens.bpe_text import OWN, SOURCES, Texts, choose_texts, typed_text
from pages.input.tokens.watching import Watching
from ui import explain
from ui.players.component import mounted
from ui.text.tokens import is_partial, show_bytes

LEVELS: dict[str, Level] = {"Bytes": "byte", "Characters": "char"}
SPLITS: dict[str, Split] = {"Cut into words first": "words", "Leave it whole": "none"}
NEW_TOKENS, MOST = 100, 2_000
PLAYER, STEP, TOKEN = "bpe_player", "bpe_step", "bpe_token"
FOLLOW = -1  # the token whose tree is shown is the one that the step makes


def draw_bpe() -> None:
    """Controls, the player, and what came out."""
    left, right = st.columns(
        2, gap="medium"
    )  # beside each other, so that the player below is on the first screen
    with left:
        typed = typed_text()
    with right:
        kept: dict[str, Any] = {"bind": "query-params", "required": True, "wrap": True}
        source = st.segmented_control("Learn from", list(SOURCES), default=OWN, key="bpe_from", **kept)
        with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
            level = LEVELS.get(
                str(
                    st.segmented_control("Start from", list(LEVELS), default="Bytes", key="bpe_level", **kept)
                ),
                "byte",
            )
            new_tokens = _new_tokens()
        split = SPLITS.get(
            str(
                st.segmented_control(
                    "Before merging", list(SPLITS), default="Cut into words first", key="bpe_split", **kept
                )
            ),
            "words",
        )
    notes, stage = (
        st.container(),
        st.container(),
    )  # so that a sentence more, or a spinner, does not move the player out of its place
    with notes:
        texts = choose_texts(typed, level, split, source if source in SOURCES else OWN)
        if texts is None:
            return
        watching = _watching(texts.learned, texts.passage, new_tokens, level, split)
    if not watching.seen.tokenizer.merges:
        st.info(
            "There is nothing to merge: no two symbols stand side by side in one word. Write at least one"
            " word of two letters."
        )
        return
    with stage:
        _play(watching, texts)
    st.caption(
        f"Learned from {texts.name}: {watching.seen.characters:,} characters. Tie rule: of equally frequent"
        " pairs the one with the smaller first id wins, then the smaller second, as Hugging Face's trainer"
        " decides. Where the text is cut into words first (by GPT-2's rule), no merge crosses their borders."
        " Click a token to see how it was built."
    )
    explain.takeaway(_says(watching.seen, new_tokens))
    bpe_result.draw_result(watching, texts, new_tokens)


def _new_tokens() -> int:
    """How many tokens to learn, kept between 1 and MOST whatever a link says."""
    if (
        len(st.query_params.get("bpe_new", "")) > 300
    ):  # Streamlit 1.67 reads such a numeral as infinity, and then fails to make that whole
        del st.query_params["bpe_new"]
        st.rerun()
    value = st.number_input(
        "Tokens to learn",
        1,
        MOST,
        NEW_TOKENS,
        50,
        key="bpe_new",
        bind="query-params",
        width=150,
        help=(
            f"Each merge makes one. The vocabulary is the starting symbols and these; at most {MOST:,} here."
        ),
    )
    return min(max(int(value), 1), MOST)


@st.cache_resource(max_entries=24, show_spinner="Learning the merges …")
def learned(text: str, new_tokens: int, level: Level, split: Split) -> Watched:
    """Trained once for each text and choice; about half a second for a megabyte."""
    return watch(text, new_tokens, level=level, split=split)


@st.cache_resource(max_entries=24, show_spinner=False)
def _watching(text: str, passage: str, new_tokens: int, level: Level, split: Split) -> Watching:
    seen = learned(text, new_tokens, level, split)
    shown = replay(seen.tokenizer, passage)
    frames = json.dumps(frames_of(seen, shown, passage, text == passage), separators=(",", ":"))
    return Watching(seen, shown, frames, hashlib.sha256(frames.encode()).hexdigest()[:16])


def frames_of(seen: Watched, shown: Replay, passage: str, same: bool) -> dict[str, Any]:
    """All frames at once, as numbers: `merges` five for each (pair, token, count, tokens left), `runners`
    three for each runner-up, padded with -1.

    `unknown` are the passage's characters without a symbol, in their order.
    """
    own = seen.tokenizer
    # At byte level there is none, and at character level a symbol is a character.
    unknown = [
        show_bytes(c.encode("utf-8", "surrogatepass"))
        for c, symbol in zip(passage, shown.symbols, strict=False)
        if symbol == UNKNOWN
    ]
    runners = np.full((len(own.merges), RUNNERS_UP, 3), -1, dtype=np.int64)
    for row, found in zip(runners, seen.runners_up, strict=True):
        for place, (pair, count) in enumerate(found):
            row[place] = *pair, count
    return {
        "base": len(own.base),
        "tokens": [show_bytes(token) for token in own.tokens],
        "partial": [i for i, token in enumerate(own.tokens) if is_partial(token)],
        "newline": own.ranks.get(b"\n", -2),
        "merges": [n for m in own.merges for n in (*m.pair, m.token, m.count, m.length)],
        "runners": runners.ravel().tolist(),
        "symbols": shown.symbols.tolist(),
        "fallen": shown.fallen.tolist(),
        "unknown": unknown,
        "start": seen.length,
        "characters": seen.characters,
        "bytes": seen.bytes,
        "shown": len(passage),
        "same": same,
    }


@st.fragment
def _play(watching: Watching, texts: Texts) -> None:
    """The player. It is told all frames once and plays by itself; where it came to rest, it tells, for the
    link.
    """
    merges, vocabulary = len(watching.seen.tokenizer.merges), watching.seen.tokenizer.vocab_size
    step, token = _at(merges, vocabulary)
    _put(STEP, step, 0)
    _put(TOKEN, token, FOLLOW)
    data = {"frames": watching.frames, "key": watching.key, "step": step, "token": token, "name": texts.name}
    mounted("bpe")(key=PLAYER, data=data, on_at_change=lambda: None)


def _at(merges: int, vocabulary: int) -> tuple[int, int]:
    """(step, token) from the player, else from the link; what does not fit falls back."""
    held = st.session_state.get(PLAYER)
    said = held.get("at") if held is not None and hasattr(held, "get") else None
    if isinstance(said, str):
        step, _, token = said.partition(",")
    else:
        step, token = st.query_params.get(STEP, ""), st.query_params.get(TOKEN, "")
    return min(_number(step, 0), merges - 1), (
        chosen if (chosen := _number(token, FOLLOW)) < vocabulary else FOLLOW
    )


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else otherwise


def _put(name: str, value: int, default: int) -> None:
    if value == default:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != str(value):
        st.query_params[name] = str(value)


def _says(seen: Watched, asked: int) -> str:
    """What the merges achieved, from their numbers."""
    merges, left = seen.tokenizer.merges, int(seen.lengths[-1])
    once = next((m.rank for m in merges if m.count == 1), None)
    words = (
        f"**{seen.length:,} → {left:,} tokens** after {len(merges):,} merges, {left / seen.length:.1%} of the"
        f" start: {seen.characters / left:.2f} characters and {seen.bytes / left:.2f} bytes for each token,"
        f" with a vocabulary of {seen.tokenizer.vocab_size:,}."
    )
    half = int(np.argmax(seen.lengths <= (seen.length + left) / 2))
    words += (
        f" The first {half:,} merges did half of the work: frequent pairs come first."
        if half < len(merges) / 2
        else ""
    )
    if seen.tokenizer.vocab_size - len(seen.tokenizer.base) < asked:
        words += f" You asked for {asked:,}; after these no pair was left."
    if once is not None:
        words += (
            f" From merge {once:,} on the winning pair stands there only once: from there the text is learned"
            " by heart, which helps with no other text."
        )
    return words
