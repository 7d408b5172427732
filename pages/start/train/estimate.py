"""How long a training will take, by the best guide there is: an earlier run, or a short measurement."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from engine.lab.faults import parts_of
from engine.service.profiles import Profile
from engine.service.state import RunSpec, RunView
from engine.training import estimate as arithmetic
from pages.start.train import words
from ui.text.numbers import duration


@dataclass(frozen=True)
class Estimate:
    seconds: float
    source: str  # how it was estimated, for the page

    @property
    def words(self) -> str:
        return duration(self.seconds)


def estimate(
    spec: RunSpec, validation_tokens: int, profile: Profile, last: RunView | None
) -> Estimate | None:
    """Returns the seconds from pressing Train to the end. `last` is this owner's last run, whose speed is the
    best guide.

    None before the first run on a GPU: its speed is not measured in the server, which leaves it to the
    trainings.
    """
    train, parts = spec.train, parts_of(spec.parts)
    if last is not None and last.step and last.seconds > 0:
        before = last.spec
        model, encoder = before.kind.cost_stacks(before.model, before.corpus)
        pace = arithmetic.Pace(model, before.train, last.step, last.seconds, parts_of(before.parts), encoder)
        rate, source = pace.work_a_second, words.FROM_LAST
    else:
        measured = _cpu_rate(profile.threads_per_run, train.precision)
        if measured is None:
            return None
        rate, source = measured, words.FROM_MACHINE
    return Estimate(spec.kind.seconds(spec.model, train, spec.corpus, validation_tokens, rate, parts), source)


@st.cache_resource(show_spinner=False)
def _cpu_rate(threads: int, precision: str) -> float | None:
    """Measured once for each server."""
    return arithmetic.cpu_rate(threads, precision)
