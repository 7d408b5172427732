"""What the tests of the training page share: opening it, pressing, and reading what it says."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.pages import helpers
from tests.pages.helpers import clicked as clicked
from tests.pages.helpers import said as sentences
from tests.pages.helpers import unescaped as unescaped

__all__ = ["clicked", "opened", "sentences", "unescaped"]


def opened(**query: str) -> AppTest:
    return helpers.opened("start/train", **{"data": "python"} | query)
