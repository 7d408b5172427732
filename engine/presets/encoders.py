"""Encoders that are small enough to be trained here: one fills blanks, one says who speaks."""

from __future__ import annotations

from engine.presets.own import OWN
from engine.presets.preset import Preset, derived

# The sizes and the optimiser that `fast` had before it was made narrower: what was tried here was tried so.
_BASE = derived(
    OWN["task"],
    "Encoder",
    "Reads both ways.",
    model={"causal": False, "rope_theta": 200.0, "qk_norm": True},
    train={"muon_momentum": 0.85, "sample_length": 160},
)

_BLANKS = derived(
    _BASE,
    "Fill the blanks",
    "Three in twenty letters of Shakespeare are hidden, and guessed from both sides, all at once.",
    model={"context": 64, "d_model": 96, "n_layers": 4},
    train={
        "objective": "masked",
        "steps": 800,
        "batch_size": 32,
        "eval_every": 50,
        "sample_every": 50,
        "snapshot_every": 50,
    },
    why={
        "steps": (
            "only 15% of the letters are guessed at a step, a seventh of what a decoder learns from: it takes"
            " more steps. Tried: 1.90 nats per hidden letter after 200 of 800, 1.52 after 600, 1.35 at the"
            " end, where 59% are guessed right"
        ),
    },
    source="Devlin et al. 2018, scaled down",
)

ENCODERS: dict[str, Preset] = {
    "blanks": _BLANKS,
    "blanks_bpe": derived(
        _BLANKS,
        "Fill the blanks, in pieces of words",
        "The same with tokens of a byte-pair encoding: a blank is a piece of a word.",
        model={},
        train={"tokenizer": "bpe:512"},
        why={
            "tokenizer": (
                "tried: 2.79 nats per hidden token after 800 steps, 2.11 bits per character; letters 1.94,"
                " but a hidden letter has more beside it that tells"
            ),
        },
        source=_BLANKS.source,
    ),
    "speakers": derived(
        _BASE,
        "Who speaks?",
        "One line of Shakespeare in, one of eight speakers out: the vector of its first token says who.",
        model={"output_head": "none", "pooler": True, "dropout": 0.2},
        train={
            "steps": 500,
            "batch_size": 48,
            "eval_every": 25,
            "eval_tokens": 16_384,
            "snapshot_every": 25,
            "sample_every": 20,
            "sample_prompt": "",
        },
        why={
            "dropout": "four thousand lines are few: it learns them by heart",
            "steps": (
                "tried: 22.0% of 987 held-out lines (16.0% for always naming the one who speaks most); to"
                " count which words each of them uses does better (naive Bayes, 35.5%): so few lines are not"
                " enough to learn from letters what a word is"
            ),
            "position": "tried: with learned positions it learns later, 2.06 nats after 300 of 400 steps",
        },
        source="Devlin et al. 2018, 4.1, scaled down",
    ),
}
