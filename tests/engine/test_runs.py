"""The run service in ordinary life: one manager with a warm spare serves most of these tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

from engine import checkpoints
from engine.corpora import from_text
from engine.errors import CheckpointError, ConfigError, GlassformerError, RunError
from engine.faults import PARTS
from engine.service import profiles
from engine.service.manager import RunManager
from engine.service.shared import Desk, RemoteRuns
from engine.service.transport import Pipe
from engine.training.records import Evaluation, Step
from engine.training.train import train
from tests.engine.cases import for_each
from tests.engine.running import (
    LONG,
    MODEL,
    PROFILE,
    SHORT,
    TEXT,
    ended,
    files,
    look,
    pid,
    reached,
    settled,
    spec,
    wait,
)

ME, STRANGER = "me", "somebody else"


ELSEWHERE = [pytest.param(where, marks=pytest.mark.exhaustive) for where in ("cluster", "another server's")]


@pytest.fixture(scope="module", params=["here", *ELSEWHERE])
def manager(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[RunManager]:
    """A manager whose workers are on this machine, or on a cluster's."""
    folder = tmp_path_factory.mktemp("runs")
    if request.param == "another server's":
        desk = Desk(("127.0.0.1", 0), b"secret", lambda address: RunManager(PROFILE, folder, address=address))
        threading.Thread(target=desk.serve, daemon=True).start()
        yield cast(RunManager, RemoteRuns(desk.where, b"secret"))
        desk.close()
        return
    opener = Pipe if request.param == "here" else request.getfixturevalue("cluster").open
    with_spare = RunManager(PROFILE, folder, opener=opener)
    yield with_spare
    with_spare.close()


@pytest.fixture(autouse=True)
def tidy(manager: RunManager) -> Iterator[None]:
    """Places are free again after each test."""
    yield
    for view in manager.runs(ME):
        manager.remove(view.id, ME)


def test_a_run_from_start_to_finish_gives_what_train_gives(manager: RunManager) -> None:
    run = manager.start(spec(name="  first\nrun "), ME)
    assert look(manager, run).status in ("queued", "starting", "running") and len(run) >= 20
    view = ended(manager, run)
    assert (view.status, view.message, view.name) == ("finished", "", "first run")
    assert view.step == view.total_steps == 30
    assert view.parameters == sum(
        p.numel() for p in checkpoints.unpack(manager.checkpoint(run)).model.parameters()
    )
    assert "float32" in view.precision and view.tokens_per_second > 0 and view.seconds > 0
    assert view.warnings == ()
    records = list(train(MODEL, SHORT, from_text(TEXT)))
    steps = [r for r in records if isinstance(r, Step)]
    np.testing.assert_array_equal(view.history.steps, [s.step for s in steps])
    np.testing.assert_allclose(view.history.losses, [s.loss for s in steps], rtol=1e-5)
    np.testing.assert_array_equal(view.history.tokens, [s.tokens for s in steps])
    evaluations = [r for r in records if isinstance(r, Evaluation)]
    assert [(e.step, e.complete) for e in view.history.evaluations] == [
        (e.step, e.complete) for e in evaluations
    ]
    for best, complete in ((view.best, True), (view.best_quick, False)):
        least = min(e.validation_loss for e in evaluations if e.complete is complete)
        assert best is not None and best.validation_loss == pytest.approx(least, rel=1e-5)
    assert [s.step for s in view.history.samples] == [0, 10, 20, 30] and all(
        len(s.text) == 8 for s in view.history.samples
    )


def test_a_snapshot_is_kept_slimmed_shown_and_downloaded(manager: RunManager) -> None:
    """Only the newest one holds what it takes to go on."""
    run = manager.start(spec(), ME)
    view = ended(manager, run)
    assert view.snapshots == (0, 10, 20, 30) and view.resumable
    saved = files(manager, run).snapshots
    for step in view.snapshots:
        path, state = saved[step].path, manager.snapshot(run, step)
        weights, meta = checkpoints.load_weights(path)
        more = {name for name in state.tensors if not name.startswith("model.")}
        assert any(name.startswith(("first.", "second.")) for name in more) == bool(more) == (step == 30)
        assert state.step == step and saved[step].size == path.stat().st_size
        found, loaded = manager.model(run, step), checkpoints.unpack(manager.checkpoint(run, step))
        assert loaded.metrics["step"] == step and found.metrics["corpus"] == meta["corpus"]
        for each in (found, loaded):
            assert each.config == MODEL.resolved() and not each.model.training
            assert each.tokenizer.decode(each.tokenizer.encode("the dog")) == "the dog"
            named = dict(each.model.named_parameters())
            assert named.keys() == weights.keys() == state.weights().keys()
            assert all(torch.equal(named[name], weights[name]) for name in weights)
    assert max(saved[step].size for step in (0, 10, 20)) < 0.6 * saved[30].size
    assert {p.name for p in saved[0].path.parent.glob("step-*")} == {s.path.name for s in saved.values()}
    assert torch.equal(manager.model(run).model.embedding, manager.model(run, 30).model.embedding)
    assert not torch.equal(manager.model(run, 0).model.embedding, manager.model(run, 30).model.embedding)
    for unknown, says in (("no such run", "no such run"), (run, "step 7")):
        for ask in (manager.model, manager.snapshot):
            with pytest.raises(RunError, match=says):
                ask(unknown, 7)
    saved[10].path.unlink()  # thinned out while it was looked for
    with pytest.raises(RunError, match="no longer kept"):
        manager.model(run, 10)
    saved[20].path.write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match="not a whole snapshot"):
        manager.model(run, 20)


def test_going_on_from_slimmed_snapshots_is_exact(manager: RunManager) -> None:
    """A run continued after its end, twice, ends with the weights of one that was trained in one go."""
    whole = manager.start(spec(replace(SHORT, steps=50)), ME)
    parts = manager.start(spec(), ME)
    ended(manager, parts)
    for more in (10, 10):
        manager.extend(parts, ME, more)
        assert ended(manager, parts).status == "finished"
    assert ended(manager, whole).snapshots == look(manager, parts).snapshots == (0, 10, 20, 30, 40, 50)
    for step in (30, 40, 50):
        for one, other in zip(
            manager.model(whole, step).model.parameters(),
            manager.model(parts, step).model.parameters(),
            strict=True,
        ):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


def test_pause_step_and_resume_are_exact_and_a_stop_takes_a_last_look(manager: RunManager) -> None:
    run = manager.start(spec(LONG), ME)
    reached(manager, run, 20)
    manager.pause(run, ME)
    paused = settled(manager, run)
    assert paused.status == "paused" and paused.message == ""
    for extra in (1, 2, 3):
        manager.step(run, ME)
        assert settled_at(manager, run, paused.step + extra).status == "paused"
    manager.resume(run, ME)
    later = reached(manager, run, paused.step + 50)
    assert later.status == "running"
    manager.stop(run, ME)
    last = ended(manager, run)
    assert last.status == "stopped" and last.step < LONG.steps and last.snapshots[-1] == last.step
    assert last.history.evaluations[-1].complete and last.history.evaluations[-1].step == last.step
    with pytest.raises(RunError, match="continue it for longer, or start it again"):
        manager.pause(run, ME)
    if later.step < 2000:  # not thinned yet: no step is missing, none is there twice
        np.testing.assert_array_equal(later.history.steps, np.arange(1, later.step + 1))


def test_a_paused_worker_rests(manager: RunManager) -> None:
    run = manager.start(spec(LONG), ME)
    reached(manager, run, 5)
    manager.pause(run, ME)
    settled(manager, run)

    def processor_ticks() -> int:
        values = Path(f"/proc/{pid(manager, run)}/stat").read_text().rpartition(")")[2].split()
        return int(values[11]) + int(values[12])

    before = processor_ticks()
    settled(manager, run)
    assert processor_ticks() - before <= 2, "a paused worker uses the processor"


def test_single_steps_show_what_was_due_and_reach_the_end(manager: RunManager) -> None:
    every = replace(SHORT, steps=2, eval_every=1, sample_every=1, snapshot_every=1)
    run = manager.start(spec(every), ME)
    manager.step(run, ME)  # at once: it pauses before its first step, and does one
    view = settled_at(manager, run, 1)
    assert view.status == "paused"
    assert view.history.evaluations[-1].step == view.history.samples[-1].step == view.snapshots[-1] == 1
    manager.step(run, ME)
    assert ended(manager, run).status == "finished"


def settled_at(manager: RunManager, run: str, step: int) -> Any:
    wait(lambda: look(manager, run).step >= step)
    view = settled(manager, run)
    assert view.step == step
    return view


def test_learning_rate_and_prompt_change_while_it_runs(manager: RunManager) -> None:
    run = manager.start(spec(replace(LONG, sample_every=50)), ME)
    reached(manager, run, 5)
    manager.set_learning_rate(run, ME, 7e-4)
    manager.set_prompt(run, ME, "dog")
    wait(lambda: look(manager, run).history.samples[-1].prompt == "dog")
    rates = look(manager, run).history.learning_rates
    assert rates[0] == pytest.approx(1e-3) and rates[-1] == pytest.approx(7e-4)
    assert len(set(np.round(rates, 7))) == 2, "one change, for good"
    for bad in (float("nan"), -1.0, 1e9):
        with pytest.raises(ConfigError, match="learning_rate"):
            manager.set_learning_rate(run, ME, bad)


def test_restart_repeats_and_extend_goes_on(manager: RunManager) -> None:
    first = manager.start(spec(), ME)
    before = ended(manager, first)
    second = manager.restart(first, ME)
    assert second != first
    np.testing.assert_array_equal(ended(manager, second).history.losses, before.history.losses)

    assert manager.extend(first, ME, 15) == first
    assert look(manager, first).active and look(manager, first).total_steps == 45
    after = ended(manager, first)
    assert (after.status, after.step) == ("finished", 45)
    np.testing.assert_array_equal(after.history.steps, np.arange(1, 46))
    np.testing.assert_array_equal(after.history.losses[:30], before.history.losses)
    assert np.isfinite(after.history.losses).all() and after.snapshots == (0, 10, 20, 30, 40, 45)
    assert [e.step for e in after.history.evaluations] == [0, 10, 20, 30, 30, 40, 45, 45], "two at an end"
    with pytest.raises(ConfigError, match="steps"):
        manager.extend(first, ME, PROFILE.max_steps)


def test_only_the_owner_controls(manager: RunManager) -> None:
    run = manager.start(spec(LONG), ME)
    assert manager.may_control(run, ME) and not manager.may_control(run, STRANGER)
    assert not manager.may_control("no such run", ME)
    actions: list[Callable[[], Any]] = [
        lambda: manager.pause(run, STRANGER),
        lambda: manager.resume(run, STRANGER),
        lambda: manager.step(run, STRANGER),
        lambda: manager.stop(run, STRANGER),
        lambda: manager.set_learning_rate(run, STRANGER, 0.1),
        lambda: manager.set_prompt(run, STRANGER, "x"),
        lambda: manager.restart(run, STRANGER),
        lambda: manager.extend(run, STRANGER, 5),
        lambda: manager.rename(run, STRANGER, "x"),
        lambda: manager.remove(run, STRANGER),
    ]
    for action in actions:
        with pytest.raises(RunError, match="can be watched here, but not controlled"):
            action()
    assert look(manager, run).active and manager.runs(STRANGER) == []
    manager.watch("no such run")
    with pytest.raises(RunError, match="no such run"):
        manager.stop("no such run", ME)


def test_runs_are_renamed_and_removed_and_no_two_of_an_owner_have_the_same_name(manager: RunManager) -> None:
    ids = [manager.start(spec(name=name), ME) for name in ("a", "a", "b" * 80, "b" * 80, "", "")]
    ids.append(manager.restart(ids[1], ME))
    names = [view.name for view in manager.runs(ME)]
    assert names == ["a", "a (2)", "b" * 80, "b" * 74 + " (2)", "", "", "a (3)"]
    manager.rename(ids[0], ME, "a")
    manager.rename(ids[2], ME, "a")
    assert [view.name for view in manager.runs(ME)][:3] == ["a", "a (2)", "a (4)"]
    folder = files(manager, ids[1]).folder
    manager.remove(ids[1], ME)
    assert manager.view(ids[1]) is None and ids[1] not in [view.id for view in manager.runs(ME)]
    wait(lambda: not folder.exists(), 30)


@for_each(
    ("wrong", "says"),
    [
        (spec(replace(SHORT, steps=10**6)), "steps = 1000000"),
        (spec(model=replace(MODEL, context=4096)), "context = 4096"),
        (spec(replace(SHORT, batch_size=50_000)), "batch_size = 50000"),
        (spec(model=replace(MODEL, d_model=4096, n_layers=12)), "parameters"),
        (spec(model=replace(MODEL, n_layers=1000)), "n_layers"),
        (spec(replace(SHORT, sample_length=10**6)), "sample_length"),
        (spec(replace(SHORT, tokenizer="bpe:9000")), "at most 8,192"),
        (spec(text="x" * (PROFILE.max_text + 1)), "characters"),
        (spec(text=None), "no text"),
        (spec(corpus="everything"), "no corpus is called"),
    ],
)
def test_limits_hold_on_the_server(manager: RunManager, wrong: Any, says: str) -> None:
    with pytest.raises(GlassformerError, match=says):
        manager.start(wrong, ME)
    assert manager.runs(ME) == []


def test_what_only_the_worker_can_find_out_is_a_sentence(manager: RunManager) -> None:
    short_text = ended(
        manager,
        manager.start(spec(text="abcdefghij" * 3, model=replace(MODEL, vocab_size=10, context=64)), ME),
    )
    assert short_text.status == "failed" and "more characters" in short_text.message
    wrong_size = ended(manager, manager.start(spec(model=replace(MODEL, vocab_size=5)), ME))
    assert (
        wrong_size.status == "failed"
        and wrong_size.message.startswith("vocab_size = 5: must be")
        and not wrong_size.resumable
    )
    with pytest.raises(RunError, match="start it again"):
        manager.extend(wrong_size.id, ME, 5)


def test_profiles_are_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(profiles.VARIABLE, raising=False)
    assert profiles.current().name == "local"
    monkeypatch.setenv(profiles.VARIABLE, "hosted")
    assert profiles.current().lease_seconds == 15
    monkeypatch.setenv(profiles.VARIABLE, "elsewhere")
    with pytest.raises(ConfigError, match="local, hosted"):
        profiles.current()


def test_a_run_with_bpe_gives_what_train_gives_and_its_model_comes_back(manager: RunManager) -> None:
    corpus = from_text(TEXT, tokenizer="bpe:280")
    train_config = replace(SHORT, tokenizer="bpe:280", steps=10)
    model = replace(MODEL, vocab_size=corpus.vocab_size)
    run = manager.start(spec(train_config, model), "me")
    view = ended(manager, run)
    assert view.status == "finished", view.message
    records = train(model, train_config, corpus, device="cpu")
    wanted = [record.validation_bits for record in records if isinstance(record, Evaluation)]
    assert [e.validation_bits for e in view.history.evaluations] == pytest.approx(wanted, rel=1e-4)
    assert view.best is not None and view.best.validation_bits == pytest.approx(wanted[-1], rel=1e-4)
    found = checkpoints.unpack(manager.checkpoint(run))
    assert found.tokenizer.to_dict() == corpus.tokenizer.to_dict() == manager.model(run).tokenizer.to_dict()


def test_a_fault_travels_by_name_to_the_worker_and_back(manager: RunManager) -> None:
    run = manager.start(spec(parts="unscaled_scores"), ME)
    assert ended(manager, run).status == "finished"
    assert manager.model(run).model.parts is PARTS["unscaled_scores"]
    assert checkpoints.unpack(manager.checkpoint(run)).model.parts is PARTS["unscaled_scores"]
