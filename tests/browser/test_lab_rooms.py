"""The lab's rooms in a real Chromium: the doctor on a run of one's own, a patient to the reveal, marked problems."""

import re

import pytest
from playwright.sync_api import Page, expect

from engine.doctor.patient import patient_of
from engine.doctor.table import shipped, subject_of
from tests.browser import visit
from tests.browser.conftest import settled

SLOW = 120_000
RUN = (
    "/train?data=python&d_model=32&n_layers=1&steps=24&eval_every=8&sample_every=8&snapshot_every=8"
    "&sample_length=60"
)
ABSURD = [
    "ladder?ladder_view=race&ladder_rungs=x&ladder_rungs=💥&ladder_steps=-5&race=../../etc/passwd",
    "ladder?ladder_view=self&ladder_width=1e9&ladder_self_seed=-3&ladder_shown=<b>",
    "ladder?ladder_view=ideas&ladder_rung=💥",
    "bugs?bugs_view=cost&fault=<b>&fault_layer=99&fault_head=-1",
    "bugs?bugs_view=doctor&doctor_bug=x&doctor_slow=maybe&doctor_check=y&model=run-gone&step=-4",
    "bugs?bugs_view=patient&patient=99999999999999999999&patient_tests=a-future-future&patient_named=<x>",
    "bugs?bugs_view=story&story_step=77",
    "tasks?tasks_view=solve&task=💥&task_problems=-1",
    "tasks?tasks_view=heads&task=markov&task_head=9.9&task_problem=999",
    "tasks?tasks_view=order&race=💥",
]


def opened(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    visit.opened(page, address)


def answer(page: Page):
    return page.locator(".st-key-answer")


@pytest.mark.exhaustive
def test_the_doctor_examines_a_run_of_one_s_own(page: Page, app_url: str) -> None:
    page.goto(app_url + RUN)
    page.get_by_role("button", name="Train", exact=True).click(timeout=SLOW)
    page.locator(".st-key-extend_button button:enabled").first.wait_for(timeout=SLOW)
    run = page.url.split("run=")[1].split("&")[0]
    opened(page, f"{app_url}/bugs?bugs_view=doctor&model=run-{run}")
    expect(answer(page)).to_contain_text("checks", timeout=SLOW)
    table = page.locator(".st-key-doctor_checks")
    expect(table.get_by_text("Steady fall")).to_be_visible(timeout=SLOW)  # a run's course is examined, too
    expect(answer(page)).not_to_contain_text("Future tokens")
    page.locator(".st-key-doctor_bug input").click()
    page.get_by_role("option", name="The mask is missing", exact=True).click()
    expect(answer(page)).to_contain_text(re.compile(r"checks? fails?\. Future tokens"), timeout=SLOW)


@pytest.mark.exhaustive
def test_a_patient_is_played_through(page: Page, app_url: str) -> None:
    charts = shipped()
    number = next(n for n in range(100) if "future" in patient_of(n, charts).chart.caught_by)
    truth = subject_of(patient_of(number, charts).name)
    opened(page, f"{app_url}/bugs?bugs_view=patient&patient={number}")
    expect(answer(page)).to_contain_text("30 minutes left")
    page.locator(".st-key-patient_order input").click()
    page.get_by_role("option", name=re.compile("^Future tokens")).click()
    expect(answer(page)).to_contain_text("28 minutes left", timeout=SLOW)
    expect(page.locator(".st-key-patient_results")).to_contain_text("Replacing the tokens")
    guess = page.locator(".st-key-patient_guess input")
    guess.click()
    guess.fill(truth.title)
    page.get_by_role("option", name=truth.title, exact=True).click()
    settled(page)
    page.locator(".st-key-patient_name_it button").click()
    expect(answer(page)).to_contain_text(f"Right, in 2 minutes of tests: {truth.title}", timeout=SLOW)
    lines = page.get_by_test_id("stCode").filter(has_text=truth.diff.added[0].strip()[:30])
    box = lines.bounding_box()
    assert box and box["y"] + box["height"] <= 720, "the lines that were wrong are on the screen"
    link = page.url
    page.goto("about:blank")
    opened(page, link)
    expect(answer(page)).to_contain_text("Right, in 2 minutes")


def test_a_task_s_problems_are_marked_and_one_s_own_is_answered(page: Page, app_url: str) -> None:
    opened(page, f"{app_url}/tasks?tasks_view=solve&task=Reverse")
    marks = page.get_by_test_id("stCode").first
    for line in marks.inner_text().splitlines():
        found = re.fullmatch(r"(✓ right|✗ wrong) +([a-h]{8})> ([a-h]{8}).*", line.strip())
        assert found, line
        assert (found[3] == found[2][::-1]) == (found[1] == "✓ right")
    own = page.locator(".st-key-task_line input")
    own.fill("abcdefgh")
    own.press("Enter")
    expect(page.get_by_test_id("stCode").last).to_contain_text("hgfedcba", timeout=SLOW)
    own.fill("💥")
    own.press("Enter")
    expect(page.get_by_text("is no question of this task")).to_be_visible(timeout=SLOW)
