"""The training page alone, before a stage manager: every control, every mistake, every link."""

from __future__ import annotations

import math
import re

import pytest
from streamlit.testing.v1 import AppTest

from engine import corpora
from engine.config import ModelConfig
from engine.errors import CorpusError
from engine.ledger import ledger
from engine.training.records import Evaluation
from pages.start.train import asking
from pages.start.train.losses import baselines, vocabulary
from tests.pages.stage import history
from tests.pages.start.training import clicked, opened, sentences
from ui.fields import TRAINABLE, preset_values

STEPS = TRAINABLE["fast"].train.steps  # type: ignore[union-attr]


def test_every_preset_fills_everything_in_and_starts(manager):
    page = opened()
    for name, preset in TRAINABLE.items():
        page.get_by_key("preset").set_value(name).run()
        assert not page.exception and not page.error
        for field, value in preset_values(preset).items():
            assert page.session_state[field] == value, (name, field)
        clicked(page, "train")
        spec = list(manager.views.values())[-1].spec
        assert spec.train == preset.train
        assert spec.model == ModelConfig(**{**preset.model.to_dict(), "vocab_size": spec.model.vocab_size})
        assert page.query_params["run"] == list(manager.views)[-1]


def test_an_illegal_combination_is_explained_beside_its_control_and_cannot_be_started(manager):
    page = opened(n_heads="5")
    assert page.button(key="train").disabled
    said = [e.value for e in page.error]
    assert len(said) == 2 and all(
        "must divide d_model" in s for s in said
    )  # by the button, and by the control
    page.number_input(key="n_heads").set_value(8).run()
    assert not page.error and not page.button(key="train").disabled


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"steps": "1000000000"}, "must be at most"),
        ({"d_model": "40000"}, "parameters"),
        ({"beta2": "1.5"}, "must be between"),
        ({"objective": "masked"}, "must be False for the masked objective"),
    ],
)
def test_numbers_beyond_the_limits_are_said(manager, query, words):
    page = opened(**query)
    assert words in sentences(page) and page.button(key="train").disabled


def test_a_link_opens_with_the_preset_it_names_and_its_differences(manager):
    page = opened(preset="modern", d_model="64", learning_rate="0.005")
    assert page.session_state["preset"] == "modern"
    clicked(page, "train")
    spec = manager.views["run-0"].spec
    assert (spec.model.d_model, spec.model.ffn, spec.train.learning_rate, spec.train.optimizer) == (
        64,
        "swiglu",
        0.005,
        "adamw",
    )
    assert "width 64" in spec.name


def test_words_from_a_link_are_shown_as_they_are(manager):
    page = opened(sample_prompt="![a](https://example.org/b.png) :material/home: www.example.org")
    (note,) = [c.value for c in page.caption if c.value.startswith("Changed")]
    assert r"\!\[a\]\(https" in note
    assert "https\\:" not in note
    assert "www.example" not in note
    assert ":material" not in note
    assert "home\\:" not in note
    refused = opened(sample_prompt="![a](//e.org/a.png)" + "x" * 3000, seed="-1")
    assert "![a](" not in sentences(refused)


def test_pasted_text_is_described_and_trained_on(manager):
    page = opened(data="paste")
    assert page.button(key="train").disabled
    page.text_area(key="pasted").set_value("to be or not to be, that is the question. " * 30).run()
    assert not page.exception and not page.error
    assert "distinct" in sentences(page) and "·be·or" in page.code[0].value
    clicked(page, "train")
    spec = manager.views["run-0"].spec
    assert spec.corpus == "text"
    assert spec.text.startswith("to be")
    assert spec.model.vocab_size == len(set(spec.text))
    assert "pasted" not in page.query_params


def test_a_text_beyond_the_profile_is_refused(manager, monkeypatch):
    monkeypatch.setenv("GLASSFORMER_PROFILE", "hosted")
    page = opened(data="paste")
    page.text_area(key="pasted").set_value("abc " * 130_000).run()
    assert "at most 500,000" in sentences(page) and page.button(key="train").disabled


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("picture.png", bytes(range(256)) * 9, "is not UTF-8 text"),
    ],
)
def test_an_upload_that_is_no_text_gets_a_sentence(manager, name, content, words):
    page = opened(data="upload")
    page.get_by_key("upload").upload(name, content)
    page.run()
    assert not page.exception and words in sentences(page) and page.button(key="train").disabled


def test_without_shakespeare_and_network_the_manual_is_used_and_said(manager, monkeypatch, tmp_path):
    def offline(name, progress=None):
        if name == "shakespeare":
            raise CorpusError("no network")
        return original(name, progress)

    original = corpora.load
    monkeypatch.setattr(corpora, "shakespeare_path", lambda: None)
    monkeypatch.setattr(corpora, "load", offline)
    page = opened(data="shakespeare")
    assert "the Python manual is used" in sentences(page)
    clicked(page, "train")
    assert manager.views["run-0"].spec.corpus == "python"


def test_the_run_is_drawn_and_its_buttons_ask_the_manager(manager, drawn):
    page = clicked(opened(measure="true"), "train")
    said = sentences(page)
    assert "running" in said or page.get("badge")
    assert [m.label for m in page.metric] == ["Validation loss", "Perplexity", "Bits / character"]
    assert [m.value for m in page.metric] == ["2.100", f"{math.exp(2.1):.2f}", f"{2.1 / math.log(2):.3f}"]
    spec = manager.views["run-0"].spec
    lines = [shape["y0"] for shape in drawn["loss_chart"].layout["shapes"]]
    assert math.log(vocabulary(spec)) in lines and sorted(lines) == sorted(baselines(spec).values())
    assert "validation went from 4.20 to 2.10 nats per character after step 40" in drawn["loss_chart"].alt
    clicked(page, "pause_button")
    assert ("pause", "run-0") in manager.asked and ("watch", "run-0") in manager.asked
    manager.change("run-0", status="paused")
    page.run()
    clicked(page, "step_button")
    clicked(page, "resume_button")
    page.number_input(key="rate-run-0").set_value(0.003).run()
    page.text_input(key="prompt-run-0").set_value("ROMEO:⏎").run()
    clicked(page, "stop_button")
    assert "extend_button" not in [b.key for b in page.button]
    manager.change("run-0", status="stopped")
    page.run()
    undone = STEPS - 40
    assert page.number_input(key=f"more-run-0-{undone}").value == undone
    page.number_input(key=f"more-run-0-{undone}").set_value(300).run()
    clicked(page, "extend_button")
    clicked(page, "restart_button")
    asked = [a for a in manager.asked if a[0] not in ("watch", "start")]
    assert asked == [
        ("pause", "run-0"),
        ("step", "run-0"),
        ("resume", "run-0"),
        ("set_learning_rate", "run-0", 0.003),
        ("set_prompt", "run-0", "ROMEO:\n"),
        ("stop", "run-0"),
        ("extend", "run-0", 300),
        ("restart", "run-0"),
    ]


def test_against_time_and_queue_place_and_failure(manager):
    manager.status = "queued"
    page = clicked(opened(axis="time"), "train")
    manager.change("run-0", place=2)
    page.run()
    assert "place 2 in the queue" in sentences(page)
    manager.change(
        "run-0",
        status="failed",
        message="The training process was ended by the system.",
        warnings=("a snapshot could not be saved",),
    )
    page.run()
    assert "was ended by the system" in sentences(page) and "a snapshot could not be saved" in sentences(page)
    assert not page.button(key="extend_button").disabled


def test_a_strangers_run_is_shown_and_cannot_be_controlled(manager):
    page = clicked(opened(), "train")
    manager.mine = False
    page.run()
    assert "belongs to another browser" in sentences(page)
    for key in ("pause_button", "step_button", "stop_button", "restart_button"):
        assert page.button(key=key).disabled
    assert page.number_input(key="rate-run-0").disabled and page.text_input(key="prompt-run-0").disabled
    assert not page.button(key="train").disabled


def test_quick_looks_and_the_whole_split_are_told_apart(manager):
    page = clicked(opened(measure="true"), "train")
    log = history(40)
    log.add(Evaluation(45, 1.9, 1.7, 0.9, False, 2.7, 2.5))
    manager.change("run-0", history=log.view())
    page.run()
    row = page.dataframe[0].value.iloc[0]
    assert (row["best validation loss"], row["bits / character"]) == (2.1, pytest.approx(2.1 / math.log(2)))
    assert row["best quick look"] == 1.7, "which is of another kind, though it is lower"
    assert "A quick look at about" in sentences(page)
    log.add(Evaluation(50, 1.9, 1.8, 1.0, True, 2.7, 2.6))
    manager.change("run-0", history=log.view(), status="finished")
    page.run()
    row = page.dataframe[0].value.iloc[0]
    assert (row["best validation loss"], row["bits / character"], row["best quick look"]) == (1.8, 2.6, 1.7)
    assert "Measured on the whole validation split" in sentences(page)
    assert "A quick look" not in sentences(page)
    assert [m.value for m in page.metric][:1] == ["1.800"]


def test_what_will_be_trained_is_summed_up(manager):
    page = opened(preset="fast", context="32", batch_size="10", steps="300", eval_every="0", sample_every="0")
    said = sentences(page)
    clicked(page, "train")
    spec = manager.views["run-0"].spec
    assert (
        f"**{ledger(spec.model).total:,}** parameters, vocabulary of **{spec.model.vocab_size:,}** char"
        in said
    )
    assert "**320** tokens a step, 300 steps" in said and "measured speed in matrix products" in said
    manager.change("run-0", status="finished", step=40, seconds=80.0)
    page.run()
    # 2 s a step, and the validation at the end: once both splits, once more all of one
    assert "estimated from the speed of your last run" in sentences(page)
    minutes = re.search(r"about \*\*([0-9.]+) min\*\*", sentences(page))
    assert minutes is not None and 10 <= float(minutes[1]) < 15


def test_a_refusal_stays_while_the_panel_is_drawn_again_and_again(manager, monkeypatch):
    page = clicked(opened(), "train")
    manager.refuse = "this run is ![a](b) just being saved"
    clicked(page, "pause_button")
    for _ in range(3):
        page.run()
        assert r"\!\[a\]\(b\) just being saved" in sentences(page)
    later = asking.time.monotonic() + asking.REFUSAL_SECONDS
    monkeypatch.setattr(asking.time, "monotonic", lambda: later)
    page.run()
    assert "just being saved" not in sentences(page)


def test_earlier_runs_are_compared_overlaid_renamed_and_removed(manager):
    page = opened()
    clicked(page, "train")
    page.selectbox(key="position").select("alibi").run()
    clicked(page, "train")
    table = page.dataframe[0].value
    assert list(table["different from the one before"]) == ["(the first)", "positions rope → alibi"]
    assert list(table["best validation loss"]) == [2.1, 2.1]
    assert page.multiselect(key="overlaid").value == ["run-0"], "the one before is laid over by itself"
    page.selectbox(key="run_in_hand").select("run-0").run()
    page.text_input(key="name-run-0").set_value("the <b>first</b> *one*").run()
    assert manager.views["run-0"].name == "the <b>first</b> *one*"
    clicked(page, "show_run")
    assert page.query_params["run"] == "run-0"
    manager.change("run-0", status="finished")
    page.run()
    clicked(page, "continue_run")
    assert ("extend", "run-0", STEPS) in manager.asked
    clicked(page, "remove_run")
    assert list(manager.views) == ["run-1"]
    assert "run" not in page.query_params or "run-0" not in page.query_params["run"], (
        "the address names no run that is gone"
    )
    assert "is not on this server" not in sentences(page)


def test_the_sidebar_shows_runs_that_the_page_does_not(manager):
    def script():
        from ui.status import sidebar_status

        sidebar_status()

    def looked(**query: str) -> AppTest:
        page = AppTest.from_function(script, default_timeout=60)  # its link leads out of this bare script
        page.session_state["owner"] = "this-browser"
        page.query_params.update(query)
        return page.run()

    assert not looked().get("progress")
    clicked(opened(), "train")
    page = looked()
    assert page.sidebar.get("progress")[0].text == f"step 40 of {STEPS} · loss 2.05"
    assert not looked(run="run-0").get("progress")
    manager.change("run-0", beside="run-9")
    assert not looked(run="run-9").get("progress"), "both of a pair are on the page"
    manager.change("run-0", status="finished")
    assert not looked().get("progress")
