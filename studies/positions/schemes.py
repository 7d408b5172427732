"""The six position schemes: where each enters, what it costs, what it knows of distance untrained."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F

from engine.config import ModelConfig, Position
from engine.model import Transformer
from engine.parts.positions import HookName
from studies.costs.cards.table import card_of
from studies.costs.ledger import component_parameters


@dataclass(frozen=True)
class Scheme:
    """The facts about a scheme. `used_by` and `source` are published; the rest is what the engine's part does
    (tests look). `hook` is where it enters; `carries` what reaches attention: `absolute` positions, or
    `relative` distances only.
    """

    title: str
    carries: Literal["absolute", "relative", "nothing"]
    limit: str
    used_by: str
    source: str
    hook: HookName | None = None


_FACTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
SCHEMES: dict[Position, Scheme] = {name: Scheme(**_FACTS[name]) for name in get_args(Position)}

HOOK_NAMES: dict[HookName | None, str] = {
    None: "nowhere",
    "embed": "the embedding",
    "rotate": "queries and keys",
    "bias": "the scores",
}


def parameters_added(config: ModelConfig, scheme: Position) -> int:
    """Returns the parameters that the scheme adds to a model of these sizes. Raises ConfigError.

    >>> config = ModelConfig(context=64, d_model=64)
    >>> [parameters_added(config, scheme) for scheme in ("rope", "learned", "t5")]
    [0, 4096, 128]
    """
    return component_parameters(replace(config, position=scheme))["position"]


@dataclass(frozen=True, eq=False)
class Similarity:
    """The likeness of a token and the same token `distance` positions further back to the scheme: values
    (line, distance), at most 1. `quantity` says what the values are, and `lines` names each: one, or by head.
    """

    quantity: str
    lines: tuple[str, ...]
    distance: np.ndarray
    values: np.ndarray

    def range_at(self, distance: int) -> tuple[float, float]:
        """Returns the smallest and largest value of the lines at a distance."""
        column = self.values[:, distance]
        return float(column.min()), float(column.max())

    @property
    def range_apart(self) -> tuple[float, float]:
        """The smallest and largest value at all distances but 0."""
        apart = self.values[:, 1:]
        return float(apart.min()), float(apart.max())


def similarity(model: Transformer, reach: int) -> Similarity:
    """Returns what the position scheme alone, without a matrix of a block, makes of distances 0 .. reach - 1.

    - added to the embedding (or nothing added): the cosine of E_v + P(p) and E_v + P(p - distance), mean over
      tokens v and places p;
    - RoPE: the score of equal q and k, turned, over what it is at distance 0; mean over all directions: the
      mean of cos(theta_i distance) over the pairs, where a pair that is not turned counts 1;
    - ALiBi, T5: e^bias, the factor on the weight before the softmax's sum is divided out, as a share of the
      head's largest.

    A learned table reaches as far as its rows: distances 0 .. context - 1.
    """
    c, scheme = model.config, model.parts.position(model.config)
    if "rotate" in scheme.enters:
        ones = torch.ones(1, 1, reach, c.d_head)  # every pair equally long
        q, k = model.positions.prepare(reach, torch.zeros(1)).rotate(ones, ones)
        values = (q[0, 0] @ k[0, 0, 0]).double().numpy() / c.d_head
        return Similarity("mean cos(θᵢ · distance)", ("equal q and k",), np.arange(reach), values[None])
    if "bias" in scheme.enters:
        bias = _bias(model, reach)
        names = tuple(card_of(scheme).head_label(head, row.tolist()) for head, row in enumerate(bias))
        return Similarity("e^bias", names, np.arange(reach), np.exp(bias - bias.max(1, keepdims=True)))
    return _added(model, min(reach, scheme.reach(c) or reach))


def _bias(model: Transformer, reach: int) -> np.ndarray:
    """Returns the bias on the last of `reach` queries, by distance: (head, distance)."""
    with torch.inference_mode():
        hooks = model.positions.prepare(1, torch.zeros(1), start=reach - 1)
        return hooks.bias(torch.zeros(1, model.config.n_heads, 1, reach))[0, :, 0].flip(-1).double().numpy()


def _added(model: Transformer, length: int) -> Similarity:
    with torch.inference_mode():
        # (position, d_model), or None
        table = model.positions.prepare(length, torch.zeros(1)).embed(torch.zeros(1))
        x = model.embedded(torch.arange(len(model.embedding)))[:, None, :] + (
            torch.zeros(length, 1) if table is None else table
        )  # (vocab, position, d_model)
        x = F.normalize(x, dim=-1).double()
        gram = torch.einsum("vpd,vqd->pq", x, x).numpy() / len(x)  # mean cosine over tokens
    values = np.array([np.diagonal(gram, k).mean() for k in range(length)])
    return Similarity("cosine", ("same token",), np.arange(length), values[None])
