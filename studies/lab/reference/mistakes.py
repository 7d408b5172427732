"""Usual mistakes of ports, each a wrong function in the second implementation's `Choices`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.config import ResolvedConfig
from studies.costs.cards.norms import NORM_CARDS, norm_title
from studies.lab.reference.second import ACTIVATIONS, RIGHT, Choices, gelu, gelu_by_tanh


@dataclass(frozen=True)
class Mistake:
    """A mistake. `idle` says why it changes nothing, if so; `shows_at` is the first activation changed."""

    title: str
    sentence: str
    choices: Choices
    shows_at: str
    idle: Callable[[ResolvedConfig], str | None]


def neighbours_turned(x: Tensor, theta: float) -> Tensor:
    """Applies RoPE in GPT-J's order: dimensions 2i and 2i + 1 are turned together."""
    width = x.shape[-1]
    order = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])
    return RIGHT.turn(x[..., order], theta)[..., order.argsort()]


def tiled(x: Tensor, group: int) -> Tensor:
    """Lets key head 0 serve query heads 0, kv_heads, 2 kv_heads ...: `repeat` in place of interleaving."""
    return x.repeat(group, 1, 1)


def other_eps(eps: float) -> float:
    """Returns the other usual value: 1e-6 (Qwen's) where it is about 1e-5 (GPT-2's), else 1e-5."""
    return 1e-6 if eps > 3e-6 else 1e-5


def _unturned(c: ResolvedConfig) -> str | None:
    if c.mixer == "none" or c.position != "rope":
        return "this model rotates nothing: it does not use RoPE"
    if c.d_rotary == 2:
        return "RoPE rotates only one pair of dimensions here, the same one in both layouts"
    return None


def _unnormed(c: ResolvedConfig) -> str | None:
    if "norm_eps" in NORM_CARDS[c.norm].reads or (c.qk_norm and c.mixer != "none"):
        return None
    return "this model has no norms" if c.norm == "none" else f"{norm_title(c.norm)} has no ε"


def _unwritten(c: ResolvedConfig) -> str | None:
    if c.mixer == "none" or not c.output_projection:
        return "this model has no W_O"
    if c.n_heads * c.d_head != c.d_model:
        return (
            f"W_O is {c.d_model} × {c.n_heads * c.d_head} here, so PyTorch would raise an error: the lucky"
            " case"
        )
    return None


def _ungelued(c: ResolvedConfig) -> str | None:
    return None if c.ffn in SWAPPED else "this model has no GELU"


def _unscaled(c: ResolvedConfig) -> str | None:
    if c.mixer == "none":
        return "this model has no scores"
    if not c.score_scale:
        return "this model does not scale its scores, like T5"
    return "√d_head is 1 here" if c.d_head == 1 else None


def _ungrouped(c: ResolvedConfig) -> str | None:
    if c.mixer == "none" or c.n_kv_heads == c.n_heads:
        return "every query head has its own key-value head here"
    return "all query heads share one key-value head" if c.n_kv_heads == 1 else None


SWAPPED = {"gelu": gelu_by_tanh, "geglu": gelu_by_tanh, "gelu_tanh": gelu, "geglu_tanh": gelu}
MISTAKES: dict[str, Mistake] = {
    "rope": Mistake(
        "RoPE rotates neighbours",
        "Dimensions 2i and 2i + 1 are rotated together (GPT-J's layout) instead of i and i + half (NeoX's and"
        " LLaMA's).",
        replace(RIGHT, turn=neighbours_turned),
        "q_rot",
        _unturned,
    ),
    "eps": Mistake(
        "a different ε in the norm",
        "ε is 10⁻⁶ if the configuration says 10⁻⁵, and 10⁻⁵ if it says less.",
        replace(RIGHT, eps=other_eps),
        "norm1",
        _unnormed,
    ),
    "transposed": Mistake(
        "W_O transposed",
        "GPT-2's files store matrices as (in, out), PyTorch's layers as (out, in). A square one fits both"
        " ways.",
        replace(RIGHT, matrix=lambda stored: stored),
        "attn_out",
        _unwritten,
    ),
    "gelu": Mistake(
        "the other GELU",
        "The tanh approximation instead of the exact GELU, or the other way round.",
        replace(RIGHT, activations=ACTIVATIONS | SWAPPED),
        "ffn_post",
        _ungelued,
    ),
    "scale": Mistake(
        "no 1/√d_head",
        "Scores are the unscaled q · k.",
        replace(RIGHT, scale=lambda d_head: 1.0),
        "scores",
        _unscaled,
    ),
    "groups": Mistake(
        "key-value heads in the wrong order",
        "They are repeated as 0 1 0 1 instead of 0 0 1 1 (`repeat` for `repeat_interleave`).",
        replace(RIGHT, share=tiled),
        "scores",
        _ungrouped,
    ),
}
