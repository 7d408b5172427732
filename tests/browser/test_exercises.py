"""Exercises in the browser: a right answer fills a dot, which outlives a reload and is forgotten on request."""

import pytest

from engine.exercises.catalogue import make
from tests.browser.conftest import settled


def test_what_is_solved_stays_in_the_browser(page, app_url):
    page.goto(f"{app_url}/exercises?set=masks&set_seed=5")
    settled(page)
    field = page.get_by_label("Your answer: one number")
    count = page.locator(".gf-solved-count")
    count.wait_for()
    assert count.inner_text().startswith("0 of 47 solved")
    right = make("causal", 5).answer[0]
    field.fill(str(right - make("causal", 5).given["length"]))
    field.press("Enter")
    page.get_by_text("You left the diagonal out").wait_for()
    field.fill(f"{right:,}")
    field.press("Enter")
    page.get_by_text("Right: that is it.").wait_for()
    page.wait_for_function(
        "document.querySelector('.gf-solved-count').innerText.startsWith('1 of 47 solved')"
    )
    assert page.locator(".gf-solved-full").count() == 1
    page.reload()
    page.locator(".gf-solved-full").wait_for()
    page.get_by_label("The cache's bytes: not solved yet").click()
    page.get_by_text("How many MiB").wait_for()
    page.get_by_role("button", name="Forget which exercises").click()
    page.wait_for_function(
        "document.querySelector('.gf-solved-count').innerText.startsWith('0 of 47 solved')"
    )


@pytest.mark.exhaustive
def test_a_proof_its_box_and_its_hint_are_on_one_screen_and_take_only_keys(page, app_url):
    task = "equivariance"  # the longest
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{app_url}/exercises?set=proofs&exercise={task}&set_seed=2")
    settled(page)
    exercise = make(task, 2)
    field = page.get_by_label("Your answer: the letters")
    field.focus()
    wrong = next(iter(exercise.form.wrong))
    page.keyboard.type(" ".join(map(exercise.form.letter, (*exercise.answer, wrong))))
    assert not page.get_by_test_id("InputInstructions").first.is_visible(), "it lies on the answer on a phone"
    page.keyboard.press("Enter")
    page.get_by_text("has no place in it:").wait_for()
    answer = page.locator(".st-key-answer").bounding_box()
    assert answer["y"] + answer["height"] <= 640  # the folds below it begin on the screen, too
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("".join(map(exercise.form.letter, exercise.answer)).lower())
    page.keyboard.press("Enter")
    page.get_by_text("Right: that is it.").wait_for()
