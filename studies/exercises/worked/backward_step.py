"""One backward step by hand: a weight's gradient by two passes, the steps of SGD and AdamW, and the loss that
the gradient predicts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from studies.exercises.arithmetic import decimals_for, factor, rounds_to
from studies.exercises.exercise import Mistake, mistakes
from studies.exercises.forms import Numbers
from studies.exercises.sets.after_pretraining import adamw_mistakes
from studies.exercises.worked_example import Cell, Row, WorkedExample
from studies.shapes.backward import EPSILON
from studies.shapes.optimiser_step import Rule, WeightStep

UPHILL = "That is uphill. The step goes against the gradient."
DIGITS = 3  # of a step or a gradient that are asked for
MOST_DECIMALS = 12
NAMES: Mapping[Rule, str] = {"sgd": "SGD", "adamw": "AdamW"}


def single_weight(step: WeightStep, matrix: str) -> WorkedExample | None:
    """Returns the step of one weight of a `matrix` (its name in Markdown); None where its gradient is 0. All
    is computed from the numbers that are shown.
    """
    return _Step(step, matrix).example if step.gradient else None


class _Step:
    """The step of one weight, in numbers rounded as they are shown."""

    def __init__(self, step: WeightStep, matrix: str) -> None:
        self.step, self.matrix = step, matrix
        places = _decimals(step.gradient)
        self.passes = min(places + 3, MOST_DECIMALS)  # two passes are 0.002 apart
        self.above, self.below = (round(x, self.passes) for x in (step.above, step.below))
        self.g = (self.above - self.below) / (2 * EPSILON)
        self.g_form = Numbers(1, places)
        self.moves = {rule: self._move(rule) for rule in step.rates}
        finest = max(_decimals(move) for move in self.moves.values())
        self.w_form = Numbers(1, finest)
        self.w = round(step.weight, finest)
        smallest = min(abs(self.g * move) for move in self.moves.values())
        self.loss_form = Numbers(1, max(4, _decimals(smallest, DIGITS - 1)))
        self.loss = round(step.loss, self.loss_form.decimals)

    def _move(self, rule: Rule) -> float:
        return -self.step.rates[rule] * self.g if rule == "sgd" else self.step.steps[rule]

    @property
    def example(self) -> WorkedExample:
        after = ", ".join(
            f"{NAMES[rule]} {self.step.after[rule]:.{self.loss_form.decimals}f}" for rule in self.moves
        )
        return WorkedExample(
            self._given(),
            (
                Row("Gradient $g$", (self._gradient(),)),
                Row("Step $\\Delta w$", tuple(map(self._moved, self.moves))),
                Row("New weight", tuple(map(self._weight, self.moves))),
                Row("New loss, predicted", tuple(map(self._loss, self.moves))),
            ),
            "1-0",
            3,
            f"Measured by a forward pass with this weight alone changed: {after}.",
        )

    def _given(self) -> str:
        row, column = self.step.entry
        rates = ", ".join(f"{NAMES[rule]} $\\eta = {rate:g}$" for rule, rate in self.step.rates.items())
        return (
            f"Weight in {self.matrix}, row {row}, column {column}: $w = {self.w_form.text((self.w,))}$. Mean"
            f" loss of the text: $L(w) = {self.loss_form.text((self.loss,))}$, $L(w + {EPSILON:g}) ="
            f" {self.above:.{self.passes}f}$, $L(w - {EPSILON:g}) = {self.below:.{self.passes}f}$."
            f" Learning rates: {rates}."
        )

    def _gradient(self) -> Cell:
        difference = self.above - self.below
        return Cell.of(
            "by two passes",
            self.g_form,
            (self.g,),
            mistakes(
                ((-self.g,), "The other way round: the loss at the larger weight comes first."),
                ((difference / EPSILON,), f"The two weights are {2 * EPSILON:g} apart."),
                ((difference,), f"That is the difference. Divide it by {2 * EPSILON:g}."),
                ((difference * 2 * EPSILON,), "You multiplied by the distance. Divide by it."),
                (((self.above - self.loss) / EPSILON,), "Take the passes on both sides of the weight."),
            ),
            (
                "A gradient is a slope: how much does the loss rise for each unit of the weight?",
                "$g \\approx \\frac{L(w + \\epsilon) - L(w - \\epsilon)}{2 \\epsilon}$ with $\\epsilon$ ="
                f" {EPSILON:g}.",
                f"$({self.above:.{self.passes}f} - {self.below:.{self.passes}f}) / {2 * EPSILON:g} ="
                f" {self.g_form.text((self.g,))}$",
            ),
        )

    def _moved(self, rule: Rule) -> Cell:
        rate, move = self.step.rates[rule], self.moves[rule]
        form = Numbers(1, _decimals(move))
        places = decimals_for(lambda x: -rate * x[0], [self.g], form.text((move,)), self.g_form.decimals)
        extra = mistakes(((self.w + move,), "That is the new weight. Here is only its change."))
        if rule == "sgd":
            return Cell.of(
                NAMES[rule],
                form,
                (move,),
                (*self._sgd_mistakes(0.0), *extra),
                (
                    "Which way does the loss fall?",
                    "$\\Delta w = -\\eta \\, g$.",
                    f"$-{rate:g} \\cdot {factor(self.g, places)} = {form.text((move,))}$",
                ),
            )
        return Cell.of(
            NAMES[rule],
            form,
            (move,),
            (*adamw_mistakes(0.0, self.g, rate, 0.0), *extra),
            (
                "In a first step, AdamW divides the gradient by its own size. What is left of it?",
                "$\\Delta w = -\\eta \\, g / |g|$: the learning rate, with the sign against the gradient.",
                f"$g$ is {'positive' if self.g > 0 else 'negative'}: ${form.text((move,))}$",
            ),
        )

    def _weight(self, rule: Rule) -> Cell:
        move, new = self.moves[rule], self.w + self.moves[rule]
        wrong = (
            self._sgd_mistakes(self.w)
            if rule == "sgd"
            else adamw_mistakes(self.w, self.g, self.step.rates[rule], 0.0)
        )
        return Cell.of(
            NAMES[rule],
            self.w_form,
            (new,),
            (*wrong, *mistakes(((move,), "That is the step. Add it to the weight."))),
            (
                "A step is a change of the weight.",
                "$w + \\Delta w$: the step has its sign already.",
                f"${self.w_form.text((self.w,))} + {factor(move, self.w_form.decimals)} ="
                f" {self.w_form.text((new,))}$",
            ),
        )

    def _sgd_mistakes(self, weight: float) -> tuple[Mistake, ...]:
        rate, sign = self.step.rates["sgd"], math.copysign(1, self.g)
        return mistakes(
            ((weight + rate * self.g,), UPHILL),
            ((weight - self.g,), "You forgot the learning rate."),
            ((weight - rate * sign,), "That is AdamW's step. SGD keeps the gradient's size."),
            ((weight - self.g / rate,), "You divided by the learning rate. Multiply by it."),
        )

    def _loss(self, rule: Rule) -> Cell:
        move = self.moves[rule]
        change = self.g * move
        right = self.loss_form.text((self.loss + change,))
        return Cell.of(
            NAMES[rule],
            self.loss_form,
            (self.loss + change,),
            mistakes(
                ((self.loss - change,), "The loss falls: gradient and step have opposite signs."),
                ((change,), "That is the change. Add it to the loss."),
                ((self.loss + move,), "That adds the step. Multiply it by the gradient first."),
                ((self.loss + self.g,), "That adds the gradient. Multiply it by the step first."),
                ((self.loss + self.g * self.w,), "Multiply the gradient by the step, not by the weight."),
                ((self.loss + self.g * (self.w + move),), "Multiply the gradient by the step alone."),
            ),
            (
                "For a small step the loss follows its tangent.",
                "$L(w + \\Delta w) \\approx L(w) + g \\, \\Delta w$.",
                f"${self.loss_form.text((self.loss,))} + {self._product(move, right)} = {right}$",
            ),
        )

    def _product(self, move: float, loss: str) -> str:
        """Writes gradient times step, in as many decimals as it takes for the new loss (LaTeX)."""
        decimals = [(self.g_form.decimals + n, _decimals(move) + n) for n in range(MOST_DECIMALS)]
        g, step = next(
            (
                each
                for each in decimals
                if rounds_to(self.loss + round(self.g, each[0]) * round(move, each[1]), loss)
            ),
            decimals[-1],
        )
        return f"{factor(self.g, g)} \\cdot {factor(move, step)}"


def _decimals(x: float, digits: int = DIGITS) -> int:
    """Returns the decimals with which a number has so many digits.

    >>> _decimals(0.0512), _decimals(3.2), _decimals(0.001, 2)
    (4, 2, 4)
    """
    if not x:
        return DIGITS
    return min(max(digits - 1 - math.floor(math.log10(abs(x))), 1), MOST_DECIMALS)
