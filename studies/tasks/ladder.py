"""The ladder of models: the lines of code that each rung adds, and why raw similarity looks at itself.

With entries drawn from N(0, 1) a vector's product with itself is about d, over sqrt(d) that is sqrt(d): 16 at
d = 256. With another vector it is about as often positive as negative, and of size 1.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.model import Transformer, build
from engine.parts.attention import Attention, HeadMixer, Mean
from engine.parts.blocks import PreNormBlock
from engine.parts.experts import Experts
from engine.parts.feedforward import FeedForward, SwiGlu
from engine.parts.norms import LayerNorm, RMSNorm
from engine.parts.positions import rotate_half_pairs, sinusoidal_table
from engine.parts.registry import parts_of
from engine.recording import record
from studies.lab.raw_values import QueriesAndKeys, SharedQKRawValues
from studies.tasks.rungs import LADDER

LINES: dict[str, tuple[Callable[..., Any], ...]] = {
    "last": (Transformer.embedded,),
    "mean": (Mean.scores, HeadMixer.weighted_sum),
    "similarity": (HeadMixer.scores,),
    "one-matrix": (SharedQKRawValues.heads,),
    "two-matrices": (QueriesAndKeys.heads,),
    "values": (Attention.heads,),
    "attention-1": (PreNormBlock.connect,),
    "block-1": (FeedForward.forward,),
    "output": (HeadMixer.output,),
    "positions": (sinusoidal_table,),
    "norm": (LayerNorm.forward,),
    "modern": (rotate_half_pairs, RMSNorm.forward, SwiGlu.activation),
    "experts": (Experts.route,),
}


def lines(rung: str) -> str:
    """Returns the source of what a rung adds, without docstrings; '' where it adds no line."""
    result = LINES.get("block-1" if rung.startswith("block-") else rung, ())
    return "\n\n".join(_bare(textwrap.dedent(inspect.getsource(each))).rstrip() for each in result)


def _bare(source: str) -> str:
    """Returns a function's source without its docstring."""
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.FunctionDef)
    first = body.body[0]
    if ast.get_docstring(body) is None or first.end_lineno is None:
        return source
    rows = source.splitlines()
    return "\n".join(rows[: first.lineno - 1] + rows[first.end_lineno :])


KINDS = ("similarity", "one-matrix", "two-matrices")
WIDTHS = (4, 16, 64, 256)


@dataclass(frozen=True, eq=False)
class SelfTerm:
    """One untrained rung that reads a text: `scores`, `weights`, and the `same` letters (query, key)."""

    kind: str
    d_model: int
    scores: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    same: np.ndarray = field(repr=False)

    @property
    def self_score(self) -> float:
        """The mean score of a letter with itself."""
        return float(np.diag(self.scores).mean())

    @property
    def other_score(self) -> float:
        """The root mean square of scores with other letters."""
        return float(np.sqrt(np.square(self.scores[~self.same]).mean()))

    @property
    def self_weight(self) -> float:
        """The mean share of the weights on the letter itself or a copy of it, but for the first position."""
        return float((self.weights * self.same).sum(1)[1:].mean())

    @property
    def root(self) -> float:
        """The expected `self_score`, sqrt(d_model), where vectors are compared with themselves."""
        return math.sqrt(self.d_model)


def self_term(kind: str, d_model: int, ids: Sequence[int], seed: int = 0) -> SelfTerm:
    """Builds a rung of the ladder (one of KINDS) at that width, and reads distinct `ids`."""
    rung = LADDER[kind]
    config = rung.at(max(ids) + 1, len(ids), d_model)
    model = build(config, seed, parts=parts_of(rung.parts), init="normal").eval().requires_grad_(False)
    recording = record(model, tuple(ids))
    named = np.asarray(ids)
    scores, weights = (recording[f"blocks.0.{name}"][0].astype(np.float64) for name in ("scores", "pattern"))
    return SelfTerm(kind, d_model, scores, weights, named[:, None] == named[None, :])
