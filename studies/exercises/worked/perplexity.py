"""Perplexity by hand: from the probabilities of a few tokens to surprisals, the loss and the perplexity."""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.training.numerics import perplexity
from studies.exercises.arithmetic import decimals_for, written
from studies.exercises.exercise import mistakes
from studies.exercises.forms import Numbers
from studies.exercises.sets.training import perplexity_mistakes, surprisal_mistakes
from studies.exercises.worked_example import Cell, Given, Row, WorkedExample

TOKENS = 4
DIGITS = 3  # of a probability that is shown
LARGEST = 20.0  # perplexity of an example: in a larger one a rounded loss is off by more than it may be
LEAST = 1.1  # perplexity: in a smaller one the usual mistakes give the same


def few_tokens(names: Sequence[str], p: Sequence[float], seed: int) -> WorkedExample | None:
    """Returns the way from the probabilities `p` (token,) of a few tokens in a row to their perplexity; which
    ones, a seed chooses. None where no few tokens have a moderate one. `names` are Markdown.
    """
    rounded = [float(f"{each:.{DIGITS}g}") for each in p]  # what is shown is what is counted with
    count = min(TOKENS, len(rounded))
    starts = [
        start
        for start in range(len(rounded) - count + 1)
        if LEAST <= _perplexity(rounded[start : start + count]) <= LARGEST
    ]
    if not starts:
        return None
    start = starts[seed * max(1, count - 1) % len(starts)]
    return _example(names[start : start + count], rounded[start : start + count])


def _perplexity(p: Sequence[float]) -> float:
    if min(p) <= 0:
        return math.inf
    return perplexity(-math.fsum(map(math.log, p)) / len(p))


def _example(names: Sequence[str], p: Sequence[float]) -> WorkedExample:
    return WorkedExample(
        "A few tokens of the text, each with its probability after all before it.",
        (
            Row("Probability $p$", tuple(Given(*each) for each in zip(names, map(_short, p), strict=True))),
            Row("Surprisal $-\\ln p$", tuple(_surprisal(*each) for each in zip(names, p, strict=True))),
            Row("Sum, mean, perplexity", (_total(p), _loss(p), _choices(p))),
        ),
        "1-0",
        2,
    )


def _short(p: float) -> str:
    return f"{p:.{DIGITS}g}"


def _surprisal(name: str, p: float) -> Cell:
    right = math.log(1 / p)
    return Cell.of(
        name,
        Numbers(1, 3, "nats"),
        (right,),
        (
            *surprisal_mistakes(1 / p),
            *mistakes(((1 - p,), "That is the probability of all other tokens. Take $-\\ln p$.")),
        ),
        (
            "A token that is certain costs nothing, an unlikely one much. Which function of $p$ does that?",
            "Take minus the natural logarithm: the key *ln*, not *log*.",
            f"$-\\ln {_short(p)} = {right:.3f}$",
        ),
    )


def _total(p: Sequence[float]) -> Cell:
    losses = [-math.log(each) for each in p]
    product, total = math.prod(p), f"{math.fsum(losses):.2f}"
    places = decimals_for(math.fsum, losses, total)
    return Cell.of(
        "sum",
        Numbers(1, 2, "nats"),
        (math.fsum(losses),),
        mistakes(
            ((math.fsum(losses) / len(p),), "That is the mean already. Here is only the sum."),
            ((product,), "That is the product of the probabilities. The sum is $-\\ln$ of it."),
            ((-math.fsum(losses),), "Each surprisal is positive, and so is their sum."),
            ((-math.log(math.fsum(p)),), "You added the probabilities. Add their surprisals."),
        ),
        (
            "Probabilities in a row multiply. What do their logarithms do?",
            "Add up the surprisals.",
            f"{' + '.join(f'{each:.{places}f}' for each in losses)} = {total}",
        ),
    )


def _loss(p: Sequence[float]) -> Cell:
    total = -math.fsum(map(math.log, p))
    mean = total / len(p)
    places = decimals_for(lambda x: x[0] / len(p), [total], f"{mean:.2f}", 2)
    return Cell.of(
        "mean: the loss",
        Numbers(1, 2, "nats"),
        (mean,),
        mistakes(
            ((total,), "That is the sum. Divide it by the number of tokens."),
            ((total / (len(p) + 1),), f"There are {len(p)} predictions here, not {len(p) + 1}."),
            ((total / (len(p) - 1 or 1),), f"There are {len(p)} predictions here, not {len(p) - 1}."),
            ((mean / math.log(2),), "You used $\\log_2$: those are bits. Nats take $\\ln$."),
            (
                (-math.log(math.fsum(p) / len(p)),),
                "You averaged the probabilities. Average their logarithms.",
            ),
        ),
        (
            "A longer text costs more. What makes texts of different lengths comparable?",
            f"Divide the sum by the number of tokens, {len(p)}.",
            f"{total:.{places}f} / {len(p)} = {mean:.2f}",
        ),
    )


def _choices(p: Sequence[float]) -> Cell:
    mean = -math.fsum(map(math.log, p)) / len(p)
    right = f"{perplexity(mean):.1f}"
    places = decimals_for(lambda x: math.exp(x[0]), [mean], right, 2)
    return Cell.of(
        "perplexity",
        Numbers(1, 1),
        (perplexity(mean),),
        perplexity_mistakes(p),
        (
            "Perplexity undoes the logarithm: how many equally likely tokens would give the same loss?",
            "Raise $e$ to the mean loss.",
            f"$e^{{{written(mean, places)}}} = {right}$",
        ),
    )
