"""Sentences (Markdown) of the page of exercises, from values that they are given."""

from __future__ import annotations

from collections.abc import Sequence

from engine.lab.exercises.exercise import Exercise, Verdict
from engine.lab.exercises.forms import Order
from ui.page_frame import Words

PRACTISE_QUESTION = "Can you work it out?"
PRACTISE = Words(
    see=(
        "An exercise with numbers of its own: another seed draws others. What is wrong gets a hint that names"
        " the mistake, if it is one that many people make. Each dot is an exercise; a full one is solved."
    ),
    why=(
        "Whoever has done one head with a pencil knows what a model does billions of times. Numbers are drawn"
        " so that no two mistakes give the same result: a hint means what it says."
    ),
    attempt=(
        "Forget $\\sqrt{d_k}$ on purpose, or mask after the softmax, and read the hint. A set is shared"
        " by its"
        " link: everyone who opens it gets the same numbers. The dots are stored only in your browser."
    ),
)
CODE_QUESTION = "Can you write it yourself?"
CODE = Words(
    see=(
        "What the notebook asks for: functions that you fill in. Below each stand checks whose messages say"
        " what is wrong. One solution is folded at the end of the notebook."
    ),
    why=(
        "What you write meets the engine's own numbers, the same that every page shows. Your code runs"
        " on your"
        " machine, never on this server."
    ),
    attempt=(
        "Put the notebook into the folder of Glassformer, install Jupyter beside it, and run the first cell:"
        " it finds the engine. In VS Code a notebook opens as it is."
    ),
)
SHEET_QUESTION = "Which exercises do you want on paper?"
SHEET = Words(
    see=(
        "The exercises of the sheet, in their order. The file is one HTML page: print it from any browser."
        " The questions come first, with a line for each answer; the answers with their ways start on a new"
        " page."
    ),
    why=(
        "The same sets, the same seed and the same number give the same sheet, today and next year. Another"
        " seed gives each row of seats its own numbers."
    ),
    attempt="Print two seeds for neighbours. Type a title of your own: it stands on both parts.",
)


def standing(exercise: Exercise, place: int, count: int) -> str:
    """Returns the sentence before there is an answer."""
    return f"Exercise **{place}** of {count} in this set, with the numbers of seed {exercise.seed}."


def another(exercise: Exercise) -> str:
    """Says what a new seed brings: a proof has no numbers."""
    return "New order" if isinstance(exercise.form, Order) else "New numbers"


def judged(verdict: Verdict) -> str:
    """Says how an answer was judged."""
    return f"**{'Right' if verdict.right else 'Not yet'}**: {lowered(verdict)}"


def lowered(verdict: Verdict) -> str:
    return "that is it." if verdict.right else verdict.hint


def code_answer(title: str, functions: int, checks: int) -> str:
    return (
        f"*{title}*: **{functions}** {'piece' if functions == 1 else 'pieces'} of code to write,"
        f" {checks} cells that check them."
    )


def sheet_answer(exercises: Sequence[Exercise], sets: int, seed: int) -> str:
    if not exercises:
        return "Choose at least **1** set."
    return (
        f"**{len(exercises)}** {'exercise' if len(exercises) == 1 else 'exercises'} from {sets}"
        f" {'set' if sets == 1 else 'sets'}, with the numbers of seed {seed}; the answers are at the end."
    )
