"""A training of BPE that is watched: learned once, replayed over a passage, and written down as frames."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from engine.data.tokenizers.bpe import Level, Split
from runs.bpe_process import watching as apart
from studies.tokens.bpe_watch import RUNNERS_UP, UNKNOWN, Replay, Watched, replay, watch
from studies.tokens.subwords import ThreeWays, three_ways
from ui import memo
from ui.background_jobs import Key, known, measured
from ui.text.tokens import is_partial, show_bytes

MOST = 2_000  # merges
AHEAD = 100, 500, MOST  # so many are learned at once: with fewer, a training is the beginning of that


@dataclass(frozen=True)
class Watching:
    """One training and one passage under it; `ways` compares what was learned from. `frames` is all that the
    browser needs to play it, as JSON; `key` names it.
    """

    seen: Watched
    shown: Replay
    ways: ThreeWays
    frames: str
    key: str


def learned(text: str, new_tokens: int, level: Level, split: Split) -> bool:
    """True if the merges of a text are known. While they are learned, draws a bar; else a sentence."""
    ahead = _ahead(new_tokens)
    work = partial(apart, text, ahead, level=level, split=split)
    return measured(_key(text, ahead, level, split), work, "Learning the merges") is not None


def _ahead(new_tokens: int) -> int:
    return next(most for most in AHEAD if new_tokens <= most)


def _key(text: str, *choice: int | str) -> Key:
    return "watched", hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), *choice


@memo.measured("Learning the merges …")
def _learned(text: str, new_tokens: int, level: Level, split: Split) -> Watched:
    """Trained once for each text, choice and number of AHEAD."""
    watched: Watched | None = known(_key(text, new_tokens, level, split))
    return watched or watch(text, new_tokens, level=level, split=split)


@memo.measured()
def watching(text: str, passage: str, new_tokens: int, level: Level, split: Split) -> Watching:
    """Merges learned from `text`, and what they do to `passage`."""
    watched = _learned(text, _ahead(new_tokens), level, split).first(new_tokens)
    shown = replay(watched.tokenizer, passage)
    frames = json.dumps(frames_of(watched, shown, passage, text == passage), separators=(",", ":"))
    return Watching(
        watched, shown, three_ways(text, watched), frames, hashlib.sha256(frames.encode()).hexdigest()[:16]
    )


def frames_of(watched: Watched, shown: Replay, passage: str, same: bool) -> dict[str, Any]:
    """Returns all frames at once, as numbers: `merges` five for each (pair, token, count, tokens left),
    `runners` three for each runner-up, padded with -1.

    `unknown` are the passage's characters without a symbol, in their order.
    """
    tokenizer = watched.tokenizer
    # At byte level there is none, and at character level a symbol is a character.
    unknown = [
        show_bytes(c.encode("utf-8", "surrogatepass"))
        for c, symbol in zip(passage, shown.symbols, strict=False)
        if symbol == UNKNOWN
    ]
    runners = np.full((len(tokenizer.merges), RUNNERS_UP, 3), -1, dtype=np.int64)
    for row, pairs in zip(runners, watched.runners_up, strict=True):
        for rank, (pair, count) in enumerate(pairs):
            row[rank] = *pair, count
    return {
        "base": len(tokenizer.base),
        "tokens": [show_bytes(token) for token in tokenizer.tokens],
        "partial": [i for i, token in enumerate(tokenizer.tokens) if is_partial(token)],
        "newline": tokenizer.ranks.get(b"\n", -2),
        "merges": [n for m in tokenizer.merges for n in (*m.pair, m.token, m.count, m.length)],
        "runners": runners.ravel().tolist(),
        "symbols": shown.symbols.tolist(),
        "fallen": shown.fallen.tolist(),
        "unknown": unknown,
        "start": watched.length,
        "characters": watched.characters,
        "bytes": watched.bytes,
        "shown": len(passage),
        "same": same,
    }
