"""The day by which tests draw what they try: the same for all workers of a run that goes on past midnight."""

import os
from collections.abc import Callable, Iterable
from datetime import date
from typing import Any

import pytest

DAY = int(os.environ.setdefault("GLASSFORMER_TEST_DAY", str(date.today().toordinal())))


def by_day(cases: Iterable[Any], ids: Callable[[Any], str] = str, days: int = 3) -> list[Any]:
    """Parameters of which `make test` takes another part each day, in so many days all; `make check`, CI and the exhaustive
    tier take all.
    """
    return [
        pytest.param(case, id=ids(case), marks=() if place % days == DAY % days else pytest.mark.another_day)
        for place, case in enumerate(cases)
    ]
