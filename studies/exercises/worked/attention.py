"""Two heads by hand: the scores of a query with two keys, their weights, and what each head writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from studies.exercises import arithmetic
from studies.exercises.arithmetic import decimals_for, dot, factor, mixed, shown, softmax, written
from studies.exercises.exercise import Mistake, mistakes
from studies.exercises.forms import Numbers
from studies.exercises.sets.attention import (
    LATE,
    UNSCALED,
    Vectors,
    masked_wrongly,
    scaled_wrongly,
    split_wrongly,
)
from studies.exercises.worked_example import Cell, Row, WorkedExample
from studies.shapes.attention_by_hand import HandExample, multi_head

MOST = 2  # heads: the others repeat them
LARGEST_POWER = 50.0  # of e, in a hint
CLOSE, APART = 0.5, 3.0  # of two scaled scores that are drawn: their weights differ, and none is 1


def two_heads(example: HandExample) -> WorkedExample:
    """Returns the steps of the first query's attention, of at most MOST heads."""
    heads = [_Head(example, head) for head in range(min(len(example.q), MOST))]
    rows = [
        Row("Dot product $q \\cdot k$", tuple(cell for head in heads for cell in head.products())),
        Row("Divided by $\\sqrt{d_k}$", tuple(cell for head in heads for cell in head.scaled())),
        Row("Softmax: the weights", tuple(cell for head in heads for cell in head.weights())),
        Row("Weighted sum $z$", tuple(cell for head in heads for cell in head.sums())),
    ]
    if len(heads) == len(example.q) > 1:
        rows.append(Row("Output", (_output(example),)))
    return WorkedExample("", tuple(rows), "1-0", 2)


def draw(rng: Random) -> dict[str, list[int]]:
    """Draws q, two keys and two values of four whole numbers, whose weights in two heads are neither nearly
    equal nor nearly 1.
    """
    while True:
        rows = {name: [rng.randint(-2, 3) for _ in range(4)] for name in ("q", "k1", "k2", "v1", "v2")}
        scaled = multi_head([rows["q"]], [rows["k1"], rows["k2"]], [rows["v1"], rows["v2"]], 2).scaled
        gaps = np.abs(scaled[:, 0, 0] - scaled[:, 0, 1])
        if gaps.min() >= CLOSE and gaps.max() <= APART and rows["v1"] != rows["v2"]:
            return rows


@dataclass(frozen=True)
class _Head:
    """The cells of one head, counted from 0."""

    example: HandExample
    head: int

    @property
    def name(self) -> str:
        return f"head {self.head + 1}"

    @property
    def q(self) -> list[float]:
        row: list[float] = self.example.q[self.head, 0].tolist()
        return row

    @property
    def keys(self) -> list[list[float]]:
        rows: list[list[float]] = self.example.k[self.head].tolist()
        return rows

    @property
    def values(self) -> list[list[float]]:
        rows: list[list[float]] = self.example.v[self.head].tolist()
        return rows

    @property
    def hidden(self) -> list[int]:
        return [int(key) for key in np.flatnonzero(np.isinf(self.example.masked[self.head, 0]))]

    def _row(self, stage: np.ndarray) -> list[float]:
        row: list[float] = stage[self.head, 0].tolist()
        return row

    @property
    def _dimensions(self) -> str:
        first, last = self.head * self.example.d_head + 1, (self.head + 1) * self.example.d_head
        return f"dimensions {first} to {last}" if last > first else f"dimension {first}"

    def _label(self, key: int) -> str:
        return f"{self.name}, k{key + 1}"

    def products(self) -> list[Cell]:
        """Returns a cell for the dot product with each key."""
        return [self._product(*each) for each in enumerate(self._row(self.example.raw))]

    def _product(self, key: int, product: float) -> Cell:
        k = self.keys[key]
        places = decimals_for(_paired, [*self.q, *k], written(product))
        terms = _terms(self.q, k, places)
        return Cell.of(
            self._label(key),
            Numbers(1, 2 if product % 1 else 0),
            (product,),
            self._product_mistakes(key, product),
            (
                "A dot product multiplies number by number and adds up. Which numbers belong to this head?",
                f"{self.name.capitalize()} has {self._dimensions}: {_math(self.q)} of q and {_math(k)} of"
                f" k{key + 1}.",
                f"${terms} = {written(product)}$",
            ),
        )

    def _product_mistakes(self, key: int, product: float) -> tuple[Mistake, ...]:
        heads = len(self.example.q)
        q, k = self.example.q[:, 0].ravel().tolist(), self.example.k[:, key].ravel().tolist()
        other_key = "That is the dot product with the other key."
        other_head = "That is another head's. Each has its own numbers."
        return (
            *_at(split_wrongly(q, k, heads), self.head),
            *mistakes(*(((other,), other_key) for other in self._row(self.example.raw))),
            *mistakes(*(((other,), other_head) for other in self.example.raw[:, 0, key].tolist())),
            *mistakes(
                ((sum(self.q) * sum(self.keys[key]),), "Multiply number by number, then add up."),
                (
                    (product / math.sqrt(self.example.d_head),),
                    "You divided by $\\sqrt{d_k}$; that is the next step.",
                ),
            ),
        )

    def scaled(self) -> list[Cell]:
        """Returns a cell for the score with each key."""
        width, result = self.example.d_head, []
        whole = width * len(self.example.q)
        pairs = zip(self._row(self.example.raw), self._row(self.example.scaled), strict=True)
        for key, (product, score) in enumerate(pairs):
            places = decimals_for(lambda x: x[0] / math.sqrt(width), [product], written(score))
            result.append(
                Cell.of(
                    self._label(key),
                    Numbers(1, 3),
                    (score,),
                    (
                        *scaled_wrongly(product, width),
                        *mistakes(
                            (
                                (product / math.sqrt(whole),),
                                "You used $d$, but a head only has $d/H$ numbers.",
                            ),
                        ),
                    ),
                    (
                        "A dot product grows with the number of terms. What brings it back to a size of 1?",
                        f"Divide by $\\sqrt{{d_k}}$, where $d_k$ is the number of dimensions of one head:"
                        f" {width}.",
                        f"${written(product, places)} / \\sqrt{{{width}}} = {written(score)}$",
                    ),
                )
            )
        return result

    def weights(self) -> list[Cell]:
        """Returns a cell for the weight of each key."""
        scores, right = self._row(self.example.scaled), self._row(self.example.pattern)
        seen = [key for key in range(len(scores)) if key not in self.hidden]
        powers = " + ".join(f"e^{{{written(scores[key])}}}" for key in seen)
        return [
            Cell.of(
                self._label(key),
                Numbers(1, 3),
                (weight,),
                (
                    *mistakes(((self._unscaled()[key],), UNSCALED)),
                    *_at(masked_wrongly(scores, self.hidden), key),
                    *self._without_softmax(key, seen),
                ),
                (
                    "The scores of a head become weights that are positive and sum to 1. Which function does"
                    " that?",
                    f"$e^{{s}}$ of this key's score, divided by the sum over the keys that are seen,"
                    f" ${powers}$. A hidden key counts $e^{{-\\infty}} = 0$.",
                    "$e^{-\\infty} = 0$, so its weight is 0"
                    if key in self.hidden
                    else self._quotient(key, seen, f"{weight:.3f}"),
                ),
            )
            for key, weight in enumerate(right)
        ]

    def _quotient(self, key: int, seen: Sequence[int], weight: str) -> str:
        """Writes a weight as a quotient of powers, in as many decimals as it takes (LaTeX)."""
        scores = self._row(self.example.scaled)
        given, at = [scores[each] for each in seen], seen.index(key)
        places = decimals_for(lambda x: softmax(x)[at], given, weight)
        powers = [f"e^{{{written(score, places)}}}" for score in given]
        return f"$\\frac{{{powers[at]}}}{{{' + '.join(powers)}}} = {weight}$"

    def _unscaled(self) -> tuple[float, ...]:
        raw = self._row(self.example.raw)
        return softmax([arithmetic.NOTHING if key in self.hidden else s for key, s in enumerate(raw)])

    def _without_softmax(self, key: int, seen: Sequence[int]) -> tuple[Mistake, ...]:
        """Returns what comes of taking the softmax's parts for the whole of it."""
        scores, right = self._row(self.example.scaled), self._row(self.example.pattern)
        rows: list[tuple[tuple[float], str]] = [
            ((other,), "That is the weight of the other key.") for other in right
        ]
        total = sum(scores[each] for each in seen)
        if total and key in seen:
            rows.append(
                ((scores[key] / total,), "You divided the scores themselves. Take $e^s$ of each first.")
            )
        if abs(scores[key]) <= LARGEST_POWER:
            rows.append(
                ((math.exp(scores[key]),), "That is $e^s$ alone. Divide it by the sum over the keys.")
            )
        return mistakes(*rows)

    def sums(self) -> list[Cell]:
        """Returns a cell for each number that the head writes."""
        weights, values = self._row(self.example.pattern), self.values
        form = _form(*(x for value in values for x in value))
        scores = self._row(self.example.scaled)
        late = masked_wrongly(scores, self.hidden)[0][0]
        wrong: Vectors = (
            (mixed(self._unscaled(), values), UNSCALED),
            (mixed(late, values), LATE),
            (mixed(weights[::-1], values), "You gave each value the other key's weight."),
            (mixed([1 / len(values)] * len(values), values), "That is the plain mean. Weight each value."),
            (mixed([1.0] * len(values), values), "You added the values. Weight each of them first."),
            (mixed(weights, self.keys), "You averaged the keys. Average the values."),
        )
        result = []
        for at, number in enumerate(self._row(self.example.z)):
            numbers, half = [*weights, *(value[at] for value in values)], len(weights)
            right = form.text((number,))
            places = decimals_for(_paired, numbers, right)
            terms = _terms(numbers[:half], numbers[half:], places)
            result.append(
                Cell.of(
                    f"{self.name}, number {at + 1}",
                    form,
                    (number,),
                    _at(wrong, at),
                    (
                        "The weights say how much of each value is taken.",
                        "Multiply this number of v1 by the weight of k1, that of v2 by the weight of k2, and"
                        f" add up. {self.name.capitalize()} reads {_math(values[0])} of v1 and"
                        f" {_math(values[1])} of v2.",
                        f"${terms} = {right}$",
                    ),
                )
            )
        return result


def _output(example: HandExample) -> Cell:
    """Returns the cell for the heads side by side."""
    parts = [row.tolist() for row in example.z[:, 0]]
    right = [x for part in parts for x in part]
    form = _form(*(abs(float(x)) for x in example.v.ravel()), count=None)
    added = [sum(column) for column in zip(*parts, strict=True)]
    return Cell.of(
        "all numbers",
        form,
        tuple(right),
        mistakes(
            (tuple(added), "You added the heads. They are put side by side."),
            (tuple(x / len(parts) for x in added), "You averaged the heads. They are put side by side."),
            (
                tuple(x for part in parts[::-1] for x in part),
                "Those are the right numbers in the wrong order: head 1 comes first.",
            ),
            (
                tuple(x for column in zip(*parts, strict=True) for x in column),
                "You took turns between the heads. First all numbers of head 1, then those of head 2.",
            ),
        ),
        (
            "Each head has written some of the dimensions. How do they become one vector again?",
            f"Heads are concatenated: {len(right)} numbers, head 1 first, separated by spaces.",
            f"${form.text(right)}$",
        ),
    )


def _form(*numbers: float, count: int | None = 1) -> Numbers:
    """Returns a form for a weighted sum of numbers in which weights rounded to 3 decimals are no mistake."""
    largest = max(abs(x) for x in numbers)
    return Numbers(count, 3 if largest <= 1 else 2 if largest <= 10 else 1)


def _paired(numbers: Sequence[float]) -> float:
    """Returns the dot product of the first half of numbers with the second."""
    half = len(numbers) // 2
    return dot(numbers[:half], numbers[half:])


def _terms(left: Sequence[float], right: Sequence[float], decimals: int) -> str:
    """Writes a sum of products (LaTeX)."""
    pairs = zip(left, right, strict=True)
    return " + ".join(f"{factor(a, decimals)} \\cdot {factor(b, decimals)}" for a, b in pairs)


def _at(vectors: Vectors, index: int) -> tuple[Mistake, ...]:
    """Returns the mistakes of one number of a row."""
    return tuple(Mistake((row[index],), hint) for row, hint in vectors)


def _math(row: Sequence[float]) -> str:
    return f"${shown(row, 2 if any(x % 1 for x in row) else 0)}$"
