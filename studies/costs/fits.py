"""Memory that a model needs, use by use, and what can be done with it in a given memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from studies.costs.ledger import DTYPES, TRAINED_IN, Ledger


def uses(ledger: Ledger, dtype: str, batch: int, tokens: int) -> dict[str, dict[str, int]]:
    """Returns use -> part -> bytes, for `batch` texts of `tokens`; training only in a dtype for it."""
    memory = ledger.memory(dtype, batch, tokens)
    result = {"to write": {"weights": memory.weights, "KV cache": memory.kv_cache}}
    if dtype in TRAINED_IN:
        result["to train"] = {
            "weights": memory.weights,
            "gradients": memory.gradients,
            "master copy": memory.master,
            "AdamW moments": memory.moments,
            "activations": memory.activations,
        }
    return result


def totals(uses: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    return {use: sum(parts.values()) for use, parts in uses.items()}


def needs(ledger: Ledger, dtype: str, batch: int, tokens: int) -> dict[str, int]:
    """Returns the bytes of each use; training only in a dtype for it."""
    memory = ledger.memory(dtype, batch, tokens)
    training = {"training": memory.training} if dtype in TRAINED_IN else {}
    return {"weights": memory.weights, "inference": memory.inference} | training


@dataclass(frozen=True)
class Fit:
    """The uses that fit into a memory, each in the dtype with the most bits; None where none fits."""

    writes_in: str | None  # weights and KV cache
    holds_in: str | None  # the weights alone
    trains_in: str | None
    least_weights: int  # bytes, in the fewest bits
    least_training: int  # bytes, in the fewest bits that models are trained in


def fit(ledger: Ledger, size: int, batch: int, tokens: int) -> Fit:
    """Finds what fits for `batch` texts of `tokens` within `size` bytes."""

    def most(dtypes: tuple[str, ...], need: str) -> str | None:
        return next((d for d in dtypes if getattr(ledger.memory(d, batch, tokens), need) <= size), None)

    kinds = tuple(DTYPES)
    return Fit(
        most(kinds, "inference"),
        most(kinds, "weights"),
        most(TRAINED_IN, "training"),
        min(ledger.memory(d).weights for d in kinds),
        min(ledger.memory(d, batch, tokens).training for d in TRAINED_IN),
    )


def smallest(ledger: Ledger, sizes: Mapping[str, int], dtype: str, batch: int, tokens: int) -> str | None:
    """Returns the smallest of `sizes` (name -> bytes) in which a model writes; None where it does in none."""
    need = ledger.memory(dtype, batch, tokens).inference
    enough = {name: size for name, size in sizes.items() if need <= size}
    return min(enough, key=lambda name: enough[name]) if enough else None


def alike(ledger: Ledger, sizes: Mapping[str, int], batch: int, tokens: int) -> dict[Fit, list[str]]:
    """Groups `sizes` (name -> bytes) by what fits into them, in their order."""
    result: dict[Fit, list[str]] = {}
    for name, size in sizes.items():
        result.setdefault(fit(ledger, size, batch, tokens), []).append(name)
    return result
