"""Sentences (Markdown) of the page of tasks, from values that they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.data.tasks.task import Task
from engine.experiments.race_table import name_of
from engine.measure.attention.heads import HeadValue
from engine.measure.tasks.task_heads import HALF, SourceAttention
from engine.measure.tasks.task_scores import SOLVED, OutOfTurn, TaskCurve, first_solved
from engine.sample.problems import Answered
from engine.service.state import RunView
from ui.figures.solved import Solved
from ui.page_frame import Words

SOLVE_QUESTION = "Has it learned the rule, or memorised the examples?"
SOLVE = Words(
    see=(
        "Above, the share of problems that it answers right from the first character to the last: problems it"
        " trains on, and others, held out, that it never sees. Below, the loss. The dashed line is the floor:"
        " what nobody can guess even knowing the source, because it is drawn at random."
    ),
    why=(
        "Of Shakespeare nobody knows the best possible loss, or what a right answer is. Here both are known"
        " exactly: a loss that ends above 0 may be perfect, and a held-out problem solved is a rule found."
    ),
    attempt=(
        "Type a problem of your own. Compare Copy with Reverse: the same characters, but one is learned in a"
        " fraction of the steps. Then train one live, and pull its learning rate up."
    ),
)
HEADS_QUESTION = "Which head does the work?"
HEADS = Words(
    see=(
        "What one head attends to while it reads a problem: each row is a position that attends. Framed are"
        " the"
        " positions where the next character of the answer really comes from. The bars: how much of its"
        " weight each"
        " head gives to them, over many problems."
    ),
    why=(
        "Attention can show the algorithm: a falling diagonal copies, a rising one reverses. A pattern alone"
        " is no proof, so the head is switched off. Where no head attends to the sources, the problem was"
        " solved in another way than the one we had in mind."
    ),
    attempt=(
        "Take Reverse, then Copy, then Addition: which digits? Repeat is solved, and no head attends to a"
        " source: *Measure it* shows by which other rule. Sort too; how it does that, nobody has measured"
        " here. Some heads look elsewhere and are needed all the same."
    ),
)
ORDER_QUESTION = "Is addition easier with the ones digit first?"
ORDER = Words(
    see=(
        "Two runs that differ only in the order in which the sum is written: its first digit"
        " first, as we write it, or its last digit first. Left the loss, right the share of new sums that"
        " are right from the first digit to the last."
    ),
    why=(
        "Adding works from the right: the last digit needs two digits, the next one two and a carry. Whoever"
        " writes the first digit first must have done all carries before (Lee et al. 2023, “Teaching"
        " arithmetic to small transformers”). *Measure it* asks the shipped models for just these sums."
    ),
    attempt=(
        "Race them yourself. One seed proves little: with three digits the lead is some hundred steps, and"
        " two layers can attend to all columns at once. Then see under *Heads* which head attends to which"
        " digits."
    ),
)
GROKKING_QUESTION = "Does it memorise before it generalises?"
GROKKING = Words(
    see=(
        "Sums on a clock. Some pairs are trained on, the others never. Above, the share of right answers;"
        " below, the loss of the answers alone, so its floor is 0. The recipe is the one that worked: of"
        " about ten that were tried, one seed each, most found the rule in part or not at all, and none"
        " showed a jump as late as the paper's."
    ),
    why=(
        "Memorising all examples is not the end of learning: weight decay keeps pushing towards smaller"
        " weights, and the rule needs smaller ones than the list (Power et al. 2022, “Grokking”)."
    ),
    attempt="Train it live without weight decay, or with fewer pairs to train on, and compare.",
)
NO_PATTERN = "This model has no heads that attend to other positions."
SET = "Six held-out problems: set number"
AXES = {"log": "powers of ten", "plain": "evenly"}
RIGHT, WRONG = "✓ right", "✗ wrong"
STREAM = "What it writes. A piece is wrong where one of its characters can never follow the two before it:"


def live(task: Task) -> str:
    """Returns the label of the button."""
    long = "some minutes" if task.answers_only else "less than a minute"
    return f"Trains it now, on the training page: on two cores {long}."


def example(task: Task) -> str:
    return f"your own: {task.form}"


def custom_label(task: Task) -> str:
    return f"{task.rule} Try it: {task.form}"


def marked(answers: Sequence[Answered]) -> str:
    """Returns a line each: a sign and a word, the problem, and the right answer beside a wrong one."""
    return "\n".join(
        f"{RIGHT if one.right else WRONG}  {one.question} {one.written}"
        + (f"   (right: {one.wanted})" if one.wanted and not one.right else "")
        for one in answers
    )


def pieces(checked: Sequence[tuple[str, bool]]) -> str:
    """Returns a line each, with a sign and a word."""
    return "\n".join(f"{RIGHT if good else WRONG}  {piece}" for piece, good in checked)


def refused(why: str) -> str:
    return f"{why[0].upper()}{why[1:]}."


def solved(task: Task, share: float, loss: float, floor: float) -> str:
    """Says what a trained model can do."""
    if task.stream:
        return (
            f"It names the likeliest next character at **{share:.0%}** of the positions. Its loss ends at"
            f" **{loss:.3f}** nats; the floor is {floor:.3f}, the source's own randomness."
        )
    why = "the answer follows from the question" if task.answers_only else "what is asked is random"
    return (
        f"It solves **{percent(share)}** of the held-out problems. Its loss ends at **{loss:.3f}**"
        f" nats; no model gets below {floor:.3f}, for {why}."
    )


def percent(share: float) -> str:
    """Returns a share in percent: nearly all is not all.

    >>> percent(1.0), percent(0.9996), percent(0.5)
    ('100%', '99.9%', '50.0%')
    """
    return "100%" if share == 1 else f"{min(share, 0.999):.1%}"


def learned_alt(task: Task, curve: TaskCurve, floor: float) -> str:
    return (
        f"{task.title}: the share of held-out problems solved by step, {curve.solved[-1]:.0%} at the end, and"
        f" the loss, {curve.validation_loss[-1]:.3f} nats at the end, above a floor of {floor:.3f}."
    )


def when(task: Task, curve: TaskCurve, metrics: Mapping[str, Any]) -> str:
    """Says how it was trained, and when it was solved."""
    step, train = curve.step_of(SOLVED), metrics["train"]
    found = (
        f"{SOLVED:.0%} of the held-out problems were solved after **{step:,}** steps."
        if step is not None
        else f"{SOLVED:.0%} of the held-out problems were not solved at any look."
    )
    cpu = metrics.get("cpu_seconds")
    spent = f" and {cpu:,.0f} seconds of one core, looks included" if cpu else ""
    return (
        f"{found} Trained with seed {train['seed']}, {train['steps']:,} steps of {train['batch_size']}"
        f" windows by {train['optimizer']}{spent}, by the command `python -m engine.experiments"
        f" tasks/{task.name}` on {metrics['date']} ({metrics['machine']['processor']})."
    )


def floor_by_hand(task: Task, context: int, floor: float) -> str:
    """Says where the floor comes from."""
    if task.stream:
        return (
            f"Two characters before give {task.entropies[-1]:.4f} nats for the next one (the entropy rate);"
            " the"
            f" first character of a window has only one before it: {task.entropies[0]:.4f}. Over a window of"
            f" {context}: $({task.entropies[0]:.4f} + {context - 1} \\cdot {task.entropies[-1]:.4f}) /"
            f" {context} = {floor:.4f}$."
        )
    if task.answers_only:
        return "Only the answer counts in the loss, and it follows from the question: the floor is $0$."
    return (
        f"Nats at each of the {task.length} positions of a problem, the line break last:"
        f" {', '.join(f'{entropy:.2f}' for entropy in task.entropies)}. Their mean is the floor,"
        f" **{floor:.4f}**: what follows from the question costs nothing."
    )


def head_option(head: HeadValue) -> str:
    return f"{head.layer}.{head.head} ({head.value:.0%})"


def scores_alt(scored: SourceAttention) -> str:
    best = scored.best[0]
    return (
        f"Weight that each head gives to the source of the next character: head {best.layer}.{best.head}"
        " gives"
        f" most, {best.value:.0%}; an even spread would be {scored.even:.0%}."
    )


def pattern_alt(task: Task, layer: int, head: int) -> str:
    return f"What head {layer}.{head} attends to in a problem of {task.title}; the sources are framed."


def does_it(head: str, score: float, even: float, without: float, whole: float) -> str:
    """Says what a head does, and what is left without it."""
    if score < HALF:
        return (
            f"Head **{head}** gives **{score:.0%}** of its weight to the positions that the answer's"
            " characters"
            f" come from (an even spread: {even:.0%}). Switched off, **{without:.0%}** of the problems are"
            f" solved instead of {whole:.0%}: what it does for them, it does elsewhere."
        )
    return (
        f"Choosing the answer's characters, head **{head}** gives **{score:.0%}** of its weight to the"
        " positions"
        f" that they come from (an even spread: {even:.0%}). Switched off, **{without:.0%}** of the problems"
        f" are solved instead of {whole:.0%}."
    )


def and_others(count: int, without: float) -> str:
    """Says where several heads look there: what is left without any of them."""
    return f" Without all **{count}** that look there: **{without:.0%}**."


def heads_method(task: Task, scored: SourceAttention, problems: int) -> str:
    return (
        f"Over {scored.problems} held-out problems of {task.title}: the mean weight on the source of each"
        f" character of the answer, and the share of {problems} problems solved while the head writes"
        " nothing."
    )


def turns(out_of_turn: OutOfTurn) -> str:
    """Says by which rule a model repeats."""
    return (
        "Repeating needs no look at the source: in a circle of different characters, the next one is also the"
        " one away for longest. A character out of turn tells the two rules apart. After"
        f" {out_of_turn.probes}"
        f" such circles the model names the character away for longest in **{out_of_turn.longest:.0%}**,"
        " and the"
        f" one that followed before in **{out_of_turn.after:.0%}**."
    )


def order(views: Sequence[RunView]) -> str:
    """Says which run first had nearly all new sums right, and when; of the others, what they have now."""
    firsts = {name_of(view): first_solved(view.history.evaluations) for view in views}
    solved = sorted((step, name) for name, step in firsts.items() if step is not None)
    sentences = []
    if solved:
        (step, first), others = solved[0], solved[1:]
        later = "".join(f", {other - step:,} steps before *{name}*" for other, name in others if other > step)
        sentences.append(
            f"*{first}* is learned first: {SOLVED:.0%} of held-out sums are right at step **{step:,}**{later}"
        )
    for view in views:
        newest = view.history.evaluations[-1] if view.history.evaluations else None
        if firsts[name_of(view)] is None and newest is not None and newest.task is not None:
            share = f"**{newest.task.validation:.0%}** of held-out sums"
            sentences.append(f"*{name_of(view)}* solves {share} at step {newest.step:,}")
    return "; ".join(sentences) + "." if sentences else "Nothing has been validated yet."


def order_alt(curves: Sequence[Solved]) -> str:
    ends = [f"{c.name} {c.shares[-1]:.0%}" for c in curves if len(c.shares)]
    return f"Share of new sums that are right, by step; at the end: {', '.join(ends) or 'nothing yet'}."


def carries(shares: Mapping[str, Mapping[bool, tuple[int, float]]], problems: int) -> str:
    """Says where the models that come with the app still go wrong."""
    said = [
        f"{name}: **{on[True][1]:.1%}** right where a carry runs on ({on[True][0]} sums), {on[False][1]:.1%}"
        " elsewhere."
        for name, on in shares.items()
    ]
    return (
        f"{problems:,} new sums, asked of the models that come with the app. A carry runs on where the"
        " digits of a column make nine and one is carried into it, as in 045 + 157: only then does a digit"
        f" depend on more than its own column and the next. {' '.join(said)}"
    )


def grokking_alt(curve: TaskCurve) -> str:
    return (
        f"Share of sums answered right by step: at the end {curve.train_solved[-1]:.0%} of those trained on"
        f" and {curve.solved[-1]:.0%} of the others; below, both losses."
    )


def grokked(by_heart: int | None, understood: int | None, curve: TaskCurve) -> str:
    """Says when it memorised its sums, and when it generalised."""
    if by_heart is None:
        return f"At its end it solves **{curve.train_solved[-1]:.0%}** of its training sums."
    first = f"After **{by_heart:,}** steps it has memorised {SOLVED:.0%} of its training sums"
    if understood is None:
        return f"{first}; of the held-out ones it never solves more than **{curve.best_solved:.0%}**."
    early = curve.solved_after(by_heart)
    return (
        f"{first}, but solves only **{early:.0%}** of the held-out ones. It generalises after"
        f" **{understood:,}** steps, with {SOLVED:.0%} of those right."
    )


def grokking_recipe(task: Task, metrics: Mapping[str, Any], train: int, validation: int) -> str:
    settings = metrics["train"]
    return (
        f"**{train:,}** pairs are trained on and **{validation:,}** held out; a + b and b + a are on the same"
        f" side. Weight decay **{settings['weight_decay']:g}**, learning rate {settings['learning_rate']:g},"
        f" {settings['batch_size']} sums a step, seed {settings['seed']}."
    )
