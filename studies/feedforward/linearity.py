"""Linearity of what a block writes: attention with held weights is linear, a feed-forward network is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model import Transformer
from engine.parts.attention import HeadMixer
from engine.parts.feedforward import FeedForward
from engine.probe import identity
from engine.recording import Recording


@dataclass(frozen=True)
class Midpoints:
    """Distance between the output of the mean of two inputs and the mean of their outputs, relative to its
    size: over all blocks, of attention with its weights held, and of the feed-forward networks; None without.
    """

    attention: float | None
    feedforward: float | None


@torch.inference_mode()
def midpoints(model: Transformer, recording: Recording) -> Midpoints:
    """Measures both on what the blocks read of a text: the inputs are each position and the one before."""
    attention: list[tuple[Tensor, Tensor]] = []
    feedforward: list[tuple[Tensor, Tensor]] = []
    for layer, block in enumerate(model.blocks):
        if f"blocks.{layer}.pattern" in recording and isinstance(block.mixer, HeadMixer):
            mixer = block.mixer
            pattern = torch.tensor(recording[f"blocks.{layer}.pattern"])[None]  # (1, head, query, key)

            def attend(x: Tensor, mixer: HeadMixer = mixer, pattern: Tensor = pattern) -> Tensor:
                v = mixer.heads(x)[2].transpose(1, 2)  # (1, kv_head, key, d_head)
                return mixer.output(mixer.merged(mixer.weighted_sum(pattern, v)))

            attention.append(_both(attend, torch.tensor(recording[f"blocks.{layer}.norm1"])))
        if f"blocks.{layer}.norm2" in recording and isinstance(block.ffn, FeedForward) and block.ffn.present:

            def transform(x: Tensor, ffn: FeedForward = block.ffn) -> Tensor | None:
                written: Tensor | None = ffn(x, identity)
                return written

            feedforward.append(_both(transform, torch.tensor(recording[f"blocks.{layer}.norm2"])))
    return Midpoints(_error(attention), _error(feedforward))


def _both(write: Callable[[Tensor], Tensor | None], read: Tensor) -> tuple[Tensor, Tensor]:
    """Returns (what is written for the mean of two inputs, the mean of what is written for each): `read`
    (position, d_model), and the same one position on.
    """
    a, b = read[None], read.roll(1, 0)[None]  # (1, position, d_model)
    outputs = [write(x) for x in ((a + b) / 2, a, b)]
    middle, one, other = (torch.zeros_like(a) if each is None else each.double() for each in outputs)
    return middle, (one + other) / 2


def _error(pairs: list[tuple[Tensor, Tensor]]) -> float | None:
    if not pairs:
        return None
    off = sum(float((found - mean).square().sum()) for found, mean in pairs)
    size = sum(float(mean.square().sum()) for _, mean in pairs)
    return (off / size) ** 0.5 if size else 0.0
