"""No check fires on a healthy model, every fault of the lab is caught by one, and what is stored was found so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.config import ModelConfig, TrainConfig
from engine.data.corpus import Corpus
from engine.data.progress import finish
from engine.model import build
from engine.parts.registry import FEEDFORWARDS, MIXERS, POSITIONS, parts_of
from engine.presets.small import SMALL
from engine.training.records import Evaluation, Snapshot, Step
from engine.training.train import train
from runs.snapshot_series import open_lapse
from studies.costs.presets import PRESETS
from studies.lab.doctor import table
from studies.lab.doctor.case import Case, TrainingCurve
from studies.lab.doctor.checks import CHECKS, examine
from studies.lab.doctor.table import HEALTHY, PATH, Chart, read, subject_of
from studies.lab.faults import FAULTS
from tests.engine.cases import for_each
from tests.engine.helpers import loud, verse
from tests.engine.trainings import losses, only

CORPUS = verse()
BASE = ModelConfig(CORPUS.vocab_size, context=16, d_model=32, n_layers=2, n_heads=4, position="rope")
QUICK = [name for name, check in CHECKS.items() if not check.slow]
# the verses repeat themselves: that is the text's doing
UNSEEN = [name for name in QUICK if name != "unseen"]
EACH = {
    "wiring": ("pre", "post", "parallel"), "position": tuple(POSITIONS), "ffn": tuple(FEEDFORWARDS),
    "norm": ("layernorm", "rmsnorm", "none"), "mixer": tuple(name for name in MIXERS if name != "attention"),
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
ROWS: dict[str, Any] = json.loads(PATH.read_text("utf-8"))["rows"]
# Which check is meant for which fault: the others may find it, too.
FOUND_BY = {
    "no_mask": "future", "transposed_mask": "future", "leaky_mask": "future", "mask_after_softmax": "rows",
    "unscaled_scores": "spread", "softmax_over_queries": "rows", "half_softmax": "range",
    "no_transpose": "reference", "keys_not_normed": "reference", "no_positions": "order",
    "positions_twice": "reference", "no_residual": "reference", "first_block_only": "shapes",
    "norm_in_loop": "reference", "unscaled_writes": "gradients", "no_clipping": "clipped",
    "loud_embedding": "first_loss", "reshaped_tie": "reference", "not_shifted": "targets",
    "shifted_by_two": "targets", "dropout_left_on": "twice", "overlapping_split": "unseen",
}  # fmt: skip
OVER_A_TRAINING = {"post_norm_no_warmup", "learning_rate_30x", "no_clipping_sgd", "loud_positions"}


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
    fast=5,
)
def test_no_check_fires_before_a_training_nor_where_weights_are_large(config: ModelConfig, seed: int) -> None:
    assert fired(Case(build(config, seed), corpus=CORPUS, train=settings(config, seed=seed))) == []
    assert fired(Case(loud(config, 1)), [name for name in UNSEEN if CHECKS[name].needs == "model"]) == []


@pytest.mark.exhaustive
@for_each("seed", [0, 1])
@for_each("kind", ["wiring pre", "wiring post", "position learned", "grouped"])
def test_no_check_fires_after_one(kind: str, seed: int) -> None:
    config = replace(BASE, **KINDS[kind])
    how = settings(config, steps=300, batch_size=8, seed=seed)
    records = list(train(config, how, CORPUS, device="cpu"))
    model = build(config)
    model.load_state_dict(only(records, Snapshot)[-1].state.weights())
    curve = TrainingCurve(np.arange(1, 301), np.array(losses(records)), tuple(only(records, Evaluation)))
    names = [name for name in CHECKS if name not in ("unseen", "gap")]  # of a text that repeats itself
    found = finish(examine(Case(model, corpus=CORPUS, train=how, curve=curve), names))
    assert [f"{f.check}: {f.sentence}" for f in found if f.verdict == "fail"] == []
    assert sum(f.verdict == "pass" for f in found) >= 14


@for_each("name", SMALL, fast=("modern",))
def test_no_check_fires_on_a_preset(name: str) -> None:
    preset = PRESETS[name]
    config = replace(preset.model, vocab_size=CORPUS.vocab_size)
    assert fired(Case(build(config), corpus=CORPUS, train=preset.train)) == []


@pytest.mark.parametrize(
    "step", [100, *(pytest.param(step, marks=pytest.mark.exhaustive) for step in (0, 8, 600, 1000))]
)
def test_no_check_fires_at_any_age(step: int, shakespeare: Corpus) -> None:
    """On the time-lapse that comes with the app: a young model writes noise, and is healthy."""
    lapse = open_lapse(Path(__file__).parents[3] / "checkpoints" / "timelapse")
    assert fired(Case(lapse.at(step).model, corpus=shakespeare, train=lapse.train), QUICK) == []


def test_every_fault_has_its_check() -> None:
    assert set(FOUND_BY) | OVER_A_TRAINING == set(FAULTS)


@for_each("name", FOUND_BY)
def test_a_fault_is_found_before_any_training(name: str) -> None:
    fault = FAULTS[name]
    how = TrainConfig(steps=20, batch_size=4, precision="float32")
    meant, _, _ = fault.healthy(BASE, how)
    config, settings, parts = fault.faulty(BASE, how)
    model = build(config, parts=parts_of(parts), init=settings.init)
    case = Case(model, meant, CORPUS, settings)
    check = CHECKS[FOUND_BY[name]]
    found = finish(examine(case, [check.name]))[0]
    assert found.verdict == "fail", found
    healthy = Case(build(meant), meant, CORPUS, fault.healthy(BASE, how)[1])
    if name != "overlapping_split":  # the verses repeat themselves anyhow
        assert finish(examine(healthy, [check.name]))[0].verdict == "pass"


@for_each("name", ROWS)
def test_what_is_stored_is_whole(name: str) -> None:
    chart = read(name, ROWS[name])
    assert isinstance(chart, Chart) and list(chart.findings) == list(CHECKS)
    assert len(chart.losses) == len(chart.steps) and chart.steps[0] == table.STRIDE
    assert chart.samples and chart.evaluations
    assert bool(chart.caught_by) == (name != HEALTHY), chart.caught_by
    for found in chart.findings.values():
        assert found.sentence and (found.number is None) >= (found.verdict == "not applicable")
        check = CHECKS[found.check]
        if found.number is not None:
            inside = check.low <= found.number <= check.high
            assert inside == (found.verdict == "pass"), found


def test_a_part_of_what_is_stored_is_found_again(shakespeare: Corpus) -> None:
    """The first loss and the targets need no training: the fault's own start and batch give the stored numbers."""
    for name in sorted(set(ROWS) & {HEALTHY, "not_shifted", "unscaled_scores", "shifted_by_two"}):
        fault = subject_of(name)
        config, settings, parts = fault.faulty()
        config = replace(config, vocab_size=shakespeare.vocab_size)
        case = Case(build(config, parts=parts_of(parts)), None, shakespeare, settings)
        for found in finish(examine(case, ["first_loss", "targets", "spread"])):
            stored = ROWS[name]["findings"][found.check]
            assert found.verdict == stored[0]
            assert found.number == pytest.approx(stored[1], rel=1e-3, abs=1e-3), (name, found.check)


def test_the_command_makes_what_is_read(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a small text, for two models; what was trained is not trained again."""
    small = ModelConfig(context=16, d_model=32, n_layers=1, n_heads=2, vocab_size=CORPUS.vocab_size)
    how = TrainConfig(30, 4, precision="float32", sample_every=30, sample_length=8, sample_prompt="\n")

    def shrunk(fault: Any) -> Any:
        healthy, faulty = fault.healthy(small, how), fault.faulty(small, how)
        return SimpleNamespace(
            name=fault.name, parts=fault.parts, characters=0, healthy=lambda: healthy, faulty=lambda: faulty
        )

    pairs = {HEALTHY: subject_of(HEALTHY), "transposed_mask": FAULTS["transposed_mask"]}
    monkeypatch.setattr(table, "subject_of", lambda name: shrunk(pairs[name]))
    trained, times = table.trained, []
    monkeypatch.setattr(table, "trained", lambda one, corpus: times.append(one.name) or trained(one, corpus))
    for _ in range(2):
        table.make(tmp_path, tmp_path / "work", CORPUS, list(pairs), [])
    assert times == [HEALTHY, "transposed_mask"]
    rows = json.loads((tmp_path / table.NAME).read_text("utf-8"))["rows"]
    chart = read("transposed_mask", rows["transposed_mask"])
    assert "future" in chart.caught_by and "future" not in read(HEALTHY, rows[HEALTHY]).caught_by
    assert chart.counting == pytest.approx(CORPUS.baselines["unigram"], abs=1e-4)
    assert chart.samples[-1].step == 30
    records = train(small, replace(how, **table.LOOKS), CORPUS, device="cpu")  # type: ignore[arg-type]
    losses = [record.loss for record in records if isinstance(record, Step)]
    means = np.reshape(losses, (-1, table.STRIDE)).mean(1)
    assert rows[HEALTHY]["losses"] == pytest.approx(means, abs=1e-3)
