"""Cross-attention: what is said and drawn, on untrained models in the place of the shipped ones, and on a training of one's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig, Seq2SeqConfig, TrainConfig
from engine.data.pair_corpora import pair_text
from engine.data.tasks.paired import PAIR_TASKS
from engine.data.tokenizers.pairs import PairTokenizer
from engine.errors import RunError
from engine.experiments.masks_swapped import HEALTHY, SWAPPED, Swapped
from engine.measure.families.cross_attention import (
    AlignmentScore,
    differing,
    looked,
    model_alignment,
)
from engine.measure.families.written_target import write_target
from engine.seq2seq import build_pair
from engine.service.state import RunSpec
from engine.weights.checkpoints import PairCheckpoint, load_pair, save
from engine.weights.pretrained import sources
from pages.inside.crossattention import shared, words
from tests.pages.helpers import opened, said
from tests.pages.stage import StageManager, view_of
from ui import families, memo
from ui.fit_text import PAIR
from ui.text.markdown import safe

pytestmark = pytest.mark.usefixtures("manager")
PAGE = "inside/crossattention"
LETTERS = PairTokenizer.train(["abcdefghijklmnopqrstuvwxyzN 0123456789-"], by="letters")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A model for dates and one for reversing, neither of them trained."""
    for seed, name in enumerate(("dates", "reverse")):
        both = Seq2SeqConfig.of(ModelConfig(LETTERS.vocab_size, 30, 16, 2, 2))
        model = build_pair(both, seed=seed)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 2:
                    parameter.mul_(20)
        save(tmp_path / name, model, LETTERS, {})
    monkeypatch.setitem(families._FOLDERS, PAIR, tmp_path)
    monkeypatch.setenv(sources.MODELS, str(tmp_path / "others"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    memo.clear()
    return tmp_path


def ours(folder, text, change="none"):
    found = load_pair(folder / "dates")
    return write_target(found.model, found.tokenizer, text, change)


def test_it_opens_on_a_date(folder, drawn):
    found = ours(folder, words.EXAMPLES["dates"])
    told = said(opened(PAGE, cross_view="alignment"))
    assert f"It writes “{safe(found.text)}”, but **“{safe('2026-11-21')}” would be right**" in told
    table = drawn["cross_alignment"].table
    assert table["written"] == list(found.written) and len(table) == 1 + len(found.source)
    np.testing.assert_allclose(table["0 t"], found.pattern(None)[:, 0], rtol=1e-6)


@pytest.mark.parametrize("change", ["cut", "shuffled", "swapped"])
def test_what_a_switch_does_is_counted(folder, change):
    before, after = ours(folder, "21-11-26"), ours(folder, "21-11-26", change)
    apart = differing(before.written, after.written)
    told = said(opened(PAGE, cross_view="alignment", cross_text_dates="21-11-26", cross_change=change))
    assert words.changed(change, before.text, after.text, apart) in told
    assert apart and (f"(**{apart} symbols differ**)" in told or apart == 1)


def test_rows_after_the_step_are_blank_and_a_head_can_be_chosen(folder, drawn):
    found = ours(folder, "21-11-26")
    opened(PAGE, cross_view="alignment", cross_text_dates="21-11-26", cross_head="1.0", cross_step_dates="2")
    heat = drawn["cross_alignment"].traces[0]["z"]
    assert [row[0] is None for row in heat] == [False] * 2 + [True] * (len(found.written) - 2)
    np.testing.assert_allclose(heat[1], found.cross_patterns[1, 0, 1], rtol=1e-6)


def test_a_right_answer_has_its_rings(monkeypatch, drawn):
    """As if the model had written what is right."""
    real = shared.crossed

    def right(name, text, change, seed, step=-1):
        found = real(name, text, change, seed, step)
        target = PAIR_TASKS["reverse"].truth("abc").target
        shown = found.cross_patterns[:, :, :4]
        return replace(found, written=(*target, "<end>"), text=target, cross_patterns=shown)

    monkeypatch.setattr("pages.inside.crossattention.alignment.crossed", right)
    told = said(opened(PAGE, cross_view="alignment", cross_task="reverse", cross_text_reverse="abc"))
    found = right("reverse", "abc", "none", 0)
    seen = looked(found.pattern(None), PAIR_TASKS["reverse"].truth("abc"), found.text)
    assert f"For **{seen.right} of the 3 symbols**" in told
    assert f"chance would give {seen.chance:.1f}" in told
    rings = drawn["cross_alignment"].traces[1]
    assert list(zip(rings["x"], rings["y"], strict=True)) == [(2, 0), (1, 1), (0, 2)]
    opened(
        PAGE, cross_view="alignment", cross_task="reverse", cross_text_reverse="abc", cross_step_reverse="2"
    )
    rings = drawn["cross_alignment"].traces[1]
    assert list(zip(rings["x"], rings["y"], strict=True)) == [(2, 0), (1, 1)], "none for what is not written"


def test_input_that_cannot_be_read_is_told(folder, monkeypatch):
    for text in ("", "ÄÖÜ", "1" * 70):
        told = said(opened(PAGE, cross_view="alignment", cross_text_dates=text))
        assert "This source cannot be read" in told
    told = said(opened(PAGE, cross_view="alignment", cross_text_dates="some day"))
    assert "whether that is right is unknown" in told
    monkeypatch.setitem(families._FOLDERS, PAIR, folder / "nowhere")
    told = said(opened(PAGE, cross_view="alignment"))
    assert "No trained encoder-decoder came with this copy" in told


@pytest.fixture
def trainings(monkeypatch):
    both = {
        HEALTHY: Swapped((0, 25), (3.0, 0.5), (0.0, 0.875), ("x", "2026-11-21")),
        SWAPPED: Swapped((0, 25), (3.1, 0.125), (0.0, 0.02), ("y", "2222")),
    }
    monkeypatch.setattr("pages.inside.crossattention.masks.shipped", lambda: both)


def test_two_trainings_are_compared(trainings, drawn):
    told = said(opened(PAGE, cross_view="masks"))
    assert "after 25 steps the loss is **0.125** (unswapped: 0.500)" in told
    assert (
        "in generation the model gets only **2.0%** right (unswapped: 87.5%)" in told and "→ “2222”" in told
    )
    good, bad = drawn["cross_curves"].traces
    assert list(good["y"]) == [3.0, 0.5] and list(bad["y"]) == [3.1, 0.125]
    assert list(good["x"]) == list(bad["x"]) == [0, 25]
    opened(PAGE, cross_view="masks", cross_quantity="right")
    good, bad = drawn["cross_curves"].traces
    assert list(good["y"]) == [0.0, 0.875] and list(bad["y"]) == [0.0, 0.02]
    assert "after 0 steps the loss is **3.100**" in said(opened(PAGE, cross_view="masks", cross_steps="0"))


def test_the_masks_stand_alone_where_no_training_came(monkeypatch, drawn):
    monkeypatch.setattr("pages.inside.crossattention.masks.shipped", dict)
    assert "**no pair** looks ahead" in said(opened(PAGE, cross_view="masks"))
    told = said(opened(PAGE, cross_view="masks", cross_swap="true"))
    assert "Swapped, **3 pairs** look ahead" in told and "**3 pairs** with a source word are hidden" in told
    assert drawn["cross_masks"].table["own 3"] == [0.0] * 4
    assert "Swapped, **6 pairs** look ahead" in said(
        opened(PAGE, cross_view="masks", cross_swap="true", cross_row="1")
    )


@pytest.mark.parametrize("swap", [False, True])
def test_the_two_squares_are_the_two_masks(swap, monkeypatch, drawn):
    """Of a source of 3 beside one of 5, and 4 written: each in its own panel."""
    monkeypatch.setattr("pages.inside.crossattention.masks.shipped", dict)
    opened(PAGE, cross_view="masks", cross_swap=str(swap).lower())
    own, across = (np.array(trace["z"]) for trace in drawn["cross_masks"].traces)
    query = np.arange(4)[:, None]
    real = [np.arange(n) < 3 + 0 * query for n in (4, 5)]
    behind = [np.arange(n) <= query for n in (4, 5)]
    behind[1][:, 4] = True  # the causal mask has 4 columns: grown by one that may be seen
    np.testing.assert_array_equal(own, (real if swap else behind)[0])
    np.testing.assert_array_equal(across, (behind if swap else real)[1])


PAIRS = pair_text("reverse")
SIZES = ModelConfig(PAIRS.vocab_size, 13, 16, 2, 2)
STEPS = (0, 25, 50)


def at(step: int) -> PairCheckpoint:
    """Another model for every step, none of them trained."""
    model = build_pair(PAIRS.fitted(SIZES), seed=step)
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.data.mul_(20)
    return PairCheckpoint(model.eval().requires_grad_(False), PAIRS.tokenizer, {"step": step})


@pytest.fixture
def run(manager: StageManager, monkeypatch: pytest.MonkeyPatch) -> str:
    """A finished training on reversing."""
    memo.clear()
    spec = RunSpec(SIZES, TrainConfig(steps=50), "pairs-reverse", name="mine")
    manager.views["abc"] = view_of(spec, "abc", "finished", 50, snapshots=STEPS)

    def trained(run: str, step: int | None = None) -> PairCheckpoint:
        if step not in STEPS:
            raise RunError(f"There is no snapshot of step {step}.")
        return at(step)

    monkeypatch.setattr(manager, "trained", trained, raising=False)
    return "run-abc"


def aligned(**query: str) -> AppTest:
    return opened("inside/crossattention", cross_view="alignment", **query)


def counted(step: int) -> AlignmentScore:
    pairs = [PAIR_TASKS["reverse"].answer(pair.source) for pair in PAIRS.validation[: shared.ASKED]]
    found = model_alignment(at(step).model, PAIRS.tokenizer, pairs)
    assert found is not None
    return found


@pytest.mark.parametrize("step", [0, 50])
def test_the_model_is_that_of_the_step(run: str, step: int, drawn: dict[str, Any]) -> None:
    page = aligned(cross_task=run, step=str(step), cross_text_reverse="abcd")
    found = write_target(at(step).model, PAIRS.tokenizer, "abcd")
    told = said(page)
    assert f"It writes “{safe(found.text)}”" in told
    np.testing.assert_allclose(drawn["cross_alignment"].table["0 a"], found.pattern(None)[:, 0], rtol=1e-5)
    score = counted(step)
    layer, head = np.unravel_index(score.heads.argmax(), score.heads.shape)
    assert f"After **{step}** steps of training, on 40 held-out targets" in told
    assert f"a correct position for **{score.together:.0%}** of {score.symbols:,} symbols" in told
    assert (
        f"head {layer}.{head} for **{score.heads.max():.0%}**; by chance it would be {score.chance:.0%}."
        in told
    )


def test_by_step_it_is_drawn_how_the_alignment_forms(run: str, drawn: dict[str, Any]) -> None:
    aligned(cross_task=run, measure="true")
    best, together, chance = drawn["cross_grown"].traces
    each = [counted(step) for step in STEPS]
    np.testing.assert_allclose(best["y"], [one.heads.max() for one in each], rtol=1e-6)
    np.testing.assert_allclose(together["y"], [one.together for one in each], rtol=1e-6)
    np.testing.assert_allclose(chance["y"], [one.chance for one in each], rtol=1e-6)
    assert list(best["x"]) == list(STEPS)
