"""The day by which tests draw what they try: the same for all workers of a run that goes on past midnight."""

import os
from datetime import date

DAY = int(os.environ.setdefault("GLASSFORMER_TEST_DAY", str(date.today().toordinal())))
DAYS = 4  # in so many, `make test` has taken every test
