"""What a page shows after walking to it equals what it shows after a reload of its address.

Each journey is one that a visitor makes. After each step of his the same address is opened in a second tab of the same
browser, and the texts of the two screens are compared: title, views, question, bar, controls, answer, notes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

import pytest

from tests.browser.conftest import settled
from tests.browser.visit import VIEWS
from ui.tour.courses import shelf

SLOW = 90_000  # ms: a page that reads a corpus first, beside other tests
QUIET = 300  # ms without a change of the text: nothing is measured or written any more
# The text of the screen, line by line, without what plays, and the values of its fields. The notice that another model is
# shown stands for one run.
SCREEN = """() => {
  const main = document.querySelector('[data-testid="stMainBlockContainer"]');
  if (!main || document.querySelector('[data-test-script-state="running"], [data-stale="true"]')
    || main.querySelector('.gf-follow:not([hidden]), [data-testid="stProgress"], [data-testid="stSpinner"], [data-testid="stSkeleton"]')) return null;
  const copy = main.cloneNode(true);
  copy.querySelectorAll('style, script, svg, canvas, [data-testid="stIconMaterial"], .st-key-another_model, [class*="gf-guess"], [class*="gf-tour"], .gf-writer-tree, .gf-writer-token.gf-later, .gf-writer .gf-hidden')
    .forEach((e) => e.remove());
  if (copy.querySelector('.gf-writer-bar')) copy.querySelectorAll('.st-key-answer').forEach((e) => e.remove());  // of what it has written
  const lines = [];
  const walker = document.createTreeWalker(copy, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    if (node.textContent.trim()) lines.push(node.textContent.trim());
  main.querySelectorAll('input, textarea').forEach((e) => lines.push(`= ${e.type === 'checkbox' || e.type === 'radio' ? e.checked : e.value}`));
  main.querySelectorAll('[aria-checked="true"], [aria-selected="true"]').forEach((e) => lines.push(`* ${e.textContent}`));
  return lines.join('\\n');
}"""
# The writer of Generation plays by itself: it is taken back to its prompt once it has written something. How much it has
# written ahead of that depends on the machine, and is no part of the screen.
STILL = f"""(quiet) => {{
  const now = performance.now(), writer = document.querySelector('.gf-writer');
  const rests = !writer || (writer.dataset.at === '0' && Number(writer.dataset.known) > 0);
  if (!rests && writer.dataset.at !== '0') writer.querySelector('[data-do=first]').click();
  const text = rests ? ({SCREEN})() : null;
  if (text !== window.gfSeen || text === null) {{ window.gfSeen = text; window.gfSince = now; return false; }}
  return now - window.gfSince > quiet && text;
}}"""


def screen_text(page) -> list[str]:
    """The lines on the screen once nothing moves any more."""
    page.locator("h1").first.wait_for(timeout=SLOW)  # before its first script runs, a page is at rest too
    settled(page, SLOW)
    return page.wait_for_function(STILL, arg=QUIET, timeout=SLOW, polling=100).json_value().splitlines()


class Walk:
    """A visitor's tab, and the comparison with a fresh one."""

    def __init__(self, page, url: str) -> None:
        self.page, self.url = page, url
        self.steps: list[str] = []
        self.differences: list[str] = []

    def open(self, address: str = "") -> None:
        self.page.goto(f"{self.url}/{address}")
        settled(self.page, SLOW)
        self.steps.append(f"open /{address}")

    def sidebar(self, title: str) -> None:
        self.page.get_by_test_id("stSidebarNav").get_by_role("link", name=title, exact=True).click()
        opened = ".gf-live, .map" if title == "Home" else f'h1:has-text("{title}")'
        self.page.locator(opened).first.wait_for(timeout=SLOW)
        self.compare(f"sidebar: {title}")

    def view(self, index: int) -> None:
        button = self.page.locator(VIEWS).nth(index)
        name = button.inner_text()
        if button.get_attribute("aria-checked") != "true":
            self._to_another_question(button.click)
        self.compare(f"view: {name}")

    def back(self) -> None:
        self._to_another_question(self.page.go_back)
        self.compare("back")

    def _to_another_question(self, go: Callable[[], object]) -> None:
        """Goes to a view with another question, and waits for it: until the server has heard, the old one rests on the
        screen.
        """
        before = self.page.locator("h2").first.inner_text()
        go()
        self.page.wait_for_function(
            "before => document.querySelector('h2')?.innerText !== before", arg=before, timeout=SLOW
        )

    def click(self, locator, name: str) -> None:
        before = self.page.url
        locator.click()
        self.page.wait_for_url(lambda url: url != before, timeout=SLOW)
        self.compare(name)

    def compare(self, step: str) -> None:
        self.steps.append(step)
        walked = screen_text(self.page)
        tab = self.page.context.new_page()
        tab.set_viewport_size(self.page.viewport_size)
        try:
            tab.emulate_media(reduced_motion="reduce")
            tab.goto(self.page.url)
            reloaded = screen_text(tab)
        finally:
            tab.close()
        only = [f"  walked:   {line}" for line in walked if line not in reloaded][:8]
        only += [f"  reloaded: {line}" for line in reloaded if line not in walked][:8]
        if only:
            where = f"{' > '.join(self.steps)} ({urlsplit(self.page.url).path})"
            self.differences.append("\n".join([where, *only]))

    def check(self) -> None:
        assert not self.differences, "\n" + "\n".join(self.differences)


@pytest.fixture
def walk(page, app_url) -> Walk:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.set_default_timeout(SLOW)
    page.emulate_media(reduced_motion="reduce")
    return Walk(page, app_url)


def type_on_home(page, text: str) -> None:
    before = page.locator(".gf-live").get_attribute("data-answered")
    page.get_by_role("textbox", name="Your text").fill(text)
    page.wait_for_function("id => document.querySelector('.gf-live').dataset.answered !== id", arg=before)


def test_a_text_typed_on_home_is_read_on_attention_and_generation(walk):
    walk.open()
    type_on_home(walk.page, "The opposite of hot is")
    walk.sidebar("Attention")
    assert "The opposite of hot is" in walk.page.locator(".st-key-subject_bar").first.inner_text()
    walk.click(walk.page.locator(".gf-head").nth(5), "another head")
    walk.sidebar("Generation")
    assert "The opposite of hot is" in walk.page.locator(".st-key-subject_bar").first.inner_text()
    walk.check()


def test_a_run_is_looked_into_and_scrubbed_and_left(walk):
    page = walk.page
    page.goto(
        f"{walk.url}/train?data=python&d_model=32&n_layers=1&steps=24&eval_every=8&sample_every=8&snapshot_every=8&sample_length=40"
    )
    page.get_by_role("button", name="Train", exact=True).click()
    page.locator(".st-key-extend_button button:enabled").first.wait_for(timeout=SLOW)
    run = page.url.split("run=")[1].split("&")[0]
    page.get_by_role("button", name="Look inside").click()
    page.get_by_test_id("stPopoverBody").get_by_role("link", name="Attention", exact=True).click()
    page.locator(".gf-scrubber input[type=range]").wait_for(timeout=SLOW)
    walk.compare("look inside the run")
    page.locator(".gf-scrubber input[type=range]").press("ArrowLeft")
    page.wait_for_url("**step=**")
    walk.compare("one snapshot back")
    walk.sidebar("Sampling")
    assert run in page.url
    walk.check()


def test_a_course_from_its_first_scene_to_the_last(walk):
    page = walk.page
    page.goto(f"{walk.url}/courses")
    page.locator('[class*="st-key-start_"] button').first.click()
    where = page.locator(".gf-tour-where")
    where.wait_for(timeout=SLOW)
    count = int(where.inner_text().split()[-1])
    for scene in range(1, count + 1):
        page.locator(".gf-tour-where", has_text=f"{scene} of {count}").wait_for(timeout=SLOW)
        if scene in (1, count // 2, count):
            walk.compare(f"scene {scene}")
        if scene < count:
            page.get_by_role("button", name="Next").first.click()
    walk.check()


def test_back_goes_through_the_scenes_of_a_course_one_by_one(walk):
    page, scenes = walk.page, shelf().courses["ten-minutes"].scenes

    def at(number: int) -> None:
        page.locator(".gf-tour-where", has_text=f"{number} of {len(scenes)}").wait_for(timeout=SLOW)
        settled(page, SLOW)
        assert urlsplit(page.url).path == f"/{scenes[number - 1].page}"

    walk.open("courses")
    page.locator(".st-key-start_ten-minutes button").click()
    for number in range(1, 6):
        at(number)
        if number < 5:
            page.keyboard.press("PageDown")
    for number in (4, 3, 2, 1):
        page.go_back()
        at(number)
        walk.compare(f"back to {number}")
    page.go_back()
    page.locator('h1:has-text("Courses")').wait_for(timeout=SLOW)
    assert page.locator(".gf-tour").count() == 0
    walk.check()


def test_back_passes_a_scene_whose_figure_writes_into_its_address(walk):
    page, scenes = walk.page, shelf().courses["the-chapter"].scenes
    turns = next(i for i, scene in enumerate(scenes) if ("positions_view", "rope") in scene.query)
    before = scenes[turns - 1]
    walk.open(f"{before.page}?{urlencode(before.query)}&course=the-chapter&scene={turns}")

    def at(number: int) -> None:
        page.locator(".gf-tour-where", has_text=f"{number} of").wait_for(timeout=SLOW)
        if number == turns + 1:
            page.wait_for_url("**rope_at=**")
        settled(page, SLOW)

    at(turns)
    for number in (turns + 1, turns + 2):
        page.keyboard.press("PageDown")
        at(number)
    for number in (turns + 1, turns):
        page.go_back()
        at(number)


def test_a_scene_opens_the_fold_that_it_names_after_a_page_with_folds_of_its_own(walk):
    page, scenes = walk.page, shelf().courses["the-chapter"].scenes
    number = next(n for n, scene in enumerate(scenes, 1) if ("measure", "true") in scene.query)
    before = scenes[number - 2]
    assert before.page != scenes[number - 1].page
    walk.open(f"{before.page}?{urlencode(before.query)}&course=the-chapter&scene={number - 1}")
    page.keyboard.press("PageDown")
    page.locator(".gf-tour-where", has_text=f"{number} of").wait_for(timeout=SLOW)
    page.locator('[data-testid="stExpander"] details[open] summary', has_text="Measure it").wait_for(
        timeout=SLOW
    )
    assert "measure=true" in page.url
    walk.compare(f"scene {number}")
    walk.check()


def test_from_the_encoder_decoder_to_the_pages_that_show_it(walk):
    walk.open()
    walk.click(walk.page.get_by_role("radio", name="Both"), "both")
    walk.sidebar("Cross-attention")
    walk.sidebar("Attention")
    walk.check()


def test_a_link_with_model_and_text_goes_along(walk):
    walk.open("attention?model=shakespeare-modern&text=ROMEO%3A%0AO")
    walk.sidebar("Residual stream")
    assert "model=shakespeare-modern" in walk.page.url
    assert "ROMEO" in walk.page.locator(".st-key-subject_bar").first.inner_text()
    walk.sidebar("Embeddings")
    walk.sidebar("Sampling")
    assert "ROMEO" in walk.page.locator(".st-key-subject_bar").first.inner_text()
    walk.check()


def test_another_model_chosen_in_the_bar_is_shown_on_the_next_page(walk):
    page = walk.page
    walk.open("shapes?model=shakespeare-classic")
    page.locator(".st-key-subject_bar button").first.click()
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="Shakespeare, modern (trained)").click()
    page.wait_for_url("**model=shakespeare-modern**")
    page.keyboard.press("Escape")
    walk.compare("modern")
    walk.sidebar("Feed-forward")
    assert "modern" in page.locator(".st-key-subject_bar").first.inner_text()
    walk.check()


def test_the_back_button_shows_what_its_address_shows(walk):
    walk.open("attention?model=shakespeare-classic")
    walk.view(1)
    walk.sidebar("Residual stream")
    walk.view(2)
    walk.back()
    walk.check()


def test_round_through_pages_without_a_model(walk):
    walk.open()
    for title in ("Tokens", "Positions", "Parameters", "Home"):
        walk.sidebar(title)
    walk.check()


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(10))
def test_twenty_random_steps(walk, seed):
    draw = random.Random(seed)
    walk.open()
    for _ in range(20):
        views = walk.page.locator(VIEWS).count()
        if views > 1 and draw.random() < 0.5:
            walk.view(draw.randrange(views))
        else:
            links = walk.page.get_by_test_id("stSidebarNavLink").all_inner_texts()
            walk.sidebar(draw.choice([link.splitlines()[-1] for link in links]))
    walk.check()
