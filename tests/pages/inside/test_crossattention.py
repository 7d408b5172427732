"""Cross-attention: what is said and drawn, on untrained models in the place of the shipped ones, and on a training of one's own."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.checkpoints import save
from engine.config import ModelConfig, TrainConfig
from pages.inside.crossattention import alignment
from runs.state import RunSpec
from studies.experiments.masks_swapped import HEALTHY, SWAPPED, Swapped
from studies.families.cross_attention import AlignmentScore, differing, looked, model_alignment
from studies.families.written_target import write_target
from studies.pairs.checkpoints import PairCheckpoint, load_pair
from studies.pairs.config import Seq2SeqConfig
from studies.pairs.corpora import pair_text
from studies.pairs.paired import PAIR_TASKS
from studies.pairs.seq2seq import build_pair
from studies.pairs.tokenizer import PairTokenizer
from studies.weights.pretrained import sources
from tests.pages.helpers import lacking, opened, said
from tests.pages.stage import StageManager, trained
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
    found = ours(folder, alignment.TEXT["example dates"])
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
    assert alignment.changed(change, before.text, after.text, apart) in told
    assert apart and (f"(**{apart} symbols differ**)" in told or apart == 1)


def test_rows_after_the_step_are_blank_and_a_head_can_be_chosen(folder, drawn):
    found = ours(folder, "21-11-26")
    opened(PAGE, cross_view="alignment", cross_text_dates="21-11-26", cross_head="1.0", cross_step_dates="2")
    narrow = drawn["cross_alignment"].layout["meta"]["narrow"]["xaxis"]
    assert narrow["tickangle"] == 0, "letters are read across on a phone, too"
    read = drawn["cross_alignment"].layout["xaxis"]["ticktext"]
    assert "".join(read[:-1]) == "21-11-26" and read[-1] == "e<br>n<br>d"
    heat = drawn["cross_alignment"].traces[0]["z"]
    assert [row[0] is None for row in heat] == [False] * 2 + [True] * (len(found.written) - 2)
    np.testing.assert_allclose(heat[1], found.cross_patterns[1, 0, 1], rtol=1e-6)


def test_a_right_answer_has_its_rings(monkeypatch, drawn):
    """As if the model had written what is right."""
    real, truth = alignment.crossed, PAIR_TASKS["reverse"].truth("abc")

    def right(name, text, change, seed, step=-1):
        found = real(name, text, change, seed, step)
        shown = found.cross_patterns[:, :, :4]
        return replace(found, written=(*truth.target, "<end>"), text=truth.target, cross_patterns=shown)

    def rings():
        trace = drawn["cross_alignment"].traces[1]
        return list(zip(trace["x"], trace["y"], strict=True))

    monkeypatch.setattr("pages.inside.crossattention.alignment.crossed", right)
    asked = {"cross_view": "alignment", "cross_task": "reverse", "cross_text_reverse": "abc"}
    told, found = said(opened(PAGE, **asked)), right("reverse", "abc", "none", 0)
    seen = looked(found.pattern(None), truth, found.text)
    assert not lacking(told, f"For **{seen.right} of the 3 symbols**", f"chance would give {seen.chance:.1f}")
    assert rings() == [(2, 0), (1, 1), (0, 2)]
    opened(PAGE, **asked, cross_step_reverse="2")
    assert rings() == [(2, 0), (1, 1)], "none for what is not written"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "This source cannot be read") for text in ("", "ÄÖÜ", "1" * 70)),
        ("some day", "whether that is right is unknown"),
    ],
)
def test_input_that_cannot_be_read_is_told(text, why):
    assert why in said(opened(PAGE, cross_view="alignment", cross_text_dates=text))


def test_without_a_shipped_model_there_is_a_sentence(folder, monkeypatch):
    monkeypatch.setitem(families._FOLDERS, PAIR, folder / "nowhere")
    told = said(opened(PAGE, cross_view="alignment"))
    assert "No trained encoder-decoder came with this copy" in told


@pytest.fixture
def trainings(monkeypatch):
    both = {
        HEALTHY: Swapped((0, 25), (3.0, 0.5), (0.0, 0.875), ("x", "2026-11-21")),
        SWAPPED: Swapped((0, 25), (3.1, 0.125), (0.0, 0.02), ("y", "2222")),
    }
    monkeypatch.setattr("pages.inside.crossattention.two_masks.shipped", lambda: both)


def test_two_trainings_are_compared(trainings, drawn):
    told = said(opened(PAGE, cross_view="masks"))
    assert not lacking(
        told,
        "after 25 steps the loss is **0.125** (unswapped: 0.500)",
        "in generation the model gets only **2.0%** right (unswapped: 87.5%)",
        "→ “2222”",
    )
    curves = [[3.0, 0.5], [3.1, 0.125]], [[0.0, 0.875], [0.0, 0.02]]
    for losses, query in zip(curves, ({}, {"cross_quantity": "right"}), strict=True):
        if query:
            opened(PAGE, cross_view="masks", **query)
        traces = drawn["cross_curves"].traces
        assert [trace["y"] for trace in traces] == losses
        assert [trace["x"] for trace in traces] == [[0, 25]] * 2
    assert "after 0 steps the loss is **3.100**" in said(opened(PAGE, cross_view="masks", cross_steps="0"))


@pytest.fixture
def untrained(monkeypatch):
    monkeypatch.setattr("pages.inside.crossattention.two_masks.shipped", dict)


@pytest.mark.usefixtures("untrained")
def test_the_masks_stand_alone_where_no_training_came(drawn):
    assert "**no pair** looks ahead" in said(opened(PAGE, cross_view="masks"))
    told = said(opened(PAGE, cross_view="masks", cross_swap="true"))
    assert not lacking(told, "Swapped, **3 pairs** look ahead", "**3 pairs** with a source word are hidden")
    assert drawn["cross_masks"].table["own 3"] == [0.0] * 4
    told = said(opened(PAGE, cross_view="masks", cross_swap="true", cross_row="1"))
    assert "Swapped, **6 pairs** look ahead" in told


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize("swap", [False, True])
def test_the_two_squares_are_the_two_masks(swap, drawn):
    """Of a source of 3 beside one of 5, and 4 written: each in its own panel."""
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
def run(manager: StageManager) -> str:
    """A finished training on reversing."""
    return trained(manager, RunSpec(SIZES, TrainConfig(steps=50), "pairs-reverse", name="mine"), at, STEPS)


def aligned(**query: str) -> AppTest:
    return opened(PAGE, cross_view="alignment", **query)


@cache
def counted(step: int) -> AlignmentScore:
    pairs = [PAIR_TASKS["reverse"].answer(pair.source) for pair in PAIRS.validation[: alignment.ASKED]]
    found = model_alignment(at(step).model, PAIRS.tokenizer, pairs)
    assert found is not None
    return found


@pytest.mark.parametrize("step", [0, 50])
def test_the_model_is_that_of_the_step(run: str, step: int, drawn: dict[str, Any]) -> None:
    page = aligned(cross_task=run, step=str(step), cross_text_reverse="abcd")
    found = write_target(at(step).model, PAIRS.tokenizer, "abcd")
    np.testing.assert_allclose(drawn["cross_alignment"].table["0 a"], found.pattern(None)[:, 0], rtol=1e-5)
    score = counted(step)
    layer, head = np.unravel_index(score.heads.argmax(), score.heads.shape)
    assert not lacking(
        said(page),
        f"It writes “{safe(found.text)}”",
        f"After **{step}** steps of training, on 40 held-out targets",
        f"a correct position for **{score.together:.0%}** of {score.symbols:,} symbols",
        f"head {layer}.{head} for **{score.heads.max():.0%}**; by chance it would be {score.chance:.0%}.",
    )


def test_by_step_it_is_drawn_how_the_alignment_forms(run: str, drawn: dict[str, Any]) -> None:
    aligned(cross_task=run, measure="true")
    each = [counted(step) for step in STEPS]
    wanted = [[one.heads.max() for one in each], [s.together for s in each], [s.chance for s in each]]
    np.testing.assert_allclose([t["y"] for t in drawn["cross_grown"].traces], wanted, rtol=1e-6)
    assert list(drawn["cross_grown"].traces[0]["x"]) == list(STEPS)
