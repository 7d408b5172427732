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
ASK_RACE = "What matters, and what does not?"
ASK_RUNGS = "Which rung learns fastest?"
QUESTION = "Question"
UNITS = {"nats": "nats", "bits": "bits per character"}
RUNG = "Rung"
RUNGS = "Rungs in the race"
BUDGET = "Budget"
BUDGET_HINT = (
    "The same steps for all, or the same seconds of computing: then a small rung does more steps than a large"
    " one."
)
TEXT = "Text"
TEXTS = {"shakespeare": "Tiny Shakespeare", "python": "Python manual", "text": "your own"} | {
    name: f"task: {task.title}" for name, task in TASKS.items()
}
YOURS = "Your text"
YOURS_HINT = (
    "Some thousand characters or more: nine tenths are learned from, the rest is what the loss is measured"
    " on."
)
TOO_SHORT = "Paste a text of some thousand characters under **Text**, and press **Race**."
SELF_TERM = "Why a character attends to itself"
NOTHING_NEW = "No new line: only a number differs."
NOT_STORED = "There is no stored race here: `python -m engine.experiments races ladder` makes it."
SEEDS = "The same runs with other seeds: first weights and batches differ. Losses on all held-out text, nats."
LOWEST = "The lowest rung: nothing lies below it."
FEW = "Choose at least two rungs."
EXPLAINED = {"parts": "values", "healthy": "a matrix of their own", "raw_values": "the stream itself"}


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
        return f"**{rung.title}** is where the ladder begins{said}. {rung.idea}"
    below = LADDER[str(rung.below)].title
    numbers = f"{idea.before:,.2f} → **{idea.after:,.2f} nats**"
    said = {
        "better": f"**{rung.title}** on top of *{below}*: {numbers}, better{_seeds(idea)}.",
        "worse": f"**{rung.title}** on top of *{below}*: {numbers}, worse{_seeds(idea)}.",
        "alike": f"**{rung.title}** on top of *{below}*: {numbers}, no more than two seeds may differ by.",
        "exploded": f"**{rung.title}** on top of *{below}*: {numbers}, it explodes.",
    }[idea.verdict]
    remark = EXPLODES if idea.verdict == "exploded" else REMARKS.get(name, "")
    return f"{said} {remark}".rstrip()


def _seeds(idea: Idea) -> str:
    return f" with each of {idea.seeds} seeds" if idea.seeds else ""


EXPLODES = (
    "Without a norm the stream of eight layers is so large from the start that this learning rate throws it"
    " off."
)
REMARKS: Mapping[str, str] = {
    "mean": "An average forgets which character came last, and that one says most.",
    "similarity": "Every character mostly finds itself: it is the bigram model again.",
    "one-matrix": "With one matrix for both sides a character still mostly finds itself.",
    "two-matrices": "It may look elsewhere now, and so no longer keeps its last character.",
    "values": "Still no better than the table: only what was gathered goes on, not the character's own"
    " vector.",
    "attention-1": "A residual keeps the last character and adds what was gathered to it.",
    "block-1": "The feed-forward network then transforms each position on its own.",
    "positions": "Without them it sees a bag of characters. No idea above the bigram model buys as much.",
    "heads": "At 64 numbers, four heads have 16 each; several heads pay in larger models.",
    "norm": "Norms buy depth and high rates; at four layers they only slow the start.",
    "modern": "RoPE, RMSNorm, SwiGLU and normed queries and keys, all at once.",
}

IDEAS = Words(
    see=(
        "Each row is a small model, trained alike: 64 numbers per character, 64 characters at once, 300"
        " steps. Its"
        " point is the loss on held-out text; dotted lines are what counting reaches. The bar is"
        " what the chosen rung adds to the one it stands on."
    ),
    why=(
        "A Transformer is no single invention. Each part was added to fix something, and here each can be"
        " left out. Losses are those of a short training of a small model: what is small here, norms and"
        " heads, may be large in a large one."
    ),
    attempt=(
        "Choose *Average* and then *Raw similarity*: why is one so bad and the other the table again? Then"
        " *Positions*. Then race the ones you doubt."
    ),
)
RACE = Words(
    see=(
        "A curve for each model, on text that it never learned from, all on the same batches; but for one"
        " thing, or one rung, all is alike. Dotted: the unigram, bigram and trigram baselines."
    ),
    why=(
        "The bigram baseline is where a model begins that sees more than the last character. A full"
        " block without positions hardly crosses it in this time; with positions it does.\n\nMost choices"
        " matter less than papers make one believe, at least at this size: heads of one width, or a wider"
        " network. What the first weights are and where the norm stands decides how a deep model begins."
    ),
    attempt=(
        "Add *Modern parts*. Take another text. Twice the steps: which curves are still falling?\n\nGo from 4"
        " to 12 to 24 layers with the norm: which one stalls, and where does its curve stay? Race them with"
        " another seed in mind: differences below 0.02 nats are a seed's."
    ),
)


def race_answer(finish: Finish | None) -> str:
    """Says which rung is ahead, and which know more than pairs."""
    if finish is None:
        return BEFORE
    first = "At the end" if finish.complete else "So far"
    ranked = " < ".join(_one(line) for line in finish.order)
    text = f"{first}, in nats: {ranked}.{ended_early(finish)}"
    if finish.bigram is None:
        return text
    above = [line.name for line in finish.below_bigram]
    line = f"the line of pairs at {finish.bigram:.2f}"
    if not above:
        return f"{text} None is below {line} yet."
    who = " and ".join(above) if len(above) < 3 else f"{len(above)} of {len(finish.order)}"
    return f"{text} Below {line}: {who}."


def _one(line: Standing) -> str:
    return f"{line.name} **{line.loss:.2f}**"


CUTS = (
    " A token is worth several characters, so nats per token say nothing between them: bits per character"
    " divide"
    " by what all have alike."
)


def compared(name: str, finish: Finish | None) -> str:
    """Names best and worst; says whether that is more than seeds differ by, and who stalls."""
    if finish is None:
        return BEFORE
    unit = UNITS[finish.unit]
    best, worst = finish.best, finish.worst
    when = "" if finish.complete else "So far: "
    if finish.clear:
        text = (
            f"{when}**{best.name}** is best with **{finish.loss(best):.2f} {unit}**, {finish.apart:.2f} below"
            f" the worst, {worst.name} ({finish.loss(worst):.2f})."
        )
    else:
        text = (
            f"{when}The choice hardly matters: from {best.name} (**{finish.loss(best):.2f} {unit}**) to"
            f" {worst.name} the loss moves by {finish.apart:.2f}, no more than two seeds may differ by."
        )
    text += ended_early(finish)
    if name.startswith("norms") and finish.unigram is not None:
        who = [line.name for line in finish.stalled]
        text += f" {_stalled(who)} {finish.unigram:.2f}."
    return text + (CUTS if name == "cuts" else "")


def _stalled(who: list[str]) -> str:
    if not who:
        return "None is stuck at the unigram baseline,"
    stalls, it = ("stalls", "it has") if len(who) == 1 else ("stall", "they have")
    names = f"*{who[0]}*" if len(who) == 1 else " and ".join(who)
    explode = "does not blow up" if len(who) == 1 else "do not blow up"
    return f"{names} {stalls}, and {explode}: {it} learned little more than how often characters come,"


BEFORE = "As soon as two runs have learned a little, this line says which is ahead."


def ended_early(finish: Finish) -> str:
    """Names the runs that did not finish: their loss is that of fewer steps."""
    who = [f"{line.name} (at step {line.step:,})" for line in finish.early]
    return f" Ended early: {', '.join(who)}." if who else ""


def ladder_alt(losses: Mapping[str, float]) -> str:
    text = ", ".join(f"{LADDER[name].title} {loss:.2f}" for name, loss in losses.items())
    return f"Loss on held-out text by rung, nats per character: {text}."
