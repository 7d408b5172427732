"""An exercise is the same wherever its link is opened. It stands apart since it starts a process: a file that does cannot
judge a mutant (tests/judging.py).
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

from studies.exercises.catalogue import TASKS


def test_the_same_seed_makes_the_same_exercise_in_every_process() -> None:
    """Sets of words have an order of their own in each process: a link must not show another one every time."""
    told = (
        "from studies.exercises.catalogue import TASKS, make\n"
        "made = [make(task, 3) for task in TASKS]\n"
        "for one in made: print(repr((one.id, one.statement, getattr(one.form, 'options', ()), one.steps)))"
    )
    other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    env = os.environ | {"PYTHONHASHSEED": other}
    there = subprocess.check_output(
        [sys.executable, "-c", told], env=env, cwd=Path(__file__).parents[3], text=True
    )
    here = io.StringIO()
    with contextlib.redirect_stdout(here):
        exec(told, {})
    assert there.count("\n") == len(TASKS) and there == here.getvalue()
