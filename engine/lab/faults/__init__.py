"""Deliberate bugs, each a swap of parts or of settings: the model, the training and every page run on it
unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.errors import ConfigError
from engine.lab.faults import (
    attention,
    data,
    masks,
    wirings,
)
from engine.lab.faults.catalogue import ALL
from engine.lab.faults.fault import (
    LAB_MODEL,
    LAB_TRAIN,
    Diff,
    Fault,
)
from engine.parts.raw_values import OneMatrix, QueriesAndKeys
from engine.parts.registry import HEALTHY, Parts, swapped

__all__ = ["FAULTS", "LAB_MODEL", "LAB_TRAIN", "PARTS", "Diff", "Fault", "parts_of"]

SWAPS: dict[str, Mapping[str, Any]] = {
    "unscaled_scores": {"mixers": {"attention": attention.UnscaledAttention}},
    "no_mask": {"mask": masks.no_mask},
    "transposed_mask": {"mask": masks.transposed_mask},
    "leaky_mask": {"mask": masks.leaky_mask},
    "mask_after_softmax": {"mixers": {"attention": attention.MaskAfterSoftmax}},
    "softmax_over_queries": {"mixers": {"attention": attention.SoftmaxOverQueries}},
    "no_transpose": {"mixers": {"attention": attention.NoTranspose}},
    "half_softmax": {"mixers": {"attention": attention.HalfSoftmax}},
    "positions_twice": {"positions": {"sinusoidal": wirings.TwiceAdded}},
    "keys_not_normed": {"wirings": {"pre": wirings.KeysNotNormed}},
    "first_block_only": {"stack": wirings.first_block},
    "norm_in_loop": {"stack": wirings.norm_in_the_loop},
    "reshaped_tie": {"outputs": {"linear": wirings.ReshapedTie}},
    "loud_embedding": {"spread": data.loud_embedding},
    "not_shifted": {"targets": data.not_shifted},
    "shifted_by_two": {"targets": data.shifted_by_two},
    "dropout_left_on": {"mode": data.always_training},
    "overlapping_split": {"split": data.overlapping},
    # No fault, but a rung of the ladder (engine.presets.ladder): attention before values had a matrix.
    "raw_values": {"mixers": {"shared_qk": OneMatrix, "attention": QueriesAndKeys}},
}
# No faults, but rungs of the ladder (engine.presets.ladder): attention before values had a matrix.
RUNGS: dict[str, Mapping[str, Any]] = {
    "raw_values": {"mixers": {"shared_qk": OneMatrix, "attention": QueriesAndKeys}},
}
# A fault of the encoder-decoder alone (engine.seq2seq): a model with one attention has nothing to swap.
PAIRED: Mapping[str, Mapping[str, Any]] = {"swapped_masks": {"decoder_masks": masks.swapped_masks}}
PARTS: Mapping[str, Parts] = {HEALTHY.name: HEALTHY} | {
    name: swapped(HEALTHY, name, **swaps) for name, swaps in ({**SWAPS, **RUNGS, **PAIRED}).items()
}
FAULTS: Mapping[str, Fault] = {fault.name: fault for fault in ALL}


def parts_of(name: str) -> Parts:
    """The parts of that name. Raises ConfigError when there are none."""
    if name not in PARTS:
        raise ConfigError("parts", name, f"must be one of {', '.join(PARTS)}")
    return PARTS[name]
