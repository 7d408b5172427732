"""Progress in a browser: what is solved, guessed and seen is noted there, returns when its day has come, and can be taken
along as a file, or forgotten.
"""

import json
import re

import pytest
from playwright.sync_api import expect

from studies.exercises.catalogue import TASKS, make
from tests.browser import visit
from tests.browser.conftest import settled
from ui.returns import GUESSES
from ui.tour.courses import shelf

PROGRESS, DUE = ".gf-progress", ".gf-progress-list button"
# A clock that is days ahead, and no minute to wait.
LATER = """(() => { const Real = Date, ahead = 86400000 * %d; globalThis.Date = class extends Real {
  constructor(...parts) { parts.length ? super(...parts) : super(Real.now() + ahead) } static now() { return Real.now() + ahead } } })()"""
AT_ONCE = """(() => { const wait = setTimeout
  globalThis.setTimeout = (act, ms, ...rest) => wait(act, ms > 50000 ? 50 : ms, ...rest) })()"""
OURS = "Object.keys(localStorage).filter((name) => name.startsWith('glassformer'))"  # Streamlit has its own
HELD = "JSON.parse(localStorage.getItem('glassformer-progress') ?? '{}')"


def opened(page, app_url: str, where: str) -> None:
    page.goto(f"{app_url}/{where}")
    settled(page)


def given(page, answer: str) -> None:
    field = page.get_by_label("Your answer: one number")
    field.fill(answer)
    field.press("Enter")


def guessed(page, choice: str) -> None:
    page.click(".gf-guess-pill")
    page.get_by_role("button", name=choice).click()
    expect(page.locator(".gf-guess-said")).to_contain_text("Not quite.")


def test_what_was_solved_and_guessed_returns_the_next_day_with_other_numbers(page, app_url, tmp_path) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    exercise = make("causal", 5)
    opened(page, app_url, "exercises?set=masks&exercise=causal&set_seed=5")
    expect(page.locator(".gf-progress-said")).to_contain_text(f"0 of {len(TASKS)} exercises solved")
    given(page, f"{exercise.answer[0]:.0f}")
    expect(page.locator(".gf-progress-said")).to_contain_text(f"1 of {len(TASKS)} exercises solved")
    expect(page.locator(".gf-progress-said")).to_contain_text("The next question returns tomorrow.")
    page.wait_for_function(f"{HELD}.views?.includes('exercises/practise')")

    visit.opened(page, f"{app_url}/attention?attention_view=scores")
    guessed(page, "One key takes even more")
    expect(page.locator(".gf-guess-said")).to_contain_text("look at the bars")

    # A day later: the wrong guess first, then what was solved, each with other numbers.
    page.add_init_script(LATER % 1)
    opened(page, app_url, "exercises")
    expect(page.locator(".gf-progress-head")).to_have_text("From last time: two questions")
    expect(page.locator(DUE)).to_have_text([GUESSES["width"].title, TASKS["causal"][0]])
    page.locator(DUE).nth(1).click()
    expect(page).to_have_url(re.compile(r"set=masks&set_seed=(?!5\b)\d+"))
    settled(page)
    seed = int(re.search(r"set_seed=(\d+)", page.url)[1])
    wrong = make("causal", seed).answer[0] + 1
    given(page, f"{wrong:.0f}")
    expect(page.locator(DUE)).to_have_text([GUESSES["width"].title])
    expect(page.locator(".gf-solved-missed")).to_have_count(1)

    # As the first scene of a course begins, and not on a stage.
    opened(page, app_url, "?home_view=living&course=ten-minutes&scene=1")
    panel = page.locator(".gf-tour-again")
    expect(panel).to_contain_text("From last time: one question")
    panel.get_by_role("button", name=GUESSES["width"].title).click()
    expect(page).to_have_url(re.compile(r"/exercises\?.*exercise=spread.*course=ten-minutes&scene=1"))
    settled(page)
    expect(panel).to_be_hidden()
    page.get_by_role("button", name="Back to the scene").click()
    expect(panel).to_be_visible()
    panel.get_by_role("button", name="Not now").click()
    expect(panel).to_be_hidden()
    opened(page, app_url, "?home_view=living&course=ten-minutes&scene=1&stage=1")
    page.wait_for_selector("html.gf-stage", state="attached")
    expect(panel).to_be_hidden()

    # On Courses: how far; as a file, forgotten, and back again.
    opened(page, app_url, "courses")
    count = len(shelf().courses["ten-minutes"].scenes)
    mark = page.locator(".st-key-mark_ten-minutes")
    expect(mark).to_contain_text(f"1 of {count} seen")
    expect(page.locator(".gf-mark:visible")).to_have_count(1)
    before = page.evaluate(HELD)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export progress").click()
    file = tmp_path / "progress.json"
    download.value.save_as(file)
    page.get_by_role("button", name="Forget everything").click()
    expect(mark.locator(".gf-mark")).to_be_hidden()
    assert page.evaluate(OURS) == []
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(json.loads(file.read_text()) | {"version": 7}))
    page.locator(f"{PROGRESS} input[type=file]").set_input_files(forged)
    expect(page.locator(".gf-progress-state")).to_contain_text("another version")
    assert page.evaluate(OURS) == []
    page.locator(f"{PROGRESS} input[type=file]").set_input_files(file)
    expect(mark).to_contain_text(f"1 of {count} seen")
    assert {kind: sorted(page.evaluate(HELD)[kind]) for kind in before} == {
        kind: sorted(each) for kind, each in before.items()
    }
    page.get_by_role("button", name="Go on at 2").click()
    expect(page.locator(".gf-tour-where")).to_have_text(f"2 of {count}")


def test_a_wrong_guess_leads_to_what_refutes_it_and_a_minute_later_to_its_like(page, app_url) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.add_init_script(AT_ONCE)
    visit.opened(page, f"{app_url}/attention?attention_view=mask")
    guessed(page, "It stays about the same")
    line = page.locator(".gf-watch-line")
    expect(page.get_by_role("button", name="See it: Bug lab")).to_be_visible()
    expect(line).to_be_hidden()  # while the guess is read
    page.get_by_role("button", name="Close", exact=True).click()
    expect(line).to_contain_text("Your last guess was wrong. The same idea with other numbers")
    line.get_by_role("button", name=GUESSES["unmasked"].title).click()
    expect(page).to_have_url(re.compile(r"/attention\?.*text=What"))
    expect(line).to_be_hidden()
    expect(page.locator(".gf-guess-choices button")).to_have_count(3)  # who asked for it need not press again
    page.get_by_role("button", name="It stays about the same").click()
    page.get_by_role("button", name="See it: Bug lab").click()
    page.locator(".st-key-answer", has_text="The bug makes the loss look better").wait_for()


def test_who_forgets_everything_is_offered_nothing(page, app_url) -> None:
    page.add_init_script(AT_ONCE)
    visit.opened(page, f"{app_url}/attention?attention_view=mask")
    line = page.locator(".gf-watch-line")
    guessed(page, "It stays about the same")
    other_tab_forgets = "localStorage.clear(); dispatchEvent(new StorageEvent('storage', { key: null }))"
    page.evaluate(other_tab_forgets)
    page.get_by_role("button", name="Close", exact=True).click()
    page.wait_for_timeout(2500)  # it looks again every two seconds
    expect(line).to_be_hidden()
    page.locator(".gf-guess-pill").click()
    page.get_by_role("button", name="It stays about the same").click()
    page.get_by_role("button", name="Close", exact=True).click()
    expect(line).to_be_visible()
    page.evaluate(other_tab_forgets)
    expect(line).to_be_hidden()


@visit.needs_axe
@pytest.mark.exhaustive
def test_nothing_is_wrong_with_it_for_a_reader_of_screens(page, app_url) -> None:
    held = {"right": 0, "wrong": 1, "day": 1, "step": 0, "due": 2, "missed": True, "seeds": [], "last": None}
    kept = {"exercises": {"causal": held}, "guesses": {}, "views": [], "scenes": {"ten-minutes": [0]}}
    opened(page, app_url, "exercises")
    page.evaluate("(text) => localStorage.setItem('glassformer-progress', text)", json.dumps(kept))
    for where, panel in {
        "exercises": DUE,
        "courses": ".gf-mark:visible",
        "?home_view=living&course=ten-minutes&scene=1": ".gf-tour-again button",
    }.items():
        opened(page, app_url, where)
        page.locator(panel).first.wait_for()
        assert visit.violations(page) == [], where
        visit.shown_in(page, "dark")
        assert visit.violations(page, "color-contrast") == [], where
        visit.shown_in(page, "light")
