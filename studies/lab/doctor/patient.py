"""The mystery patient: a number gives everybody the same model, with one bug in it or none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from studies.lab.doctor.checks import CHECKS
from studies.lab.doctor.table import Chart

BUDGET = 30  # minutes of tests
MOST = 999  # the largest number of a patient


@dataclass(frozen=True, eq=False)
class Patient:
    """A patient. `name` is its fault, or "healthy": not to be shown."""

    name: str = field(repr=False)
    chart: Chart = field(repr=False)
    budget: int = BUDGET


def patient_of(number: int, charts: Mapping[str, Chart]) -> Patient:
    """Returns the patient of a number: spread evenly over all charts, in an order that reveals nothing."""
    names = sorted(charts)
    digest = hashlib.sha256(f"patient {number}".encode()).digest()
    name = names[int.from_bytes(digest[:8], "big") % len(names)]
    return Patient(name, charts[name])


def affordable(ordered: Sequence[str], budget: int = BUDGET) -> tuple[str, ...]:
    """Returns the tests of a list that are known and can be paid for, each once, in the order of the list;
    whatever comes after the money is spent is not done.

    >>> affordable(["future", "future", "no such test", "rows"])
    ('future', 'rows')
    """
    done: list[str] = []
    for name in ordered:
        if name in CHECKS and name not in done and cost((*done, name)) <= budget:
            done.append(name)
    return tuple(done)


def cost(tests: Sequence[str]) -> int:
    """Returns the minutes of all tests together."""
    return sum(CHECKS[name].minutes for name in tests)
