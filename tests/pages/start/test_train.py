"""The training page alone, before a stage manager: every control, every mistake, every link."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.checkpoints import pack
from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.tokenizers import Tokenizer
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import CorpusError
from engine.model import build
from engine.training.records import Evaluation
from pages.start.train import copying_heads
from pages.start.train.run_kinds import kind_of
from pages.start.train.what_if import WHAT_IFS
from runs.history import History, HistoryLog
from runs.state import Change, RunSpec
from studies.attention.head_scores import HeadFormation
from studies.costs.ledger import ledger
from studies.experiments.race_table import RunCurves, Unit, run_curves
from tests.pages import helpers
from tests.pages.helpers import bars, ran, sidebar
from tests.pages.stage import history, view_of
from tests.pages.start.training import begun, changed, clicked, opened, recipe, sentences, unescaped
from ui import memo, requests, session
from ui.fields import TRAINABLE, label_of, preset_values
from ui.figures import losses as curves
from ui.figures.losses import loss_curves

pytestmark = pytest.mark.usefixtures("manager")

STEPS = TRAINABLE["fast"].train.steps  # type: ignore[union-attr]


def test_every_preset_fills_everything_in_and_starts(manager):
    page, classic = opened(), preset_values(TRAINABLE["classic"])
    for name, preset in TRAINABLE.items():
        page.get_by_key("preset").set_value(name)
        clicked(page, "train")
        assert not page.error
        notes = unescaped(page, "markdown")
        for field, value in preset_values(preset).items():
            assert page.session_state[field] == value, (name, field)
            assert value == classic[field] or f"- {label_of(field)} **" in notes, "nothing is hidden"
        spec = list(manager.views.values())[-1].spec
        assert spec.train == preset.train
        assert spec.model == ModelConfig(**{**preset.model.to_dict(), "vocab_size": spec.model.vocab_size})
        assert page.query_params["run"] == list(manager.views)[-1]


def drawn_then(address: str) -> None:
    import streamlit as st

    from pages.start.train.train import draw
    from ui.search.panel import open_address

    if st.session_state.setdefault("page_drawn", "") == "train":
        open_address(address)
    st.session_state["page_drawn"] = "train"
    draw()


def test_a_preset_that_the_search_leads_to_brings_its_settings_to_a_page_already_drawn():
    page = helpers.opened(drawn_then, None, "train?preset=induction", data="python")
    assert page.session_state["preset"] == "fast"
    ran(page)
    for field, value in preset_values(TRAINABLE["induction"]).items():
        assert page.session_state[field] == value, field


def test_an_illegal_combination_is_explained_beside_its_control_and_cannot_be_started():
    page = opened(n_heads="5")
    assert page.button(key="train").disabled
    said = [e.value for e in page.error]  # by the button, and by the control
    assert len(said) == 2 and all("must divide d_model" in s for s in said)
    page.number_input(key="n_heads").set_value(8).run()
    assert not page.error and not page.button(key="train").disabled


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"steps": "1000000000"}, "must be at most"),
        ({"d_model": "40000"}, "parameters"),
        ({"beta2": "1.5"}, "must be between"),
        ({"objective": "masked"}, "must be False for the masked objective"),
        ({"tokenizer": "bpe", "vocabulary": "256"}, "bpe:V"),
        ({"tokenizer": "bpe", "vocabulary": "8193"}, "at most 8,192"),
    ],
)
def test_numbers_beyond_the_limits_are_said(query, words):
    page = opened(**query)
    assert words in sentences(page) and page.button(key="train").disabled


def test_a_link_opens_with_the_preset_it_names_and_its_differences(manager):
    page = clicked(opened(preset="modern", d_model="64", learning_rate="0.005"), "train")
    assert page.session_state["preset"] == "modern"
    spec = manager.views["run-0"].spec
    assert (spec.model.d_model, spec.model.ffn) == (64, "swiglu")
    assert (spec.train.learning_rate, spec.train.optimizer) == (0.005, "adamw")
    assert "width 64" in spec.name


def test_words_from_a_link_are_shown_as_they_are():
    page = opened(sample_prompt="![a](https://example.org/b.png) :material/home: www.example.org")
    (note,) = [c.value for c in page.caption if c.value.startswith("Changed")]
    assert r"\!\[a\]\(https" in note
    assert not any(live in note for live in ("https\\:", "www.example", ":material", "home\\:"))
    refused = opened(sample_prompt="![a](//e.org/a.png)" + "x" * 3000, seed="-1")
    assert "![a](" not in sentences(refused)


def test_pasted_text_is_described_and_trained_on(manager):
    page = opened(data="paste")
    assert page.button(key="train").disabled
    page.text_area(key="pasted").set_value("to be or not to be, that is the question. " * 30).run()
    assert not page.exception and not page.error
    assert "distinct" in sentences(page) and "·be·or" in page.code[0].value
    assert page.code[1].value == "x  to·be·or·not\ny  o·be·or·not·", "before the first run"
    clicked(page, "train")
    spec = manager.views["run-0"].spec
    assert spec.corpus == "text"
    assert spec.text.startswith("to be")
    assert spec.model.vocab_size == len(set(spec.text))
    assert "pasted" not in page.query_params


def test_a_text_beyond_the_profile_is_refused(monkeypatch):
    monkeypatch.setenv("GLASSFORMER_PROFILE", "hosted")
    page = opened(data="paste")
    page.text_area(key="pasted").set_value("abc " * 130_000).run()
    assert "at most 500,000" in sentences(page) and page.button(key="train").disabled


def test_an_upload_that_is_no_text_gets_a_sentence():
    page = opened(data="upload")
    page.get_by_key("upload").upload("picture.png", bytes(range(256)) * 9)
    assert "is not UTF-8 text" in sentences(ran(page)) and page.button(key="train").disabled


def test_a_file_may_hold_what_a_text_may_and_little_more(monkeypatch):
    """500,000 characters of four bytes each are below two megabytes; a file of more is not read at all."""
    monkeypatch.setenv("GLASSFORMER_PROFILE", "hosted")
    page = opened(data="upload")
    page.get_by_key("upload").upload("long.txt", b"a" * (2 * 2**20 + 1))
    assert "is too large: at most 2 MB are allowed here." in sentences(ran(page))
    page.get_by_key("upload").upload("short.txt", "🙂🙃🐍🦉".encode() * 125_000)
    assert "uniformly among **4** characters" in sentences(ran(page))
    assert not page.button(key="train").disabled


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
    page = opened(measure="true", run=begun(manager))
    assert "running" in sentences(page) or page.get("badge")
    assert [m.label for m in page.metric] == ["Validation loss", "Perplexity", "Bits / character"]
    assert [m.value for m in page.metric] == ["2.100", f"{math.exp(2.1):.2f}", f"{2.1 / math.log(2):.3f}"]
    spec = manager.views["run-0"].spec
    lines = [shape["y0"] for shape in drawn["loss_chart"].layout["shapes"]]
    kind = kind_of(spec)
    assert math.log(kind.choices) in lines and sorted(lines) == sorted(kind.baselines().values())
    assert "validation went from 4.20 to 2.10 nats per character after step 40" in drawn["loss_chart"].alt
    clicked(page, "pause_button")
    changed(page, manager, status="paused")
    clicked(page, "step_button")
    clicked(page, "resume_button")
    page.number_input(key="rate-run-0").set_value(0.003).run()
    page.text_input(key="prompt-run-0").set_value("ROMEO:⏎").run()
    clicked(page, "stop_button")
    assert "extend_button" not in [b.key for b in page.button]
    changed(page, manager, status="stopped")
    more = page.number_input(key=f"more-run-0-{STEPS - 40}")
    assert more.value == STEPS - 40
    assert more.proto.ignore_rerun, "only the button reads it"
    more.set_value(300).run()
    clicked(page, "extend_button")
    clicked(page, "restart_button")
    assert ("watch", "run-0") in manager.asked
    asked = [(what, *rest) for what, run, *rest in manager.asked if what not in ("watch", "start")]
    steered = [("set_learning_rate", 0.003), ("set_prompt", "ROMEO:\n")]
    ends = [("stop",), ("extend", 300), ("restart",)]
    assert asked == [("pause",), ("step",), ("resume",), *steered, *ends]


@pytest.mark.parametrize("offered", [25, 0])
def test_continue_offers_no_more_steps_than_are_allowed(manager, monkeypatch, offered):
    allowed = replace(manager.profile, max_steps=STEPS + offered)
    monkeypatch.setattr(session, "profile", lambda: allowed)
    page = opened(run=begun(manager, status="finished", step=STEPS, snapshots=(0, STEPS)))
    assert page.button(key="extend_button").disabled == (not offered)
    if offered:
        clicked(page, "extend_button")
        assert ("extend", "run-0", offered) in manager.asked
    else:
        assert "the most allowed here" in page.button(key="extend_button").help


def test_against_time_and_queue_place_and_failure(manager):
    page = opened(axis="time", run=begun(manager, status="queued", queue_position=2))
    assert "position 2 in the queue" in sentences(page)
    ended, warning = "The training process was ended by the system.", "a snapshot could not be saved"
    changed(page, manager, status="failed", message=ended, warnings=(warning,))
    assert not helpers.lacking(sentences(page), "was ended by the system", warning)
    assert not page.button(key="extend_button").disabled


def test_a_strangers_run_is_shown_and_cannot_be_controlled(manager):
    run, manager.mine = begun(manager), False
    page = opened(run=run)
    assert "belongs to another browser" in sentences(page)
    for key in ("pause_button", "stop_button", "restart_button"):
        assert page.button(key=key).disabled
    assert page.number_input(key="rate-run-0").disabled and page.text_input(key="prompt-run-0").disabled
    assert not page.button(key="train").disabled


def test_quick_looks_and_the_whole_split_are_told_apart(manager):
    log = history(40)
    log.add(Evaluation(45, 1.9, 1.7, 0.9, False, 2.7, 2.5))
    page = opened(measure="true", run=begun(manager, history=log.view()))
    columns = ["best validation loss", "bits / character", "best quick estimate"]
    row = page.dataframe[0].value.iloc[0]
    assert row[columns].tolist() == [2.1, pytest.approx(2.1 / math.log(2)), 1.7], "1.7 is of another kind"
    assert "A quick estimate from about" in sentences(page)
    log.add(Evaluation(50, 1.9, 1.8, 1.0, True, 2.7, 2.6))
    changed(page, manager, history=log.view(), status="finished")
    assert page.dataframe[0].value.iloc[0][columns].tolist() == [1.8, 2.6, 1.7]
    assert "Measured on the whole validation split" in sentences(page)
    assert "A quick estimate" not in sentences(page) and page.metric[0].value == "1.800"


def test_what_will_be_trained_is_summed_up(manager):
    page = opened(preset="fast", context="32", batch_size="10", steps="300", eval_every="0", sample_every="0")
    said = sentences(page)
    clicked(page, "train")
    spec = manager.views["run-0"].spec
    assert not helpers.lacking(
        said,
        f"**{ledger(spec.model).total:,}** parameters, vocabulary of **{spec.model.vocab_size:,}** char",
        "**320** tokens per step, 300 steps",
        "speed in matrix multiplication",
    )
    changed(page, manager, status="finished", step=40, seconds=80.0)
    # 2 s a step, and the validation at the end: once both splits, once more all of one
    estimated = r"about \*\*([0-9.]+) min\*\* :gray\[\(estimated from the speed of your last run\)\]"
    minutes = re.search(estimated, sentences(page))
    assert minutes is not None and 10 <= float(minutes[1]) < 15
    begun(manager, spec)
    for other in ({"step": 40}, {"status": "finished", "step": 19}):  # it goes on; it is too short to tell
        assert minutes[0] in sentences(changed(page, manager, "run-1", seconds=4.0, **other))
    changed(page, manager, "run-1", step=20, seconds=400.0)
    slower = re.search(r"about \*\*([0-9.]+) (min|h)\*\*", sentences(page))
    assert slower is not None and float(slower[1]) * {"min": 1, "h": 60}[slower[2]] > 9 * float(minutes[1])


def test_a_refusal_stays_while_the_panel_is_drawn_again_and_again(manager, monkeypatch):
    page = opened(run=begun(manager))
    manager.refuse = "this run is ![a](b) being saved"
    clicked(page, "pause_button")
    for _ in range(2):
        assert r"\!\[a\]\(b\) being saved" in sentences(page.run())
    later = requests.time.monotonic() + requests.REFUSAL_SECONDS
    monkeypatch.setattr(requests.time, "monotonic", lambda: later)
    assert "being saved" not in sentences(page.run())


def test_earlier_runs_are_compared_overlaid_renamed_and_removed(manager):
    begun(manager)
    second = replace(recipe(), model=replace(recipe().model, position="alibi"), name="another")
    page = opened(run=begun(manager, second))
    table = page.dataframe[0].value
    assert list(table["changed from the run before"]) == ["(the first)", "positions rope → alibi"]
    assert list(table["best validation loss"]) == [2.1, 2.1]
    assert page.multiselect(key="overlaid").value == ["run-0"], "the one before is laid over by itself"
    page.selectbox(key="run_in_hand").select("run-0").run()
    page.text_input(key="name-run-0").set_value("the <b>first</b> *one*").run()
    assert manager.views["run-0"].name == "the <b>first</b> *one*"
    clicked(page, "show_run")
    assert page.query_params["run"] == "run-0"
    changed(page, manager, status="finished")
    clicked(page, "extend_button")
    assert ("extend", "run-0", STEPS - 40) in manager.asked, "to the end that was planned"
    clicked(page, "remove_run")
    assert list(manager.views) == ["run-1"]
    assert "run-0" not in str(page.query_params.get("run")), "the address names no run that is gone"
    assert "is not on this server" not in sentences(page)


def test_the_sidebar_shows_runs_that_the_page_does_not(manager):
    assert not bars(sidebar())
    begun(manager)
    ((text, _),) = bars(sidebar())
    assert text == f"step 40 of {STEPS} · loss 2.05"
    assert not bars(sidebar(run="run-0"))
    manager.change("run-0", beside="run-9")
    assert not bars(sidebar(run="run-9")), "both of a pair are on the page"
    manager.change("run-0", status="finished")
    assert not bars(sidebar())


def test_what_is_trained_already_is_the_first_of_a_pair(manager):
    page = opened(what_if="positions", run=begun(manager, status="finished", step=STEPS))
    assert "has been trained already" in page.button(key="train_both").help
    clicked(page, "train_both")
    assert list(manager.views) == ["run-0", "run-1"], "one more run, not two"
    assert manager.views["run-1"].spec.model.position == "none"
    assert manager.views["run-0"].beside == "run-1" and page.query_params["run"] == "run-0"
    # the first has ended: the progress is the second's, and so is what Pause pauses
    changed(page, manager, "run-1", step=40)
    ((text, share),) = bars(page)
    assert text.startswith(f"no positions · step 40 of {STEPS}") and share == round(40 / STEPS, 4)
    assert [badge.proto.body for badge in page.markdown if "finished" in badge.proto.body] == []
    clicked(page, "pause_button")
    assert ("pause", "run-1") in manager.asked and ("pause", "run-0") not in manager.asked
    changed(page, manager, "run-1", status="finished", step=STEPS)
    assert not bars(page) and page.button(key="extend_button")


def test_the_answer_is_what_was_measured_last(manager):
    """Nats, letters and bits by arithmetic of its own: e^loss, and loss over ln 2 and a character a token."""
    log = HistoryLog()
    log.add(Evaluation(0, 4.0, 4.0, 0.1, False, 6.0, 6.0))
    log.add(Evaluation(120, 1.2, math.log(7), 0.1, True, 1.0, math.log2(7)))
    page = opened(run=begun(manager, history=log.view(), step=120))
    assert (
        "After **120** steps: **1.95 nats per character (perplexity 7.0)** on held-out text (2.81 bits per"
        f" character); a uniform guess has perplexity {recipe().model.vocab_size:,}."
    ) in sentences(page), "ln 7 = 1.95, log2 7 = 2.81"


def compared(manager, *histories: History, what_if: str = "mask", **query: str) -> AppTest:
    """The page of a pair that has begun, with those histories."""
    runs = manager.start_comparison(recipe(), WHAT_IFS[what_if].applied(recipe()), "this-browser")
    for run, log in zip(runs, histories, strict=True):
        manager.change(run, history=log)
    return opened(run="run-0", **query)


def test_both_curves_texts_and_measures_of_a_pair_are_shown_and_the_mask_is_explained(manager, drawn):
    first, second = looks((0, 4.0), (20, 2.0), (40, 2.1)), looks((0, 4.0), (20, math.log(1.5)))
    page = compared(manager, first, second, measure="true")
    names = [trace.get("name") for trace in drawn["loss_chart"].traces]
    assert "fast 2.10" in names and "no causal mask 0.41" in names
    # compared where both were looked at
    told = "After **20** steps", "fast **2.00 nats", "; no causal mask **0.41 nats", "That is not progress"
    assert not helpers.lacking(sentences(page), *told)
    perplexities = [m.value for m in page.metric if m.label == "Perplexity"]
    assert perplexities == ["8.17", "1.50"], "e^2.1, and e^(ln 1.5)"
    assert {"norm_chart", "norm_chart_other", "rate_chart", "rate_chart_other"} <= set(drawn)
    assert ("watch", "run-1") in manager.asked
    clicked(page, "pause_button")
    assert ("pause", "run-0") in manager.asked and ("pause", "run-1") in manager.asked


@pytest.mark.parametrize("name", sorted(WHAT_IFS))
def test_every_what_if_starts_a_pair_that_differs_in_it_alone(manager, name):
    page = clicked(opened(what_if=name), "train_both")
    first, second = (view.spec for view in manager.views.values())
    assert (first.model, first.train) != (second.model, second.train) and first == recipe()
    assert second.name == WHAT_IFS[name].label and page.query_params["run"] == "run-0"
    ours, theirs = first.model.to_dict(), second.model.to_dict()
    changed = [field for field in ours if ours[field] != theirs[field]]
    assert len(changed) <= 1 and (changed or first.train.learning_rate * 10 == second.train.learning_rate)


def test_the_run_before_is_laid_over_until_somebody_chooses_otherwise_and_the_link_says_which(manager):
    begun(manager)
    page = opened(run=begun(manager))
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
    changes = (Change(20, 0.4, "learning_rate", 0.003), Change(40, 0.8, "steps", 100))
    begun(manager, changes=changes, given="fast")
    page = opened(run=begun(manager))
    assert "**fast** was changed by hand (learning rate 0.003 from step 20" in sentences(page)
    table = page.dataframe[0].value["changed from the run before"]
    assert "by hand: learning rate 0.003 from step 20" in table[0]
    for axis, places in (("step", {20, 40}), ("time", {0.4, 0.8})):
        if axis == "time":
            page.get_by_key("axis").set_value(axis).run()
        layout = drawn["loss_chart"].layout
        assert places <= {shape["x0"] for shape in layout["shapes"] if "x0" in shape}
        said = [note["text"] for note in layout["annotations"] if "by hand" in note["text"]]
        assert said == ["by hand: learning rate 0.003", "by hand: 100 further steps"]


def test_the_batch_and_the_arithmetic_are_folded(manager):
    page = opened(measure="true", hand="true", run=begun(manager))
    shown = next(c.value for c in page.code if c.value.startswith("x[0]"))
    x, y = (line.split("]  ")[1].split() for line in shown.splitlines()[:2])
    assert y[:20] == x[1:21], "y is x one position further on"
    said = sentences(page)  # of 18 windows of 63 pairs; e^-2.1 and e^2.1
    told = "y[i, t] = x[i, t + 1] holds for **1,134** of 1,134 pairs", "**0.122**", "**8.17**"
    assert not helpers.lacking(said, *told) and ("(= 418," in said or " − 64" in said)
    closed = sentences(opened(run="run-0"))
    assert "y[i, t]" not in closed and "probability of" not in closed


def test_before_a_run_the_answer_counts_the_letters_of_the_text():
    page = opened(steps="321")
    letters = len(set(corpora.load("python").text))
    said = f"it guesses uniformly among **{letters:,}** characters: a loss of {math.log(letters):.2f} nats"
    assert said in sentences(page) and "watch 321 steps" in sentences(page)


def test_who_has_a_link_trains_the_same_recipe(manager):
    narrow = replace(recipe(), model=replace(recipe().model, d_model=64))
    run, manager.mine = begun(manager, narrow), False
    clicked(opened(run=run), "train_this")
    assert manager.views["run-1"].spec == narrow


TINY = ModelConfig(vocab_size=3, context=8, d_model=24, n_layers=1, n_heads=3)


def zipped(config: ModelConfig = TINY, tokenizer: Tokenizer | None = None, **metrics: object) -> bytes:
    return pack(build(config), tokenizer or CharTokenizer("abc"), metrics)


def uploaded(file: bytes, page: AppTest | None = None) -> AppTest:
    page = page or opened()
    page.get_by_key("model_upload").upload("model.zip", file)
    return ran(page)


def written(page: AppTest) -> list[str]:
    page.button[[b.label for b in page.button].index("Write")].click()
    return [code.value for code in ran(page).code]


def test_a_model_can_be_uploaded_and_asked_for_a_text():
    tokenizer = CharTokenizer.train("abcdefgh \n")
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, context=16, d_model=24, n_layers=1, n_heads=3, position="alibi"
    )
    page = uploaded(zipped(config, tokenizer, evaluations=[{"validation_loss": 1.9}], train={"steps": 77}))
    assert "validation loss 1.900" in sentences(page)
    clicked(page, "use_settings")
    found = [page.session_state[f] for f in ("d_model", "position", "n_layers", "steps")]
    assert found == [24, "alibi", 1, 77]
    assert any(len(text) > 200 for text in written(page))
    assert "not a readable zip" in sentences(uploaded(b"PK\x03\x04 not a zip"))


def test_a_model_file_that_somebody_edited_breaks_nothing():
    train, odd = TrainConfig(sample_prompt="a\ud800").to_dict(), CharTokenizer("\ud800\ud801\ud802")
    page = opened()
    for loss in (10**400, -1, "low"):
        file = zipped(TINY, odd, evaluations=[{"validation_loss": loss}], train=train)
        said = sentences(uploaded(file, page))
        assert "A complete model" in said and "validation loss" not in said, loss
    assert any("???" in text for text in written(page))
    clicked(page, "use_settings")
    assert page.session_state["sample_prompt"] == "a?"


def test_an_uploaded_model_beyond_the_limits_is_a_sentence_and_is_not_kept(monkeypatch):
    def upload(context: int, page: AppTest | None = None) -> str:
        sizes = {"vocab_size": 3, "d_model": 8, "n_layers": 1, "n_heads": 1, "position": "rope"}
        return sentences(uploaded(zipped(ModelConfig(**sizes, context=context)), page))

    def kept() -> int:
        held = memo.LOADED.held._held
        return sum(size for name, (_, size) in held.items() if "_unpacked" in name)

    memo.clear()
    assert "A complete model" in upload(300)
    held = kept()
    assert 0 < held < 100_000
    with monkeypatch.context() as hosted:
        hosted.setenv("GLASSFORMER_PROFILE", "hosted")
        memo.clear()
        assert "must be at most 256 here" in upload(300) and not kept()
    monkeypatch.setattr(memo.LOADED, "_limit", lambda: int(2.5 * held))
    memo.clear()
    page = opened()
    for seed in range(4):
        assert "A complete model" in upload(30 + seed, page)
        assert memo.LOADED.held.bytes <= 2.5 * held
    memo.clear()


@pytest.mark.parametrize(
    ("cut", "size", "masked"),
    [("byte", 256, 1), ("bpe:300", 300, 0)],
    ids=["bytes, masked", "BPE, next token"],
)
def test_a_tokenizer_in_a_link_is_trained_with(manager, cut, size, masked):
    causal = (
        {"objective": "masked", "causal": "false"}
        if masked
        else {"objective": "next_token", "causal": "true"}
    )
    page, size = opened(tokenizer=cut, measure="true", **causal), size + masked
    assert cut in unescaped(page) and f"**{size}**" in sentences(page)
    assert any("|" in c.value for c in page.code), "the tokens of the text are shown"
    clicked(page, "train")
    spec = manager.views["run-0"].spec
    assert (spec.train.tokenizer, spec.model.vocab_size) == (cut, size) and cut in spec.name
    assert "cannot be compared between tokenizers" in sentences(page)


def test_runs_of_different_tokenizers_are_laid_over_each_other_in_bits_per_character(manager, drawn):
    def axis() -> str:
        return drawn["loss_chart"].layout["yaxis"]["title"]["text"]

    page = opened(run=begun(manager))
    assert axis() == "loss (nats per character)"
    page.get_by_key("loss_in").set_value("bits per character").run()
    assert axis() == "loss (bits per character)" and "bits" in drawn["loss_chart"].alt
    page.get_by_key("loss_in").set_value("nats per token").run()
    page.get_by_key("tokenizer").set_value("byte").run()
    clicked(page, "train")
    page.multiselect(key="overlaid").unselect("run-0").run()
    assert axis() == "loss (nats per byte)"
    page.multiselect(key="overlaid").select("run-0").run()
    assert not page.exception and axis() == "loss (bits per character)"
    assert "different tokens" in sentences(page)
    assert "loss_in" not in [g.key for g in page.get("button_group")]
    assert "tokens char → byte" in str(page.dataframe[0].value["changed from the run before"][1])
    assert list(page.dataframe[0].value["bits / character"]) == pytest.approx([2.1 / math.log(2)] * 2)


BASELINES = {"uniform": math.log(65), "unigram": 3.35, "bigram": 2.48}


def curve_of(name: str, log: History, unit: Unit = "nats") -> RunCurves:
    spec = RunSpec(TRAINABLE["fast"].model, TRAINABLE["fast"].train, "python")
    return run_curves(replace(view_of(spec, "run-0"), name=name, given="", history=log), "steps", unit)


def looks(*found: tuple[int, float], whole: tuple[int, float] | None = None) -> History:
    """Quick ones, and one at the whole split."""
    log = HistoryLog()
    for step, loss in (*found, *([whole] if whole else [])):
        log.add(Evaluation(step, 3.0, loss, step / 10, (step, loss) == whole, 3.0, 2 * loss))
    return log.view()


def test_the_evaluation_of_the_whole_split_is_drawn_apart_and_named():
    seen = looks((0, 4.0), (50, 2.0), (100, 1.8), whole=(120, 1.5))
    curve = curve_of("one", seen)
    assert curve.looked.tolist() == [4.0, 2.0, 1.8]
    assert curve.end.tolist() == [1.5] and curve.end_at.tolist() == [120]
    figure = loss_curves(curve, BASELINES, 65, others=[curve_of("another", seen)])
    traces = {trace.name: trace for trace in figure.data}
    other = "another 1.50", "another: validation, whole split"
    assert list(traces) == [
        *other,
        "each batch",
        "one 1.50",
        curves.TEXT["whole"],
        None,
    ]  # None: what an axis needs
    for line, mark in (("one 1.50", curves.TEXT["whole"]), other):
        assert list(traces[line].x) == [0, 50, 100], "no line leads to the mark"
        assert traces[mark].mode == "markers"
        assert (list(traces[mark].x), list(traces[mark].y)) == ([120], [1.5])
    said = [a.text for a in figure.layout.annotations if a.xref != "paper"]
    assert said == ["1.50", "1.50"] and figure.layout.yaxis.range[0] <= 1.5


def test_a_name_is_not_markup():
    figure = loss_curves(None, {}, 65, others=[curve_of("<b>&x", history(3).view())])
    assert figure.data[0].name == "&lt;b&gt;&amp;x 2.10"


def test_in_bits_per_character_the_chart_says_so():
    bits = curve_of("one", history(40).view(), "bits")
    figure = loss_curves(bits, {"uniform": 4.79, "unigram": 3.98}, 512, unit="bits", token="token")
    said = [a.text for a in figure.layout.annotations if a.xref == "paper"]
    assert said == ["uniform (log₂ 512 a token): 4.79", "unigram: 3.98"]
    assert figure.layout.yaxis.title.text == "loss (bits per character)"


def test_the_right_axis_says_between_how_many_letters_it_is_torn():
    axis = loss_curves(curve_of("one", history(40).view()), BASELINES, 65).layout["yaxis2"]
    assert list(axis["ticktext"]) == ["1", "2", "4", "8", "16", "32", "64"]
    assert np.allclose(np.exp(axis["tickvals"]), [1, 2, 4, 8, 16, 32, 64])
    in_bits = loss_curves(curve_of("one", history(40).view(), "bits"), BASELINES, 65, unit="bits")
    assert "yaxis2" not in in_bits.arrangement


def test_while_it_trains_there_is_the_run_its_buttons_and_one_menu(manager):
    def keys() -> list[str]:
        return [str(button.key) for button in page.button]

    page = opened(run=begun(manager))
    order = [keys().index(key) for key in ("pause_button", "stop_button", "train")]
    assert order == sorted(order), "another run is below"
    assert "step_button" not in keys() and not any("more-run" in str(n.key) for n in page.number_input)
    changed(page, manager, status="paused")
    assert "step_button" in keys()
    changed(page, manager, status="finished")
    assert keys().index("train") < keys().index("extend_button") and "pause_button" not in keys()


def test_names_of_heads_that_formed_shortly_after_one_another_stand_above() -> None:
    formed = [HeadFormation(step, "induction", 0, 0) for step in (100, 105, 109, 300)]
    assert copying_heads._rows(formed, 400) == [0, 1, 2, 0]
