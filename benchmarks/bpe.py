"""Seconds to learn a vocabulary of 1,024 from Tiny Shakespeare, beside a naive trainer and Hugging Face's;
and encoding beside tiktoken.

    python -m benchmarks.bpe [--rounds 5] [--naive-merges 16]

All train on the same text from bytes, cut into words by the same rule, and must learn the same merges. The
naive trainer counts every pair of the whole text anew for every merge; it makes the first few merges only,
and `naive.seconds` is *extrapolated* to all of them by the tokens that it would still have to walk over
(which every record of ours knows). Encoding: the whole text, by our encoder (with its memory of words, empty
and full) and by tiktoken from the same ranks. One core, all peers in turn in one run.

`seconds` are the clock's. `cpu` is what of them the processor worked for us: on a busy machine it is nearer
to what a quiet one would take.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from benchmarks.report import Goals, finish, table
from engine.data import corpora
from engine.data.tokenizers.bpe import (
    BYTES,
    BpeTokenizer,
    Merge,
    pieces,
    train,
)
from tests.engine.naive import merge_everywhere

VOCABULARY = 1024
GOALS: Goals = {"train.ours.seconds": ("<=", 0.8)}


def naive(text: str, merges: int) -> list[tuple[int, int]]:
    """The textbook's trainer: all words of the text in a row, every pair counted for every merge."""
    ids, tokens = {token: i for i, token in enumerate(BYTES)}, list(BYTES)
    words = [[ids[bytes([b])] for b in piece.encode()] for piece in pieces(text, "words")]
    pairs: list[tuple[int, int]] = []
    for _ in range(merges):
        counts: Counter[tuple[int, int]] = Counter()
        for word in words:
            counts.update(pairwise(word))
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        made = tokens[best[0]] + tokens[best[1]]
        token = ids.setdefault(made, len(tokens))
        tokens += [made] if token == len(tokens) else []
        words = [merge_everywhere(word, best, token) for word in words]
        pairs.append(best)
    return pairs


def naive_share(length: int, merges: tuple[Merge, ...], done: int) -> float:
    """How many times the work of the first `done` merges all of them are: a merge walks over the tokens that
    were left before it.
    """
    walked = [length, *(merge.length for merge in merges[:-1])]
    return sum(walked) / sum(walked[:done])


def hugging_face(text: str) -> Any:
    import tokenizers

    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=alphabet, show_progress=False, special_tokens=[]
    )
    theirs.train_from_iterator([text], trainer)
    return theirs


def same_merges(own: BpeTokenizer, theirs: Any) -> bool:
    import tokenizers

    letters = dict(zip(BYTES, sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()), strict=True))
    mine = [["".join(letters[bytes([b])] for b in own.tokens[i]) for i in merge.pair] for merge in own.merges]
    return mine == [list(pair) for pair in json.loads(theirs.to_str())["model"]["merges"]]


Times = tuple[float, float]  # seconds by the clock, seconds of the processor


def _timed(call: Callable[[], Any]) -> tuple[Times, Any]:
    started, worked = time.perf_counter(), time.process_time()
    result = call()
    return (time.perf_counter() - started, time.process_time() - worked), result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--naive-merges",
        type=int,
        default=16,
        help="merges that the naive trainer makes in each round; the rest is extrapolated",
    )
    options = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = "1"  # Hugging Face's trainer: one core, like the others
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    text = corpora.load("shakespeare").text
    seconds: dict[str, list[Times]] = {}
    for _ in range(options.rounds):
        for who, call in (
            ("ours", lambda: train(text, VOCABULARY)),
            ("hugging_face", lambda: hugging_face(text)),
            ("naive", lambda: naive(text, options.naive_merges)),
        ):
            took, result = _timed(call)
            seconds.setdefault(who, []).append(took)
            if who == "ours":
                own = result
            elif who == "hugging_face":
                assert same_merges(own, result), "Hugging Face learned other merges"
            else:
                assert result == [merge.pair for merge in own.merges[: options.naive_merges]], (
                    "the naive trainer learned other merges"
                )
        fresh = BpeTokenizer(own.level, own.split, own.base, own.merges)
        took, mine = _timed(lambda fresh=fresh: fresh.encode(text))
        seconds.setdefault("encode, first time", []).append(took)
        seconds.setdefault("encode, words known", []).append(
            _timed(lambda fresh=fresh: fresh.encode(text))[0]
        )
        encoding = fresh.as_tiktoken()
        took, theirs = _timed(lambda encoding=encoding: encoding.encode_ordinary(text))
        seconds.setdefault("encode, tiktoken", []).append(took)
        assert mine == theirs, "tiktoken gives other ids"
    share = naive_share(len(text.encode()), own.merges, options.naive_merges)
    rows: list[dict[str, object]] = []
    figures: dict[str, float] = {}
    for who, times in seconds.items():
        peer = seconds["encode, tiktoken" if who.startswith("encode") else "ours"]
        factor = share if who == "naive" else 1.0
        wall = [t[0] * factor for t in times]
        middle, cpu = statistics.median(wall), statistics.median(t[1] for t in times) * factor
        label = (
            f"naive (extrapolated from {options.naive_merges} of {len(own.merges)} merges)"
            if who == "naive"
            else who
        )
        ratio = statistics.median(t[1] * factor / p[1] for t, p in zip(times, peer, strict=True))
        rows.append(
            {
                "who": label,
                "seconds": middle,
                "min": min(wall),
                "max": max(wall),
                "cpu": cpu,
                "cpu beside ours or tiktoken": ratio,
            }
        )
        key = (
            f"encode.{who.removeprefix('encode, ').replace(' ', '_')}"
            if who.startswith("encode")
            else f"train.{who}"
        )
        figures[f"{key}.seconds{'_extrapolated' if who == 'naive' else ''}"] = middle
        figures[f"{key}.cpu_seconds{'_extrapolated' if who == 'naive' else ''}"] = cpu
        if who.startswith("encode"):
            figures[f"{key}.megabytes_per_second"] = len(text.encode()) / middle / 1e6
        else:
            figures[f"{key}.vs_ours"] = ratio
    print(
        f"{len(text):,} characters, {VOCABULARY:,} entries, {len(own.merges)} merges, one core; all merges"
        " and all ids agree"
    )
    table(rows)
    finish("bpe", figures, GOALS)


if __name__ == "__main__":
    main()
