"""A fault is a swap of parts: it is honoured by training, survives a snapshot and a file, and says its name."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.checkpoints import pack, unpack
from engine.config import ModelConfig, ResolvedConfig, SampleConfig, TrainConfig
from engine.errors import CheckpointError, ConfigError
from engine.faults import PARTS, parts_of
from engine.ledger import ledger, parameter_formula
from engine.measure.caching import cache_size, compare, filled_bytes
from engine.measure.caching_totals import sharing
from engine.measure.shared_keys import shared_keys
from engine.model import build
from engine.parts.attention import Attention
from engine.parts.feedforward import Gelu
from engine.parts.registry import HEALTHY, Parts, swapped
from engine.sample import complete
from engine.service.profiles import PROFILES, check, check_model, estimate_bytes
from engine.service.state import Run, RunSpec
from engine.tokenizers import from_dict
from engine.training.batches import Batches
from engine.training.estimate import Pace, forward_flops
from engine.training.evaluation import measure
from engine.training.records import Snapshot, Step
from engine.training.train import train
from tests.engine.cases import for_each
from tests.engine.helpers import tiny, verse
from tests.engine.toys import TOYS, RunningMean

CORPUS = verse()
MODEL = ModelConfig(vocab_size=CORPUS.vocab_size, context=16, d_model=32, n_layers=1, n_heads=2, dropout=0.2)
TRAIN = TrainConfig(steps=4, batch_size=4, eval_every=0, sample_every=0, precision="float32", warmup_steps=0)
FAULT = "unscaled_scores"


def test_a_name_that_is_none_is_refused_with_those_that_are() -> None:
    spec = RunSpec(MODEL, TRAIN, "text", "abc " * 99, parts="other")
    for call, said in (
        (lambda: parts_of("no_such_fault"), "must be one of healthy, unscaled_scores"),
        (lambda: train(MODEL, TRAIN, CORPUS, parts="other"), "parts = 'other'"),
        (lambda: check(PROFILES["local"], spec), "parts"),
    ):
        with pytest.raises(ConfigError, match=said):
            call()


@for_each("name", PARTS)
def test_a_file_remembers_what_its_model_is_made_of(name: str) -> None:
    model = build(tiny(vocab_size=CORPUS.vocab_size), parts=PARTS[name])
    data = pack(model, CORPUS.tokenizer, {})
    config = json.loads(zipfile.ZipFile(io.BytesIO(data)).read("config.json"))
    assert config.get("parts", "healthy") == name and ("parts" in config) == (name != "healthy")
    found = unpack(data)
    assert found.model.parts is PARTS[name] and found.model.config == model.config
    tokens = torch.tensor([[3, 1, 4, 1]])
    assert torch.equal(found.model(tokens), model.eval()(tokens))
    again = unpack(pack(found.model, from_dict(found.tokenizer.to_dict()), {})).model
    assert again.parts is copy.deepcopy(model).parts is PARTS[name]


def test_a_file_with_parts_that_nobody_knows_is_refused() -> None:
    with pytest.raises(CheckpointError, match="toy norm"):
        pack(build(MODEL, parts=TOYS["norm"]), CORPUS.tokenizer, {})
    data = pack(build(MODEL, parts=PARTS[FAULT]), CORPUS.tokenizer, {})
    other = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(other, "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info).replace(FAULT.encode(), b"another"))
    with pytest.raises(CheckpointError, match="must be one of healthy"):
        unpack(other.getvalue())


def test_the_mode_is_a_seam() -> None:
    """A mode that never leaves training: an evaluation drops, and so does a sample."""
    asked: list[bool] = []

    def forgotten(model: torch.nn.Module, training: bool) -> None:
        asked.append(training)
        model.train(True)

    parts = swapped(HEALTHY, "forgotten", mode=forgotten)
    batches = Batches(CORPUS, MODEL, TRAIN)
    faulty, healthy = build(MODEL, parts=parts), build(MODEL)
    found = [measure(faulty, batches, CORPUS.validation[:200]).nats for _ in range(2)]
    same = [measure(healthy, batches, CORPUS.validation[:200]).nats for _ in range(2)]
    assert found[0] != found[1] and same[0] == same[1] and asked == [False, True] * 2
    complete(faulty, CORPUS.tokenizer, "gre", 2, 0.0, 0)
    assert asked[4:] == [False, True] and healthy.training


@pytest.mark.parametrize(("name", "optimizer"), [("norm", "adamw"), ("position", "muon"), ("mixer", "muon")])
def test_a_part_that_nobody_has_seen_can_be_trained(
    name: str, optimizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PARTS, name, TOYS[name])  # type: ignore[arg-type]
    order = replace(TRAIN, steps=12, optimizer=optimizer, learning_rate=0.01)
    records = list(train(MODEL, order, CORPUS, parts=name))
    told = [r.loss for r in records if isinstance(r, Step)]
    assert sum(told[-3:]) < sum(told[:3]) - 0.5
    state = next(r.state for r in records if isinstance(r, Snapshot))
    assert set(state.weights()) == {n for n, _ in build(MODEL, parts=TOYS[name]).named_parameters()}


SHARP = "toy mixer"


@pytest.fixture
def sharp(monkeypatch: pytest.MonkeyPatch) -> Parts:
    """A fault that has more tensors than what it stands for."""
    monkeypatch.setitem(PARTS, SHARP, TOYS["mixer"])  # type: ignore[arg-type]
    more = parameter_formula(MODEL, TOYS["mixer"])
    assert more == sum(p.numel() for p in build(MODEL, parts=TOYS["mixer"]).parameters())
    assert more != parameter_formula(MODEL)
    return TOYS["mixer"]


def test_limits_and_runs_count_the_parts_that_they_are_given(sharp: Parts) -> None:
    spec = RunSpec(MODEL, TRAIN, "text", "abc " * 99, parts=SHARP)
    there = parameter_formula(MODEL, sharp)
    assert Run("a", "me", spec, Path("unused"), 0.0).parameters == there
    fewer, more = sorted((parameter_formula(MODEL), there))
    refused, allowed = (sharp, HEALTHY) if there == more else (HEALTHY, sharp)
    profile = replace(PROFILES["local"], max_parameters=fewer)
    checks = (
        lambda parts: check_model(profile, MODEL, parts),
        lambda parts: check(profile, replace(spec, parts=parts.name)),
    )
    for called in checks:
        called(allowed)
        with pytest.raises(ConfigError, match=f"{more:,} parameters"):
            called(refused)


def test_what_writing_costs_is_the_model_s_own() -> None:
    """A mixer that is no HeadMixer: two products fewer, and a cache of its own width."""
    parts = swapped(HEALTHY, "no heads", mixers={"attention": RunningMean})
    model = build(MODEL, parts=parts).eval().requires_grad_(False)
    exact = ledger(MODEL, parts=parts)
    (pair,) = compare(model, (1, 2, 3), 1, SampleConfig())
    assert pair.flops == 3 * exact.flops(3).forward != 3 * ledger(MODEL).flops(3).forward
    filled, _ = filled_bytes(model, (1, 2, 3))
    assert cache_size(MODEL, 3, parts=parts).formula == filled
    halved = swapped(HEALTHY, "one of the two", mixers={"attention": KeepsKeysAlone})
    size = cache_size(MODEL, 10, parts=halved)
    assert (size.formula, size.numbers, size.tensor) == (32 * 10 * 4, "1 · 32 · 10 · 4", 2 * 32 * 10 * 4)
    assert sharing(MODEL, 10, "float32", halved).sizes[2].formula == size.formula
    found = shared_keys(MODEL, 2, 2, 4, halved)
    assert found.cache_bytes_per_token == 32 * 4 and found.parameters == 2 * 32 * 32


class KeepsKeysAlone(Attention):
    """An Attention that says that half the numbers are kept."""

    @classmethod
    def cached(cls, config: ResolvedConfig) -> int:
        return config.n_kv_heads * config.d_head


def test_the_memory_of_a_training_is_that_of_its_parts() -> None:
    """A network with four times as many numbers kept asks for more, by twice their bytes."""

    class Hoarder(Gelu):
        widths_kept = 8

    parts = swapped(HEALTHY, "hoarder", feedforwards={MODEL.ffn: Hoarder})
    more = estimate_bytes(MODEL, TRAIN, parts) - estimate_bytes(MODEL, TRAIN)
    wider = 8 - HEALTHY.feedforward(MODEL.resolved()).widths_kept  # type: ignore[attr-defined]
    numbers = wider * MODEL.resolved().d_ff * TRAIN.batch_size * MODEL.context * MODEL.n_layers
    assert more == 2 * 4 * numbers


def test_how_long_it_takes_follows_the_parts(sharp: Parts) -> None:
    assert forward_flops(MODEL, sharp) == ledger(MODEL, parts=sharp).flops().forward
    assert forward_flops(MODEL, sharp) != forward_flops(MODEL)
    paces = [Pace(MODEL, TRAIN, 4, 1.0, parts).work_a_second for parts in (HEALTHY, sharp)]
    fewer = 4 * 3 * (forward_flops(MODEL) - forward_flops(MODEL, sharp)) * TRAIN.batch_size * MODEL.context
    assert paces[0] - paces[1] >= fewer > 0
