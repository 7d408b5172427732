"""One check: a small experiment, one number, its limits, and the sentences about it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from engine.data.progress import Progress, Steps
from studies.lab.doctor.case import Case, NotApplicable

Verdict = Literal["pass", "fail", "not applicable"]
Need = Literal["model", "start", "text", "training"]
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Measurement:
    """The result of an experiment: the number that is judged, and other facts for its sentence."""

    number: float
    facts: Mapping[str, str | int | float] = field(default_factory=dict)


Experiment = Callable[[Case], Measurement]


@dataclass(frozen=True)
class Check:
    """A check. `low` to `high` is the range of a healthy model, `reason` explains the limit. `passed` and
    `failed` are sentences (Markdown) into which `number` and the facts are put.

    `needs` is the most that it asks for: the model alone, its start (untrained), its text, or the course of
    its training. `minutes` are what somebody needs for it by hand; `slow` ones are not done unasked.
    """

    name: str
    needs: Need
    measure: Experiment
    low: float
    high: float
    written: str  # how the number is shown
    minutes: int
    slow: bool
    title: str
    question: str
    reason: str
    passed: str
    failed: str

    @property
    def slack(self) -> bool:
        """True if the limit is 0 but for rounding."""
        return self.low == 0.0 and self.high <= 1e-3

    def judge(self, measurement: Measurement, seconds: float = 0.0) -> Finding:
        """Returns the finding of an experiment."""
        fine = self.low <= measurement.number <= self.high  # no number at all is not fine
        sentence = (self.passed if fine else self.failed).format(
            number=shown(measurement.number, self.written), **measurement.facts
        )
        return Finding(self.name, "pass" if fine else "fail", measurement.number, sentence, seconds)


@dataclass(frozen=True)
class Finding:
    """The result of a check. `number` is None where it does not apply; `sentence` says why."""

    check: str
    verdict: Verdict
    number: float | None
    sentence: str
    seconds: float = 0.0


def shown(number: float, written: str) -> str:
    """Formats a number for a sentence.

    >>> shown(0.0, "{:.1e}"), shown(-1.256, "{:.2f}"), shown(math.inf, "{:.1f}"), shown(8.7e-07, "{:.2g}")
    ('0', '−1.26', '∞', '8.7 × 10⁻⁷')
    """
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "∞"
    if number == 0:
        return "0"
    figures, _, power = written.format(number).partition("e")
    figures = figures.replace("-", "−")
    return f"{figures} × 10{str(int(power)).translate(RAISED)}" if power else figures


def run_check(check: Check, case: Case) -> Finding:
    """Runs a check on a case."""
    started = time.perf_counter()
    try:
        measurement = check.measure(case)
    except NotApplicable as why:
        return Finding(check.name, "not applicable", None, str(why), time.perf_counter() - started)
    return check.judge(measurement, time.perf_counter() - started)


def run_checks(checks: Sequence[Check], case: Case) -> Steps[tuple[Finding, ...]]:
    """Runs checks one after the other; the progress, before the first and after each, has the findings."""
    findings: tuple[Finding, ...] = ()
    yield Progress(0, len(checks), findings)
    for check in checks:
        findings = (*findings, run_check(check, case))
        yield Progress(len(findings), len(checks), findings)
    return findings


__all__ = ["Case", "Check", "Finding", "Measurement", "NotApplicable", "run_check", "run_checks", "shown"]
