"""What a page shows after walking to it equals what it shows after a reload of its address.

Each journey is one that a visitor makes. After the steps that may differ the same address is loaded in a second tab of the
same browser, and the texts of the two screens are compared: title, views, question, bar, controls, answer, notes. The fast
tier has a walk of each kind: a typed text, a run, half a course, the search, Back.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settled
from tests.browser.visit import VIEWS
from ui.tour.courses import shelf

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
  if (copy.querySelector('.gf-writer')) copy.querySelectorAll('.st-key-answer').forEach((e) => e.remove());  // of what it has written
  const lines = [];
  const walker = document.createTreeWalker(copy, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    // how many views have been seen is counted after three seconds of looking, by this tab and by the other
    if (node.textContent.trim()) lines.push(node.textContent.trim().replace(/\\d+ views? seen/, 'views seen'));
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
    page.locator("h1").first.wait_for()  # before its first script runs, a page is at rest too
    settled(page)
    return page.wait_for_function(STILL, arg=QUIET, polling=100).json_value().splitlines()


class Walk:
    """A visitor's tab, and a second one of the same browser that loads what is compared."""

    def __init__(self, page, url: str) -> None:
        self.page, self.url = page, url
        self.second = None
        self.steps: list[str] = []
        self.differences: list[str] = []

    def open(self, address: str = "") -> None:
        self.page.goto(f"{self.url}/{address}")
        self._went(f"open /{address}")

    def sidebar(self, title: str) -> None:
        self.page.get_by_test_id("stSidebarNav").get_by_role("link", name=title, exact=True).click()
        opened = ".gf-live, .map" if title == "Home" else f'h1:has-text("{title}")'
        self.page.locator(opened).first.wait_for()
        self._went(f"sidebar: {title}")

    def view(self, index: int) -> str:
        """Chooses a view by its button; its name."""
        button = self.page.locator(VIEWS).nth(index)
        name = button.inner_text()
        if button.get_attribute("aria-checked") != "true":
            self._to_another_question(button.click)
        self._went(f"view: {name}")
        return name

    def back(self) -> None:
        self._to_another_question(self.page.go_back)
        self._went("back")

    def click(self, locator, name: str) -> None:
        before = self.page.url
        locator.click()
        self.page.wait_for_url(lambda url: url != before)
        self._went(name)

    def scene(self, number: int, of: int | str = "") -> None:
        """Waits for the scene of a course that was gone to."""
        self.page.locator(".gf-tour-where", has_text=f"{number} of {of}").wait_for()
        self._went(f"scene {number}")

    def _to_another_question(self, go: Callable[[], object]) -> None:
        """Goes to a view with another question, and waits for it: until the server has heard, the old one rests on the
        screen.
        """
        before = self.page.locator("h2").first.inner_text()
        go()
        self.page.wait_for_function(
            "before => document.querySelector('h2')?.innerText !== before", arg=before
        )

    def _went(self, step: str) -> None:
        self.steps.append(step)
        settled(self.page)

    def bar(self) -> str:
        return self.page.locator(".st-key-subject_bar").first.inner_text()

    def compare(self) -> None:
        walked = screen_text(self.page)
        if self.second is None:
            self.second = tab_of_a_walk(self.page.context.new_page())
        self.second.goto(self.page.url)
        reloaded = screen_text(self.second)
        only = [f"  walked:   {line}" for line in walked if line not in reloaded][:8]
        only += [f"  reloaded: {line}" for line in reloaded if line not in walked][:8]
        if only:
            where = f"{' > '.join(self.steps)} ({urlsplit(self.page.url).path})"
            self.differences.append("\n".join([where, *only]))

    def check(self) -> None:
        assert not self.differences, "\n" + "\n".join(self.differences)


def tab_of_a_walk(page):
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(reduced_motion="reduce")
    return page


@pytest.fixture
def walk(page, app_url) -> Walk:
    return Walk(tab_of_a_walk(page), app_url)


def test_a_text_typed_on_home_is_read_on_attention_and_generation(walk):
    walk.open()
    before = walk.page.locator(".gf-live").get_attribute("data-answered")
    walk.page.get_by_role("textbox", name="Your text").fill("The opposite of hot is")
    walk.page.wait_for_function(
        "id => document.querySelector('.gf-live').dataset.answered !== id", arg=before
    )
    walk.sidebar("Attention")
    assert "The opposite of hot is" in walk.bar()
    walk.click(walk.page.locator(".gf-head").nth(5), "another head")
    walk.compare()
    walk.sidebar("Generation")
    assert "The opposite of hot is" in walk.bar()
    walk.compare()
    walk.check()


def test_a_run_is_looked_into_and_scrubbed_and_left(walk):
    page = walk.page
    walk.open(
        "train?data=python&d_model=32&n_layers=1&steps=24&eval_every=8&sample_every=8&snapshot_every=8&sample_length=40"
    )
    page.get_by_role("button", name="Train", exact=True).click()
    page.locator(".st-key-extend_button button:enabled").first.wait_for()
    run = page.url.split("run=")[1].split("&")[0]
    page.get_by_role("button", name="Look inside").click()
    page.get_by_test_id("stPopoverBody").get_by_role("link", name="Attention", exact=True).click()
    page.locator(".gf-scrubber input[type=range]").wait_for()
    walk.click(page.locator(".gf-head").nth(1), "another head")
    page.locator(".gf-scrubber input[type=range]").press("ArrowLeft")
    page.wait_for_url("**step=**")
    walk.compare()
    walk.sidebar("Sampling")
    assert run in page.url
    walk.compare()
    walk.check()


@pytest.mark.parametrize("last", [5, pytest.param(10, marks=pytest.mark.exhaustive)])
def test_a_course_from_its_first_scene_to_the_last_and_back_one_by_one(walk, last):
    page, scenes = walk.page, shelf().courses["ten-minutes"].scenes
    assert len(scenes) == 10 and any(scene.question for scene in scenes[:4])

    def at(number: int) -> None:
        walk.scene(number, len(scenes))
        assert urlsplit(page.url).path == f"/{scenes[number - 1].page}"

    walk.open("courses")
    page.locator(".st-key-start_ten-minutes button").click()
    at(1)
    for number in range(2, last + 1):
        for _ in range(1 + 2 * bool(scenes[number - 2].question)):  # a question, its answer, its figure
            if number % 2:
                page.keyboard.press("PageDown")
            else:
                page.get_by_role("button", name="Next").first.click()
        at(number)
    walk.compare()
    for number in range(last - 1, 0, -1):
        page.go_back()
        at(number)
        if number in (1, 4):
            walk.compare()
    page.go_back()
    page.locator('h1:has-text("Courses")').wait_for()
    expect(page.locator(".gf-tour")).to_have_count(0)
    walk.check()


@pytest.mark.exhaustive
def test_back_passes_a_scene_whose_figure_writes_into_its_address(walk):
    page, scenes = walk.page, shelf().courses["the-chapter"].scenes
    turns = next(i for i, scene in enumerate(scenes) if ("positions_view", "rope") in scene.query)
    before = scenes[turns - 1]
    walk.open(f"{before.page}?{urlencode(before.query)}&course=the-chapter&scene={turns}")
    walk.scene(turns)
    for number in (turns + 1, turns + 2):
        page.keyboard.press("PageDown")
        walk.scene(number)
        if number == turns + 1:
            page.wait_for_url("**rope_at=**")
    for number in (turns + 1, turns):
        page.go_back()
        walk.scene(number)


@pytest.mark.exhaustive
def test_a_scene_opens_the_fold_that_it_names_after_a_page_with_folds_of_its_own(walk):
    scenes = shelf().courses["the-chapter"].scenes
    number = next(n for n, scene in enumerate(scenes, 1) if ("measure", "true") in scene.query)
    before = scenes[number - 2]
    assert before.page != scenes[number - 1].page
    walk.open(f"{before.page}?{urlencode(before.query)}&course=the-chapter&scene={number - 1}")
    walk.page.keyboard.press("PageDown")
    walk.scene(number)
    walk.page.locator('[data-testid="stExpander"] details[open] summary', has_text="Measure it").wait_for()
    assert "measure=true" in walk.page.url
    walk.compare()
    walk.check()


@pytest.mark.exhaustive
def test_from_the_encoder_decoder_to_the_pages_that_show_it(walk):
    walk.open()
    walk.click(walk.page.get_by_role("radio", name="Both"), "both")
    walk.sidebar("Cross-attention")
    walk.compare()
    walk.sidebar("Attention")
    walk.compare()
    walk.check()


@pytest.mark.exhaustive
def test_a_link_with_model_and_text_goes_along(walk):
    walk.open("attention?model=shakespeare-modern&text=ROMEO%3A%0AO")
    walk.sidebar("Residual stream")
    assert "model=shakespeare-modern" in walk.page.url and "ROMEO" in walk.bar()
    walk.compare()
    walk.sidebar("Embeddings")
    walk.sidebar("Sampling")
    assert "ROMEO" in walk.bar()
    walk.compare()
    walk.check()


@pytest.mark.exhaustive
def test_a_bar_opened_late_holds_the_model_and_the_text_that_it_names(walk):
    """Its boxes mount only then, some runs after the one that set them."""
    walk.open("attention?model=shakespeare-modern&text=ROMEO%3A%0AO")
    walk.sidebar("Sampling")
    walk.view(1)
    walk.page.locator(".st-key-subject_bar button").first.click()
    box = walk.page.get_by_test_id("stPopoverBody")
    expect(box.get_by_label("Text", exact=True)).to_have_value("ROMEO:\nO")
    expect(box.get_by_role("combobox", name="Model")).to_have_value("Shakespeare, modern (trained)")


# What is typed, the line that it finds, the question of that view
SEARCHES = (
    ("what does the causal mask do", "Attention > Mask", "What does the causal mask do?"),
    ("perplexty", "Sampling > Perplexity", "How is a text scored?"),
    ("what does temperature do", "Sampling > Temperature", "What does temperature do?"),
)


def test_the_search_leads_to_a_view_with_model_and_text(walk, request):
    page = walk.page
    box = page.get_by_role("combobox", name="Search views")
    walk.open("attention?model=shakespeare-modern&text=ROMEO%3A%0AO")
    visited = [walk.view(1)]  # a button has the focus
    for query, title, text in SEARCHES if request.config.getoption("exhaustive") else SEARCHES[-1:]:
        page.keyboard.press("/")
        page.keyboard.type(query)
        expect(page.get_by_role("option", selected=True).locator("strong")).to_have_text(title)
        page.keyboard.press("Enter")
        page.locator("h2", has_text=text).wait_for()
        walk._went(f"search: {query}")
        assert "model=shakespeare-modern" in page.url and "ROMEO" in walk.bar()
        walk.compare()
        visited.append(title.partition(" > ")[2])
    page.locator("[data-testid=stNumberInput] input").first.press("/")  # somebody writes
    expect(box).to_be_hidden()
    page.get_by_role("button", name=re.compile("^Search")).first.click()
    last = page.get_by_role("group", name="Last views").get_by_role("option").first
    expect(last).to_contain_text(visited[-2])
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    walk.check()


@pytest.mark.exhaustive
def test_another_model_chosen_in_the_bar_is_shown_on_the_next_page(walk):
    page = walk.page
    walk.open("shapes?model=shakespeare-classic")
    page.locator(".st-key-subject_bar button").first.click()
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="Shakespeare, modern (trained)").click()
    page.wait_for_url("**model=shakespeare-modern**")
    page.keyboard.press("Escape")
    walk.compare()
    walk.sidebar("Feed-forward")
    assert "modern" in walk.bar()
    walk.check()


def test_the_back_button_shows_what_its_address_shows(walk):
    walk.open("attention?model=shakespeare-classic")
    walk.view(1)
    walk.sidebar("Residual stream")
    walk.view(2)
    walk.compare()
    walk.back()
    walk.compare()
    walk.check()


# The browser sends what changes within a second, instead of within a moment, as one message.
SLOWLY = """(() => {
  const now = window.setTimeout;
  window.batches = 0;
  window.setTimeout = (work, wait, ...rest) => {
    const sends = !wait && String(work).includes('sendUpdateWidgetsMessage');
    window.batches += sends;
    return now(work, sends ? 1000 : wait, ...rest);
  };
})()"""


def test_a_click_in_the_moment_in_which_a_component_speaks_opens_its_view(page, app_url):
    page.add_init_script(SLOWLY)
    page.goto(f"{app_url}/tokens?stage=1")
    title = page.locator("h2").first
    before = title.inner_text()
    page.wait_for_function("() => window.batches === 1")  # the stage's component says where it stands
    page.locator(VIEWS).get_by_text("Tokenizers", exact=True).first.click()
    assert page.evaluate("window.batches") == 1, "both are in one message"
    expect(title).not_to_have_text(before)


@pytest.mark.exhaustive
def test_round_through_pages_without_a_model(walk):
    walk.open()
    for title in ("Tokens", "Positions", "Parameters"):
        walk.sidebar(title)
    walk.compare()
    walk.sidebar("Home")
    walk.compare()
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
        walk.compare()
    walk.check()
