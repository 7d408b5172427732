"""The day by which tests draw what they try: the same for all workers of a run that goes on past midnight."""

import os
from datetime import date

DAY = int(os.environ.setdefault("GLASSFORMER_TEST_DAY", str(date.today().toordinal())))
DAYS = 4  # in so many, `make test` has taken every test
WEEK = 7  # in so many days, `make test-all` has taken every case of its tests that have many
WHOLE = bool(os.environ.get("GLASSFORMER_TEST_WHOLE"))  # it takes all of them at once


def of_today(case: int) -> bool:
    """True if `make test-all` takes the case of that number today."""
    return WHOLE or case % WEEK == DAY % WEEK
