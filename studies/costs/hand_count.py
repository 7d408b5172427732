"""A model counted by hand: a product for each component, without what is left out on a blackboard."""

from __future__ import annotations

from dataclasses import dataclass

from studies.costs.ledger import Ledger, Row


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
    """Returns a term for each component with matrices or tables, as data meets them. Biases and gains are
    left out: a count by hand forgets them, under a percent in most models.
    """
    result: dict[tuple[str, str], list[Row]] = {}
    for row in ledger.rows:
        if row.parameters and is_matrix(row):
            result.setdefault((row.stack, row.component), []).append(row)
    return tuple(_term(ledger, stack, component, rows) for (stack, component), rows in result.items())


def is_matrix(row: Row) -> bool:
    """True if the tensor is a matrix or a table: the stream's width is one side of it, but not all."""
    factors = row.formula.split("·")
    return "d" in factors and len(factors) > 1


def counted(terms: tuple[Term, ...]) -> int:
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
