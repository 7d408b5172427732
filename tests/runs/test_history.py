"""The curve's bounded memory."""

from __future__ import annotations

import threading
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.training.records import Done, Evaluation, Sample, Step
from runs.history import MAX_EVALUATIONS, MAX_SAMPLES, HistoryLog, best


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
    assert log.tokens_per_second() == 0
    log.add(_step(1))
    first = log.view()
    assert log.view() is first
    log.add(Done(1, "finished", "", 0.0))
    assert log.view() is first, "the end is not part of the curve"
    log.add(_step(2))
    assert log.view() is not first and first.steps.tolist() == [1] and log.view().steps.tolist() == [1, 2]
    assert log.tokens_per_second() == pytest.approx(10_000)
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


def test_the_best_of_the_quick_looks_is_not_compared_with_the_best_of_the_complete_ones() -> None:
    looks = [Evaluation(n, 1.0, loss, 0.0, False) for n, loss in enumerate([3.0, 1.8, float("nan"), 2.5])]
    assert best(looks, complete=False) == looks[1] and best(looks, complete=True) is None
    whole = [Evaluation(n, 1.0, loss, 0.0, True) for n, loss in ((4, 2.0), (9, 1.9), (12, float("inf")))]
    assert best([*looks, *whole], complete=True) == whole[1], "the quick look of 1.8 is of another kind"
    assert best([*looks, *whole], complete=False) == looks[1] and best([], complete=False) is None


def test_going_on_keeps_the_complete_evaluation_of_the_step_it_goes_on_from() -> None:
    log = HistoryLog()
    for step, loss, complete in ((0, 3.0, False), (30, 2.0, True), (30, 1.9, False), (40, 1.8, False)):
        log.add(Evaluation(step, 1.0, loss, 0.0, complete))
    assert [(e.step, e.complete) for e in log.view().evaluations] == [(0, False), (30, True), (40, False)]
    log.truncate(30)
    log.add(Evaluation(30, 1.0, 1.7, 0.0, True))
    assert [e.validation_loss for e in log.view().evaluations] == [3.0, 1.7], "of one kind, the later counts"


def test_the_columns_are_the_fields_of_a_step() -> None:
    step, log = Step(3, 1.25, 0.5, 1e-3, 2**40 + 1, 0.25, 1.8), HistoryLog()
    log.add(step)
    log.add(_step(4))
    view = log.view()
    rows = view.rows
    assert rows.dtype.names == tuple(field.name for field in fields(Step))
    columns = ("steps", "losses", "grad_norms", "learning_rates", "tokens", "seconds", "bits")
    for name, column in zip(rows.dtype.names, columns, strict=True):
        assert rows[name][0] == rows.dtype[name].type(getattr(step, name)), name
        np.testing.assert_array_equal(getattr(view, column), rows[name], err_msg=name)
    assert rows["tokens"][0] == 2**40 + 1 and np.isnan(rows["bits"][1])


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
