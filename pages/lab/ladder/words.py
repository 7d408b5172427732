"""Sentences of the ladder: about an idea, and about a race of rungs."""

from __future__ import annotations

from collections.abc import Mapping

from engine.data.tasks.all import TASKS
from engine.experiments.ladder_gains import Finish, Idea
from engine.experiments.race_table import Standing
from engine.presets.ladder import LADDER
from ui.fields import label_of, show
from ui.page_frame import Words

ASK_IDEAS = "What does each idea buy?"
ASK_RACE = "Which choices matter?"
ASK_RUNGS = "Which rung learns fastest?"
QUESTION = "Question"
UNITS = {"nats": "nats", "bits": "bits per character"}
RUNG = "Rung"
RUNGS = "Rungs in the race"
BUDGET = "Budget"
BUDGET_HINT = (
    "The same number of steps for all, or the same compute time: then a small rung makes more steps than"
    " a large one."
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
NOTHING_NEW = "No new code: only a number differs."
NOT_STORED = "There is no stored race here: `python -m engine.experiments races ladder` makes it."
SEEDS = "The same runs with other seeds: initial weights and batches differ. Validation losses, nats."
LOWEST = "This is the lowest rung."
FEW = "Choose at least two rungs."
EXPLAINED = {"parts": "values", "healthy": "their own matrix", "raw_values": "the stream itself"}


def seconds(count: int) -> str:
    return f"{count} s each"


def change(field: str, before: object, after: object) -> str:
    """Returns a line of the difference between two rungs."""
    return f"{label_of(field)}: {show(before)} → **{show(after)}**"


def parts_change(before: str, after: str) -> str:
    return f"Values: {EXPLAINED.get(before, before)} → **{EXPLAINED.get(after, after)}**"


def idea_answer(idea: Idea | None, name: str, loss: float | None) -> str:
    """Says what the chosen rung gained."""
    rung = LADDER[name]
    if idea is None:
        said = f": **{loss:.2f} nats**" if loss is not None else ""
        return f"The ladder begins with **{rung.title}**{said}. {rung.idea}"
    below = LADDER[str(rung.below)].title
    numbers = f"{idea.before:,.2f} → **{idea.after:,.2f} nats**"
    said = {
        "better": f"**{rung.title}** on top of *{below}*: {numbers}, better{_seeds(idea)}.",
        "worse": f"**{rung.title}** on top of *{below}*: {numbers}, worse{_seeds(idea)}.",
        "alike": f"**{rung.title}** on top of *{below}*: {numbers}, within the variation between seeds.",
        "exploded": f"**{rung.title}** on top of *{below}*: {numbers}: it diverges.",
    }[idea.verdict]
    remark = EXPLODES if idea.verdict == "exploded" else REMARKS.get(name, "")
    return f"{said} {remark}".rstrip()


def _seeds(idea: Idea) -> str:
    return f" with each of {idea.seeds} seeds" if idea.seeds else ""


EXPLODES = (
    "Without a norm the residual stream of eight blocks is so large from the start that training diverges"
    " at this learning rate."
)
REMARKS: Mapping[str, str] = {
    "mean": "An average loses which character came last, the most informative one.",
    "similarity": "Each character mostly attends to itself: it is a bigram model again.",
    "one-matrix": "With one matrix for both Q and K a character still mostly attends to itself.",
    "two-matrices": "It can now attend elsewhere, and so loses the current character.",
    "values": "Still no better than a bigram: only the gathered values are passed on, not the character's own"
    " vector.",
    "attention-1": "A residual keeps the current character and adds what was gathered.",
    "block-1": "The feed-forward network then transforms each position on its own.",
    "positions": "Without them it sees a bag of characters. No idea above the bigram buys as much.",
    "heads": "At width 64, four heads have 16 dimensions each; several heads pay off in larger models.",
    "norm": "Norms buy depth and high learning rates; at four blocks they only slow the start.",
    "modern": "RoPE, RMSNorm, SwiGLU and normalised queries and keys, all at once.",
}

IDEAS = Words(
    see=(
        "Each row is a small model, all trained the same way: width 64, context 64 characters, 300 steps."
        " Its point is the validation loss; dotted lines are count-based n-gram models. The bar is what"
        " the chosen rung gains over the one below it."
    ),
    why=(
        "A Transformer is not a single invention. Each part was added to fix something, and here each can"
        " be left out. Losses are from short runs of a small model: what is small here, norms and heads,"
        " may matter in a large one."
    ),
    attempt=(
        "Choose *Average* and then *Raw similarity*: why is one so bad and the other a bigram again? Then"
        " *Positions*. Then race the ones you doubt."
    ),
)
RACE = Words(
    see=(
        "The validation loss of each model, all trained on the same batches; they differ in one choice,"
        " or one rung. Dotted: unigram, bigram and trigram counts."
    ),
    why=(
        "Below the bigram line a model uses more than the last character. A full block without positions"
        " hardly crosses it in this time; with positions it does.\n\nMost choices matter less than papers"
        " suggest, at least at this size: the number of heads, or a wider network. Initialisation and the"
        " position of the norm decide how a deep model starts."
    ),
    attempt=(
        "Add *Modern parts*. Take another text. Twice the steps: which curves are still falling?\n\nGo"
        " from 4 to 12 to 24 blocks with the norm: which one stalls, and at what loss? Differences below"
        " 0.02 nats are within the variation between seeds."
    ),
)


def race_answer(finish: Finish | None) -> str:
    """Says which rung is ahead, and which know more than pairs."""
    if finish is None:
        return BEFORE
    leads = "wins" if finish.complete else "leads so far"
    ranked = " < ".join(_one(line) for line in finish.order)
    text = f"**{finish.order[0].name}** {leads}; in nats: {ranked}.{ended_early(finish)}"
    if finish.bigram is None:
        return text
    above = [line.name for line in finish.below_bigram]
    line = f"the bigram line at {finish.bigram:.2f}"
    if not above:
        return f"{text} None is below {line} yet."
    who = " and ".join(above) if len(above) < 3 else f"{len(above)} of {len(finish.order)}"
    return f"{text} Below {line}: {who}."


def _one(line: Standing) -> str:
    return f"{line.name} **{line.loss:.2f}**"


CUTS = (
    " A token may be several characters, so nats per token do not compare across tokenizers: bits per"
    " character do."
)


def compared(name: str, finish: Finish | None) -> str:
    """Names best and worst; says whether that is more than seeds differ by, and who stalls."""
    if finish is None:
        return BEFORE
    unit = UNITS[finish.unit]
    best, worst = finish.best, finish.worst
    claim = "The choice matters" if finish.clear else "The choice hardly matters"
    text = (
        f"{claim if finish.complete else 'So far'}: **{best.name}** has the lowest loss,"
        f" **{finish.loss(best):.2f} {unit}**, {worst.name} the highest, {finish.loss(worst):.2f}"
        f" ({finish.apart:.2f} apart{'' if finish.clear else ', within the variation between seeds'})."
    )
    text += ended_early(finish)
    if name.startswith("norms") and finish.unigram is not None:
        who = [line.name for line in finish.stalled]
        text += f" {_stalled(who)} {finish.unigram:.2f}."
    return text + (CUTS if name == "cuts" else "")


def _stalled(who: list[str]) -> str:
    if not who:
        return "None is stuck at the unigram loss,"
    stalls, it = ("stalls", "it has") if len(who) == 1 else ("stall", "they have")
    names = f"*{who[0]}*" if len(who) == 1 else " and ".join(who)
    explode = "does not diverge" if len(who) == 1 else "do not diverge"
    return f"{names} {stalls}, and {explode}: {it} learned little more than character frequencies,"


BEFORE = "The leader is named here as soon as two runs have been evaluated."


def ended_early(finish: Finish) -> str:
    """Names the runs that did not finish: their loss is that of fewer steps."""
    who = [f"{line.name} (at step {line.step:,})" for line in finish.early]
    return f" Ended early: {', '.join(who)}." if who else ""


def ladder_alt(losses: Mapping[str, float]) -> str:
    text = ", ".join(f"{LADDER[name].title} {loss:.2f}" for name, loss in losses.items())
    return f"Validation loss by rung, nats per character: {text}."
