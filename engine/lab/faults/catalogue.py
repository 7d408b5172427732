"""The faults of the lab, what each is made of and shown on. What is said of them stands in words.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from engine.lab.faults import (
    attention,
    data,
    masks,
    wirings,
)
from engine.lab.faults.fault import LAB_TRAIN, Fault
from engine.parts import registry
from engine.parts.blocks import PreNormBlock
from engine.parts.heads import HeadMixer
from engine.parts.masks import causal_mask
from engine.parts.output import LinearOutput
from engine.parts.positions import Sinusoidal
from engine.parts.stack import each_block

WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def _fault(name: str, **made: Any) -> Fault:
    said: dict[str, Any] = {what: " ".join(words.split()) for what, words in WORDS[name].items()}
    return Fault(name, **said, **made)


def _parts(name: str, *sources: Any, **made: Any) -> Fault:
    """A fault that is other parts, under its own name."""
    return _fault(name, parts=name, sources=sources, **made)


ADAMW = {"optimizer": "adamw", "learning_rate": 3e-3}
DEEP = {"batch_size": 8, "steps": 150}  # for time
MASK = (
    _parts("no_mask", (causal_mask, masks.no_mask)),
    _parts("transposed_mask", (causal_mask, masks.transposed_mask)),
    _parts("leaky_mask", (causal_mask, masks.leaky_mask)),
    _parts(
        "mask_after_softmax",
        (HeadMixer.masked, attention.MaskAfterSoftmax.masked),
        (HeadMixer.weights, attention.MaskAfterSoftmax.weights),
    ),
)
ATTENTION = (
    _parts(
        "unscaled_scores",
        (HeadMixer.scores, attention.UnscaledAttention.scores),
        on_model={"n_heads": 1},  # d_k = 64: a spread of 8 before the first step
        on_train=ADAMW | {"init": "normal"},
    ),
    _parts("softmax_over_queries", (HeadMixer.weights, attention.SoftmaxOverQueries.weights)),
    _parts(
        "half_softmax",
        (HeadMixer.weights, attention.HalfSoftmax.weights),
        on_train=ADAMW | {"init": "fan_in"},  # larger first weights: scores pass 11 within some dozen steps
    ),
    _parts("no_transpose", (HeadMixer.merged, attention.NoTranspose.merged)),
    _parts("keys_not_normed", (PreNormBlock.connect, wirings.KeysNotNormed.connect)),
)
POSITIONS = (
    _fault("no_positions", model={"position": "none"}),
    _parts(
        "positions_twice",
        (Sinusoidal.prepare, wirings.TwiceAdded.prepare),
        on_model={"position": "sinusoidal", "embedding_scale": True},
    ),
)
BLOCKS = (
    _fault("no_residual", model={"wiring": "none"}, on_model={"n_layers": 4}),
    _fault(
        "post_norm_no_warmup",
        train={"warmup_steps": 0},
        on_model={"wiring": "post", "n_layers": 12},
        on_train=ADAMW | DEEP | {"warmup_steps": 60, "schedule": "constant"},
    ),
    _parts("first_block_only", (each_block, wirings.first_block), on_model={"n_layers": 4}),
    _parts("norm_in_loop", (each_block, wirings.norm_in_the_loop), on_model={"n_layers": 4}),
)
WEIGHTS = (
    _fault("unscaled_writes", train={"init": "plain"}, on_model={"n_layers": 8}, on_train=ADAMW | DEEP),
    _parts("loud_embedding", (registry.spread, data.loud_embedding), on_train=ADAMW),
    _parts("reshaped_tie", (LinearOutput.forward, wirings.ReshapedTie.forward)),
)
TRAINING = (
    _fault(
        "learning_rate_30x",
        train={"learning_rate": 30 * LAB_TRAIN.learning_rate},
        on_train=ADAMW,
    ),
    _fault(
        "no_clipping",
        train={"grad_clip": 0.0},
        # a table at spread 1 gives first gradients of norm 30, and AdamW's memory of their size is long
        on_train=ADAMW | {"learning_rate": 1e-2, "init": "normal", "beta2": 0.999},
    ),
    _parts("not_shifted", (registry.shifted, data.not_shifted)),
    _parts("shifted_by_two", (registry.shifted, data.shifted_by_two)),
    _parts("dropout_left_on", (registry.mode, data.always_training), on_model={"dropout": 0.2}),
    _parts("overlapping_split", (registry.split, data.overlapping), letters=6_000),
)
GROUPS = {
    "The mask": MASK,
    "Attention": ATTENTION,
    "Positions": POSITIONS,
    "Blocks": BLOCKS,
    "Weights": WEIGHTS,
    "Training": TRAINING,
}
ALL = tuple(fault for group in GROUPS.values() for fault in group)
