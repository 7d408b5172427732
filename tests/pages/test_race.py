"""A race on a page: what is shown before, while and after, its buttons, its link, and whose it is."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.data.corpora import from_text
from studies.experiments.race_table import RunCurves
from studies.experiments.stored_races import Stored
from studies.tasks.text_statistics import baselines
from tests.pages import helpers, race_page
from tests.pages.helpers import bars, clicked, unescaped
from tests.pages.race_page import STORED, TEXT, specs
from tests.pages.stage import StageManager, view_of
from ui.figures.losses import apart, race_curves

pytestmark = pytest.mark.usefixtures("manager")


@pytest.fixture(autouse=True)
def nothing_stored() -> None:
    STORED.clear()


def opened(**query: str) -> AppTest:
    return helpers.opened(race_page.script, **query)


def words(page: AppTest) -> str:
    return unescaped(page).replace("\\", "")


def test_before_anybody_raced_there_are_the_lines_and_a_button(drawn: Any) -> None:
    page = opened()
    assert "Press **Race** to train these **3** side by side." in words(page)
    chart = drawn["race_chart_demo"]
    assert chart.traces == []
    wanted = [f"{loss:.2f}" for _, loss in baselines(from_text(TEXT))]
    assert [note["text"].split(": ")[1] for note in chart.layout["annotations"]] == wanted
    assert not page.button(key="race_start_demo").disabled
    assert page.button(key="race_go_demo").disabled and page.button(key="race_stop_demo").disabled


def test_a_race_is_started_drawn_paused_and_cancelled(manager: StageManager, drawn: Any) -> None:
    page, runs = clicked(opened(), "race_start_demo"), ["run-0", "run-1", "run-2"]

    def asked(what: str) -> list[str]:
        return [run for each, run, *_ in manager.asked if each == what]

    assert page.query_params["race"] == "race-0"
    page.run()
    assert page.session_state["seen"] == runs
    assert [view.spec for view in manager.race("race-0")] == specs()
    assert "3 runs, the first at **2.10**" in words(page)
    traces = drawn["race_chart_demo"].traces
    ends = [f"{name}{what}" for name in ("small", "wide", "deep") for what in (" 2.10", ", whole split")]
    assert [trace["name"] for trace in traces] == ends
    looks = {(t["line"]["color"], t["line"]["dash"], t["marker"]["symbol"]) for t in traces[::2]}
    assert len(looks) == 3 and len({look[1] for look in looks}) == 3, "told apart without colours"
    # 0.8 s for 40 of 200 steps: 3.2 s before each of the three, which take turns
    assert bars(page) == [("about 10 s left", 0.2)]
    clicked(page, "race_go_demo")
    assert asked("pause") == runs
    for run in runs:
        manager.change(run, status="paused")
    page.run()
    assert page.button(key="race_go_demo").label == "Resume" and bars(page)[0][0] == "paused"
    for button in ("race_go_demo", "race_stop_run-1", "race_stop_demo"):
        clicked(page, button)
    assert asked("resume") == runs and asked("stop") == ["run-1", *runs]


def test_a_finished_race_stays_in_its_link(manager: StageManager, drawn: Any) -> None:
    clicked(opened(), "race_start_demo")
    for run in list(manager.views):
        manager.change(run, status="finished")
    other_tab = opened(race="race-0")
    assert other_tab.session_state["seen"] == ["run-0", "run-1", "run-2"] and "3 runs" in words(other_tab)
    table = drawn["race_chart_demo"].table
    assert table is not None and set(table["run"]) == {"small", "wide", "deep"}
    assert len(table["step"]) == 3 * 41 and max(table["flops"]) > 0
    strange = opened(race="race-99")
    assert "3 runs" in words(strange), "who raced the same before sees that"
    manager.mine = False
    foreign = opened(race="race-0")
    assert "started in another browser" in words(foreign) and foreign.button(key="race_stop_demo").disabled


def test_other_settings_show_other_runs_and_a_race_that_goes_on_stays(manager: StageManager) -> None:
    page = clicked(opened(), "race_start_demo")
    page.run()
    page.query_params["steps"] = "300"
    page.run()
    assert page.session_state["seen"] == ["run-0", "run-1", "run-2"], "it still runs"
    for run in list(manager.views):
        manager.change(run, status="finished")
    STORED.append(stored(300))
    page.run()
    assert page.session_state["seen"] == ["", "", ""] and "Stored curves" in words(page)
    page.query_params["steps"] = "200"
    page.run()
    assert page.session_state["seen"] == ["run-0", "run-1", "run-2"]


def stored(steps: int) -> Stored:
    views = tuple(replace(view_of(spec, "", "finished", steps=30), id="") for spec in specs(steps))
    return Stored("python -m a.command, one core", views)


def test_a_stored_race_is_there_at_first_sight(drawn: Any) -> None:
    STORED.append(stored(200))
    page = opened()
    assert "3 runs, the first at **2.10**" in words(page) and "Stored curves" in words(page)
    assert len(drawn["race_chart_demo"].traces) == 6
    assert not page.button(key="race_start_demo").disabled and page.button(key="race_stop_demo").disabled
    (caption,) = [one for one in page.caption if "Stored" in one.value]
    STORED[0] = replace(STORED[0], runs=STORED[0].runs[:2])
    assert "Only 2 of these 3 have been trained" in words(opened())
    assert "python" in caption.help and "a\u2060.command" in caption.help.replace("\\", "")


def test_what_went_wrong_is_said_and_a_lost_race_goes_on(manager: StageManager) -> None:
    page = clicked(opened(), "race_start_demo")
    manager.change("run-0", status="failed", message="the loss became nan at step 3")
    page.run()
    assert "small: the loss became nan at step 3" in words(page)
    assert page.button(key="race_go_demo").label == "Pause", "the others go on"
    for run in list(manager.views):
        manager.change(run, status="failed", lost=True, message="killed")
    page.run()
    assert page.button(key="race_go_demo").label == "Continue"
    clicked(page, "race_go_demo")
    assert ("revive", "race-0") in manager.asked
    manager.refuse = "a race has 2 to 8 runs here, not 9"
    clicked(page, "race_start_demo")
    assert manager.refuse in words(page)


def test_the_table_and_the_texts() -> None:
    STORED.append(stored(200))
    page = opened(measure="true")
    (frame,) = page.dataframe
    rows = frame.value
    assert rows["run"].tolist() == ["small", "wide", "deep"]
    assert rows["validation loss"].tolist() == [2.1] * 3 and rows["training loss"].tolist() == [2.05] * 3
    assert rows["perplexity"].tolist() == pytest.approx([math.exp(2.1)] * 3)
    assert rows["bits / character"].tolist() == pytest.approx([2.1 / math.log(2)] * 3)
    assert rows["parameters"].tolist()[0] == f"{view_of(specs()[0], 'x').parameters:,}"
    assert "**wide** after step 30" in words(page) and page.code[0].value.strip() == "ROMEO: what light"


def test_the_axis_the_curves_and_smoothing(drawn: Any) -> None:
    STORED.append(stored(200))
    opened(race_axis="tokens")
    assert drawn["race_chart_demo"].layout["xaxis"]["range"] == [0, 200 * 2 * 8]
    opened(race_curves="training", race_smooth="true")
    chart = drawn["race_chart_demo"]
    assert [trace["name"] for trace in chart.traces] == [
        f"{n}, each batch" for n in ("small", "wide", "deep")
    ]
    raw = [2 + 2 / step for step in range(1, 31)]
    assert chart.traces[0]["y"][-1] == pytest.approx(sum(raw[-20:]) / 20, rel=1e-5)
    names = [note["text"] for note in chart.layout["annotations"] if note.get("name") == "wide"]
    assert names[0].startswith(f"<b>{sum(raw[-20:]) / 20:.2f}</b>")
    opened(race_curves="both")
    assert len(drawn["race_chart_demo"].traces) == 9


def test_names_at_the_ends_never_overlap() -> None:
    for wanted in ([50.0] * 5, [0.0, 1.0, 2.0], [99.0, 99.5, 100.0], [10.0, 90.0]):
        found = apart(wanted, 100.0, 17.0)
        assert all(b - a >= 17.0 - 1e-9 for a, b in pairwise(found)) and max(found) <= 100.0
    assert apart([10.0, 90.0], 100.0, 17.0) == [10.0, 90.0], "who has room stays at its curve"


def test_lines_across_that_are_alike_share_a_label_which_stands_inside_the_chart() -> None:
    losses = np.full(40, 0.02)  # a curve along the bottom, above which a label would rather not stand
    curve = RunCurves("a", np.arange(40), losses, np.arange(40), losses, np.zeros(0), np.zeros(0))
    figure = race_curves([curve], {"bigram": 0.6931, "trigram": 0.6926, "floor": 0.0}, end=40)
    labels = {note["text"]: note["yanchor"] for note in figure.arrangement["annotations"]}
    assert labels["bigram, trigram: 0.69"] and labels["floor of this task: 0.00"] == "bottom"


def test_the_legend_of_a_phone_names_the_median_of_all_seeds_as_the_labels_do() -> None:
    def run(last: float) -> RunCurves:
        steps, losses = np.array([0.0, 10.0]), np.array([4.0, last])
        return RunCurves("a", steps, losses, steps, losses, np.zeros(0), np.zeros(0))

    figure = race_curves([run(2.0)], {"bigram": 2.5}, end=10, repeats=[run(1.0), run(1.5)])
    assert "a 1.50" in [trace.get("name") for trace in figure.traces]
    assert "<b>1.50</b> a" in [note["text"] for note in figure.arrangement["annotations"]]
    thick = [trace["y"][-1] for trace in figure.traces if trace.get("line", {}).get("width") == 2.5]
    assert thick == [1.5], "the line that ends where the name stands is the median run's"
    even = race_curves([run(2.0)], {}, end=10, repeats=[run(1.0), run(1.5), run(1.75)])
    assert [trace["y"][-1] for trace in even.traces if trace.get("line", {}).get("width") == 2.5] == [1.5]


def test_the_sidebar_shows_a_race_as_one_and_leads_back(manager: StageManager) -> None:
    clicked(opened(), "race_start_demo")
    manager.asked.clear()
    page = helpers.sidebar()
    assert bars(page) == [("3 runs taking turns · 20%", 0.2)] and ("watch", "run-0") in manager.asked
    assert "**Which is best?**" in words(page)
    assert not bars(helpers.sidebar(race="race-0")), "the page shows it"
    for run in list(manager.views):
        manager.change(run, status="finished")
    assert not bars(helpers.sidebar())
