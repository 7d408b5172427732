"""A training in the bar: the shipped time-lapse like a run, with the steps at which heads formed."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from engine.config import ModelConfig, TrainConfig
from engine.training.records import Evaluation, HeadScores, Step
from runs.history import HistoryLog
from runs.state import RunSpec
from tests.pages import helpers
from tests.pages.bar_page import given, opened, said
from tests.pages.helpers import in_address
from tests.pages.stage import StageManager, view_of
from ui import memo, models, timeline
from ui.models import LAPSES
from ui.site import ROOT
from ui.timeline import timeline_of

pytestmark = pytest.mark.usefixtures("manager")

FOLDER = ROOT / "checkpoints" / "timelapse"
(NAME,) = LAPSES
LOOKS = json.loads((FOLDER / "metrics.json").read_text())["looks"]


@pytest.fixture
def scrubbed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    found: list[dict[str, Any]] = []

    def noted(steps: Any, losses: Any, shown: int, **named: Any) -> None:
        found.append({"steps": list(steps), "losses": list(losses), "shown": shown, **named})

    monkeypatch.setattr(timeline, "scrubber", noted)
    yield found


def first_half(kind: str) -> dict[str, int]:
    """Head -> the first step at which half of its weight is there, read off the shipped numbers."""
    found: dict[str, int] = {}
    for look in LOOKS:
        for layer, row in enumerate(look["heads"][kind]):
            for head, score in enumerate(row):
                if score >= 0.5:
                    found.setdefault(f"{layer}.{head}", look["step"])
    return found


@pytest.mark.parametrize(("asked", "step"), [("340", 340), ("7", 8), (None, 1000)])
def test_the_time_lapse_is_looked_into_at_any_of_its_steps(
    scrubbed: list[dict[str, Any]], asked: str | None, step: int
) -> None:
    page = opened(model=NAME, **({} if asked is None else {"step": asked}))
    got = given(page)
    stored = load_file(FOLDER / f"step-{step:06d}.safetensors")
    (table,) = (tensor for tensor in stored.values() if tensor.shape == (65, 96))
    assert got["key"] == [NAME, step] and got["corpus"] == "shakespeare" and got["vocabulary"] == 65
    assert got["weight"] == float(table[0, 0]) and got["title"] == "Time-lapse: from noise to Shakespeare"
    assert (
        in_address(page, "step") == (None if asked is None else str(step))
        and in_address(page, "model") == NAME
    )
    (look,) = (look for look in LOOKS if look["step"] == step)
    assert f"step {step:,} of 1,000" in said(page)
    assert f"validation loss {look['validation_loss']:.3f}" in said(page)
    shown = scrubbed[-1]
    assert shown["steps"] == [look["step"] for look in LOOKS] and shown["model"] == NAME
    assert shown["losses"] == [look["train_loss"] for look in LOOKS]


def test_heads_are_marked_with_their_names_where_they_formed() -> None:
    timeline = timeline_of(NAME)
    assert timeline is not None and timeline.total == 1000 and not timeline.active
    wanted: dict[int, list[str]] = {}
    for kind, does in (("previous", "previous token"), ("induction", "copies")):
        for name, step in first_half(kind).items():
            wanted.setdefault(step, []).append(f"head {name} {does}")
    assert {mark.step: mark.words.split(", ") for mark in timeline.marks} == wanted
    assert wanted and all(mark.short.split(", ")[0] in mark.words for mark in timeline.marks)
    assert all(mark.short.startswith("head ") for mark in timeline.marks)


def test_a_run_of_ones_own_is_marked_at_the_next_step_that_is_kept(manager: StageManager) -> None:
    def look(step: int, copies: float) -> Evaluation:
        heads = HeadScores(((0.0, 0.0), (copies, 0.0)), ((0.6, 0.0), (0.0, 0.0)), 4.0, 1.0)
        return Evaluation(step, 2.0, 2.0, 1.0, False, heads=heads)

    log = HistoryLog()
    for step in range(1, 41):
        log.add(Step(step, 4.0 - step / 20, 1.0, 1e-3, step, 0.1))
    for one in (look(0, 0.0), look(20, 0.4), look(25, 0.5), look(40, 0.9)):
        log.add(one)
    config = ModelConfig(vocab_size=90, context=16, d_model=16, n_layers=2, n_heads=2)
    spec = RunSpec(config, TrainConfig(steps=40, repeat=0.5), "text", "abc " * 20, name="marked")
    view = view_of(spec, "marked", "running", 40, snapshots=(0, 20, 30, 40))
    manager.views["marked"] = replace(view, history=log.view())
    timeline = timeline_of("run-marked")
    assert timeline is not None and timeline.active and timeline.run == "marked"
    assert [(mark.step, mark.short) for mark in timeline.marks] == [(0, "head 0.0"), (30, "head 1.0")]
    assert timeline.losses[0] == pytest.approx(3.95) and timeline.losses[-1] == pytest.approx(
        sum(4.0 - step / 20 for step in range(36, 41)) / 5
    )
    assert timeline_of("shakespeare-classic") is None and timeline_of("run-gone") is None


def test_a_damaged_time_lapse_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "checkpoints" / "shakespeare-classic", tmp_path / "checkpoints" / models.FIRST_MODEL
    )
    folder = shutil.copytree(FOLDER, tmp_path / "checkpoints" / NAME)
    (folder / "step-000340.safetensors").write_bytes(b"")
    monkeypatch.setattr(models, "ROOT", tmp_path)
    memo.clear()
    page = opened(model=NAME, step="340")
    assert not page.exception and "000340.safetensors is damaged" in said(page).replace("\\", "")
    memo.clear()


def test_the_view_of_induction_says_why_no_head_copies_yet(drawn: Any) -> None:
    def answer(step: str) -> str:
        return helpers.said(
            helpers.opened("inside/circuits", model=NAME, step=step, circuits_view="induction"), "markdown"
        )

    early, late = answer("100"), answer("1000")
    assert "**35%** of its training windows repeat" in early and "No induction head" in early
    assert "No induction head" not in late and "attend to what followed the same token" in late
