"""Numbers as they are written: the same table holds Python and the browser's modules (tests/js/shared.test.js)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ui.text import numbers

TABLE = json.loads((Path(__file__).parents[1] / "numbers.json").read_text("utf-8"))
WRITERS: dict[str, Callable[[Any], str]] = {
    "flop": numbers.flop,
    "memory": numbers.gigabytes,
    "minus": numbers.minus,
    "percent": lambda share: numbers.percent(share, 1),
    "scientific": numbers.scientific,
    "whole": "{:,}".format,
}


@pytest.mark.parametrize("name", TABLE)
def test_numbers_are_written_as_in_the_table(name: str) -> None:
    assert [WRITERS[name](value) for value, _ in TABLE[name]] == [written for _, written in TABLE[name]]
