"""Cross-attention on a training of one's own: the model is that of the scrubber's step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.checkpoints_paired import PairCheckpoint
from engine.config import ModelConfig, TrainConfig
from engine.errors import RunError
from engine.measure.alignment import cross_patterns
from engine.measure.crossing import crossing
from engine.paired_data import pair_text
from engine.seq2seq import build_pair
from engine.service.state import RunSpec
from engine.tasks.paired import PAIR_TASKS
from pages.inside.crossattention import shared, words
from pages.start.home import running_pair
from tests.pages.helpers import opened, said
from tests.pages.stage import StageManager, view_of
from ui import families, models
from ui.text.markdown import safe

TEXT = pair_text("reverse")
MODEL = ModelConfig(TEXT.vocab_size, 13, 16, 2, 2)
STEPS = (0, 25, 50)


def at(step: int) -> PairCheckpoint:
    """Another model for every step, none of them trained."""
    model = build_pair(TEXT.fitted(MODEL), seed=step)
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.data.mul_(20)
    return PairCheckpoint(model.eval().requires_grad_(False), TEXT.tokenizer, {"step": step})


@pytest.fixture(autouse=True)
def run(manager: StageManager, monkeypatch: pytest.MonkeyPatch) -> str:
    """A finished training on reversing."""
    inside = families._snapshot, families._reader, models._snapshots, running_pair._writing
    for cached in (shared._snapshot, shared.crossed, shared.aligned, *inside):
        cached.clear()
    spec = RunSpec(MODEL, TrainConfig(steps=50), "pairs-reverse", name="mine")
    manager.views["abc"] = view_of(spec, "abc", "finished", 50, snapshots=STEPS)

    def trained(run: str, step: int | None = None) -> PairCheckpoint:
        if step not in STEPS:
            raise RunError(f"No snapshot of step {step} is kept.")
        return at(step)

    monkeypatch.setattr(manager, "trained", trained, raising=False)
    return "run-abc"


def aligned(**query: str) -> AppTest:
    return opened("inside/crossattention", cross_view="alignment", **query)


def counted(step: int) -> tuple[np.ndarray, float, float, int]:
    """(share of each head, of their mean, of chance, how many symbols), counted one by one."""
    found = at(step)
    pairs = [PAIR_TASKS["reverse"].answer(pair.source) for pair in TEXT.validation[: shared.ASKED]]
    right, together, chance, symbols = np.zeros((2, 2)), 0, 0.0, 0
    for pair, pattern in zip(pairs, cross_patterns(found.model, found.tokenizer, pairs), strict=True):
        for i, places in enumerate(pair.sources):
            if not places:
                continue
            symbols += 1
            chance += len(places) / pattern.shape[-1]
            together += int(pattern[:, :, i].mean((0, 1)).argmax()) in places
            for layer in range(2):
                for head in range(2):
                    right[layer, head] += int(pattern[layer, head, i].argmax()) in places
    return right / symbols, together / symbols, chance / symbols, symbols


@pytest.mark.parametrize("step", [0, 50])
def test_the_model_is_that_of_the_step(run: str, step: int, drawn: dict[str, Any]) -> None:
    page = aligned(cross_task=run, step=str(step), cross_text_reverse="abcd")
    found = crossing(at(step).model, TEXT.tokenizer, "abcd")
    told = said(page)
    assert f"It writes “{safe(found.text)}”" in told
    np.testing.assert_allclose(drawn["cross_alignment"].table["0 a"], found.pattern(None)[:, 0], rtol=1e-5)
    heads, together, chance, symbols = counted(step)
    layer, head = np.unravel_index(heads.argmax(), heads.shape)
    assert f"After **{step}** steps of its training, writing 40 targets" in told
    assert f"a true place for **{together:.0%}** of {symbols:,} symbols" in told
    assert f"head {layer}.{head} for **{heads.max():.0%}**; by chance it would be {chance:.0%}." in told


def test_by_step_it_is_drawn_how_the_alignment_forms(run: str, drawn: dict[str, Any]) -> None:
    aligned(cross_task=run, measure="true")
    best, together, chance = drawn["cross_grown"].traces
    each = [counted(step) for step in STEPS]
    np.testing.assert_allclose(best["y"], [heads.max() for heads, *_ in each], rtol=1e-6)
    np.testing.assert_allclose(together["y"], [one[1] for one in each], rtol=1e-6)
    np.testing.assert_allclose(chance["y"], [one[2] for one in each], rtol=1e-6)
    assert list(best["x"]) == list(STEPS)


def test_a_snapshot_that_went_away_gets_a_sentence(
    manager: StageManager, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(run: str, step: int | None = None) -> PairCheckpoint:
        raise RunError("No snapshot of step 50 is kept.")

    monkeypatch.setattr(manager, "trained", gone)
    assert words.refused(safe("No snapshot of step 50 is kept.")) in said(aligned(cross_task=run))
