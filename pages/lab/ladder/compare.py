"""The view "Compare": one thing varied, everything else alike; raced on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from engine.errors import CorpusError
from engine.experiments.lab_races import question_specs
from engine.experiments.ladder_gains import finish
from engine.experiments.race_table import standings
from engine.measure.tasks.text_statistics import baselines
from engine.presets.races import QUESTIONS
from engine.service.state import RunView
from pages.lab.ladder import words_compare as words
from pages.lab.ladder.shared import stored
from ui import session, widgets
from ui.race import show_race

KEY = "ladder_question"


def draw_compare() -> None:
    """Draws a list of questions; the race that answers it."""
    titles = {name: question.asks for name, question in QUESTIONS.items()}
    name = widgets.select(words.QUESTION, titles, KEY, kind="list", hidden=True, width=560)
    question = QUESTIONS[name]
    cuts = {c.train.tokenizer for c in question.contestants}

    def say(views: Sequence[RunView]) -> str:
        unit: Literal["nats", "bits"] = "bits" if len(cuts) > 1 else "nats"
        return words.answer(name, finish(standings(views), unit, _lines(unit == "bits")))

    show_race(
        f"question_{name}", question.title, question_specs(name), say=say, stored=stored(name), height=350
    )


def _lines(bits: bool) -> Mapping[str, float]:
    """Returns the losses of counting; nothing where the text is not here."""
    try:
        return dict(baselines(session.corpus("shakespeare"), bits))
    except CorpusError:
        return {}
