"""What the tests of the training page share: opening it, a run that has begun, pressing, and reading what it says."""

from dataclasses import replace
from typing import Any

from streamlit.testing.v1 import AppTest

from engine.data import corpora
from runs.state import RunSpec
from tests.pages import helpers
from tests.pages.helpers import clicked as clicked
from tests.pages.helpers import said as sentences
from tests.pages.helpers import unescaped as unescaped
from tests.pages.stage import StageManager
from ui.fields import TRAINABLE

__all__ = ["begun", "changed", "clicked", "opened", "recipe", "sentences", "unescaped"]


def changed(page: AppTest, manager: StageManager, run: str = "run-0", **what: Any) -> AppTest:
    """The page once the run is another."""
    manager.change(run, **what)
    return helpers.ran(page)


def opened(**query: str) -> AppTest:
    return helpers.opened("start/train", **{"data": "python"} | query)


def recipe(preset: str = "fast") -> RunSpec:
    """What the page's button starts with that preset and the manual."""
    chosen, vocabulary = TRAINABLE[preset], corpora.load("python").vocab_size
    assert chosen.train is not None
    return RunSpec(replace(chosen.model, vocab_size=vocabulary), chosen.train, "python", name=preset)


def begun(manager: StageManager, spec: RunSpec | None = None, **state: Any) -> str:
    """The name of a run that was started before the page is opened, in that state."""
    run = manager.start(spec or recipe(), "this-browser")
    manager.change(run, **state)
    return run
