"""The few lines of the engine that each rung of the ladder adds to the one below: what runs in the one and
not in the other.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from engine.model import Transformer
from engine.parts.attention import Attention, Mean
from engine.parts.blocks import PreNormBlock
from engine.parts.feedforward import FeedForward, SwiGlu
from engine.parts.heads import HeadMixer
from engine.parts.norms import LayerNorm, RMSNorm
from engine.parts.positions import rotate_half_pairs, sinusoidal_table
from engine.parts.raw_values import OneMatrix, QueriesAndKeys

LINES: dict[str, tuple[Callable[..., Any], ...]] = {
    "last": (Transformer.embedded,),
    "mean": (Mean.scores, HeadMixer.weighted_sum),
    "similarity": (HeadMixer.scores,),
    "one-matrix": (OneMatrix.heads,),
    "two-matrices": (QueriesAndKeys.heads,),
    "values": (Attention.heads,),
    "attention-1": (PreNormBlock.connect,),
    "block-1": (FeedForward.forward,),
    "output": (HeadMixer.output,),
    "positions": (sinusoidal_table,),
    "norm": (LayerNorm.forward,),
    "modern": (rotate_half_pairs, RMSNorm.forward, SwiGlu.activation),
}


def lines(rung: str) -> str:
    """The source of what a rung adds, without docstrings; '' where it adds no line but a number (more layers,
    more heads).
    """
    found = LINES.get("block-1" if rung.startswith("block-") else rung, ())
    return "\n\n".join(_bare(textwrap.dedent(inspect.getsource(each))).rstrip() for each in found)


def _bare(source: str) -> str:
    """A function's source without its docstring."""
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.FunctionDef)
    first = body.body[0]
    if ast.get_docstring(body) is None or first.end_lineno is None:
        return source
    rows = source.splitlines()
    return "\n".join(rows[: first.lineno - 1] + rows[first.end_lineno :])
