"""A time-lapse: what is kept is what was trained, an interrupted one goes on, a damaged one is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from engine.checkpoints import METRICS
from engine.data import corpora
from engine.errors import CheckpointError
from engine.model import Transformer
from engine.training.records import Record, Snapshot, TrainState
from engine.training.train import train
from runs.snapshot_series import Lapse, name_of, open_lapse
from studies.attention.head_scores import head_scores
from studies.experiments import timelapse
from studies.experiments.timelapse import STEPS, recipe, take
from tests.engine.cases import for_each
from tests.engine.trainings import CORPUS, MODEL, TRAIN

SETTINGS = replace(TRAIN, steps=6, eval_every=0, sample_every=0, snapshot_every=0, repeat=0.5)
KEPT = (0, 1, 2, 4)
SHIPPED = Path(__file__).parents[2] / "checkpoints" / "timelapse"


def taken(folder: Path) -> Lapse:
    return take(folder / "into", folder / "work", CORPUS, MODEL, SETTINGS, KEPT)


def trained() -> dict[int, TrainState]:
    every = replace(SETTINGS, snapshot_every=1)
    records = train(MODEL, every, CORPUS, device="cpu", score_heads=head_scores)
    return {record.step: record.state for record in records if isinstance(record, Snapshot)}


@pytest.fixture(scope="module")
def lapse(tmp_path_factory: pytest.TempPathFactory) -> Lapse:
    return taken(tmp_path_factory.mktemp("lapse"))


def test_the_chosen_steps_and_the_last_are_kept_as_they_were_trained(lapse: Lapse) -> None:
    assert lapse.steps == (0, 1, 2, 4, 6) and lapse.train == SETTINGS
    assert lapse.config == replace(MODEL, vocab_size=CORPUS.vocab_size).resolved()
    states = trained()
    for step in lapse.steps:
        found = dict(lapse.at(step).model.named_parameters())
        for name, weights in states[step].weights().items():
            assert torch.equal(found[name], weights.half().float()), (step, name)
    before, after = (dict(lapse.at(step).model.named_parameters()) for step in (4, 6))
    assert not any(torch.equal(before[name], after[name]) for name in before)


def loss_by_hand(model: Transformer, tokens: torch.Tensor, length: int) -> float:
    """Windows side by side, the last and shorter one too; nats per token."""
    with torch.inference_mode():
        pieces = [tokens[i : i + length + 1] for i in range(0, len(tokens) - 1, length)]
        nats = [F.cross_entropy(model(one[None, :-1])[0], one[1:], reduction="sum") for one in pieces]
    return float(sum(nats)) / (len(tokens) - 1)


@for_each("index", [0, -1])
def test_a_look_is_of_the_stored_model_on_the_text_as_it_is(lapse: Lapse, index: int) -> None:
    look = lapse.looks[index]
    model = lapse.at(look.step).model
    by_hand = loss_by_hand(model, CORPUS.validation, MODEL.context)
    assert look.complete and look.validation_loss == pytest.approx(by_hand, abs=2e-4)
    assert look.validation_bits == pytest.approx(by_hand / np.log(2), abs=2e-4)
    assert look.heads == timelapse.rounded(head_scores(model, CORPUS.tokenizer)), "of the same model"
    assert abs(look.train_loss - loss_by_hand(model, CORPUS.train, MODEL.context)) < 0.2, "of a part of it"


def test_an_interrupted_one_goes_on_where_it_was(
    lapse: Lapse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def until(step: int) -> Callable[..., Iterator[Record]]:
        def some(*arguments: Any, **named: Any) -> Iterator[Record]:
            for record in train(*arguments, **named):
                yield record
                if isinstance(record, Snapshot) and record.step == step:
                    raise KeyboardInterrupt

        return some

    begun = []

    def noted(*arguments: Any, **named: Any) -> Iterator[Record]:
        begun.append(named["resume"] and named["resume"].step)
        return train(*arguments, **named)

    monkeypatch.setattr(timelapse, "train", until(2))
    with pytest.raises(KeyboardInterrupt):
        taken(tmp_path)
    monkeypatch.setattr(timelapse, "train", noted)
    again = taken(tmp_path)
    assert begun == [2] and again.steps == lapse.steps
    for step in lapse.steps:
        one, other = (load_file(it.folder / name_of(step)) for it in (lapse, again))
        assert all(torch.equal(one[name], other[name]) for name in one), step
    other = replace(SETTINGS, seed=1)
    with pytest.raises(CheckpointError, match="another recipe"):
        take(tmp_path / "into", tmp_path / "work", CORPUS, MODEL, other, KEPT)


def _copied(lapse: Lapse, tmp_path: Path) -> Path:
    return Path(shutil.copytree(lapse.folder, tmp_path / "copied"))


@for_each("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-7])])
def test_a_damaged_step_is_refused_and_the_others_are_read(
    lapse: Lapse, tmp_path: Path, damage: Callable[..., None]
) -> None:
    lapse = open_lapse(_copied(lapse, tmp_path))
    damage(lapse.folder / name_of(2))
    with pytest.raises(CheckpointError):
        lapse.at(2)
    lapse.at(1)
    with pytest.raises(CheckpointError, match="no model of step 3"):
        lapse.at(3)


@for_each("edit", [
    lambda metrics: metrics.pop("looks"),
    lambda metrics: metrics.update(looks=[]),
    lambda metrics: metrics.update(looks={"a": 1}),
    lambda metrics: metrics["looks"].reverse(),
    lambda metrics: metrics["looks"][1].update(step="1"),
    lambda metrics: metrics["looks"][1].update(validation_loss=float("nan")),
    lambda metrics: metrics["looks"][1].update(unknown=1),
    lambda metrics: metrics["looks"][1]["heads"]["induction"].pop(),
    lambda metrics: metrics["looks"][1]["heads"].update(first_loss="4"),
    lambda metrics: metrics["looks"][1].update(heads=[1]),
    lambda metrics: metrics["train"].update(repeat="half"),
    lambda metrics: metrics.pop("train"),
])  # fmt: skip
def test_edited_facts_are_refused(lapse: Lapse, tmp_path: Path, edit: Callable[..., object]) -> None:
    folder = _copied(lapse, tmp_path)
    metrics = json.loads((folder / METRICS).read_text())
    edit(metrics)
    for written in (json.dumps(metrics), "{"):
        (folder / METRICS).write_text(written)
        with pytest.raises(CheckpointError):
            open_lapse(folder)


@pytest.fixture(scope="module")
def shipped() -> Lapse:
    return open_lapse(SHIPPED)


def test_the_shipped_one_is_its_recipe_and_small_enough(shipped: Lapse) -> None:
    model, settings = recipe()
    assert shipped.config == replace(model, vocab_size=65).resolved() and shipped.train == settings
    assert shipped.steps == STEPS and 35 <= len(STEPS) <= 40
    size = sum(path.stat().st_size for path in SHIPPED.iterdir())
    kinds = ("previous", "induction")
    reads, copies = (next(one.step for one in shipped.formed if one.kind == kind) for kind in kinds)
    between = [step for step in STEPS if reads < step < copies]
    assert len(between) >= 5, "first a head reads the token before, and some snapshots later one copies"
    assert size <= 16e6 and len(list(SHIPPED.iterdir())) == len(STEPS) + 3


def test_heads_form_in_the_shipped_one_and_what_comes_again_gets_cheap(shipped: Lapse) -> None:
    first, last = shipped.looks[0], shipped.looks[-1]
    assert first.heads and last.heads
    assert max(max(row) for row in first.heads.induction) < 0.1 < 0.6 < max(last.heads.induction[1])
    kinds = {(one.kind, one.layer) for one in shipped.formed}
    assert kinds == {("previous", 0), ("induction", 1)}, "the copying head stands above the one it reads from"
    assert first.heads.second_loss > 3.9 and last.heads.second_loss < 0.5
    assert last.heads.first_loss > 3.9, "letters that did not come yet stay a riddle"
    assert first.validation_loss > 4.1 and last.validation_loss < 1.9


@pytest.mark.exhaustive
@pytest.mark.parametrize("step", [0, 1000])
def test_the_shipped_losses_are_what_the_stored_models_reach(shipped: Lapse, step: int) -> None:
    if corpora.shakespeare_path() is None:
        pytest.skip("Tiny Shakespeare is not on this machine: set GLASSFORMER_DATA")
    (look,) = (look for look in shipped.looks if look.step == step)
    checkpoint = shipped.at(step)
    assert checkpoint.metrics["validation_loss"] == look.validation_loss
    validation = corpora.load("shakespeare").validation
    assert look.validation_loss == pytest.approx(loss_by_hand(checkpoint.model, validation, 64), abs=2e-3)
