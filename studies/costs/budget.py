"""How large a model should be for the work that may be spent on it: two published laws.

Kaplan et al. 2020 (section 6.1) let the model grow much faster than its text: N ~ C^0.73, D ~ C^0.27.
Hoffmann et al. 2022 ("Chinchilla") let both grow alike, N ~ D ~ C^0.5, about 20 tokens for each parameter,
and give the loss as L = 1.69 + 406.4 / N^0.34 + 410.7 / D^0.28 nats per token (their third approach).
"""

from __future__ import annotations

from dataclasses import dataclass

TOKENS = 20  # for each parameter
LAWS = {"Kaplan et al. 2020": (0.73, 0.27), "Hoffmann et al. 2022": (0.5, 0.5)}


@dataclass(frozen=True)
class Budget:
    """Training by Hoffmann et al.'s rule: `flops` is 6 N D, `loss` their fit's, in nats per token."""

    parameters: int
    tokens: int
    flops: int
    loss: float


def budget(parameters: int) -> Budget:
    """Returns the training that suits a model of so many parameters."""
    tokens = TOKENS * parameters
    loss = 1.69 + 406.4 / parameters**0.34 + 410.7 / tokens**0.28
    return Budget(parameters, tokens, 6 * parameters * tokens, loss)


def grown(times: float) -> dict[str, tuple[float, float]]:
    """Returns law -> how many times the parameters, and the tokens, with `times` as much work."""
    return {name: (times**n, times**d) for name, (n, d) in LAWS.items()}
