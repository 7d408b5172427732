"""The counts that are done on the blackboard, made by the same ledger."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.config import ModelConfig
from engine.ledger import Ledger, Row, component_parameters, ledger
from engine.presets import LECTURE_MODELS

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
LAB = LECTURE_MODELS["lab"].model


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
    """Counts the parameters of a single block, as on a blackboard."""
    counts = component_parameters(config)
    return Block(counts["attention"], counts["feedforward"], counts["norm1"] + counts["norm2"])


def with_heads_and_contexts(config: ModelConfig = BARE) -> set[int]:
    """Returns the totals that 1, 4 and 8 heads and 16, 512 and 4,096 tokens of context give."""
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
    """Counts the parameters of a model that uses its embedding at both ends."""
    return Tied(ledger(model).total, ledger(replace(model, tie_embeddings=False)).total)


# Any model, by hand -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """The matrices and tables of one component, as they are counted by hand: `formula` in letters, `numbers`
    in numbers, both with the number of blocks where each block has them.
    """

    component: str
    stack: str
    formula: str
    numbers: str
    parameters: int


def terms(ledger: Ledger) -> tuple[Term, ...]:
    """Returns a term for each component with matrices or tables, in the order in which data meets them.
    Biases, and the gains of norms, are left out: they are what a count by hand forgets, under a percent in
    most models.
    """
    found: dict[tuple[str, str], list[Row]] = {}
    for row in ledger.rows:
        if row.parameters and "d" in row.formula.split("·") and "·" in row.formula:
            found.setdefault((row.stack, row.component), []).append(row)
    return tuple(_term(ledger, stack, component, rows) for (stack, component), rows in found.items())


def counted(terms: tuple[Term, ...]) -> int:
    """Returns the parameters of all terms together."""
    return sum(term.parameters for term in terms)


def _term(ledger: Ledger, stack: str, component: str, rows: list[Row]) -> Term:
    products: dict[tuple[str, str], int] = {}  # (in letters, in numbers) -> how many matrices
    for row in rows:
        written = _squared(_heads_as_width(row, ledger))
        products[written] = products.get(written, 0) + 1
    letters, numbers = (
        " + ".join((f"{times}·" if times > 1 else "") + each[i] for each, times in products.items())
        for i in (0, 1)
    )
    copies = rows[0].copies
    if copies > 1:
        wrap = "({})" if len(products) > 1 else "{}"
        letters, numbers = "L·" + wrap.format(letters), f"{copies}·" + wrap.format(numbers)
    return Term(component, stack, letters, numbers, sum(row.parameters for row in rows))


def _heads_as_width(row: Row, ledger: Ledger) -> list[tuple[str, str]]:
    """The factors of a matrix as (letter, number). Where the heads share out the width, H·d_head is d."""
    c = ledger.config
    factors = list(zip(row.formula.split("·"), row.numbers.split("·"), strict=True))
    for letter, heads in (("H", c.n_heads), ("H_kv", c.n_kv_heads)):
        pair = [(letter, f"{heads:,}"), ("d_head", f"{c.d_head:,}")]
        if heads * c.d_head == c.d_model and all(each in factors for each in pair):
            factors = [each for each in factors if each not in pair] + [("d", f"{c.d_model:,}")]
    return sorted(factors, key=lambda each: (each[0] == "d_ff", each[0] == "d", each[0]))


def _squared(factors: list[tuple[str, str]]) -> tuple[str, str]:
    """
    >>> _squared([("d", "8"), ("d", "8")]), _squared([("V", "65"), ("d", "8")])
    (('d²', '8²'), ('V·d', '65·8'))
    >>> _squared([("d", "8"), ("d", "8"), ("H", "2")])
    ('d·d·H', '8·8·2')
    """
    if len(factors) == 2 and factors[0] == factors[1]:
        return factors[0][0] + "²", factors[0][1] + "²"
    return "·".join(letter for letter, _ in factors), "·".join(number for _, number in factors)
