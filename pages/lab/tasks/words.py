"""Sentences (Markdown) of the page of tasks, from values that they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.data.tasks.task import Task
from engine.experiments.race_table import name_of
from engine.measure.attention.heads import HeadValue, ranked_heads
from engine.measure.tasks.task_heads import HALF, SourceAttention
from engine.measure.tasks.task_scores import SOLVED, OutOfTurn, TaskCurve, median_solved
from engine.sample.problems import Answered
from engine.service.state import RunView
from ui.figures.solved import Solved
from ui.page_frame import Words
from ui.text.numbers import percent

SOLVE_QUESTION = "Does it generalise, or has it memorised?"
SOLVE = Words(
    see=(
        "Above, the share of training and held-out problems answered entirely correctly; below, the loss."
        " The dashed line is the lowest possible loss, the entropy of the source: no model can predict what"
        " is drawn at random."
    ),
    why=(
        "For Shakespeare the best possible loss is unknown, and no answer is right or wrong. Here both are"
        " known exactly: a loss above 0 may already be optimal, and solving held-out problems shows that the"
        " model generalises."
    ),
    attempt=(
        "Type a problem of your own. Compare Copy with Reverse: the same characters in another order. Each"
        " curve is of one seed, so train them live with others before you call one easier."
    ),
)
HEADS_QUESTION = "Which head finds the source?"
HEADS = Words(
    see=(
        "What one head attends to as it reads a problem; each row is a query. Frames mark the sources, the"
        " positions that determine the next character of the answer. Bars show the mean weight that each head"
        " gives to the sources, over many problems."
    ),
    why=(
        "Attention can reveal the algorithm: a descending diagonal means copying, an ascending one"
        " reversing. A pattern alone is not proof, so the head is also ablated. Where no head attends to the"
        " sources, the pattern does not show how the problem is solved."
    ),
    attempt=(
        "Choose Reverse, then Copy, then Addition: which digits do heads attend to? These Repeat and Sort"
        " models, one seed each, solve their tasks although no head attends to a source; *Measure it* shows"
        " Repeat's rule; Sort's has not been measured. Some heads attend elsewhere and are still needed."
    ),
)
ORDER_QUESTION = "Is addition easier with the ones digit first?"
ORDER = Words(
    see=(
        "Two runs that differ only in how the sum is written: in the usual order, or ones digit first. Left,"
        " the loss; right, the share of held-out sums that are completely right."
    ),
    why=(
        "Addition works from right to left: the ones digit depends on two digits, the next one on two and a"
        " carry. Writing the leading digit first requires all carries in advance (Lee et al. 2023, “Teaching"
        " arithmetic to small transformers”). *Measure it* tests the shipped models on exactly these sums."
    ),
    attempt=(
        "Race them yourself. One seed proves little: with three digits the lead is only a few hundred steps,"
        " and two blocks can attend to all columns at once. Then see under *Source heads* which heads attend"
        " to"
        " which digits."
    ),
)
GROKKING_QUESTION = "Does it memorise before it generalises?"
GROKKING = Words(
    see=(
        "Modular addition (clock arithmetic). Some pairs are used for training; the others are held out."
        " Above, the share of right answers; below, the loss on the answers only, so its floor is 0. Of about"
        " ten recipes tried, with one seed each, most generalised only partly or not at all, and none showed"
        " a delay as long as the paper's; this is the one that worked."
    ),
    why=(
        "Learning need not stop once every example is memorised: weight decay keeps shrinking the weights,"
        " and a general rule needs smaller ones than a lookup table. Power et al. 2022 named the"
        " effect “Grokking”."
    ),
    attempt="Train it live without weight decay, or with fewer pairs to train on, and compare.",
)
NO_PATTERN = "This model has no heads that attend to other positions."
SET = "Six held-out problems: set number"
AXES = {"log": "log scale", "plain": "linear"}
RIGHT, WRONG = "✓ right", "✗ wrong"
STREAM = "A sample. A piece is wrong if one of its characters can never follow the two before it:"


def live(task: Task) -> str:
    """Returns the label of the button."""
    long = "a few minutes" if task.answers_only else "less than a minute"
    return f"Trains it now on the Train page: {long} on two cores."


def example(task: Task) -> str:
    return f"your own: {task.form}"


def custom_label(task: Task) -> str:
    return f"{task.rule} Try it: {task.form}"


def marked(answers: Sequence[Answered]) -> str:
    """Returns a line each: a sign and a word, the problem, and the right answer beside a wrong one."""
    return "\n".join(
        f"{RIGHT if answer.right else WRONG}  {answer.question} {answer.written}"
        + (f"   (right: {answer.wanted})" if answer.wanted and not answer.right else "")
        for answer in answers
    )


def pieces(checked: Sequence[tuple[str, bool]]) -> str:
    """Returns a line each, with a sign and a word."""
    return "\n".join(f"{RIGHT if good else WRONG}  {piece}" for piece, good in checked)


def solved(task: Task, share: float, loss: float, floor: float) -> str:
    """Says what a trained model can do."""
    if task.stream:
        return (
            f"It predicts the most likely next character at **{share:.0%}** of the positions. Its final loss"
            f" is **{loss:.3f}** nats; the lowest possible is {floor:.3f}, the entropy of the source."
        )
    why = "the answer follows from the question" if task.answers_only else "the questions are random"
    return (
        f"It solves **{percent(share, 1)}** of the held-out problems. Its final loss is **{loss:.3f}** nats;"
        f" the lowest possible is {floor:.3f}, because {why}."
    )


def learned_alt(task: Task, curve: TaskCurve, floor: float) -> str:
    return (
        f"{task.title}: the share of held-out problems solved, by step, {curve.solved[-1]:.0%} at the end,"
        f" and the loss, {curve.validation_loss[-1]:.3f} nats at the end, above a floor of {floor:.3f}."
    )


def when(task: Task, curve: TaskCurve, metrics: Mapping[str, Any]) -> str:
    """Says how it was trained, and when it was solved."""
    step, train = curve.step_of(SOLVED), metrics["train"]
    solved_after = (
        f"{SOLVED:.0%} of the held-out problems were solved after **{step:,}** steps."
        if step is not None
        else f"At no evaluation were {SOLVED:.0%} of the held-out problems solved."
    )
    cpu = metrics.get("cpu_seconds")
    spent = f", using {cpu:,.0f} seconds of one core, evaluations included" if cpu else ""
    return (
        f"{solved_after} Trained for {train['steps']:,} steps of {train['batch_size']} windows with"
        f" {train['optimizer']}, seed {train['seed']}{spent}, by the command `python -m engine.experiments"
        f" tasks/{task.name}` on {metrics['date']} ({metrics['machine']['processor']})."
    )


def floor_by_hand(task: Task, context: int, floor: float) -> str:
    """Says where the floor comes from."""
    if task.stream:
        return (
            f"Given the two characters before it, the next one has an entropy of {task.entropies[-1]:.4f}"
            " nats (the entropy rate); the first character of a window has only one before it:"
            f" {task.entropies[0]:.4f}. Over a window of {context}: $({task.entropies[0]:.4f} + {context - 1}"
            f" \\cdot {task.entropies[-1]:.4f}) / {context} = {floor:.4f}$."
        )
    if task.answers_only:
        return "Only the answer counts in the loss, and it follows from the question, so the floor is $0$."
    return (
        f"Entropy, in nats, at each of the {task.length} positions of a problem, the line break last:"
        f" {', '.join(f'{entropy:.2f}' for entropy in task.entropies)}. Their mean is the floor,"
        f" **{floor:.4f}**: what follows from the question costs nothing."
    )


PARTIAL = (
    "Each step needs the next digit (framed) and the last result. That result is the query token itself: no"
    " head fetches it, but it determines where a head attends."
)


def by_result(weights: Mapping[str, np.ndarray]) -> str:
    """Names the head that reads the next bit after each partial result, from the weights (layer, head) of
    all heads there; nothing where no head clearly does, or the same for both.
    """
    zero, one = (ranked_heads(weights[token])[0] for token in "01")
    if min(zero.value, one.value) < HALF or (zero.layer, zero.head) == (one.layer, one.head):
        return ""
    return (
        "In this one trained model the last partial result decides which head reads the next digit:"
        f" **{zero.layer}.{zero.head}** where it is 0 (**{zero.value:.0%}** of its weight),"
        f" **{one.layer}.{one.head}** where it is 1 (**{one.value:.0%}**)."
    )


def without_it(head: str, without: float, whole: float) -> str:
    return f" Without {head}, **{without:.0%}** of the problems are solved instead of {whole:.0%}."


def head_option(head: HeadValue) -> str:
    return f"{head.layer}.{head.head} ({head.value:.0%})"


def scores_alt(scored: SourceAttention) -> str:
    best = scored.best[0]
    return (
        f"Weight that each head gives to the source of the next character: head {best.layer}.{best.head}"
        f" gives most, {best.value:.0%}; uniform attention would give {scored.even:.0%}."
    )


def pattern_alt(task: Task, layer: int, head: int) -> str:
    return f"What head {layer}.{head} attends to in a problem of {task.title}; the sources are framed."


def does_it(head: str, score: float, even: float, without: float, whole: float) -> str:
    """Says what a head does, and what is left without it."""
    if score < HALF:
        return (
            f"No head clearly attends to the sources: **{head}** gives only **{score:.0%}** of its weight to"
            f" the answer's sources (uniform: {even:.0%}). Without it **{without:.0%}** of the problems are"
            f" solved instead of {whole:.0%}."
        )
    return (
        f"Head **{head}** attends to the source of each answer character: **{score:.0%}** of its weight"
        f" (uniform: {even:.0%}). Without it **{without:.0%}** of the problems are solved instead of"
        f" {whole:.0%}."
    )


def and_others(count: int, without: float) -> str:
    """Says where several heads look there: what is left without any of them."""
    all_of_them = "both" if count == 2 else f"all **{count}**"
    return f" With {all_of_them} ablated: **{without:.0%}**."


def heads_method(task: Task, scored: SourceAttention, problems: int) -> str:
    return (
        f"Over {scored.problems} held-out problems of {task.title}: the mean weight on the source of each"
        f" character of the answer, and the share of {problems} problems solved with the head ablated."
    )


def turns(out_of_turn: OutOfTurn) -> str:
    """Says by which rule a model repeats."""
    return (
        "Repeating does not require the source: in a cycle of different characters, the next one is also the"
        f" least recently used. A character out of turn tells the two rules apart: in {out_of_turn.probes}"
        f" such cycles the model predicts the least recently used character **{out_of_turn.longest:.0%}** of"
        f" the time, and the one that followed last time **{out_of_turn.after:.0%}**."
    )


def order(views: Sequence[RunView], repeats: Sequence[RunView] = ()) -> str:
    """Says which run first had nearly all new sums right, and when; of the others, what they have now.
    `repeats` are the same with other seeds: then a step is the median over seeds.
    """
    over = {
        name_of(view): [
            each.history.evaluations for each in (view, *repeats) if name_of(each) == name_of(view)
        ]
        for view in views
    }
    firsts = {name: median_solved(runs) for name, runs in over.items()}
    solved = sorted((step, name) for name, step in firsts.items() if step is not None)
    seeds = len(next(iter(over.values()), ()))
    sentences = []
    if solved:
        (step, first), others = solved[0], solved[1:]
        later = "".join(f", {other - step:,} steps before *{name}*" for other, name in others if other > step)
        median_of = f" (median of {seeds} seeds)" if seeds > 1 else ""
        sentences.append(
            f"*{first}* is learned first: {SOLVED:.0%} of held-out sums are right at step"
            f" **{step:,}**{median_of}{later}"
        )
    for view in views:
        newest = view.history.evaluations[-1] if view.history.evaluations else None
        if firsts[name_of(view)] is None and newest is not None and newest.task is not None:
            share = f"**{newest.task.validation:.0%}** of held-out sums"
            sentences.append(f"*{name_of(view)}* solves {share} at step {newest.step:,}")
    return "; ".join(sentences) + "." if sentences else "Nothing has been validated yet."


def order_alt(curves: Sequence[Solved]) -> str:
    ends = [f"{c.name} {c.shares[-1]:.0%}" for c in curves if len(c.shares)]
    return f"Share of held-out sums that are right, by step; at the end: {', '.join(ends) or 'nothing yet'}."


def carries(shares: Mapping[str, Mapping[bool, tuple[int, float]]], problems: int) -> str:
    """Says where the models that come with the app still go wrong."""
    models = [
        f"{name}: **{on[True][1]:.1%}** right where a carry propagates ({on[True][0]} sums),"
        f" {on[False][1]:.1%} elsewhere."
        for name, on in shares.items()
    ]
    return (
        f"{problems:,} held-out sums, given to the shipped models. A carry propagates where the digits of a"
        " column add up to nine and a one is carried into it, as in 045 + 157: only then does a digit depend"
        f" on more than its own column and the next. {' '.join(models)}"
    )


def grokked(by_heart: int | None, understood: int | None, curve: TaskCurve) -> str:
    """Says when it memorised its sums, and when it generalised."""
    if by_heart is None:
        return f"At the end it solves **{curve.train_solved[-1]:.0%}** of its training sums."
    first = f"Yes: after **{by_heart:,}** steps it has memorised {SOLVED:.0%} of its training sums"
    if understood is None:
        return f"{first}; it never solves more than **{curve.best_solved:.0%}** of the held-out ones."
    early = curve.solved_after(by_heart)
    return (
        f"{first}, but solves only **{early:.0%}** of the held-out ones. It generalises after"
        f" **{understood:,}** steps, when {SOLVED:.0%} of those are right."
    )


def grokking_recipe(metrics: Mapping[str, Any], train: int, validation: int) -> str:
    settings = metrics["train"]
    return (
        f"**{train:,}** pairs are used for training and **{validation:,}** held out; a + b and b + a are"
        f" always in the same split. Weight decay **{settings['weight_decay']:g}**, learning rate"
        f" {settings['learning_rate']:g}, {settings['batch_size']} sums per step, seed {settings['seed']}."
    )
