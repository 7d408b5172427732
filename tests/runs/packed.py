"""Equal bit by bit, types included: what a packed value has to be."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from torch import Tensor


def same(one: Any, other: Any) -> bool:
    """True if two values are equal bit by bit, and of the same types."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray | np.generic):
        return (one.dtype, one.shape) == (other.dtype, other.shape) and one.tobytes() == other.tobytes()
    if isinstance(one, Tensor):
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and repr(one.tolist()) == repr(other.tolist())
        )
    if is_dataclass(one) and not isinstance(one, type):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    return repr(one) == repr(other) if isinstance(one, float) else bool(one == other)
