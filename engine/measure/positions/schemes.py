"""The six position schemes: where each enters, what it costs, what it knows of distance untrained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F

from engine.config import ModelConfig, Position
from engine.ledger import component_parameters
from engine.model import Transformer
from engine.parts.positions import HookName


@dataclass(frozen=True)
class Scheme:
    """The facts about a scheme. `used_by` and `source` are published; the rest is what the engine's part does
    (tests look). `hook` is where it enters; `carries` what reaches attention: `absolute` positions, or
    `relative` distances only.
    """

    title: str
    hook: HookName | None
    carries: Literal["absolute", "relative", "nothing"]
    limit: str
    used_by: str
    source: str


SCHEMES: dict[Position, Scheme] = {
    "none": Scheme(
        "None",
        None,
        "nothing",
        "any; but it counts only as far as it has learned to",
        "every fourth layer of SmolLM3 (2025) and of Llama 4 (2025), between layers with RoPE",
        "Haviv et al. 2022; Kazemnejad et al. 2023",
    ),
    "sinusoidal": Scheme(
        "Sinusoidal",
        "embed",
        "absolute",
        "any; every position has a vector",
        "the first Transformer (2017)",
        "Vaswani et al. 2017, 3.5",
    ),
    "learned": Scheme(
        "Learned",
        "embed",
        "absolute",
        "the training context: no row beyond",
        "BERT (2018), GPT-2 (2019), OPT (2022)",
        "Gehring et al. 2017",
    ),
    "rope": Scheme(
        "RoPE",
        "rotate",
        "relative",
        "any; but far pairs turn by angles never met",
        "GPT-NeoX (2022), LLaMA (2023), Mistral (2023)",
        "Su et al. 2021",
    ),
    "alibi": Scheme(
        "ALiBi", "bias", "relative", "any; far tokens fade", "BLOOM (2022), MPT (2023)", "Press et al. 2022"
    ),
    "t5": Scheme(
        "T5",
        "bias",
        "relative",
        "any; one bucket holds all that is far",
        "T5 (2020), mT5 (2021)",
        "Raffel et al. 2020, 2.1",
    ),
}

HOOK_NAMES: dict[HookName | None, str] = {
    None: "nowhere",
    "embed": "the embedding",
    "rotate": "queries and keys",
    "bias": "the scores",
}


def parameters_added(config: ModelConfig, scheme: Position) -> int:
    """Returns the parameters that the scheme adds to a model of these sizes. Raises ConfigError when it
    cannot have the scheme.

    >>> config = ModelConfig(context=64, d_model=64)
    >>> [parameters_added(config, scheme) for scheme in ("rope", "learned", "t5")]
    [0, 4096, 128]
    """
    return component_parameters(replace(config, position=scheme))["position"]


@dataclass(frozen=True, eq=False)
class Similarity:
    """The likeness of a token and the same token `distance` positions further back to the scheme: values
    (line, distance), at most 1. `quantity` says what the values are, and `lines` has a name for each: one, or
    one for each head.
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
        names = tuple(model.positions.head_label(h) for h in range(c.n_heads))
        return Similarity("e^bias", names, np.arange(reach), np.exp(bias - bias.max(1, keepdims=True)))
    return _added(model, min(reach, scheme.reach(c) or reach))


def _bias(model: Transformer, reach: int) -> np.ndarray:
    """Returns the bias on the last of `reach` queries, by distance: (head, distance)."""
    with torch.inference_mode():
        hooks = model.positions.prepare(1, torch.zeros(1), start=reach - 1)
        return hooks.bias(torch.zeros(1, model.config.n_heads, 1, reach))[0, :, 0].flip(-1).double().numpy()


def _added(model: Transformer, length: int) -> Similarity:
    with torch.inference_mode():
        table = model.positions.prepare(length, torch.zeros(1)).embed(
            torch.zeros(1)
        )  # (position, d_model), or None
        x = model.embedded(torch.arange(len(model.embedding)))[:, None, :] + (
            torch.zeros(length, 1) if table is None else table
        )  # (vocab, position, d_model)
        x = F.normalize(x, dim=-1).double()
        gram = torch.einsum("vpd,vqd->pq", x, x).numpy() / len(x)  # mean cosine over tokens
    values = np.array([np.diagonal(gram, k).mean() for k in range(length)])
    return Similarity("cosine", ("same token",), np.arange(length), values[None])
