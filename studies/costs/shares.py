"""Shares and differences in the ledgers of one model and of two."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import ResolvedConfig
from engine.parts.registry import HEALTHY, Parts
from studies.costs.ledger import Ledger, component_parameters, kv_numbers

TWO_THIRDS = 2 / 3  # of a block: 8 d^2 of 12 d^2, with d_ff = 4 d and full heads
NEAR = 0.03
THIN = 0.02  # of a model: as an area, such a part is a strip that has no room for its name
IN_BLOCKS = ("norm1", "attention", "norm2", "feedforward")  # parts that every block has one of


@dataclass(frozen=True)
class PartShare:
    """Parameters of one part, or of a whole block, and of all of its kind in the model."""

    each: int
    all: int
    model: int  # the whole model

    @property
    def share(self) -> float:
        return self.all / max(self.model, 1)


def part_share(c: ResolvedConfig, name: str, parts: Parts = HEALTHY) -> PartShare:
    """Counts a part by its name in `component_parameters`, or a whole "block". Raises KeyError."""
    counts = component_parameters(c, parts)
    total = sum(counts[part] for part in IN_BLOCKS) if name == "block" else counts[name]
    times = c.n_layers if name in (*IN_BLOCKS, "block") else 1
    return PartShare(total // times, total, sum(counts.values()))


@dataclass(frozen=True)
class Where:
    """Where the parameters of a model are. Widths are in units of d_model."""

    total: int
    in_blocks: int
    network: int  # of the feed-forward networks
    attention: int  # of attention's matrices, those that read an encoder included
    d_ff: float
    queries: float
    keys: float

    @property
    def outside(self) -> int:
        """Before and after the blocks."""
        return self.total - self.in_blocks

    @property
    def blocks_share(self) -> float:
        return self.in_blocks / max(self.total, 1)

    @property
    def network_share(self) -> float:
        return self.network / max(self.in_blocks, 1)

    @property
    def usual(self) -> bool:
        """True if that share is about two thirds."""
        return abs(self.network_share - TWO_THIRDS) < NEAR


def where(ledger: Ledger) -> Where:
    c, counts = ledger.config, ledger.components
    return Where(
        ledger.total,
        ledger.in_blocks,
        counts.get("feedforward", 0),
        ledger.in_attention,
        (c.d_ff or 0) / c.d_model,
        c.n_heads * (c.d_head or 0) / c.d_model,
        (c.n_kv_heads or 0) * (c.d_head or 0) / c.d_model,
    )


def thin(ledger: Ledger) -> dict[str, int]:
    """Returns the components with less than THIN of the parameters, largest first: name -> count."""
    few = {name: count for name, count in ledger.components.items() if 0 < count < THIN * ledger.total}
    return dict(sorted(few.items(), key=lambda each: -each[1]))


def largest(ledger: Ledger, most: int = 3) -> tuple[dict[str, int], int]:
    """Returns (the components with the most parameters: name -> count, how many are elsewhere)."""
    ordered = sorted(ledger.components.items(), key=lambda each: -each[1])
    result = {name: count for name, count in ordered[:most] if count}
    return result, ledger.total - sum(result.values())


def beyond_the_map(ledger: Ledger) -> int:
    """Returns the parameters that a decoder's map does not draw: BERT's pooler, T5's encoder."""
    drawn = component_parameters(ledger.config)
    return ledger.total - sum(count for name, count in drawn.items() if name != "pooler")


@dataclass(frozen=True)
class Difference:
    """A count in two models."""

    first: int
    second: int

    @property
    def difference(self) -> int:
        return self.second - self.first

    @property
    def apart(self) -> int:
        return abs(self.difference)

    @property
    def larger(self) -> int:
        return max(self.first, self.second)

    @property
    def ratio(self) -> float | None:
        """Returns second / first; None where first is 0."""
        return self.second / self.first if self.first else None

    @property
    def times(self) -> float:
        """How many times as many the one with more has."""
        return self.larger / max(min(self.first, self.second), 1)


def change(ledger: Ledger, other: Ledger) -> tuple[Difference, Difference]:
    """Compares a model with a variant of it: (all parameters, numbers that a token takes in the KV cache)."""
    cache = (kv_numbers(each.config, each.encoder) for each in (ledger, other))
    return Difference(ledger.total, other.total), Difference(*cache)


def differences(first: Ledger, second: Ledger, names: tuple[str, ...]) -> dict[str, Difference]:
    """Compares the components `names` of two models, those that either has, in that order, then "all"."""
    ours, theirs = first.components, second.components
    pairs = {name: Difference(ours.get(name, 0), theirs.get(name, 0)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair.first or pair.second} | {
        "all": Difference(first.total, second.total)
    }


@dataclass(frozen=True)
class Line:
    """A row of the quick reference: a part, its output's shape for a whole context, its parameters."""

    part: str
    shape: tuple[int, ...]
    parameters: int


def quick_reference(c: ResolvedConfig) -> tuple[Line, ...]:
    """Returns seven rows, one for each kind of part. The parameters add up to the model's."""
    counts = component_parameters(c)
    stream = (c.context, c.d_model)
    norms = ("norm_embed", "norm1", "norm2", "norm_final")
    return (
        Line("embedding", stream, counts["embedding"]),
        Line("position", stream, counts["position"]),
        Line("attention", stream, counts["attention"]),
        Line("feedforward", stream, counts["feedforward"]),
        Line("norm", stream, sum(counts.get(name, 0) for name in norms)),
        Line("residual", stream, 0),
        Line("unembedding", (c.context, c.vocab_size), counts["unembedding"]),
    )
