"""The numbers of a race: its table, its curves, its texts; and a race that is stored and read again."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.config import ModelConfig, TrainConfig
from engine.data.corpora import from_text
from engine.errors import CheckpointError
from engine.model import build
from engine.training.records import Evaluation, Sample, Step
from runs.state import RunSpec, RunView
from studies.experiments import race_table
from studies.experiments.stored_races import load_race, run_race
from tests.engine.cases import for_each
from tests.pages.stage import view_of
from tests.runs.running import MODEL, SHORT, TEXT, spec

TWO = ModelConfig(vocab_size=29, context=8, d_model=16, n_layers=2, n_heads=2)
TRAIN = TrainConfig(steps=200, batch_size=3)


def run(name: str = "a", **rest: object) -> RunView:
    return view_of(RunSpec(TWO, TRAIN, "python", name=name), name, "finished", **rest)  # type: ignore[arg-type]


def test_a_line_of_the_table_by_hand() -> None:
    """view_of: 40 steps, ends at 2.1 on the whole validation split and 2.05 on the training split."""
    found = race_table.standing(run())
    assert (found.loss, found.training_loss, found.complete) == (2.1, 2.05, True)
    assert found.gap == pytest.approx(0.05)
    assert found.perplexity == pytest.approx(math.exp(2.1)) and found.bits == pytest.approx(2.1 / math.log(2))
    assert found.parameters == sum(p.numel() for p in build(TWO).parameters())
    assert found.tokens == 40 * 3 * 8 and found.seconds == pytest.approx(0.8)
    # products of one token, 2 operations a weight: q, k, v, o of 16 x 16 and two of 16 x 64 in each of two
    # layers, scores and sums with 8 keys, the unembedding; three times as many for training
    forward = 2 * (2 * (4 * 16 * 16 + 2 * 16 * 64) + 2 * (2 * 8 * 16) + 16 * 29)
    assert found.flops == 3 * forward * found.tokens


@for_each("along, each", [("steps", 1.0), ("tokens", 24.0), ("seconds", 0.02), ("flops", None)])
def test_curves_against_each_axis(along: race_table.Along, each: float | None) -> None:
    view = run()
    each = 24.0 * race_table.flops_a_token(view) if each is None else each
    curves = race_table.run_curves(view, along)
    assert curves.at.tolist() == pytest.approx([each * n for n in range(1, 41)])
    assert curves.losses.tolist() == pytest.approx([2 + 2 / n for n in range(1, 41)])
    assert curves.looked_at.tolist() == [0.0] and curves.looked.tolist() == [4.2]
    assert curves.end_at.tolist() == pytest.approx([40 * each]) and curves.end.tolist() == [2.1]
    assert curves.newest == pytest.approx((40 * each, 2.1))
    assert race_table.end_of([view, run("b", steps=10)], along) == pytest.approx(200 * each)
    bits = race_table.run_curves(view, along, "bits", points=5)
    some = (1, 10, 20, 30, 40)
    assert bits.at.tolist() == pytest.approx([each * n for n in some])
    assert bits.losses.tolist() == pytest.approx([(2 + 2 / n) / math.log(2) for n in some])
    assert [*bits.looked, *bits.end] == pytest.approx([4.2 / math.log(2), 2.1 / math.log(2)])
    midway = replace(view.history, evaluations=(Evaluation(20, 2.0, 2.9, 0.4, False),))
    assert race_table.run_curves(replace(view, history=midway), along).looked_at == pytest.approx([20 * each])
    # where the clock is the budget: 40 steps in 0.8 of 2 s are 100 at this pace, whatever the limit of steps says
    timed = view_of(
        RunSpec(TWO, replace(TRAIN, steps=5_000, seconds=2.0), "python", name="a"), "a", "running"
    )
    assert race_table.end_of([timed], along) == pytest.approx(100 * each)
    unborn = replace(timed, step=0, seconds=0.0)
    assert race_table.end_of([unborn], along) == (2.0 if along == "seconds" else 0.0)


def test_a_curve_ends_at_the_loss_that_the_table_has() -> None:
    whole = Evaluation(40, 2.0, 2.2, 0.8, True)
    twice = (Evaluation(20, 2.0, 2.9, 0.4, False), Evaluation(40, 2.0, 2.3, 0.8, False), whole)
    for looks, newest, loss in (((), None, math.nan), (twice, (40.0, 2.2), 2.2)):
        view = replace(run(), history=replace(run().history, evaluations=looks))
        line = race_table.standing(view)
        assert race_table.run_curves(view, "steps").newest == newest
        assert line.loss == pytest.approx(loss, nan_ok=True) and math.isnan(line.bits)
        assert line.complete == bool(looks)
    every = (Evaluation(0, 4.0, 4.1, 0.0, True), whole)
    curves = race_table.run_curves(replace(run(), history=replace(run().history, evaluations=every)), "steps")
    assert curves.looked.tolist() == [4.1, 2.2] and not len(curves.end), "one curve"


def test_what_is_left_of_a_race_is_the_sum_of_its_turns() -> None:
    """40 of 200 steps in 0.8 s: 3.2 s of 4 are left. Who had no turn yet needs as long as the others."""
    going = [replace(run(name), status="running") for name in "ab"]
    waiting = [replace(one, step=0, seconds=0.0) for one in going]
    assert race_table.left([*going, run("c")]) == pytest.approx(2 * 3.2)
    assert race_table.left([going[0], *waiting]) == pytest.approx(3.2 + 2 * 4.0)
    assert race_table.left(waiting) == 0.0


def test_texts_are_those_of_the_last_step_that_all_have() -> None:
    def wrote(name: str, *steps: int) -> RunView:
        samples = tuple(Sample(step, "\n", f"{name}{step}") for step in steps)
        return replace(run(name), history=replace(run().history, samples=samples))

    found = race_table.written([wrote("a", 0, 50, 100), wrote("b", 0, 50), wrote("c", 0, 50, 75)])
    assert [(name, sample.text) for name, sample in found] == [("a", "a50"), ("b", "b50"), ("c", "c50")]
    apart = race_table.written([wrote("a", 100), wrote("b", 50), wrote("c")])
    assert [(name, sample.text) for name, sample in apart] == [("a", "a100"), ("b", "b50")]
    ended = replace(wrote("c", 0), status="stopped")
    found = race_table.written([wrote("a", 0, 100, 200), wrote("b", 0, 100, 200), ended])
    assert [sample.text for _, sample in found] == ["a200", "b200", "c0"], "who ended early holds nobody back"


def test_the_table_of_all_curves_and_their_smoothing() -> None:
    found = race_table.table([run("a", steps=3), run("b", steps=2)])
    assert found["run"].tolist() == ["a"] * 4 + ["b"] * 3
    assert found["step"].tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert found["tokens"].tolist() == [0, 24, 48, 72, 0, 24, 48]
    assert found["batch_loss"][1:4].tolist() == pytest.approx([4.0, 3.0, 2 + 2 / 3])
    assert math.isnan(found["batch_loss"][0]) and math.isnan(found["validation_loss"][1])
    assert [found["validation_loss"][i] for i in (0, 3, 6)] == [4.2, 2.1, 2.1]
    losses = np.random.default_rng(0).normal(3.0, 0.4, 50).astype(np.float32)
    found = race_table.smoothed(losses, 7)
    wanted = [float(np.mean(losses[max(0, i - 6) : i + 1])) for i in range(50)]
    assert found.tolist() == pytest.approx(wanted, rel=1e-5)
    assert race_table.smoothed(losses, 1) is losses


def test_a_stored_race_is_read_as_it_was(tmp_path: Path) -> None:
    wild = replace(SHORT, learning_rate=1e6, grad_clip=0.0)
    specs = [spec(SHORT, name="a"), spec(SHORT, replace(MODEL, d_model=32), name="b"), spec(wild, name="c")]
    made = run_race(specs, "a test")
    made.save(tmp_path / "race.json")
    assert (tmp_path / "race.json").stat().st_size < 60_000
    read = load_race(tmp_path / "race.json")
    assert read.made == "a test" and [view.status for view in read.runs] == ["finished", "finished", "failed"]
    for before, after, asked in zip(made.runs, read.runs, specs, strict=True):
        assert after.spec.model == asked.model and after.spec.train == asked.train
        assert after.history.steps.tolist() == before.history.steps.tolist()
        assert after.history.losses == pytest.approx(before.history.losses, rel=1e-4, nan_ok=True)
        assert after.history.tokens.tolist() == before.history.tokens.tolist()
        one, other = race_table.standing(before), race_table.standing(after)
        assert repr(replace(other, seconds=0)) == repr(replace(one, seconds=0))
        assert after.history.samples == before.history.samples
        assert not after.active and after.id == "" and after.race is None
    assert made.runs[0].history.losses[:3] == pytest.approx(
        [r.loss for r in _alone(specs[0]) if isinstance(r, Step)][:3]
    )
    for broken in ("{}", '{"made": "x", "runs": [{"name": 3}]}', "not json"):
        (tmp_path / "broken.json").write_text(broken)
        with pytest.raises(CheckpointError, match=r"broken\.json cannot be read"):
            load_race(tmp_path / "broken.json")
    with pytest.raises(CheckpointError):
        load_race(tmp_path / "none.json")


def _alone(asked: RunSpec) -> list[object]:
    from engine.training.train import train

    return list(train(asked.model, asked.train, from_text(TEXT)))
