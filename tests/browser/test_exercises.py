"""Exercises in the browser: a right answer fills a dot, which outlives a reload."""

from studies.exercises.catalogue import TASKS, make
from tests.browser.conftest import settled


def test_what_is_solved_stays_in_the_browser(page, app_url):
    page.goto(f"{app_url}/exercises?set=masks&set_seed=5")
    settled(page)
    field = page.get_by_label("Your answer: one number")
    count = page.locator(".gf-solved-count")
    count.wait_for()
    assert count.inner_text().startswith(f"0 of {len(TASKS)} solved")
    right = make("causal", 5).answer[0]
    field.fill(str(right - make("causal", 5).given["length"]))
    field.press("Enter")
    page.get_by_text("You left the diagonal out").wait_for()
    field.fill(f"{right:,}")
    field.press("Enter")
    page.get_by_text("Right: that is correct.").wait_for()
    page.wait_for_function(
        f"document.querySelector('.gf-solved-count').innerText.startsWith('1 of {len(TASKS)} solved')"
    )
    assert page.locator(".gf-solved-full").count() == 1
    page.reload()
    page.locator(".gf-solved-full").wait_for()
    page.get_by_label("The cache's bytes: not solved yet").click()
    page.get_by_text("How many MB").wait_for()
