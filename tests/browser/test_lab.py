"""A race of the lab in a real Chromium, with its CSV."""

import csv
import io
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import visit
from tests.browser.conftest import open_fold


def opened(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    visit.opened(page, address)


RACE = "/ladder?ladder_view=race&ladder_rungs=Last+letter&ladder_rungs=Average&ladder_text=python&ladder_steps=600"
LOOKS = """() => {
  const plot = document.querySelector('[class*="race_chart"] .gf-figure')
  return plot?._fullData ? plot._fullData.filter((t) => t.mode === 'lines+markers').map((t) => t.y.length) : []
}"""
ENOUGH = f"least => {{ const n = ({LOOKS})(); return n.length === 2 && Math.min(...n) >= least }}"


def button(page: Page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def each(page: Page):
    if page.get_by_test_id("stPopoverBody").count() == 0:
        page.get_by_role("button", name="Each").click()
    return page.get_by_test_id("stPopoverBody")


@pytest.mark.exhaustive
def test_a_race_of_two_from_the_start_to_its_link(page: Page, app_url: str, tmp_path: Path) -> None:
    opened(page, app_url + RACE)
    assert "race=" not in page.url, "a link starts nothing by itself"
    button(page, "Race").click()
    page.wait_for_function(ENOUGH, arg=2)
    before = page.evaluate(LOOKS)
    page.wait_for_function(f"before => ({LOOKS})().every((n, i) => n > before[i])", arg=before)  # both grow

    button(page, "Pause").first.click()  # the one of all: then nothing ends while one is cancelled
    expect(button(page, "Resume").first).to_be_visible()
    each(page).get_by_role("button", name="Cancel").nth(1).click()
    expect(each(page)).to_contain_text(re.compile(r"Average.*stopped"))
    page.keyboard.press("Escape")
    button(page, "Resume").first.click()
    answer = page.locator(".st-key-answer")
    expect(answer).to_contain_text("At the end, in nats")
    expect(answer).to_contain_text(re.compile(r"Ended early: Average \(at step \d+\)"))
    expect(button(page, "Race")).to_be_enabled()
    said = answer.inner_text()

    page.locator('[class*="race_chart"]').first.hover()
    with page.expect_download() as coming:
        page.locator('[class*="race_chart"]').get_by_role("button", name="CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(coming.value.path()).read_text("utf-8-sig"))))
    last = {row["run"]: row for row in rows}
    assert set(last) == {"Last letter", "Average"} and last["Last letter"]["step"] == "600"
    assert f"Last letter {float(last['Last letter']['validation_loss']):.2f}" in said
    assert int(last["Average"]["step"]) < 600

    open_fold(page, "Measure it")
    expect(page.get_by_text(re.compile("Last letter after step [1-9]"))).to_be_visible()
    each(page).get_by_role("link", name="Look inside").first.click()
    page.wait_for_url(re.compile(r"/attention\?.*model=run-"))
    page.locator(".gf-scrubber").wait_for()
