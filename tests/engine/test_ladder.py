"""The ladder's rungs: one idea each, the lecture's counts, and the command that repeats its experiment."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.config import ModelConfig, TrainConfig
from engine.corpora import from_text
from engine.errors import CheckpointError, ConfigError
from engine.faults import PARTS, parts_of
from engine.ledger import ledger
from engine.model import build, count_parameters
from engine.presets.ladder import LADDER, LECTURE, LECTURE_TRAINING, Published
from engine.training import ladder
from tests.engine.cases import for_each
from tests.engine.kept import kept

CORPUS = from_text("the quick brown fox jumps over the lazy dog. " * 60)
LOOKS = {"eval_every": 2, "eval_tokens": 128, "snapshot_every": 2, "sample_every": 3}
SHORT = replace(LECTURE_TRAINING, steps=6, batch_size=2, **LOOKS)


def test_the_lecture_s_counts_of_parameters() -> None:
    """V 65, d 256: 2 V d = 33,280 for the two tables; a matrix of attention d^2 = 65,536; a layer with its
    network 11 d^2.
    """
    by_hand = {
        "last": 33_280,
        "mean": 33_280,
        "similarity": 33_280,
        "shared": 33_280 + 2 * 65_536,
        "values": 33_280 + 3 * 65_536,
        **{f"attention-{n}": 33_280 + 3 * n * 65_536 for n in (1, 2, 4, 8)},
        **{f"block-{n}": 33_280 + 11 * n * 65_536 for n in (1, 2, 4, 8)},
        "block-4-sinusoidal": 33_280 + 44 * 65_536,
    }
    found = {name: count_parameters(p.rung.model, parts_of(p.rung.parts)) for name, p in LECTURE.items()}
    assert found == by_hand
    said = {name: p.parameters for name, p in LECTURE.items() if p.parameters}
    assert said == {name: found[name] for name in said}
    assert set(said.values()) == {33_280, 164_352, 229_888, 426_496, 819_712, 1_606_144}


@for_each("name", LADDER)
def test_a_rung_is_the_one_below_and_one_idea(name: str) -> None:
    rung = LADDER[name]
    rung.model.validate()
    if rung.below is None:
        assert name == "last"
        return
    below = LADDER[rung.below]
    differ = dict(rung.model.to_dict().items() - below.model.to_dict().items())
    assert differ == dict(rung.changes)
    assert differ or rung.parts != below.parts
    assert len(differ) <= 1 or name == "modern"


RAW: list[dict[str, Any]] = [
    {}, {"output_projection": False}, {"position": "rope"}, {"qk_norm": True},
    {"qk_norm": True, "qk_gain": True, "position": "rope"},
    {"norm": "none", "wiring": "none", "n_heads": 1, "output_projection": False, "ffn": "none"},
]  # fmt: skip


@for_each("mixer", ["shared_qk", "attention"])
@for_each("given", RAW, ids=str)
def test_attention_without_values_costs_what_it_says(mixer: str, given: dict[str, Any]) -> None:
    parts = PARTS["raw_values"]
    shape = {"vocab_size": 61, "context": 48, "d_model": 48, "n_layers": 3, "n_heads": 4, "mixer": mixer}
    config = ModelConfig(**(shape | given))
    assert ledger(config, parts=parts).total == count_parameters(config, parts)
    for batch, dtype in ((1, "float32"), (2, "float32"), (2, "bfloat16")):
        said = ledger(config, parts=parts).memory(dtype, batch=batch).activations
        assert kept(config, batch, 48, dtype, parts) == pytest.approx(said, rel=0.01)


def test_attention_without_values_needs_heads_that_are_slices_of_the_stream() -> None:
    parts = PARTS["raw_values"]
    for wrong in ({"n_kv_heads": 1}, {"d_head": 8}):
        with pytest.raises(ConfigError, match="slices of the stream"):
            build(ModelConfig(vocab_size=9, d_model=64, n_heads=4, **wrong), parts=parts)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> dict[str, Published]:
    """Two rungs at a width that trains in no time."""
    two = {name: LECTURE[name] for name in ("last", "values")}
    found = {
        name: replace(one, rung=replace(one.rung, model=one.rung.at(65, 16, 8))) for name, one in two.items()
    }
    monkeypatch.setattr(ladder, "LECTURE", found)
    return found


def climbed(name: str, work: Path, config: TrainConfig = SHORT) -> dict[str, Any]:
    ladder.climb(name, CORPUS, work, config)
    return json.loads((work / f"{name}.json").read_text())


def test_a_rung_that_was_broken_off_goes_on_to_the_same_end(
    small: dict[str, Published], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "whole").mkdir()
    whole = climbed("values", tmp_path / "whole")
    assert [point[0] for point in whole["curve"]] == [0, 2, 4, 6] and whole["of"] == 6

    real = ladder.train

    def broken(*args: Any, **more: Any) -> Any:
        for record in real(*args, **more):
            if getattr(record, "step", 0) == 5:
                raise KeyboardInterrupt
            yield record

    monkeypatch.setattr(ladder, "train", broken)
    with pytest.raises(KeyboardInterrupt):
        climbed("values", tmp_path)
    found = ladder.collect(tmp_path, tmp_path, CORPUS, SHORT)
    half = found.rungs["values"]
    assert half.steps == (0, 2, 4) and not half.finished and half.whole is None
    assert half.off is None and half.agrees is None and found.missing == ("last",)
    monkeypatch.setattr(ladder, "train", real)
    again = climbed("values", tmp_path)
    for key in ("curve", "whole", "text", "parameters"):
        assert again[key] == whole[key]


def test_what_the_app_reads_is_what_was_trained(small: dict[str, Published], tmp_path: Path) -> None:
    story = climbed("last", tmp_path)
    found = ladder.collect(tmp_path, tmp_path, CORPUS, SHORT).rungs["last"]
    assert found.finished and found.whole == story["whole"]
    points = zip(found.steps, found.train, found.validation, strict=True)
    assert list(map(list, points)) == story["curve"]
    assert found.off == pytest.approx(found.train[-1] - 2.45)
    assert found.agrees is (abs(found.train[-1] - 2.45) <= 0.05)
    lowest = min(found.validation)
    assert found.best == (found.steps[found.validation.index(lowest)], lowest)
    with pytest.raises(CheckpointError, match=r"engine\.pretrain ladder"):
        ladder.shipped(tmp_path / "no.json")
