"""Scaling laws: a budget of compute, divided between parameters and tokens."""

from __future__ import annotations

import math
from random import Random

from studies.exercises.exercise import Exercise, mistakes, see
from studies.exercises.forms import Numbers

SCALING = see("ladder", ladder_view="scaling")
EXPONENTS = (0.3, 0.4, 0.6, 0.7, 0.73)  # not 0.5, where model and text grow alike


def tokens_of_budget(rng: Random) -> Exercise:
    millions, tokens = rng.choice([10, 20, 50, 100, 200]), rng.choice([40, 60, 150, 400, 800])
    compute = 6 * millions * tokens  # x 10^12
    return Exercise(
        f"A budget of {compute:,} × 10¹² FLOPs, a model of {millions} million parameters. By the rule $C ="
        " 6ND$, how many million tokens can it be trained on?",
        Numbers(1, 0, "million"),
        (tokens,),
        (
            "Each parameter costs 2 FLOPs per token forward and 4 backward: $D = C/(6N)$.",
            f"{compute:,} × 10¹² / (6 · {millions} × 10⁶) = **{tokens} million**.",
        ),
        mistakes(
            ((6 * tokens,), "You forgot the 6: a parameter costs 6 FLOPs per token."),
            ((3 * tokens,), "2 FLOPs are the forward pass alone. Add the backward pass."),
            ((1.5 * tokens,), "4 FLOPs are the backward pass alone. Add the forward pass."),
            ((tokens / 2,), "You counted 12 FLOPs. A multiplication and an addition make 2."),
        ),
        SCALING,
        {"millions": millions, "compute": compute},
    )


def growth_exponent(rng: Random) -> Exercise:
    first, times = rng.choice([2, 3, 5, 8]) * 1000, rng.choice([10, 30, 100, 1000])
    second = round(first * times ** rng.choice(EXPONENTS) / 1000) * 1000
    ratio = second / first
    right = math.log(ratio) / math.log(times)
    return Exercise(
        f"Two isoFLOP curves: one has its minimum at {first:,} parameters, the other, with {times:,} times"
        f" the compute, at {second:,}. The best size grows as $C^a$. What is $a$?",
        Numbers(1, 2),
        (right,),
        (
            r"$N_2/N_1 = (C_2/C_1)^a$, so $a = \ln(N_2/N_1) / \ln(C_2/C_1)$.",
            f"$\\ln {ratio:.3g} / \\ln {times}$ = {math.log(ratio):.3f} / {math.log(times):.3f} ="
            f" **{right:.2f}**.",
        ),
        mistakes(
            ((1 / right,), "That is the inverse. The sizes belong in the numerator."),
            ((1 - right,), "That is the exponent of the tokens: $D$ takes what $N$ leaves."),
            ((ratio / times,), "Divide the logarithms, not the numbers."),
            ((math.log10(ratio),), "Divide by the logarithm of the budgets' ratio as well."),
        ),
        SCALING,
        {"first": first, "second": second, "times": times},
    )


def shared_growth(rng: Random) -> Exercise:
    exponent, times = rng.choice(EXPONENTS), rng.choice([4, 10, 16, 100])
    model, text = times**exponent, times ** (1 - exponent)
    return Exercise(
        f"The best size grows as $C^{{{exponent}}}$, and $C = 6ND$. With {times} times the compute: how many"
        " times the parameters, and how many times the tokens? (Both numbers.)",
        Numbers(2, 1),
        (model, text),
        (
            f"The size: ${times}^{{{exponent}}}$ = {model:.1f}.",
            f"The product grows by a factor of {times}: ${times}^{{{1 - exponent:.2g}}}$ = {text:.1f}."
            f" **{model:.1f}** and **{text:.1f}**.",
        ),
        mistakes(
            ((text, model), "You swapped the two."),
            ((times, 1), "Then the tokens would stay the same: an exponent of 1."),
            (
                (model, model),
                "The two factors must multiply to the growth of the budget: what is left for the tokens?",
            ),
            (
                (times * exponent, times * (1 - exponent)),
                "Raise to the power. An exponent is not a share of the budget.",
            ),
        ),
        SCALING,
        {"exponent": exponent, "times": times},
    )


TASKS = (
    ("tokens-of-budget", "Scaling: tokens for a budget", tokens_of_budget),
    ("growth-exponent", "Scaling: the exponent", growth_exponent),
    ("shared-growth", "Scaling: model and text", shared_growth),
)
