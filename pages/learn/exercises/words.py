"""Sentences (Markdown) of the page of exercises, from values that they are given."""

from __future__ import annotations

from collections.abc import Sequence

from engine.lab.exercises.exercise import Exercise, Verdict
from engine.lab.exercises.forms import Order
from ui.page_frame import Words

SEED_HINT = "Another seed gives new numbers."
SHOW, SHOW_HINT = "Show me", "Shows the solution, step by step."
NEXT = "Next exercise"
SOLVE = "Solve"
SHEET_TITLE = "Transformers on paper"
DOWNLOAD_SHEET, DOWNLOAD_NOTEBOOK = "Download the worksheet", "Download the notebook"
PRACTISE_QUESTION = "Can you work it out?"
PRACTISE = Words(
    see=(
        "An exercise with its own numbers; another seed draws new ones. A wrong answer gets a hint that names"
        " the mistake, if it is a common one. Each dot is an exercise; filled dots are solved."
    ),
    why=(
        "Once you have computed one head by hand, you know what a model does billions of times. Numbers are"
        " chosen so that no two common mistakes give the same result, so each hint fits its mistake."
    ),
    attempt=(
        "Forget $\\sqrt{d_k}$ on purpose, or mask after the softmax, and read the hint. Share a set by its"
        " link: it always has the same numbers. Your progress is kept only in your browser."
    ),
)
CODE_QUESTION = "Can you write it yourself?"
CODE = Words(
    see=(
        "Functions that the notebook asks you to complete. Below each are checks whose messages say what is"
        " wrong. A solution is folded away at the end of the notebook."
    ),
    why=(
        "Your code is checked against the engine's own numbers, the ones that every page shows. It runs on"
        " your machine, never on this server."
    ),
    attempt=(
        "Open the notebook in Jupyter, VS Code or Colab and run its first cell: it takes the Glassformer"
        " folder around it or the installed package, or installs one."
    ),
)
SHEET_QUESTION = "Which exercises do you want on paper?"
SHEET = Words(
    see=(
        "The exercises of the worksheet, in order. The file is one HTML page: print it from any browser. The"
        " questions come first, with a line for each answer; worked solutions start on a new page."
    ),
    why=(
        "The same sets, seed and number of exercises always give the same worksheet. With a different"
        " seed for each row of seats, neighbours get different numbers."
    ),
    attempt=(
        "Print two seeds, so neighbours have different numbers. Type a title of your own: it appears on both"
        " parts."
    ),
)


def your_answer(ask: str) -> str:
    return f"Your answer: {ask}"


def see(page: str) -> str:
    return f"See it: {page}"


def standing(exercise: Exercise, number: int, count: int) -> str:
    """Returns the sentence before there is an answer."""
    return f"Exercise **{number}** of {count} in this set, with numbers from seed {exercise.seed}."


def another(exercise: Exercise) -> str:
    """Says what a new seed brings: a proof has no numbers."""
    return "New order" if isinstance(exercise.form, Order) else "New numbers"


def judged(verdict: Verdict) -> str:
    """Says how an answer was judged."""
    return f"**{'Right' if verdict.right else 'Not yet'}**: {lowered(verdict)}"


def lowered(verdict: Verdict) -> str:
    return "that is correct." if verdict.right else verdict.hint


def code_answer(title: str, functions: int, checks: int) -> str:
    return (
        f"*{title}*: **{functions}** {'piece' if functions == 1 else 'pieces'} of code to write, checked by"
        f" {checks} cells."
    )


def sheet_answer(exercises: Sequence[Exercise], sets: int, seed: int) -> str:
    if not exercises:
        return "Choose a set of exercises."
    return (
        f"**{len(exercises)}** {'exercise' if len(exercises) == 1 else 'exercises'} from {sets}"
        f" {'set' if sets == 1 else 'sets'}, with numbers from seed {seed}; the answers are at the end."
    )
