"""Trainings in turns: each is what it would be alone, and all of them grow together."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest

from engine.training.records import Control, Done, Record, Step
from engine.training.train import train
from runs import race as races
from runs.race import SLICES, Entrant, Race, race
from tests.engine.trainings import CORPUS, MODEL, TRAIN, losses, only

LONG = replace(TRAIN, steps=60, eval_every=0, sample_every=0, snapshot_every=0)
WIDE = replace(MODEL, d_model=48, n_heads=4)


def of(who: int, told: list[tuple[int, Record]]) -> list[Record]:
    return [record for one, record in told if one == who]


class Watch:
    """A clock by which each step takes a sixteenth of a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        self.now += 1 / 16  # exact in binary
        return self.now


def test_in_a_race_each_training_is_what_it_is_alone() -> None:
    entrants = [Entrant(MODEL, TRAIN, CORPUS), Entrant(WIDE, replace(TRAIN, steps=12), CORPUS)]
    dropped = Entrant(replace(MODEL, dropout=0.2), TRAIN, CORPUS)  # its draws must not depend on the others'
    told = list(race([*entrants, dropped], device="cpu"))
    for who, entrant in enumerate([*entrants, dropped]):
        alone = list(train(entrant.model, entrant.train, CORPUS, device="cpu"))
        together = of(who, told)
        assert [type(r) for r in together] == [type(r) for r in alone]
        assert losses(together) == losses(alone)
        assert only(together, Done)[0].reason == "finished"


@pytest.mark.parametrize("turns", [SLICES, 10**9])
def test_all_curves_grow_together(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(races, "SLICES", turns)
    totals = [60, 20, 60]
    entrants = [
        Entrant(MODEL if n == 0 else WIDE, replace(LONG, steps=steps), CORPUS)
        for n, steps in enumerate(totals)
    ]
    done, widest = [0.0, 0.0, 0.0], 0.0
    for who, record in race(entrants, device="cpu"):
        if isinstance(record, Step):
            done[who] = record.step / totals[who]
            widest = max(widest, max(done) - min(done))
    assert done == [1.0, 1.0, 1.0]
    assert widest <= 1 / turns + 1 / min(totals) + 1e-9


def test_a_slow_one_makes_room_and_a_budget_of_seconds_ends_all_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 10,000 steps a slice is 100: curves that stand still for so long look dead."""
    monkeypatch.setattr("engine.training.loop.time", Watch())
    entrants = [Entrant(MODEL, replace(LONG, steps=10_000), CORPUS) for _ in range(2)]
    turns = []
    for who, record in race(entrants, device="cpu"):
        if isinstance(record, Step):
            turns.append(who)
        if len(turns) == 16:
            break
    assert turns == [0] * 4 + [1] * 4 + [0] * 4 + [1] * 4
    monkeypatch.setattr("engine.training.loop.time", Watch())
    timed = replace(LONG, steps=1000, seconds=1.0, schedule="linear", warmup_steps=2, min_lr_fraction=0.0)
    told = list(race([Entrant(MODEL, timed, CORPUS), Entrant(WIDE, timed, CORPUS)], device="cpu"))
    for who in (0, 1):
        steps, (done,) = only(of(who, told), Step), only(of(who, told), Done)
        assert (done.reason, done.step) == ("finished", 16), "16 steps are a second"
        assert "1 s are over, after 16 steps" in done.message
        rates = [step.learning_rate / timed.learning_rate for step in steps]
        assert rates[:2] == pytest.approx([0.5, 1.0])
        # step n begins after (n - 1) / 16 s: what is left of the second is what is left of the rate
        assert rates[2:] == pytest.approx([1 - (n - 1) / 16 for n in range(3, 17)])


def test_one_that_diverges_and_one_that_is_stopped_leave_the_others() -> None:
    control = Control()
    wild = replace(LONG, learning_rate=1e6, grad_clip=0.0, warmup_steps=0)
    calm = Entrant(MODEL, LONG, CORPUS)
    entrants = [Entrant(MODEL, wild, CORPUS), replace(calm, control=control), calm]
    told, asked_at = [], 0
    for who, record in race(entrants, device="cpu"):
        told.append((who, record))
        if who == 2 and isinstance(record, Step) and record.step == 10:
            control.stop, asked_at = True, len(told)
    ends = [only(of(who, told), Done)[0] for who in range(3)]
    assert [end.reason for end in ends] == ["diverged", "stopped", "finished"]
    assert 5 <= ends[1].step <= 15 and ends[2].step == LONG.steps
    assert [who for who, _ in told[asked_at : asked_at + 2]] == [1, 1], (
        "who is stopped takes the last look first"
    )
    alone = list(train(MODEL, LONG, CORPUS, device="cpu"))
    assert losses(of(2, told)) == losses(alone)


def test_who_waits_has_no_turn_and_who_leaves_frees_its_memory() -> None:
    field = Race("cpu")
    for who in (0, 1):
        field.enter(who, Entrant(MODEL, LONG, CORPUS))
    seen = [field.turn(lambda who: who == 0) for _ in range(3) if field.next(1)]
    assert seen == [1, 1, 1]
    assert field.turn(lambda who: True) is None
    (model,) = [weakref.ref(m.model) for m in gc.get_objects() if _is_of(m, field, 1)]
    field.leave(1)
    gc.collect()
    assert model() is None and field.turn() == 0
    field.leave(1)  # a second time is no harm


def _is_of(thing: object, field: Race, who: int) -> bool:
    frame = getattr(field._runners[who].records, "gi_frame", None)
    return frame is not None and frame.f_locals.get("self") is thing
