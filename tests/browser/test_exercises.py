"""Exercises in the browser: a right answer fills a dot, which outlives a reload; a worked example that is filled in stands on
one screen.
"""

from studies.exercises.catalogue import TASKS, make
from tests.browser.conftest import settled
from tests.browser.visit import AXE, HIGH, SIDEWAYS, WIDE, shown_in, violations


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


BOX = ".st-key-fill_in input"


def test_an_example_is_filled_in_on_one_screen_and_its_level_outlives_a_reload(page, app_url):
    page.set_viewport_size({"width": WIDE, "height": HIGH})
    page.goto(f"{app_url}/shapes?shapes_view=hand&hand=true&shapes_hand_fill=number")
    settled(page)
    assert page.locator(BOX).count() == 1
    check = page.get_by_role("button", name="Check")
    box = page.get_by_label("head 1, k1").locator("visible=true").last
    box.fill("17")
    box.press("Enter")
    page.get_by_text("You forgot to divide by").wait_for()
    page.get_by_role("button", name="A nudge").click()
    page.get_by_text("What brings it back to a size of 1?").wait_for()
    box.fill("12.021")
    check.click()
    page.get_by_text("Right: that is correct. Now fill in a row.").wait_for()
    page.get_by_role("radio", name="all", exact=True).click()
    page.wait_for_function(f"document.querySelectorAll('{BOX}').length === 17")
    settled(page)
    assert check.bounding_box()["y"] + check.bounding_box()["height"] <= HIGH
    for width, height in ((390, 844), (WIDE, HIGH)):
        page.set_viewport_size({"width": width, "height": height})
        settled(page)
        assert page.evaluate(SIDEWAYS) == [0, 0], width
        names = page.locator('.st-key-fill_in [data-testid="stWidgetLabel"]').locator("visible=true").count()
        assert names == (17 if width < WIDE else 9), "columns are named once where they are columns"
    page.reload()
    settled(page)
    assert page.locator(BOX).count() == 17
    if AXE.is_file():
        for scheme in ("dark", "light"):
            shown_in(page, scheme)
            assert not violations(page), scheme
