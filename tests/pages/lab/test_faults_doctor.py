"""The bug lab and its doctor: what is said is what was found; a patient's bug leaves the server when it was named."""

import base64
import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig, TrainConfig
from engine.data.progress import Progress
from pages.lab.faults import cost as cost_view
from pages.lab.faults import diagnose, mystery_patient
from runs.state import RunSpec
from studies.experiments.bug_races import FOLDER, Side
from studies.experiments.bug_races import Comparison as Both
from studies.lab.doctor.check import Finding
from studies.lab.doctor.checks import CHECKS
from studies.lab.doctor.patient import BUDGET, affordable, cost, patient_of
from studies.lab.doctor.story import PATH as STORY
from studies.lab.doctor.table import HEALTHY, PATH, shipped, subject_of
from studies.lab.faults import FAULTS
from tests.pages import helpers
from tests.pages.conftest import Drawn
from tests.pages.stage import StageManager, view_of
from tests.pages.start.scene_screen import nodes
from ui import background_jobs

ROWS = json.loads(PATH.read_text("utf-8"))["rows"]
pytestmark = pytest.mark.usefixtures("manager")


def opened(view: str, **query: str) -> AppTest:
    page = helpers.opened("lab/faults", bugs_view=view, **query)
    assert not page.error, page.error
    return page


def said(page: AppTest) -> str:
    tables = [str(cell) for table in page.table for row in table.value.to_numpy() for cell in row]
    return " | ".join([helpers.said(page), *tables])


def failed(name: str) -> list[str]:
    return [check for check, found in ROWS[name]["findings"].items() if found[0] == "fail"]


@pytest.mark.parametrize("name", ["unscaled_scores", "transposed_mask", HEALTHY])
def test_the_grid_is_the_file(name: str, drawn: dict[str, Drawn]) -> None:
    page = opened("doctor", which_fault=name, measure="true")
    (trace,) = drawn["which_grid"].traces
    names = [row[0] for row in trace["customdata"]]
    assert sorted(names) == sorted(ROWS) and names[-1] == HEALTHY
    for fault, line in zip(names, trace["z"], strict=True):
        wrong = [check for check, value in zip(CHECKS, line, strict=True) if value == 1]
        assert sorted(wrong) == sorted(failed(fault)), fault
    (frame,) = drawn["which_grid"].layout["shapes"]
    assert names[round((frame["y0"] + frame["y1"]) / 2)] == name
    asked = [found for found in ROWS[name]["findings"].values() if found[0] != "not applicable"]
    answer = said(page)
    if name == HEALTHY:
        assert f"none of the {len(asked)} checks fails" in answer
        return
    assert f"**{len(failed(name))} of the {len(asked)} checks**" in answer
    quickest = min(failed(name), key=lambda check: CHECKS[check].minutes)
    assert f"“{CHECKS[quickest].title}”: {ROWS[name]['findings'][quickest][2]}" in answer


def sent(page: AppTest, drawn: dict[str, Drawn]) -> str:
    """Every message of a page as the browser gets it: each element's, and what each figure was sent."""
    parts = [str(node.proto) for node in nodes(page._tree) if getattr(node, "proto", None) is not None]
    parts += [json.dumps([d.traces, d.layout, d.table, d.alt], default=str) for d in drawn.values()]
    return "\n".join(parts)


def telling(name: str) -> list[str]:
    """What would give a fault away: its words, and its lines."""
    fault = subject_of(name)
    lines = [line for line in fault.diff.added if len(line) > 12] if fault.parts != "healthy" else []
    return [said for said in (fault.symptom, fault.story, fault.fix, fault.texts, *lines) if said]


@pytest.mark.parametrize("number", [1, 5])
def test_nothing_that_is_sent_gives_the_bug_away(number: int, drawn: dict[str, Drawn]) -> None:
    """The names of all faults are in the list of diagnoses, each as often; nothing else is there of one."""
    truth = patient_of(number, shipped()).name
    page = opened("patient", patient=str(number), patient_tests="rows-future", words="true", code="true")
    message = sent(page, drawn)
    assert "patient_curves" in drawn and CHECKS["future"].title in message
    counts = {name: message.count(subject_of(name).title) for name in ROWS}
    assert len(set(counts.values())) == 1 and counts[truth] >= 1, counts
    assert [name for name in ROWS if name != HEALTHY and name in message] == []  # what the code calls them
    assert [words_of for words_of in telling(truth) if words_of[:60] in message] == []
    assert truth not in json.dumps(dict(page.query_params))
    revealed = opened("patient", patient=str(number), patient_named=HEALTHY, measure="true")
    assert subject_of(truth).title in said(revealed)
    if truth != HEALTHY:
        assert subject_of(truth).story[:60] in said(revealed)
        assert subject_of(truth).diff.text in [code.value for code in revealed.code], "beside the curves"


def test_a_patient_s_curves_are_those_of_its_training(drawn: dict[str, Drawn]) -> None:
    row = ROWS[patient_of(3, shipped()).name]
    opened("patient", patient="3")
    training, unseen = drawn["patient_curves"].traces
    assert list(training["y"]) == pytest.approx(row["losses"], abs=1e-4)
    assert list(unseen["x"]) == [step for step, _, _ in row["looks"]]
    assert list(unseen["y"]) == pytest.approx([loss for _, _, loss in row["looks"]])
    (line,) = drawn["patient_curves"].layout["shapes"]
    assert line["y0"] == line["y1"] == pytest.approx(row["counting"])


def test_tests_cost_minutes_and_money_is_spent_once() -> None:
    every = list(CHECKS)
    done = affordable(every)
    assert cost(done) == sum(CHECKS[name].minutes for name in done) <= BUDGET
    assert all(cost((*done, name)) > BUDGET for name in every if name not in done)
    assert affordable(["rows", "x", "rows", "future"]) == ("rows", "future")
    assert affordable([]) == () and cost(()) == 0


def test_what_was_ordered_is_shown_and_paid_for() -> None:
    page = opened("patient", patient="1", patient_tests="future-writes")
    truth, newest_first = patient_of(1, shipped()), ("writes", "future")
    left = BUDGET - CHECKS["future"].minutes - CHECKS["writes"].minutes
    assert f"**{left} minutes** left" in said(page)
    table = page.table[0].value
    assert list(table["test"]) == [CHECKS[name].title for name in newest_first]
    assert list(table["result"]) == [ROWS[truth.name]["findings"][name][2] for name in newest_first]
    page.selectbox(key="patient_order").select(mystery_patient.offered(CHECKS["rows"])).run()
    assert helpers.in_address(page, "patient_tests") == "future-writes-rows"
    assert f"**{left - CHECKS['rows'].minutes} minutes** left" in said(page)


def test_a_diagnosis_counts_when_it_is_named() -> None:
    page = opened("patient", patient="1", patient_tests="rows")
    truth = patient_of(1, shipped()).name
    page.selectbox(key="patient_guess").select(subject_of(truth).title).run()
    assert "Right" not in said(page) and (subject_of(truth).symptom or "see nothing") in said(page)
    page.button(key="patient_name_it").click().run()
    assert f"Right, in **{CHECKS['rows'].minutes} minutes**" in said(page)
    other = next(name for name in ROWS if name != truth)
    assert "Not quite" in said(opened("patient", patient="1", patient_named=other))
    assert "left for tests" in said(opened("patient", patient="1", patient_named="nonsense"))


def test_a_diagnosis_that_is_chosen_is_in_the_link_until_it_is_named_or_another_patient_comes() -> None:
    page = opened("patient", patient="1")
    page.selectbox(key="patient_guess").select(subject_of("first_block_only").title).run()
    assert helpers.in_address(page, "patient_guess") == "first_block_only"
    assert subject_of("first_block_only").symptom in said(
        opened("patient", patient="1", patient_guess="first_block_only")
    )
    page.number_input(key="patient").set_value(2).run()
    assert helpers.in_address(page, "patient_guess") is None
    assert page.selectbox(key="patient_guess").value == "" and subject_of(
        "first_block_only"
    ).symptom not in said(page)
    page.selectbox(key="patient_guess").select(subject_of("first_block_only").title).run()
    page.button(key="patient_name_it").click().run()
    assert helpers.in_address(page, "patient_named") == "first_block_only"
    assert helpers.in_address(page, "patient_guess") is None


def run(manager: StageManager) -> str:
    config = ModelConfig(vocab_size=90, context=64, d_model=16, n_layers=2, n_heads=2)
    spec = RunSpec(config, TrainConfig(steps=40), "text", "abc " * 99, name="mine")
    manager.views["a"] = view_of(spec, "a", "finished", 40, snapshots=(0, 40))
    return "run-a"


def test_a_bug_that_is_put_in_is_found(manager: StageManager) -> None:
    page = opened("doctor", model=run(manager), doctor_bug="transposed_mask", measure="true")
    answer = said(page)
    assert "checks fail.** Future tokens" in answer and "the model sees what it should predict" in answer
    healthy = said(opened("doctor", model=run(manager), doctor_check="spread"))
    assert CHECKS["spread"].question in healthy and "Future tokens: Replacing" not in healthy


def test_what_is_found_so_far_stands_there_while_the_rest_is_done(
    manager: StageManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()

    def examine(case: object, names: object) -> Iterator[Progress]:
        yield Progress(1, 2, (Finding("future", "pass", 0.0, "Nothing moved.", 0.1),))
        go.wait(60)
        yield Progress(2, 2)
        return ()

    monkeypatch.setattr(background_jobs, "GLANCE", 0.5)
    monkeypatch.setattr(background_jobs, "_server", background_jobs.Jobs())
    monkeypatch.setattr("pages.lab.faults.diagnose.examine", examine)
    page = opened("doctor", model=run(manager))
    go.set()
    assert "So far **1 of 1 checks** have passed" in said(page)
    shown = pd.concat([table.value for table in page.table])
    assert shown["check"].tolist() == [CHECKS[name].title for name in diagnose.QUICK]
    assert shown.index.tolist() == [diagnose.MARKS["pass"], *[diagnose.PENDING] * (len(diagnose.QUICK) - 1)]


STORED = json.loads(STORY.read_text("utf-8"))
STAGE, LINES = STORED["stages"], STORED["lines"]
LAST = {name: stage["looks"][-1] for name, stage in STAGE.items()}


def chapter(name: str) -> str:
    """What a chapter says."""
    return said(opened("story", story_step=name))


def test_it_is_stuck(drawn: dict[str, Drawn]) -> None:
    last, unigram = LAST["both"], LINES["unigram"]
    told = f"**{last['loss']:.2f}**", f"({unigram:.2f})", f"after {last['step']:,} steps"
    assert not helpers.lacking(chapter("stuck"), *told)
    assert list(drawn["story_course"].traces[0]["y"]) == pytest.approx(STAGE["both"]["losses"])
    assert abs(last["loss"] - unigram) < 0.25


def test_gradients_tell_of_the_weights(drawn: dict[str, Drawn]) -> None:
    answer = chapter("norms")
    for line, name in zip(drawn["story_norms"].traces, ("both", "mended"), strict=True):
        assert list(line["y"]) == pytest.approx(STAGE[name]["norms"][: len(line["y"])])
        assert len(line["y"]) > 5
    assert f"**{STAGE['both']['growth']:,.0f} times**" in answer and STAGE["both"]["growth"] > 1e5
    assert f"the ratio is {STAGE['mended']['growth']:.1f}." in answer and STAGE["mended"]["growth"] < 5


def test_the_pattern_shows_the_mask(drawn: dict[str, Drawn]) -> None:
    answer, pattern = chapter("shapes"), np.array(STAGE["mask"]["pattern"])
    n = len(pattern)
    later = sum(pattern[q, k] for q in range(n) for k in range(q + 1, n))
    assert f"**{later / pattern.sum():.0%}** of all weight" in answer and f"({n}, {n})" in answer
    assert np.array(drawn["story_pattern_mask"].traces[0]["z"]) == pytest.approx(pattern, abs=1e-4)
    assert np.triu(STAGE["mended"]["pattern"], 1).sum() == 0


@pytest.mark.parametrize(
    ("name", "stage", "digits"), [("cheats", "mask", 3), ("told", "told", 3), ("mended", "mended", 2)]
)
def test_chapters_say_the_last_loss(name: str, stage: str, digits: int) -> None:
    answer = chapter(name)
    assert f"**{LAST[stage]['loss']:.{digits}f}**" in answer
    if name == "told":
        there = next(look for look in STAGE["mask"]["looks"] if look["step"] == LAST["told"]["step"])
        assert f"as it does with the mask bug alone ({there['loss']:.3f})" in answer


def test_what_was_examined_was_found_and_the_healthy_model_passes() -> None:
    assert set(ROWS) <= {HEALTHY, *FAULTS} and failed(HEALTHY) == []
    assert [name for name in ROWS if name != HEALTHY and not failed(name)] == []


def held(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("name", ["no_mask", "first_block_only", "no_clipping"])
def test_the_stored_race_is_drawn_and_said(name: str, drawn) -> None:
    page, stored = helpers.opened("lab/faults", fault=name), held(name)
    labels = ("healthy", "with the bug")
    sides: dict[str, list[dict[str, Any]]] = {label: [] for label in labels}
    for place, run in enumerate(stored["runs"] + stored["repeats"]):
        sides[labels[place % 2]].append(run)
    for runs in sides.values():
        runs.sort(key=lambda run: run["looks"][-1]["validation_loss"])
    medians = {label: runs[1]["looks"] for label, runs in sides.items()}  # of three: the thick lines
    healthy, broken = (medians[label][-1]["validation_loss"] for label in labels)
    answer = next(e.value for e in page.markdown if "with the bug" in e.value)
    assert f"**{broken:.2f}** with the bug, **{healthy:.2f}** healthy" in answer
    assert ("look **better**" in answer) == (broken < healthy)
    chart = drawn[f"race_chart_fault_{name}"]
    notes = " ".join(note["text"] for note in chart.layout["annotations"])
    assert not helpers.lacking(notes, f"{healthy:.2f}", f"{broken:.2f}")
    assert f"latest validation losses: healthy {healthy:.2f}, with the bug {broken:.2f};" in chart.alt
    assert chart.table is not None and {*chart.table["seed"]} == {0, 1, 2}, "the data have every line"
    curves = {t["name"].rsplit(" ", 1)[0]: t for t in chart.traces if "whole split" not in t["name"]}
    for run, label in zip(stored["runs"], labels, strict=True):
        looks = [(e["step"], e["validation_loss"]) for e in medians[label] if not e["complete"]]
        np.testing.assert_allclose(
            [*zip(curves[label]["x"], curves[label]["y"], strict=True)], looks, rtol=1e-4
        )
        wrote = re.sub(r"\n(?:[ \n]*\n)?", "\n", run["samples"][-1]["text"]).strip("\n")  # no empty lines
        assert wrote in [code.value for code in page.code]
    assert re.search(r"\*\*(?:Healthy|With the bug)\*\*: (\d+)%", helpers.said(page, "markdown"))


def test_patterns_of_both_are_those_of_the_file(drawn) -> None:
    helpers.opened("lab/faults", fault="no_mask", measure="true", fault_layer="1", fault_head="2")
    for broken, each in zip((False, True), held("no_mask")["patterns"], strict=True):
        steps = np.frombuffer(base64.b64decode(each["weights"]), np.uint8).reshape(each["shape"])
        heat = drawn[f"fault_pattern_{broken}"].traces[0]
        np.testing.assert_allclose(heat["z"], steps[1, 2] / 255, atol=1e-6)


def side(loss: float, text: str = "thou art", share: float = 0.5, died: int | None = None) -> Side:
    return Side(loss, 200, "ROMEO:\n", text, share, died)


@pytest.mark.parametrize(
    ("broken", "wanted"),
    [
        (
            side(0.05, "TTTT", 0.0),
            "The bug makes the loss look **better**: loss **0.05** with the bug, **2.10**",
        ),
        (side(2.6), "The bug costs **0.50 nats**: loss **2.60** with the bug, **2.10** healthy."),
        (side(2.11), "The loss does not show this bug: loss **2.11** with the bug, **2.10** healthy."),
        (side(3.3, died=31), "With the bug, training **diverges at step 31**: the loss is NaN."),
    ],
)
def test_the_answer_says_what_the_loss_says(broken: Side, wanted: str) -> None:
    assert cost_view.answer(Both(side(2.1), broken)).startswith(wanted)


@pytest.mark.parametrize(
    ("last", "wanted"),
    [
        (
            2.48,
            "The bug costs **0.50 nats** (+0.28 to +0.62 over 3 seeds): median loss **2.60** with the bug",
        ),
        (
            2.18,
            "Whether this bug costs anything depends on the **seed** (−0.02 to +0.62 over 3 seeds): median",
        ),
    ],
)
def test_the_answer_says_how_the_cost_varies_between_seeds(last: float, wanted: str) -> None:
    assert cost_view.answer(Both(side(2.1), side(2.6), ((2.0, 2.62), (2.2, last)))).startswith(wanted)


def test_the_answer_quotes_both_and_their_share_of_words() -> None:
    answer = cost_view.answer(Both(side(2.1, "thou art", 0.62), side(0.05, "a*b\nc", 0.0)))
    assert "It writes “a\\*b c…” (**0%** real words)" in answer
    assert "the healthy twin “thou art…” (**62%**)" in answer
