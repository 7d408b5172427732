"""Guesses about what comes after pre-training: adapters, examples in a prompt, chains of thought, many
answers to a question, calls of a tool, places of right answers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.model import Transformer
from studies.after.benchmark import MIXED, Scores, right_letters
from studies.after.finetune import trained_parameters
from studies.circuits.examples_in_prompt import EXCHANGED, RIGHT, FewShot
from studies.circuits.in_context import Regression
from studies.experiments.thinking_aloud import CLOSE, Accuracy
from studies.experiments.tool_runs import RAN, ToolEvaluation
from studies.guesses import Truth
from studies.tasks.attempts import Attempts

MOST, FEW = 0.75, 0.15  # of the right answers: about as many, and hardly any
ALIKE = 0.05  # of a step size, by which another must differ to be longer or shorter


def adapter(model: Transformer, now: int, then: int) -> Truth | None:
    """Compares the numbers that LoRA trains at rank `then` with those at rank `now`: "times" the ratio of the
    ranks, "square" of it, or "all" the weights. None where one of them is full fine-tuning, or both are one.
    """
    if not (now and then) or now == then:
        return None
    before, after, total = (trained_parameters(model, rank) for rank in (now, then, 0))
    ratio = then / now
    guesses = {"times": ratio * before, "square": ratio**2 * before, "all": total}
    right = min(guesses, key=lambda name: abs(guesses[name] - after))
    return Truth(right, tuple(guesses), {"ratio": ratio, "before": before, "after": after, "total": total})


def rehearsed(before: float, without: Sequence[float], rehearsing: Sequence[float]) -> Truth | None:
    """Compares an old answer's probability after runs that rehearse with that `before`: "kept", "half" or
    "lost". Medians over the runs; None where it is kept without rehearsal, too, or no run is there.
    """
    if not (before and len(without) and len(rehearsing)):
        return None
    ends = float(np.median(without)), float(np.median(rehearsing))
    if ends[0] / before >= MOST:
        return None
    left = ends[1] / before
    right = "kept" if left >= MOST else "lost" if left < FEW else "half"
    numbers = {"before": before, "without": ends[0], "rehearsed": ends[1]}
    return Truth(right, ("kept", "half", "lost"), numbers)


def step_size(now: Regression, then: Regression) -> Truth | None:
    """Compares the best steps of gradient descent after as many examples as in the two plans: "longer",
    "same" or "shorter". None for softmax layers, which learn no such step, and for the same plan.
    """
    if now.layer != "linear" or now.examples == then.examples:
        return None
    ratio = then.best_rate / now.best_rate
    right = "longer" if ratio > 1 + ALIKE else "shorter" if ratio < 1 - ALIKE else "same"
    return Truth(right, ("longer", "same", "shorter"), {"before": now.best_rate, "after": then.best_rate})


def exchanged(few: FewShot) -> Truth | None:
    """Compares the share right after the most examples once their answers are exchanged with the share
    before: "same", "half" or "few". Means over all draws; None where nothing was right before.
    """
    before, after = (float(few.accuracy[way, :, -1].mean()) for way in (RIGHT, EXCHANGED))
    if not before:
        return None
    left = after / before
    right = "same" if left >= MOST else "few" if left < FEW else "half"
    return Truth(right, ("same", "half", "few"), {"before": before, "after": after})


def dots(scores: Sequence[Accuracy]) -> Truth | None:
    """Compares dots in place of the steps with both others: as good as "aloud", a "coin" as at once, or
    "between". None where the three are not there, or writing the steps does not help.
    """
    if len(scores) < 3:
        return None
    ends = {each.task: each.end for each in scores}
    at_once, with_dots, aloud = (ends[name] for name in scores[0].problem.ways)
    if aloud - at_once < 3 * CLOSE:
        return None
    gaps = {"aloud": aloud - with_dots, "coin": with_dots - at_once}  # dots may be the worst of the three
    right = next((name for name, gap in gaps.items() if gap <= CLOSE), "between")
    return Truth(right, ("aloud", "between", "coin"), ends)


def verified(now: Attempts, then: Attempts) -> Truth | None:
    """Compares the shares that a verifier finds solved among the most answers at another temperature, `then`,
    with those of `now`: "more" or "fewer" where that is so on every seed, else "same". The numbers are
    medians, those of a single answer too; None without a right answer.
    """
    if not now.verifier.any():
        return None
    gains = then.verifier[:, -1] - now.verifier[:, -1]
    right = "more" if (gains > 0).all() else "fewer" if (gains < 0).all() else "same"
    single, most = ([float(np.median(each.verifier[:, at])) for each in (now, then)] for at in (0, -1))
    numbers = {"before": most[0], "after": most[1], "single": single[0], "single_after": single[1]}
    return Truth(right, ("more", "same", "fewer"), numbers)


def unrun(ends: Sequence[ToolEvaluation]) -> Truth | None:
    """Says what models do once nobody runs their calls: every one has "made" up most of its results, or each
    "skips" them; none "waits". The numbers are the median share made up, and the least and the largest share
    of right sums. None where no run is there, or where they differ.
    """
    if not ends:
        return None
    made_up = [end.made_up for end in ends]
    right = "made" if min(made_up) >= MOST else "skips" if max(made_up) < FEW else None
    if right is None:
        return None
    shares = [end.right[RAN.index("nobody")] for end in ends]
    numbers = {"made_up": float(np.median(made_up)), "low": min(shares), "high": max(shares)}
    return Truth(right, ("waits", "made", "skips"), numbers)


def placed(scores: Scores, letter: str) -> Truth | None:
    """Compares the mark by letter with every right answer at one of them to that of a mixed order: "nearly
    all" right, "nearly none", or the "same" up to the FEW. None between.
    """
    before, after = (scores.mark("letter", order=order) for order in (MIXED, letter))
    share, count = after / len(right_letters(letter)), len(right_letters(letter))
    near = abs(after - before) <= FEW * count
    right = "nearly all" if share > 1 - FEW else "nearly none" if share < FEW else "same" if near else None
    if right is None:
        return None
    return Truth(right, ("nearly all", "same", "nearly none"), {"before": before, "after": after})
