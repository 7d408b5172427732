"""What the tests of the Circuits page share."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.pages.helpers import opened
from tests.pages.inside.models import SMALL

PAGE = "inside/circuits"
CITIZEN = "First Citizen:\nBefore we proceed any further, hear me speak.\n"


def circuit(view: str, model: str = SMALL, **query: str) -> AppTest:
    return opened(PAGE, circuits_view=view, model=model, measure="true", hand="true", **query)
