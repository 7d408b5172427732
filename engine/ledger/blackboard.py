"""The counts that are done on the blackboard, made by the same ledger."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.config import ModelConfig
from engine.ledger import component_parameters, ledger
from engine.presets import PRESETS

BLOCK = ModelConfig(vocab_size=1, context=1, d_model=512, d_ff=2048, n_layers=1, n_heads=8, norm_bias=True)
BARE = ModelConfig(
    vocab_size=65,
    d_model=256,
    n_layers=4,
    n_heads=4,
    position="none",
    norm_gain=False,
    output_projection=False,
    tie_embeddings=False,
)
LECTURE = replace(BARE, d_model=128, output_projection=True)
LAB = replace(PRESETS["mini"].model, attention_bias=False, ffn_bias=False)  # a lab's own printed code


@dataclass(frozen=True)
class Block:
    """Parameters of one block."""

    attention: int
    network: int
    norms: int

    @property
    def total(self) -> int:
        return self.attention + self.network + self.norms

    @property
    def network_share(self) -> float:
        return self.network / self.total


def block(config: ModelConfig = BLOCK) -> Block:
    """Of a model with one block."""
    counts = component_parameters(config)
    return Block(counts["attention"], counts["feedforward"], counts["norm1"] + counts["norm2"])


def with_heads_and_contexts(config: ModelConfig = BARE) -> set[int]:
    """The totals that 1, 4 and 8 heads and 16, 512 and 4,096 tokens of context give."""
    return {ledger(replace(config, n_heads=h, context=t)).total for h in (1, 4, 8) for t in (16, 512, 4096)}


@dataclass(frozen=True)
class Tied:
    """Parameters of GPT-2 small with one matrix for both ends, and with two."""

    tied: int
    untied: int

    @property
    def saved(self) -> int:
        return self.untied - self.tied

    @property
    def more(self) -> float:
        """Share of the tied model's parameters that the second matrix adds."""
        return self.untied / self.tied - 1


def tied(model: ModelConfig) -> Tied:
    """Of a model whose embedding serves at both ends."""
    return Tied(ledger(model).total, ledger(replace(model, tie_embeddings=False)).total)
