"""No check fires on a healthy model, whatever it is made of, before and after a training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import corpora
from engine.config import ModelConfig, TrainConfig
from engine.doctor.case import Case, Course
from engine.doctor.checks import CHECKS, examine
from engine.errors import CorpusError
from engine.model import build
from engine.presets import PRESETS
from engine.presets.own import OWN
from engine.progress import finish
from engine.training.lapse import open_lapse
from engine.training.records import Evaluation, Snapshot
from engine.training.train import train
from tests.engine.cases import for_each
from tests.engine.helpers import loud, verse
from tests.engine.trainings import losses, only

CORPUS = verse()
BASE = ModelConfig(CORPUS.vocab_size, context=16, d_model=32, n_layers=2, n_heads=4, position="rope")
QUICK = [name for name, check in CHECKS.items() if not check.slow]
# the verses repeat themselves: that is the text's doing
UNSEEN = [name for name in QUICK if name != "unseen"]
EACH = {
    "wiring": ("pre", "post", "parallel"), "position": ("none", "sinusoidal", "learned", "rope", "alibi", "t5"),
    "ffn": ("relu", "relu2", "gelu", "gelu_tanh", "swiglu", "geglu", "geglu_tanh", "none"),
    "norm": ("layernorm", "rmsnorm", "none"), "mixer": ("none", "mean", "similarity", "shared_qk"),
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    **{f"{field} {value}": {field: value} for field, values in EACH.items() for value in values},
    **{f"average, {p}": {"mixer": "mean", "position": p} for p in ("none", "learned", "alibi", "t5")},
    "grouped": {"n_kv_heads": 2}, "one key head": {"n_kv_heads": 1}, "untied": {"tie_embeddings": False},
    "biases": {"attention_bias": True, "ffn_bias": True, "norm_bias": True}, "window": {"window": 5},
    "normed queries": {"qk_norm": True, "qk_gain": True}, "twelve blocks": {"n_layers": 12},
    "one block": {"n_layers": 1}, "dropout": {"dropout": 0.2}, "no output projection": {"output_projection": False},
    "wide heads": {"d_head": 16}, "many heads": {"n_heads": 16}, "scaled embedding": {"embedding_scale": True},
    "T5's": {"position": "t5", "score_scale": False, "norm": "rmsnorm"}, "normed embedding": {"embedding_norm": True},
    "an encoder": {"causal": False, "vocab_size": CORPUS.vocab_size + 1}, "short": {"context": 4},
}  # fmt: skip


def settings(config: ModelConfig, **rest: Any) -> TrainConfig:
    objective = "next_token" if config.causal else "masked"
    usual = {"steps": 40, "batch_size": 4, "learning_rate": 3e-3, "warmup_steps": 5, "precision": "float32"}
    looks = {"eval_every": 0, "sample_every": 0, "objective": objective}
    return TrainConfig(**usual | looks | rest)


def fired(case: Case, names: list[str] = UNSEEN) -> list[str]:
    return [f"{f.check}: {f.sentence}" for f in finish(examine(case, names)) if f.verdict == "fail"]


@for_each(
    "config, seed",
    [(replace(BASE, **fields), i % 3) for i, fields in enumerate(KINDS.values())],
    KINDS,
    fast=16,
)
def test_no_check_fires_before_a_training(config: ModelConfig, seed: int) -> None:
    case = Case(build(config, seed), corpus=CORPUS, train=settings(config, seed=seed))
    assert fired(case) == []


@for_each("config", [replace(BASE, **fields) for fields in KINDS.values()], ids=KINDS, fast=16)
def test_no_check_of_the_model_fires_when_weights_are_large(config: ModelConfig) -> None:
    model = [name for name in UNSEEN if CHECKS[name].needs == "model"]
    assert fired(Case(loud(config, 1)), model) == []


@pytest.mark.exhaustive
@for_each("seed", [0, 1])
@for_each("kind", ["wiring pre", "wiring post", "position learned", "grouped"])
def test_no_check_fires_after_one(kind: str, seed: int) -> None:
    config = replace(BASE, **KINDS[kind])
    how = settings(config, steps=300, batch_size=8, seed=seed)
    records = list(train(config, how, CORPUS, device="cpu"))
    model = build(config)
    model.load_state_dict(only(records, Snapshot)[-1].state.weights())
    course = Course(np.arange(1, 301), np.array(losses(records)), tuple(only(records, Evaluation)))
    names = [name for name in CHECKS if name not in ("unseen", "gap")]  # of a text that repeats itself
    found = finish(examine(Case(model, corpus=CORPUS, train=how, course=course), names))
    assert [f"{f.check}: {f.sentence}" for f in found if f.verdict == "fail"] == []
    assert sum(f.verdict == "pass" for f in found) >= 14


@for_each("name", OWN, fast=4)
def test_no_check_fires_on_a_preset(name: str) -> None:
    preset = PRESETS[name]
    config = replace(preset.model, vocab_size=CORPUS.vocab_size)
    assert fired(Case(build(config), corpus=CORPUS, train=preset.train)) == []


@pytest.mark.parametrize(
    "step", [0, 100, *(pytest.param(step, marks=pytest.mark.exhaustive) for step in (8, 600, 1000))]
)
def test_no_check_fires_at_any_age(step: int) -> None:
    """On the time-lapse that comes with the app: a young model writes noise, and is healthy."""
    try:
        corpus = corpora.load("shakespeare")
    except CorpusError:
        pytest.skip("Tiny Shakespeare is not here")
    lapse = open_lapse(Path(__file__).parents[3] / "checkpoints" / "timelapse")
    assert fired(Case(lapse.at(step).model, corpus=corpus, train=lapse.train), QUICK) == []
