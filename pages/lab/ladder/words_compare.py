"""Sentences of the view that varies one thing."""

from __future__ import annotations

from engine.experiments.ladder_gains import Finish
from pages.lab.ladder.words import BEFORE, ended_early
from ui.page_frame import Words

ASK = "What matters, and what does not?"
QUESTION = "Question"
UNITS = {"nats": "nats", "bits": "bits a letter"}
WORDS = Words(
    see=(
        "The same small training, but for one thing. Curves are losses on text never seen; the dotted lines"
        " are what counting reaches."
    ),
    why=(
        "Most choices matter less than papers make one believe, at least at this size: heads of one width,"
        " or a wider network. What the first weights are and where the norm stands decides how a deep model"
        " begins."
    ),
    attempt=(
        "Go from 4 to 12 to 24 layers with the norm: which one stalls, and where does its curve stay? Race"
        " them with another seed in mind: differences below 0.02 nats are a seed's."
    ),
)
REMARKS = {
    "cuts": (
        " A token is worth several letters, so nats a token say nothing between them: bits a letter divide"
        " by what all have alike."
    ),
}


def answer(name: str, finish: Finish | None) -> str:
    """Names best and worst; says whether that is more than seeds differ by, and who stalls."""
    if finish is None:
        return BEFORE
    unit = UNITS[finish.unit]
    best, worst = finish.best, finish.worst
    when = "Lowest" if finish.complete else "So far lowest"
    text = (
        f"{when}: **{best.name}** with **{finish.loss(best):.2f} {unit}**; highest: {worst.name} with"
        f" {finish.loss(worst):.2f}, {finish.apart:.2f} apart"
    )
    text += "." if finish.clear else ": no more than two seeds may differ by."
    text += ended_early(finish)
    if name.startswith("norms") and finish.unigram is not None:
        who = [line.name for line in finish.stalled]
        text += f" {_stalled(who)} {finish.unigram:.2f}."
    return text + REMARKS.get(name, "")


def _stalled(who: list[str]) -> str:
    if not who:
        return "None is stuck at what counting letters reaches,"
    if len(who) == 1:
        return (
            f"*{who[0]}* stalls, and does not blow up: it has learned little more than how often letters"
            " come,"
        )
    return (
        f"{' and '.join(who)} stall, and do not blow up: they have learned little more than how often"
        " letters come,"
    )
