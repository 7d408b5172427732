"""Runs that learn from pairs and from labels, through the same service as those that learn from a text."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import checkpoints, corpora
from engine.checkpoints_paired import LabelCheckpoint, PairCheckpoint, load_pair
from engine.config import ModelConfig, TrainConfig
from engine.corpora import shakespeare_path
from engine.errors import ConfigError, CorpusError, RunError
from engine.paired_data import pair_text, speakers
from engine.seq2seq import build_pair
from engine.service import profiles
from engine.service.manager import RunManager, RunSpec
from engine.service.stored import load_race, run_race
from engine.training import kinds
from engine.training.estimate import Pace, step_work
from engine.training.records import Evaluation, Sample, Snapshot, Step
from engine.training.train_pairs import train_labels, train_pairs
from tests.engine.running import PROFILE, ended

ME = "me"
NAME = "pairs-reverse"
TEXT = pair_text("reverse")  # letters backwards: 15 signs, 13 places at most
MODEL = ModelConfig(vocab_size=TEXT.vocab_size, context=13, d_model=16, n_layers=1, n_heads=2)
SHORT = TrainConfig(
    steps=12,
    batch_size=4,
    precision="float32",
    schedule="constant",
    warmup_steps=0,
    eval_every=4,
    eval_tokens=200,
    sample_every=4,
    sample_prompt="",
    snapshot_every=4,
)
LONG = replace(SHORT, steps=90_000, eval_every=0, sample_every=0, snapshot_every=20)


def spec(train: TrainConfig = SHORT, model: ModelConfig = MODEL, corpus: str = NAME) -> RunSpec:
    return RunSpec(model, train, corpus)


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunManager]:
    made = RunManager(PROFILE, tmp_path_factory.mktemp("runs"))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def tidy(manager: RunManager) -> Iterator[None]:
    yield
    for view in manager.runs(ME):
        manager.remove(view.id, ME)


def test_a_run_of_pairs_gives_what_train_pairs_gives(manager: RunManager) -> None:
    run = manager.start(spec(), ME)
    view = ended(manager, run)
    assert (view.status, view.message, view.step) == ("finished", "", 12)
    config = TEXT.fitted(MODEL)
    assert view.parameters == sum(p.numel() for p in build_pair(config).parameters())

    records = list(train_pairs(config, SHORT, TEXT))
    steps = [r for r in records if isinstance(r, Step)]
    np.testing.assert_array_equal(view.history.steps, [s.step for s in steps])
    np.testing.assert_allclose(view.history.losses, [s.loss for s in steps], rtol=1e-5)
    evaluations = [r for r in records if isinstance(r, Evaluation)]
    told = [(e.step, e.complete, e.task) for e in evaluations]
    assert [(e.step, e.complete, e.task) for e in view.history.evaluations] == told
    assert view.history.evaluations[-1].task is not None
    samples = [r for r in records if isinstance(r, Sample)]
    assert [(s.prompt, s.text) for s in view.history.samples] == [(s.prompt, s.text) for s in samples]
    assert view.snapshots == (0, 4, 8, 12)


def test_its_snapshot_is_an_encoder_decoder_with_the_same_logits(manager: RunManager, tmp_path: Path) -> None:
    run = manager.start(spec(), ME)
    ended(manager, run)
    found = manager.trained(run, 8)
    assert isinstance(found, PairCheckpoint) and found.metrics["step"] == 8
    assert found.tokenizer.decode(found.tokenizer.encode("abc")) == "abc"
    snapshots = [r for r in train_pairs(TEXT.fitted(MODEL), SHORT, TEXT) if isinstance(r, Snapshot)]
    (state,) = [s.state for s in snapshots if s.step == 8]
    same = build_pair(TEXT.fitted(MODEL)).eval()
    same.load_state_dict(state.weights())
    source, target = torch.tensor([[3, 5, 4, 2]]), torch.tensor([[1, 4, 5]])
    torch.testing.assert_close(found.model(source, target), same(source, target), rtol=1e-5, atol=1e-6)
    with pytest.raises(RunError, match="Cross-attention"):
        manager.model(run, 8)

    with zipfile.ZipFile(io.BytesIO(manager.checkpoint(run))) as archive:
        archive.extractall(tmp_path)
    taken = load_pair(tmp_path)
    newest = manager.trained(run)
    assert isinstance(newest, PairCheckpoint) and taken.metrics["step"] == 12
    assert torch.equal(taken.model(source, target), newest.model(source, target))


@pytest.mark.skipif(shakespeare_path() is None, reason="needs Tiny Shakespeare")
def test_a_run_of_labels_gives_what_train_labels_gives(manager: RunManager) -> None:
    text = speakers().text
    model = replace(MODEL, vocab_size=text.vocab_size)
    run = manager.start(spec(model=model, corpus=kinds.SPEAKERS), ME)
    view = ended(manager, run)
    assert view.status == "finished"
    records = list(train_labels(text.fitted(model), SHORT, text))
    np.testing.assert_allclose(
        view.history.losses, [r.loss for r in records if isinstance(r, Step)], rtol=1e-5
    )
    found = manager.trained(run)
    assert isinstance(found, LabelCheckpoint) and found.labels == text.labels
    assert view.parameters == sum(p.numel() for p in found.model.parameters())
    assert set(zipfile.ZipFile(io.BytesIO(manager.checkpoint(run))).namelist()) == set(checkpoints.FILES)


def test_what_does_not_go_together_is_refused_in_a_sentence(manager: RunManager) -> None:
    for wrong, field in (
        (spec(model=replace(MODEL, vocab_size=99)), "vocab_size"),
        (spec(replace(SHORT, tokenizer="byte")), "tokenizer"),
        (spec(replace(SHORT, objective="masked")), "objective"),
        (spec(replace(SHORT, repeat=0.5)), "repeat"),
        (spec(model=replace(MODEL, window=4)), "window"),
        (spec(model=replace(MODEL, wiring="parallel")), "wiring"),
    ):
        with pytest.raises(ConfigError) as error:
            manager.start(wrong, ME)
        assert error.value.field == field
    with pytest.raises(RunError, match="pairs-poems"):
        manager.start(spec(corpus="pairs-poems"), ME)
    with pytest.raises(CorpusError, match="labels-speakers"):
        kinds.LABELS.read("labels-poets", "")
    small = replace(PROFILE, max_parameters=view_parameters() - 1)
    with pytest.raises(ConfigError, match=f"{view_parameters():,} parameters"):
        profiles.check(small, spec())
    narrow = replace(PROFILE, max_batch_tokens=103)  # 4 pairs of 13 + 13 places
    with pytest.raises(ConfigError, match="makes 104 tokens a step"):
        profiles.check(narrow, spec())


def view_parameters() -> int:
    return sum(p.numel() for p in build_pair(TEXT.fitted(MODEL)).parameters())


def test_a_stored_race_of_pairs_opens_as_it_was(tmp_path: Path) -> None:
    made = run_race([spec()], "by a test", device="cpu")
    made.save(tmp_path / "race.json")
    (view,) = load_race(tmp_path / "race.json").runs
    assert view.spec == spec() and view.parameters == view_parameters()
    assert [e.task for e in view.history.evaluations] == [e.task for e in made.runs[0].history.evaluations]


def test_every_task_has_a_recipe_that_may_be_started() -> None:
    names = [n for n in kinds.NAMES if kinds.kind_of(n) is not kinds.TEXTS]
    assert len(names) == 7
    for name in names:
        if name == kinds.SPEAKERS and shakespeare_path() is None:
            continue
        model, train = kinds.recipe(name)
        profiles.check(profiles.PROFILES["hosted"], RunSpec(model, train, name))
        data = kinds.kind_of(name).read(name, "")
        longest = (
            max(data.longest) if kinds.kind_of(name) is kinds.PAIRS else data.fitted(ModelConfig()).context
        )
        assert model.context == longest and model.vocab_size == data.vocab_size


def test_the_work_of_a_step_is_that_of_both_towers() -> None:
    """By hand: products of one token of each, 13 long, moved three times over, four pairs at once."""
    decoder, encoder = kinds.PAIRS.counted(MODEL, NAME)
    assert encoder is not None and (decoder.context, encoder.context) == (13, 13)
    both = step_work(decoder, SHORT, encoder=encoder)
    assert both > step_work(decoder, SHORT) + 0.8 * step_work(encoder, SHORT)
    assert Pace(decoder, SHORT, 10, 2.0, encoder=encoder).work_a_second == pytest.approx(5 * both)
    short = kinds.PAIRS.seconds(MODEL, SHORT, NAME, 0, 1e9, profiles.HEALTHY)
    long = kinds.PAIRS.seconds(MODEL, replace(SHORT, steps=1012), NAME, 0, 1e9, profiles.HEALTHY)
    looks = 1012 // 4 - 12 // 4
    assert long - short > 1000 * both / 1e9 and looks == 250
    assert kinds.TEXTS.towers(MODEL, "python") == (MODEL, None) and "python" in corpora.NAMES
