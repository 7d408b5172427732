"""Two recipes side by side, earlier runs laid over, what was done by hand, and links to all of it."""

from __future__ import annotations

import math

import pytest

from engine import corpora
from engine.config import ModelConfig
from engine.service.changes import Change
from engine.service.history import HistoryLog
from engine.training.records import Evaluation
from pages.start.train.whatif import WHAT_IFS
from tests.pages.start.training import clicked, opened, sentences


def looked(*losses: tuple[int, float]) -> HistoryLog:
    log = HistoryLog()
    for step, loss in losses:
        log.add(Evaluation(step, loss, loss, 0.1, False, 1.0, 1.0))
    return log


def test_what_is_trained_already_is_the_first_of_a_pair(manager):
    page = clicked(opened(what_if="positions"), "train")
    manager.change("run-0", status="finished")
    page.run()
    assert "has been trained already" in page.button(key="train_both").help
    clicked(page, "train_both")
    assert list(manager.views) == ["run-0", "run-1"], "one more run, not two"
    assert manager.views["run-1"].spec.model.position == "none"
    assert manager.views["run-0"].beside == "run-1" and page.query_params["run"] == "run-0"


def test_the_answer_is_what_was_measured_last(manager):
    """Nats, letters and bits by arithmetic of its own: e^loss, and loss over ln 2 and a character a token."""
    page = clicked(opened(), "train")
    log = HistoryLog()
    log.add(Evaluation(0, 4.0, 4.0, 0.1, False, 6.0, 6.0))
    log.add(Evaluation(120, 1.2, math.log(7), 0.1, True, 1.0, math.log2(7)))
    manager.change("run-0", history=log.view(), step=120)
    page.run()
    vocabulary = manager.views["run-0"].spec.model.vocab_size
    assert (
        f"After **120** steps: **1.95 nats: torn between 7.0 letters** instead of {vocabulary:,}, on text that"
        " it never read (2.81 bits per character)."
    ) in sentences(page), "ln 7 = 1.95, log2 7 = 2.81"


def test_both_of_a_pair_are_measured(manager, drawn):
    page = clicked(opened(measure="true"), "train_both")
    manager.change("run-1", history=looked((0, 4.0), (20, math.log(5))).view())
    page.run()
    perplexities = [m.value for m in page.metric if m.label == "Perplexity"]
    assert perplexities == ["8.17", "5.00"], "e^2.1, and e^(ln 5)"
    assert {"norm_chart", "norm_chart_other", "rate_chart", "rate_chart_other"} <= set(drawn)


@pytest.mark.parametrize("name", sorted(WHAT_IFS))
def test_every_what_if_starts_a_pair_that_differs_in_it_alone(manager, name):
    page = clicked(opened(what_if=name), "train_both")
    first, second = (view.spec for view in manager.views.values())
    assert (first.model, first.train) != (second.model, second.train)
    assert second.name == WHAT_IFS[name].label and page.query_params["run"] == "run-0"
    changed = {
        field
        for field in ModelConfig.__dataclass_fields__
        if getattr(first.model, field) != getattr(second.model, field)
    }
    assert len(changed) <= 1 and (changed or first.train.learning_rate * 10 == second.train.learning_rate)


def test_both_curves_and_both_texts_are_shown_and_the_mask_is_explained(manager, drawn):
    page = clicked(opened(), "train_both")
    manager.change("run-0", history=looked((0, 4.0), (20, 2.0), (40, 1.9)).view())
    manager.change("run-1", history=looked((0, 4.0), (20, 0.5)).view())
    page.run()
    names = [trace.get("name") for trace in drawn["loss_chart"].traces]
    assert "fast 1.90" in names and "no causal mask 0.50" in names
    said = sentences(page)
    assert "After **20** steps" in said and "That is no success" in said, "compared where both were looked at"
    assert ("watch", "run-1") in manager.asked
    clicked(page, "pause_button")
    assert ("pause", "run-0") in manager.asked and ("pause", "run-1") in manager.asked


def test_the_run_before_is_laid_over_until_somebody_chooses_otherwise_and_the_link_says_which(manager):
    page = clicked(clicked(opened(), "train"), "train")
    assert page.multiselect(key="overlaid").value == ["run-0"] and page.query_params["over"] == "run-0"
    page.multiselect(key="overlaid").unselect("run-0").run()
    assert page.query_params["over"] == "none" and page.multiselect(key="overlaid").value == []
    clicked(page, "train")
    assert page.multiselect(key="overlaid").value == ["run-1"], "of a new run it is the one before that"
    linked = opened(run="run-2", over="run-0,run-1")
    assert linked.multiselect(key="overlaid").value == ["run-0", "run-1"]
    manager.mine = False
    stranger = opened(run="run-2", over="run-0,no-such,<b>")
    assert stranger.multiselect(key="overlaid").value == ["run-0"], "who has the link sees the same"
    assert not opened(run="run-2").multiselect


def test_a_run_that_was_steered_says_so_on_the_curve_and_in_the_table(manager, drawn):
    page = clicked(clicked(opened(), "train"), "train")
    change = Change(20, 0.4, "learning_rate", 0.003)
    manager.change("run-0", changes=(change,), given="fast")
    page.run()
    assert "**fast** was changed by hand (learning rate 0.003 from step 20)" in sentences(page)
    assert any("by hand" in note["text"] for note in drawn["loss_chart"].layout["annotations"])
    table = page.dataframe[0].value["different from the one before"]
    assert table[0].endswith("by hand: learning rate 0.003 from step 20")


def test_the_batch_and_the_arithmetic_are_folded(manager):
    page = clicked(opened(measure="true", hand="true"), "train")
    shown = next(c.value for c in page.code if c.value.startswith("x[0]"))
    x, y = (line.split("]  ")[1].split() for line in shown.splitlines()[:2])
    assert y[:20] == x[1:21], "y is x one place further on"
    said = sentences(page)
    assert "y[i, t] = x[i, t + 1] holds for **1,134** of 1,134 pairs" in said  # 18 windows, 63 pairs each
    assert "(= 418," in said or " − 64" in said
    assert "**0.122**" in said and "**8.17**" in said  # e^-2.1 and e^2.1
    closed = sentences(clicked(opened(), "train"))
    assert "y[i, t]" not in closed and "probability of" not in closed


def test_before_a_run_the_answer_counts_the_letters_of_the_text(manager):
    page = opened(steps="321")
    letters = len(set(corpora.load("python").text))
    said = f"torn between **{letters:,}** letters ({math.log(letters):.2f} nats)"
    assert said in sentences(page) and "watch 321 steps" in sentences(page)


def test_who_has_a_link_trains_the_same_recipe(manager):
    clicked(opened(d_model="64"), "train")
    manager.mine = False
    page = opened(run="run-0")
    clicked(page, "train_this")
    assert manager.views["run-1"].spec == manager.views["run-0"].spec
