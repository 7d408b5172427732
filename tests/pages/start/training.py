"""What the tests of the training page share: opening it, pressing, and reading what it says."""

from __future__ import annotations

from typing import Any

from streamlit.testing.v1 import AppTest

from tests.pages import helpers
from tests.pages.helpers import clicked as clicked
from tests.pages.helpers import said as sentences
from tests.pages.helpers import unescaped as unescaped
from tests.pages.stage import StageManager

__all__ = ["changed", "clicked", "opened", "sentences", "unescaped"]


def changed(page: AppTest, manager: StageManager, run: str = "run-0", **what: Any) -> AppTest:
    """The page once the run is another."""
    manager.change(run, **what)
    return helpers.ran(page)


def opened(**query: str) -> AppTest:
    return helpers.opened("start/train", **{"data": "python"} | query)
