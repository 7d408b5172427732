"""Numbers as they are written: the same table holds Python and the browser's modules (tests/js/shared.test.js)."""

import json
from pathlib import Path

import pytest

from ui.text import numbers

TABLE = json.loads((Path(__file__).parents[1] / "numbers.json").read_text("utf-8"))
WRITERS = {"flop": numbers.flop, "memory": numbers.gigabytes, "scientific": numbers.scientific}


@pytest.mark.parametrize("name", TABLE)
def test_numbers_are_written_as_in_the_table(name: str) -> None:
    assert [WRITERS[name](value) for value, _ in TABLE[name]] == [written for _, written in TABLE[name]]
