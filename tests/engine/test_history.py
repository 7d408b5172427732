"""The curve's bounded memory."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.service.history import MAX_EVALUATIONS, MAX_SAMPLES, HistoryLog
from engine.training.records import Done, Evaluation, Sample, Step


def _step(n: int, loss: float = 1.0) -> Step:
    return Step(n, loss, 0.5, 1e-3, 100 * n, 0.01 * n)


@given(count=st.integers(1, 500), limit=st.integers(2, 20))
def test_bounded_and_evenly_spaced_with_the_first_and_the_newest(count: int, limit: int) -> None:
    log = HistoryLog(limit)
    for n in range(1, count + 1):
        log.add(_step(n, loss=float(n)))
        view = log.view()
        assert len(view.steps) <= limit + 1 and view.steps[0] == 1 and view.steps[-1] == n
    gaps = np.diff(view.steps)
    assert len(set(gaps[:-1].tolist())) <= 1 and (gaps > 0).all() and (len(gaps) < 2 or gaps[-1] <= gaps[0])
    np.testing.assert_array_equal(view.losses, view.steps)
    np.testing.assert_array_equal(view.tokens, 100 * view.steps)


@given(count=st.integers(1, 300), back=st.integers(0, 300), limit=st.integers(2, 20))
def test_going_on_from_an_earlier_step_writes_the_rest_anew(count: int, back: int, limit: int) -> None:
    log = HistoryLog(limit)
    for n in range(1, count + 1):
        log.add(_step(n))
        log.add(Evaluation(n, 1.0, 1.0, 0.0, False))
    log.truncate(min(back, count))
    assert log.view().steps.max(initial=0) <= back and all(e.step <= back for e in log.view().evaluations)
    for n in range(min(back, count) + 1, count + 10):
        log.add(_step(n, loss=2.0))
    view = log.view()
    assert (np.diff(view.steps) > 0).all() and view.steps[-1] == count + 9 and view.steps[0] == 1
    assert (view.losses[view.steps > back] == 2.0).all()


def test_the_view_is_made_once_and_cannot_be_changed() -> None:
    log = HistoryLog()
    log.add(_step(1))
    first = log.view()
    assert log.view() is first
    log.add(Done(1, "finished", "", 0.0))
    assert log.view() is first, "the end is not part of the curve"
    log.add(_step(2))
    assert log.view() is not first and first.steps.tolist() == [1] and log.view().steps.tolist() == [1, 2]
    with pytest.raises(ValueError):
        first.losses[0] = 3.0


def test_looks_are_bounded_and_repeated_ones_count_once() -> None:
    log = HistoryLog()
    for n in range(5000):
        log.add(Evaluation(n, 1.0, 2.0, 0.0, False))
        log.add(Sample(n, "", str(n)))
    log.add(Sample(4999, "", "again"))
    view = log.view()
    assert len(view.evaluations) <= MAX_EVALUATIONS and len(view.samples) <= MAX_SAMPLES
    assert view.samples[0].step == 0 and view.samples[-1].text == "again" and view.samples[-2].step < 4999


def test_speed_and_best_loss() -> None:
    log = HistoryLog()
    assert log.tokens_per_second() == 0 and log.best_validation() is None
    for n in range(1, 1001):
        log.add(_step(n))
    assert log.tokens_per_second() == pytest.approx(10_000)
    for n, loss in enumerate([3.0, 2.0, float("nan"), 2.5]):
        log.add(Evaluation(n, 1.0, loss, 0.0, False))
    assert log.best_validation() == 2.0


def test_losses_beyond_float32_are_infinite() -> None:
    log = HistoryLog()
    log.add(_step(1, loss=1e300))
    assert np.isinf(log.view().losses[0])


def test_one_writes_while_others_read() -> None:
    log, wrong = HistoryLog(50), []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            view = log.view()
            if not (view.tokens == 100 * view.steps).all() or (np.diff(view.steps) <= 0).any():
                wrong.append(view)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for n in range(1, 5000):
        log.add(_step(n))
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong
