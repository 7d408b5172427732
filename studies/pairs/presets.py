"""Settings for tasks with a source and a target: each learns its task within a minute on two slow cores.
Vocabulary and contexts are those of the task: studies/pairs/corpora.py.
"""

from __future__ import annotations

from engine.presets.preset import Preset, derived
from engine.presets.small import SMALL

_BASE = derived(
    SMALL["task"],
    "Pairs (two layers that read, two that write)",
    "An encoder and a decoder of two layers, 64 wide.",
    model={},
    train={
        "steps": 300,
        "eval_every": 25,
        "eval_tokens": 4096,
        "sample_every": 25,
        "sample_prompt": "",
        "snapshot_every": 25,
    },
    source="Vaswani et al. 2017, scaled down; Jordan et al. 2024 (Muon); Su et al. 2021 (RoPE)",
)


_TRIED = "share of held-out sources whose whole target is right, seed 0, tried: "


def _preset(
    title: str, summary: str, tried: str, d_model: int = 64, steps: int = 300, why_width: str = ""
) -> Preset:
    """Returns _BASE with another width and number of steps, and what was tried for them."""
    why = {"d_model": _TRIED + why_width} if why_width else {}
    return derived(
        _BASE,
        title,
        summary,
        model={"d_model": d_model},
        train={"steps": steps},
        why=why | {"steps": _TRIED + tried},
        source=_BASE.source,
    )


PAIRED: dict[str, Preset] = {
    "dates": _preset(
        "Dates",
        "Character by character, from dates as people write them.",
        "33% after 100 of 300 steps, 90% after 200, 99.9% at the end",
    ),
    "language": _preset(
        "A small language",
        "Word by word, from English sentences.",
        "28% after 150 of 500 steps, 88% after 275, 94% after 350, 99.3% at the end",
        d_model=96,
        steps=500,
        why_width="64 wide, 34% after 300 steps",
    ),
    "numbers": _preset(
        "Numbers into digits",
        "Digit by digit, from numbers in words.",
        "59% after 150 of 400 steps, 83% after 250, 98.3% at the end",
        steps=400,
    ),
    "number_words": _preset(
        "Digits into words",
        "Word by word, from digits.",
        "78% after 200 of 300 steps, 98.2% at the end",
    ),
    "reverse": _preset(
        "Reverse",
        "Three to twelve characters, backwards.",
        "80% after 200 of 300 steps, 98.8% at the end",
    ),
    "sort": _preset(
        "Sort",
        "Three to twelve characters, in alphabetical order.",
        "85% after 200 of 300 steps, 99.4% at the end",
    ),
}
