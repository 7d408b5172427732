"""Deliberate bugs, each a swap of parts: the model, the training and every page run on it unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from engine.config import ResolvedConfig
from engine.errors import ConfigError
from engine.parts.attention import Attention
from engine.parts.formula import Formula
from engine.parts.registry import HEALTHY, Parts, swapped


class UnscaledAttention(Attention):
    """Attention whose scores are q·k as they are. Their spread grows with sqrt(d_head), so the softmax is
    sharp from the start and little gradient passes it (Vaswani et al. 2017, 3.2.1).
    """

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        self.scale = 1.0

    @classmethod
    def score(cls, config: ResolvedConfig) -> Formula:
        return r"\mathrm{scores} = q\,k^\top", "q · kᵀ"


PARTS: Mapping[str, Parts] = {
    parts.name: parts
    for parts in (HEALTHY, swapped(HEALTHY, "unscaled_scores", mixers={"attention": UnscaledAttention}))
}


def parts_of(name: str) -> Parts:
    """The parts of that name. Raises ConfigError when there are none."""
    if name not in PARTS:
        raise ConfigError("parts", name, f"must be one of {', '.join(PARTS)}")
    return PARTS[name]
