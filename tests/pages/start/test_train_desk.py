"""The desk: what the speed of the next run is told from, and what stands beside the button."""

from __future__ import annotations

import re

from pages.start.train import desk, words
from tests.pages.stage import view_of
from tests.pages.start.training import clicked, opened, sentences


def test_the_speed_is_told_from_the_last_run_that_ended_after_enough_steps(manager):
    spec = opened_spec(manager)
    assert desk.last_finished() is None, "it is still running"
    for run, status, steps in (("a", "finished", 40), ("b", "stopped", 20), ("c", "failed", 19)):
        manager.views[run] = view_of(spec, run, status, steps)
    assert desk.last_finished().id == "b", "the third did too few steps to tell"
    manager.views["d"] = view_of(spec, "d", "running", 40)
    assert desk.last_finished().id == "b"


def opened_spec(manager):
    clicked(opened(), "train")
    return manager.views["run-0"].spec


def test_beside_the_button_stands_how_long_one_run_takes(manager):
    page = clicked(opened(steps="100"), "train")
    manager.change("run-0", status="finished", step=100, seconds=50.0)
    page.run()
    said = next(m.value for m in page.markdown if "parameters** ·" in m.value or "parameters ·" in m.value)
    found = re.search(r"· one run: about \*\*(\d+) s\*\*$", said)
    assert found and 50 <= int(found[1]) <= 80, said  # 50 s of steps, and looks and samples
    assert "**100** steps" in said and sentences(page).count("one run: about") == 1
    assert words.in_short(1234, 5, "") == "**1,234** parameters · **5** steps"
