"""Sentences of the ladder: about an idea, and about a race of rungs."""

from __future__ import annotations

from collections.abc import Mapping

from engine.data.tasks.all import TASKS
from engine.experiments.ladder_gains import EXPLODED, Finish, Idea
from engine.presets.ladder import LADDER
from ui.fields import label_of, show
from ui.page_frame import Words

ASK_IDEAS = "What does each idea contribute?"
ASK_RACE = "Which choices matter?"
ASK_RUNGS = "Which rung learns fastest?"
QUESTION = "Question"
UNITS = {"nats": "nats", "bits": "bits per character"}
UP_TO = "Only up to this rung"
UP_TO_HINT = "The rungs above keep their losses to themselves: guess first."
RUNG = "Rung"
RUNGS = "Rungs in the race"
BUDGET = "Budget"
BUDGET_HINT = (
    "The same number of steps for all, or the same compute time, in which a small model takes more steps than"
    " a large one. 1,500 steps use batches of 32 instead of 16 and take minutes."
)
TEXT = "Text"
TEXTS = {"shakespeare": "Tiny Shakespeare", "python": "Python manual", "text": "your own"} | {
    name: f"task: {task.title}" for name, task in TASKS.items()
}
YOURS = "Your text"
YOURS_HINT = (
    "A few thousand characters or more: nine tenths for training, the rest held out for the validation loss."
)
TOO_SHORT = "Paste a text of a few thousand characters under **Text**, and press **Race**."
SELF_TERM = "Why a character attends to itself"
NOTHING_NEW = "No new code: only a setting differs."
NOT_STORED = "The stored race is missing: `python -m engine.experiments races ladder` creates it."
SEEDS = "The same runs with other seeds: initial weights and batches differ. Validation losses, nats."
LOWEST = "This is the lowest rung."
FEW = "Choose at least two rungs."
EXPLAINED = {"parts": "values", "healthy": "their own matrix", "raw_values": "the stream itself"}


def seconds(count: int) -> str:
    return f"{count} s each"


def steps(count: int) -> str:
    return f"{count:,} steps"


def change(field: str, before: object, after: object) -> str:
    """Returns a line of the difference between two rungs."""
    return f"{label_of(field)}: {show(before)} → **{show(after)}**"


def parts_change(before: str, after: str) -> str:
    return f"Values: {EXPLAINED.get(before, before)} → **{EXPLAINED.get(after, after)}**"


def idea_answer(idea: Idea | None, name: str, loss: float | None) -> str:
    """Says what the chosen rung gained."""
    rung = LADDER[name]
    if idea is None:
        result = f": **{loss:.2f} nats**" if loss is not None else ""
        return f"The ladder begins with **{rung.title}**{result}. {rung.idea}"
    below = LADDER[str(rung.below)].title
    numbers = f"{idea.before:,.2f} → **{idea.after:,.2f} nats**"
    seeds = f" with all {idea.seeds} seeds" if idea.seeds > 1 else ""
    result = {
        "better": f"**{rung.title}** improves on *{below}*{seeds}: {numbers}.",
        "worse": f"**{rung.title}** does worse than *{below}*{seeds}: {numbers}.",
        "alike": f"**{rung.title}** does not clearly differ from *{below}*: {numbers}, within the variation"
        " between seeds.",
        "exploded": f"**{rung.title}** diverges, unlike *{below}*: {numbers}.",
    }[idea.verdict]
    return f"{result} {REMARKS.get(name, '')}".rstrip()


SHALLOW = "Without positions or a feed-forward network, depth alone adds nothing in 500 steps."
REMARKS: Mapping[str, str] = {
    "mean": "An average loses track of the last character, the most informative one.",
    "similarity": (
        "Dot products may be negative, and so may their sum: only a softmax turns them into weights."
        " Small initial vectors are about equally similar, so attention stays close to an average."
    ),
    "one-matrix": "A learned matrix makes some characters stand out, but the last one is still diluted.",
    "values": "Values get a matrix of their own; a bigram model is still better.",
    "attention-1": "The residual keeps the current character and adds what attention gathered.",
    "attention-2": SHALLOW,
    "attention-4": SHALLOW,
    "attention-8": SHALLOW,
    "block-1": (
        "Given its weights, attention only averages: its output is linear in the values. The feed-forward"
        " network adds what is not linear, at each position on its own."
    ),
    "block-4": "With feed-forward networks depth pays off: each doubling lowers the loss.",
    "block-8": "With feed-forward networks depth pays off: each doubling lowers the loss.",
    "positions": "Without positions, the model sees a bag of characters, apart from what the mask reveals.",
    "heads": "At width 64, four heads have 16 dimensions each; several heads pay off in larger models.",
    "norm": (
        "Norms make deep models and high learning rates possible; with four blocks and 500 steps they only"
        " slow the start."
    ),
    "modern": "RoPE, RMSNorm, SwiGLU and normalised queries and keys, all at once.",
}

IDEAS = Words(
    see=(
        "Each row is a small model: width 64, context 64 characters, 500 steps, three seeds. Points show the"
        " median validation loss, thin lines the range; dotted lines are count-based n-gram models. The bar"
        " is the chosen rung's gain over the one below it."
    ),
    why=(
        "A Transformer is not a single invention. Each part was added to fix something, and here you can"
        " leave each one out. In these 500 steps depth pays off only with the feed-forward network: compare"
        " *Attention ×8* with *Full block ×8*; over 10,000 steps, attention alone gains from it, too"
        " ([Replication](/ladder?ladder_view=lecture)). Parts that gain little here, norms and heads, may"
        " matter in a large model."
    ),
    attempt=(
        "Choose *Average* and then *Attention ×1*: which part brings the last character back? Then compare"
        " *Full block ×4* with *Positions*, and race the rungs whose gain you doubt."
    ),
    texts=(
        "One lecture's models are trained at width 256 for 10,000 steps: attention ×4 reaches a training loss"
        " of 1.88, full block ×4 1.25 and ×8 0.92. The order is the same here, but the differences are"
        " smaller; [Replication](/ladder?ladder_view=lecture) has its numbers. The lecture also starts from"
        " N(0, 1) vectors, each similar only to itself, so its *raw similarity* is a bigram model again."
    ),
)
RACE = Words(
    see=(
        "The validation loss of models that differ in one choice, or one rung, and train on the same batches."
        " Thick lines are the median runs, thin ones the other seeds. Dotted lines are"
        " unigram, bigram and trigram counts."
    ),
    why=(
        "Below the bigram line a model uses more than the last character. At this size the number of heads"
        " matters little, a wider feed-forward network more. Initialisation and the placement of the norm"
        " decide whether a deep model learns at all."
    ),
    attempt=(
        "Add *Modern parts*. Choose another text. Train three times as long: which curves are still"
        " falling?\n\nChoose the *Norm* questions with 4, 12 and 24 blocks: how many seeds stall, and at what"
        " loss?"
    ),
    texts=(
        "Textbooks say that deep post-norm diverges without warm-up. Here some seeds stall near the unigram"
        " loss instead: of five, none at 4 blocks, two at 12 and three at 24, where even a warm-up does not"
        " always help. At 4 and 12 blocks the other seeds, with or without a warm-up, end within 0.1 nats of"
        " pre-norm's median; at 24, three of six end 0.5 to 0.8 above it.\n\nOne lecture puts the gain from"
        " each modern part at 0.1 to 1%. In the *Modern parts* race, where each is added on its own, the"
        " medians of RMSNorm, SwiGLU and QK-norm agree, within the variation between seeds; RoPE, which has"
        " no table to train, lowers the loss by 11%."
    ),
)


def race_answer(finish: Finish | None) -> str:
    """Says which rung is ahead, and which know more than pairs."""
    if finish is None:
        return BEFORE
    leads = "has the lowest loss" if finish.complete else "leads so far"
    best = finish.order[0]
    others = ", ".join(f"{line.name} {finish.loss(line):.2f}" for line in finish.order[1:])
    behind = f", ahead of {others}" if others else ""
    text = f"**{best.name}** {leads}, **{finish.loss(best):.2f} nats**{behind}.{ended_early(finish)}"
    if finish.bigram is None:
        return text
    above = [line.name for line in finish.below_bigram]
    line = f"the bigram line at {finish.bigram:.2f}"
    if not above:
        return f"{text} None is below {line} yet."
    who = " and ".join(above) if len(above) < 3 else f"{len(above)} of {len(finish.order)}"
    return f"{text} Below {line}: {who}."


CUTS = (
    " A token may be several characters, so nats per token cannot be compared across tokenizers; bits per"
    " character can."
)


LARGE = (
    " With N(0, 1) embedding and output tables and no norms, the first losses are so large that training"
    " does not recover."
)


def compared(name: str, finish: Finish | None) -> str:
    """Names best and worst; says whether that is more than seeds differ by, and who stalls."""
    if finish is None:
        return BEFORE
    unit = UNITS[finish.unit]
    best, worst = finish.best, finish.worst
    how = "" if finish.clear else ", within the variation between seeds"
    text = (
        f"**{best.name}** {'has' if finish.complete else 'so far has'} the lowest loss,"
        f" **{finish.loss(best):.2f} {unit}**, {worst.name} the highest, {finish.loss(worst):,.2f}"
        f" ({f'medians of {finish.seeds} seeds, ' if finish.seeds > 1 else ''}{finish.apart:.2f} apart{how})."
    )
    if name.startswith("norms") and finish.stalled:
        medians = ", ".join(f"{line.name} {finish.loss(line):.2f}" for line in finish.order)
        text = f"{_stalled(finish)} {'Medians' if finish.seeds > 1 else 'Losses'}: {medians}."
    if name == "inits" and finish.loss(worst) > EXPLODED:
        text += LARGE
    return text + ended_early(finish) + (CUTS if name == "cuts" else "")


def _stalled(finish: Finish) -> str:
    """Says which runs learned little more than the frequencies of characters, and with how many seeds."""
    at = f"at the unigram loss ({finish.unigram:.2f})"
    if finish.seeds == 1:
        return f"{' and '.join(f'**{name}**' for name in finish.stalled)} stalled {at}."
    counts = [f"**{name}** stalled with {count}" for name, count in finish.stalled.items()]
    others = "; the others never did" if len(finish.stalled) < len(finish.order) else ""
    return f"{', '.join(counts)} of {finish.seeds} seeds, {at}{others}."


BEFORE = "The leader is named here as soon as two runs have been evaluated."


def ended_early(finish: Finish) -> str:
    """Names the runs that did not finish: their loss is that of fewer steps."""
    who = [f"{line.name} (at step {line.step:,})" for line in finish.early]
    return f" Ended early: {', '.join(who)}." if who else ""


def ladder_alt(losses: Mapping[str, float]) -> str:
    text = ", ".join(f"{LADDER[name].title} {loss:.2f}" for name, loss in losses.items())
    return f"Validation loss by rung, nats per character: {text}."
