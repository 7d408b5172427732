"""The run service in ordinary life: one manager with a warm spare serves most of these tests."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine import checkpoints
from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.corpora import from_text, shakespeare_path
from engine.errors import CheckpointError, ConfigError, CorpusError, GlassformerError, RunError
from engine.training.records import Evaluation, Record, Sample, Snapshot, Step
from engine.training.train import train
from runs import kinds, profiles
from runs.estimate import Pace, step_work
from runs.manager import RunManager, RunSpec
from runs.state import Change
from studies.experiments.stored_races import load_race, run_race
from studies.lab.faults import PARTS
from studies.pairs.checkpoints import LabelCheckpoint, PairCheckpoint, load_pair
from studies.pairs.corpora import pair_text, speakers
from studies.pairs.seq2seq import build_pair
from studies.pairs.train import train_labels, train_pairs
from tests.engine.cases import for_each
from tests.engine.trainings import only
from tests.runs.running import (
    LONG,
    ME,
    MODEL,
    PROFILE,
    SHORT,
    TEXT,
    WARM,
    begun,
    ended,
    files,
    look,
    reached,
    settled,
    spec,
    wait,
)

STRANGER = "somebody else"


@pytest.fixture(scope="module", params=["here", pytest.param("cluster", marks=pytest.mark.exhaustive)])
def manager(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[RunManager]:
    """A manager of this process, and one that servers share on a cluster."""
    if request.param == "here":
        made = RunManager(PROFILE, tmp_path_factory.mktemp("runs"), opener=WARM)
    else:
        made = request.getfixturevalue("share")(PROFILE)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def tidy(manager: RunManager) -> Iterator[None]:
    yield
    for view in manager.runs(ME):
        manager.remove(view.id, ME)


BPE = from_text(TEXT, tokenizer="bpe:280")
PAIRS = pair_text("reverse")  # letters backwards: 15 signs, 13 places at most
TOWER = ModelConfig(vocab_size=PAIRS.vocab_size, context=13, d_model=16, n_layers=1, n_heads=2)
PAIRED = replace(
    SHORT, steps=12, batch_size=4, eval_every=4, sample_every=4, sample_prompt="", snapshot_every=4
)
TRAININGS: dict[str, Callable[[], tuple[RunSpec, Any]]] = {
    "letters": lambda: (spec(name="  first\nrun "), train(MODEL, SHORT, from_text(TEXT))),
    "bpe": lambda: (spec(BITS, PIECES), train(PIECES, BITS, BPE, device="cpu")),
    "pairs": lambda: (pairs(), train_pairs(PAIRS.fitted(TOWER), PAIRED, PAIRS)),
    "labels": lambda: (labelling(), learned_labels()),
    "fault": lambda: (
        spec(parts="unscaled_scores"),
        train(MODEL, SHORT, from_text(TEXT), parts=PARTS["unscaled_scores"]),
    ),
}
BITS, PIECES = replace(SHORT, tokenizer="bpe:280", steps=10), replace(MODEL, vocab_size=BPE.vocab_size)


def pairs(train: TrainConfig = PAIRED, model: ModelConfig = TOWER, corpus: str = "pairs-reverse") -> RunSpec:
    return RunSpec(model, train, corpus)


def learned_labels() -> Iterator[Record]:
    text = speakers().text
    return train_labels(text.fitted(labelling().model), PAIRED, text)


def labelling() -> RunSpec:
    return pairs(model=replace(TOWER, vocab_size=speakers().text.vocab_size), corpus=kinds.SPEAKERS)


@pytest.mark.parametrize(
    "kind",
    # the worker cuts a whole corpus for these: test_train_pairs has the trainings, test_checkpoints the files
    [pytest.param(k, marks=[pytest.mark.exhaustive] * (k in ("pairs", "labels"))) for k in TRAININGS],
)
def test_a_run_gives_what_training_gives(manager: RunManager, tmp_path: Path, kind: str) -> None:
    if kind == "labels" and shakespeare_path() is None:
        pytest.skip("needs Tiny Shakespeare")
    asked, told = TRAININGS[kind]()
    run = manager.start(asked, ME)
    assert look(manager, run).status in ("queued", "starting", "running") and len(run) >= 20
    view = ended(manager, run)
    name = "first run" if kind == "letters" else ""
    assert (view.status, view.message, view.name, view.warnings) == ("finished", "", name, ())
    assert view.step == view.total_steps == asked.train.steps
    found, packed = manager.trained(run), manager.checkpoint(run)
    assert view.parameters == sum(p.numel() for p in found.model.parameters())
    assert "float32" in view.precision and view.tokens_per_second > 0 and view.seconds > 0
    records = list(told)
    steps = only(records, Step)
    np.testing.assert_array_equal(view.history.steps, [s.step for s in steps])
    np.testing.assert_allclose(view.history.losses, [s.loss for s in steps], rtol=1e-5)
    np.testing.assert_array_equal(view.history.tokens, [s.tokens for s in steps])
    wanted = only(records, Evaluation)
    looks = view.history.evaluations
    assert [(e.step, e.complete, e.task) for e in looks] == [(e.step, e.complete, e.task) for e in wanted]
    assert (looks[-1].task is not None) == (kind in ("pairs", "labels"))
    bits = [e.validation_bits for e in wanted if e.validation_bits is not None]
    assert [e.validation_bits for e in looks if e.validation_bits is not None] == pytest.approx(
        bits, rel=1e-4
    )
    for best, complete in ((view.best, True), (view.best_quick, False)):
        losses = [e.validation_loss for e in wanted if e.complete is complete]
        if losses and asked.train.tokenizer == "char":
            assert best is not None and best.validation_loss == pytest.approx(min(losses), rel=1e-5)
    written = only(records, Sample)
    assert [(s.step, len(s.text)) for s in view.history.samples] == [(s.step, len(s.text)) for s in written]
    if kind == "bpe":
        assert view.best is not None and view.best.validation_bits == pytest.approx(bits[-1], rel=1e-4)
        tokenizer = checkpoints.unpack(packed).tokenizer
        assert tokenizer.to_dict() == BPE.tokenizer.to_dict() == found.tokenizer.to_dict()
    elif kind == "pairs":
        assert view.snapshots == (0, 4, 8, 12)
        assert [(s.prompt, s.text) for s in view.history.samples] == [(s.prompt, s.text) for s in written]
        _pairs_are_an_encoder_decoder_with_the_same_logits(manager, run, records, tmp_path)
    elif kind == "fault":
        assert manager.model(run).model.parts is checkpoints.unpack(packed).model.parts
        assert manager.model(run).model.parts is PARTS["unscaled_scores"]
    elif kind == "labels":
        assert isinstance(found, LabelCheckpoint) and found.labels == speakers().text.labels
        assert set(zipfile.ZipFile(io.BytesIO(packed)).namelist()) == set(checkpoints.FILES)


def _pairs_are_an_encoder_decoder_with_the_same_logits(
    manager: RunManager, run: str, records: list[Record], folder: Path
) -> None:
    found = manager.trained(run, 8)
    assert isinstance(found, PairCheckpoint) and found.metrics["step"] == 8
    assert found.tokenizer.decode(found.tokenizer.encode("abc")) == "abc"
    (state,) = [snapshot.state for snapshot in only(records, Snapshot) if snapshot.step == 8]
    same = build_pair(PAIRS.fitted(TOWER)).eval()
    same.load_state_dict(state.weights())
    source, target = torch.tensor([[3, 5, 4, 2]]), torch.tensor([[1, 4, 5]])
    torch.testing.assert_close(found.model(source, target), same(source, target), rtol=1e-5, atol=1e-6)
    with pytest.raises(RunError, match="Cross-attention"):
        manager.model(run, 8)
    with zipfile.ZipFile(io.BytesIO(manager.checkpoint(run))) as archive:
        archive.extractall(folder)
    taken = load_pair(folder)
    newest = manager.trained(run)
    assert isinstance(newest, PairCheckpoint) and taken.metrics["step"] == 12
    assert torch.equal(taken.model(source, target), newest.model(source, target))


def test_a_snapshot_is_kept_slimmed_shown_and_downloaded(manager: RunManager) -> None:
    if not hasattr(manager, "scheduler"):
        pytest.skip("a cluster has the files of its runs")
    run = manager.start(spec(), ME)
    view = ended(manager, run)
    assert view.snapshots == (0, 10, 20, 30) and view.resumable
    saved = files(manager, run).snapshots
    for step in view.snapshots:
        path = saved[step].path
        state = checkpoints.load_state(path)[0]
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
    for unknown, says in (("no such run", "no longer exists"), (run, "step 7")):
        for ask in (manager.model, manager.checkpoint):
            with pytest.raises(RunError, match=says):
                ask(unknown, 7)
    saved[10].path.unlink()  # thinned out while it was looked for
    with pytest.raises(RunError, match="no longer kept"):
        manager.model(run, 10)
    saved[20].path.write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match="not a whole snapshot"):
        manager.model(run, 20)


def test_going_on_after_the_end_is_exact_and_a_restart_repeats(manager: RunManager) -> None:
    whole = manager.start(spec(replace(SHORT, steps=45)), ME)
    first = manager.start(spec(name="fast"), ME)
    before = ended(manager, first)
    assert before.changes == ()
    second = manager.restart(first, ME)
    assert second != first
    np.testing.assert_array_equal(ended(manager, second).history.losses, before.history.losses)
    assert manager.extend(first, ME, 15) == first
    assert look(manager, first).active and look(manager, first).total_steps == 45
    assert (ended(manager, first).status, look(manager, first).step) == ("finished", 45)
    after, reference = look(manager, first), ended(manager, whole)
    np.testing.assert_array_equal(after.history.steps, np.arange(1, 46))
    np.testing.assert_array_equal(after.history.losses[:30], before.history.losses)
    np.testing.assert_allclose(after.history.losses, reference.history.losses, rtol=1e-5)
    assert after.snapshots == reference.snapshots == (0, 10, 20, 30, 40, 45)
    assert [e.step for e in after.history.evaluations] == [0, 10, 20, 30, 30, 40, 45, 45], "two at an end"
    for step in (30, 40, 45):
        one, other = (dict(manager.model(run, step).model.named_parameters()) for run in (whole, first))
        for name in one:
            torch.testing.assert_close(one[name], other[name], rtol=1e-5, atol=1e-7)
    assert after.changes == (Change(30, after.changes[0].seconds, "steps", 15),)
    assert after.name == "fast (by hand: 15 further steps from step 30)"
    for steps in (0, PROFILE.max_steps):
        with pytest.raises(ConfigError, match="steps"):
            manager.extend(first, ME, steps)
    assert look(manager, first).changes == after.changes


def test_pause_step_and_resume_are_exact_and_a_stop_takes_a_last_look(manager: RunManager) -> None:
    run = begun(manager, 20)
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
    with pytest.raises(RunError, match="Continue it, or start it again"):
        manager.pause(run, ME)
    if later.step < 2000:  # not thinned yet: no step is missing, none is there twice
        np.testing.assert_array_equal(later.history.steps, np.arange(1, later.step + 1))


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


def test_only_the_owner_controls_and_changes_rate_and_prompt_while_it_runs(manager: RunManager) -> None:
    run = manager.start(spec(replace(LONG, sample_every=50)), ME)
    assert manager.may_control(run, ME) and not manager.may_control(run, STRANGER)
    assert not manager.may_control("no such run", ME)
    orders: dict[str, tuple[Any, ...]] = dict.fromkeys(
        ("pause", "resume", "step", "stop", "restart", "remove"), ()
    )
    orders |= {"set_learning_rate": (0.1,), "set_prompt": ("x",), "extend": (5,), "rename": ("x",)}
    for order, what in orders.items():
        with pytest.raises(RunError, match="you can watch it here, but not control it"):
            getattr(manager, order)(run, STRANGER, *what)
    assert look(manager, run).active and manager.runs(STRANGER) == []
    manager.watch("no such run")
    with pytest.raises(RunError, match="no longer exists"):
        manager.stop("no such run", ME)
    reached(manager, run, 5)
    manager.set_learning_rate(run, ME, 7e-4)
    manager.set_prompt(run, ME, "dog")
    wait(lambda: look(manager, run).history.samples[-1].prompt == "dog")
    wait(lambda: look(manager, run).history.learning_rates[-1] < 8e-4)  # steps are told a few at a time
    rates = look(manager, run).history.learning_rates
    assert rates[0] == pytest.approx(1e-3) and rates[-1] == pytest.approx(7e-4)
    assert len(set(np.round(rates, 7))) == 2, "one change, for good"
    for bad in (float("nan"), -1.0, 1e9):
        with pytest.raises(ConfigError, match="learning_rate"):
            manager.set_learning_rate(run, ME, bad)


@for_each(("wrong", "says"), [
    (spec(replace(SHORT, steps=10**6)), "steps = 1000000"),
    (spec(model=replace(MODEL, context=4096)), "context = 4096"),
    (spec(replace(SHORT, batch_size=50_000)), "batch_size = 50000"),
    (spec(model=replace(MODEL, d_model=4096, n_layers=12)), "parameters"),
    (spec(model=replace(MODEL, n_layers=1000)), "n_layers"),
    (spec(replace(SHORT, sample_length=10**6)), "sample_length"),
    (spec(replace(SHORT, tokenizer="bpe:9000")), "at most 8,192"),
    (spec(text="x" * (PROFILE.max_text + 1)), "characters"),
    (spec(text=None), "no text"),
    (spec(corpus="everything"), "there is no corpus"),
])  # fmt: skip
def test_limits_hold_on_the_server(manager: RunManager, wrong: Any, says: str) -> None:
    with pytest.raises(GlassformerError, match=says):
        manager.start(wrong, ME)
    assert manager.runs(ME) == []


def test_what_only_the_worker_can_find_out_is_a_sentence(manager: RunManager) -> None:
    few = spec(text="abcdefghij" * 3, model=replace(MODEL, vocab_size=10, context=64))
    short_text = ended(manager, manager.start(few, ME))
    assert short_text.status == "failed" and "more characters" in short_text.message
    assert not short_text.resumable
    with pytest.raises(RunError, match="Start it again"):
        manager.extend(short_text.id, ME, 5)


def test_profiles_are_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(profiles.VARIABLE, raising=False)
    assert profiles.current().name == "local"
    monkeypatch.setenv(profiles.VARIABLE, "hosted")
    assert profiles.current().lease_seconds == 15
    monkeypatch.setenv(profiles.VARIABLE, "elsewhere")
    with pytest.raises(ConfigError, match="local, hosted"):
        profiles.current()


def test_what_does_not_go_together_is_refused_in_a_sentence(manager: RunManager) -> None:
    for wrong, field in (
        (pairs(model=replace(TOWER, vocab_size=99)), "vocab_size"),
        (pairs(replace(PAIRED, tokenizer="byte")), "tokenizer"),
        (pairs(replace(PAIRED, objective="masked")), "objective"),
        (pairs(replace(PAIRED, repeat=0.5)), "repeat"),
        (pairs(model=replace(TOWER, window=4)), "window"),
        (pairs(model=replace(TOWER, wiring="parallel")), "wiring"),
    ):
        with pytest.raises(ConfigError) as error:
            manager.start(wrong, ME)
        assert error.value.field == field
    with pytest.raises(RunError, match="pairs-poems"):
        manager.start(pairs(corpus="pairs-poems"), ME)
    with pytest.raises(CorpusError, match="labels-speakers"):
        kinds.LABELS.read("labels-poets", "")
    small = replace(PROFILE, max_parameters=view_parameters() - 1)
    with pytest.raises(ConfigError, match=f"{view_parameters():,} parameters"):
        profiles.check(small, pairs())
    narrow = replace(PROFILE, max_batch_tokens=103)  # 4 pairs of 13 + 13 places
    with pytest.raises(ConfigError, match="makes 104 tokens per step"):
        profiles.check(narrow, pairs())


def view_parameters() -> int:
    return sum(p.numel() for p in build_pair(PAIRS.fitted(TOWER)).parameters())


def test_a_stored_race_of_pairs_opens_as_it_was(tmp_path: Path) -> None:
    made = run_race([pairs()], "by a test", device="cpu")
    made.save(tmp_path / "race.json")
    (view,) = load_race(tmp_path / "race.json").runs
    assert view.spec == pairs() and view.parameters == view_parameters()
    assert [e.task for e in view.history.evaluations] == [e.task for e in made.runs[0].history.evaluations]


NOT_TEXTS = [n for n in kinds.NAMES if kinds.kind_of(n) is not kinds.TEXTS]


@for_each("name", NOT_TEXTS, fast=("pairs-reverse", "pairs-dates"))
def test_every_task_has_a_recipe_that_may_be_started(name: str) -> None:
    if name == kinds.SPEAKERS and shakespeare_path() is None:
        return
    model, train = kinds.recipe(name)
    profiles.check(profiles.PROFILES["hosted"], RunSpec(model, train, name))
    data, of_pairs = kinds.kind_of(name).read(name, ""), kinds.kind_of(name) is kinds.PAIRS
    longest = max(data.longest) if of_pairs else data.fitted(ModelConfig()).context
    assert model.context == longest and model.vocab_size == data.vocab_size


def test_the_work_of_a_step_is_that_of_both_towers() -> None:
    """By hand: products of one token of each, 13 long, moved three times over, four pairs at once."""
    decoder, encoder = kinds.PAIRS.cost_stacks(TOWER, "pairs-reverse")
    assert encoder is not None and (decoder.context, encoder.context) == (13, 13)
    both = step_work(decoder, PAIRED, encoder=encoder)
    assert both > step_work(decoder, PAIRED) + 0.8 * step_work(encoder, PAIRED)
    assert Pace(decoder, PAIRED, 10, 2.0, encoder=encoder).work_a_second == pytest.approx(5 * both)
    short = kinds.PAIRS.seconds(TOWER, PAIRED, "pairs-reverse", 0, 1e9, profiles.HEALTHY)
    long = kinds.PAIRS.seconds(TOWER, replace(PAIRED, steps=1012), "pairs-reverse", 0, 1e9, profiles.HEALTHY)
    looks = 1012 // 4 - 12 // 4
    assert long - short > 1000 * both / 1e9 and looks == 250
    assert kinds.TEXTS.stacks(TOWER, "python") == (TOWER, None) and "python" in corpora.names()
