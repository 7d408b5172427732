"""The test "Before and after" in the browser: what it keeps and hides, and how a phone's answers reach a room."""

import json
import re

from playwright.sync_api import expect

from studies.inventory.questions import form
from tests.browser.conftest import person, settled

MAIN, OPTION = ".gf-inv-main", ".gf-inv-option"


def take(page, options) -> None:
    """Chooses an option of each question, None for one that is left out, and finishes the form."""
    for option in options:
        if option is not None:
            page.locator(OPTION).nth(option).click()
        page.locator(MAIN).click()


def test_alone_the_answers_appear_after_the_second_form_and_stay_in_the_browser(page, app_url) -> None:
    first, second = form("before"), form("after")
    belief = second[12].options[(second[12].right + 1) % len(second[12].options)].misconception
    wrong = [[option.misconception for option in quiz[12].options].index(belief) for quiz in (first, second)]
    page.goto(f"{app_url}/exercises?exercises_view=before")
    settled(page)
    page.get_by_role("button", name="Start the first form").click()
    take(page, [None, *[question.right for question in first[1:6]]])
    page.reload()
    page.get_by_text("Question 1 of 14").wait_for()
    assert page.locator(".gf-inv-full").count() == 5, "what was chosen is there again"
    take(page, [0, *[None] * 5, *[question.right for question in first[6:12]], wrong[0], first[13].right])
    page.get_by_role("button", name="Take the second form").wait_for()
    assert page.locator(".gf-inv-table, .gf-inv-detail").count() == 0
    assert first[3].reason not in page.content()
    page.get_by_role("button", name="Take the second form").click()
    take(page, [*[question.right for question in second[:12]], wrong[1], None])
    marks = page.locator(".gf-inv-table tbody tr")
    expect(marks).to_have_count(14)
    points = 12 + (first[0].right == 0)
    expect(page.locator(".gf-inv-table tfoot td")).to_have_text([str(points), "12"])
    expect(page.locator(".gf-inv-sum")).to_contain_text(
        f"You went from {points} to 12 of 14. 1 left out counts as not known."
    )
    expect(page.locator(".gf-inv-stayed button")).to_have_text([belief])
    expect(page.locator(".gf-inv-detail")).to_contain_text(second[12].reason)
    assert page.locator(".gf-inv-detail a").get_attribute("href").startswith(f"{app_url}/residual?")
    page.get_by_role("button", name="Forget these answers").click()
    page.get_by_role("button", name="Start the first form").wait_for()
    kept = json.loads(page.evaluate("localStorage.getItem('glassformer-before-after')"))
    assert kept["alone/1"]["answers"] == [[None] * 14] * 2


def test_a_phone_s_answers_are_counted_as_they_are_chosen(page, browser, app_url) -> None:
    first, second = form("before"), form("after")
    page.goto(f"{app_url}/exercises?exercises_view=before&before_for=class")
    settled(page)
    page.get_by_role("button", name="Open a room").click()
    expect(page).to_have_url(re.compile("quiz="))
    room = re.search("quiz=([^&]+)", page.url)
    assert room is not None
    with person(browser) as context:
        phone = context.new_page()
        phone.set_viewport_size({"width": 390, "height": 844})
        phone.goto(f"{app_url}/room?quiz={room[1]}")
        phone.get_by_text("The test has not begun yet.").wait_for()
        page.get_by_role("button", name="Open the first form").click()
        take(phone, [question.right for question in first])
        phone.get_by_text("You answered 14 of 14.").wait_for()
        expect(page.get_by_test_id("stMetricValue")).to_have_text(["1", "1"])
        page.get_by_role("button", name="Close the form").click()
        phone.get_by_text("The first form is closed.").wait_for()
        page.get_by_role("button", name="Open the second form").click()
        phone.get_by_text("Second form").wait_for()
        for question in second[:5]:
            phone.locator(OPTION).nth(question.right).click()
            phone.locator(MAIN).click()
        settled(phone)
        phone.evaluate("localStorage.clear()")  # the server has the open form's answers, and no others
        phone.reload()
        phone.get_by_text("Question 6 of 14").wait_for()
        expect(phone.locator(".gf-inv-full")).to_have_count(5)
        take(phone, [*[question.right for question in second[5:13]], None])
        phone.get_by_text("You answered 13 of 14.").wait_for()
        settled(phone)
        page.get_by_role("button", name="Close the form").click()
        expect(page.locator(".st-key-answer")).to_contain_text("The class went from 14.0 to 13.0 of 14")
        expect(phone.locator(".gf-inv-table tfoot td")).to_have_text(["", "13"])
        phone.close()
    page.get_by_role("button", name="End the room").click()
    page.get_by_role("button", name="End it now").click()
    page.get_by_role("button", name="Open a room").wait_for()
