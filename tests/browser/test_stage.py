"""The stage on a projector of either size, figures that fill the screen, freeze, and a room that answers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settled
from tests.browser.test_one_screen import choose, views
from ui import site

SECTIONS = ("", "train", "attention", "shapes", "families", "tokens", "sampling", "ladder", "parameters")
LEAST = 0.6  # of the screen's height, for the figures of a view; less where other things are read beside them
LESS = {
    # strips of letters, and grids, whose size is their own
    "Running": 0.5,
    "Compare": 0.5,
    "Round trip": 0.4,
    "RoPE": 0.4,
    "Token by token": 0.5,
    "KV cache": 0.5,
    "Live": 0.4,
    "Forward pass": 0.5,
    "By hand": 0.5,  # of Shapes; that of Parameters is a list of formulas
    "Switch off": 0.55,
    "A thousand draws": 0.55,
    # a table, texts or code stand with the figure
    "Side by side": 0.35,
    "Temperatures": 0.3,
    "Steering": 0.45,
    "Few bits": 0.5,
    "Cost": 0.5,
    "Race": 0.5,
    "FLOPs": 0.5,
    "Memory": 0.5,
    "Three": 0.35,
    "Whole square": 0.35,
}
# forms, tables and lists; the drawing of a published model keeps its form and is not a figure to fill the screen
NONE = {"Published models", "A wrong shape", "The doctor", "Why decoders", "Take along", "Quick reference"}
NONE_AT = {("parameters", "By hand"), ("reference", "Variations")}
UNDRAWN = ("courses", "exercises")
PATIENCE = 30  # half seconds
MEASURE = """() => {
  const plots = [...document.querySelectorAll('.gf-filmed')].filter(e => !e.closest('[data-testid="stExpander"]')).map(e => e.getBoundingClientRect())
  const size = e => parseFloat(getComputedStyle(e).fontSize) * e.getBoundingClientRect().width / e.offsetWidth
  const answers = [...document.querySelectorAll('.st-key-answer p')]
  return {wide: document.documentElement.scrollWidth - innerWidth,
    right: Math.max(...[...document.querySelectorAll('[data-testid="stMainBlockContainer"] [data-testid="stElementContainer"]')].map(e => e.getBoundingClientRect().right)) - innerWidth,
    share: plots.length ? (Math.max(...plots.map(r => r.bottom)) - Math.min(...plots.map(r => r.top))) / innerHeight : 0,
    bottom: Math.max(0, ...plots.map(r => r.bottom), ...answers.map(e => e.getBoundingClientRect().bottom)) - innerHeight,
    answer: Math.min(99, ...answers.map(size)),
    caption: Math.min(99, ...[...document.querySelectorAll('[data-testid="stCaptionContainer"] p')].filter(e => e.offsetWidth).map(size)),
    ticks: Math.min(99, ...[...document.querySelectorAll('.gf-plot .main-svg text')].filter(e => e.textContent.trim() && e.getBoundingClientRect().width > 0)
      .map(e => { const m = e.getScreenCTM(); return parseFloat(getComputedStyle(e).fontSize) * Math.hypot(m.a, m.b) })),
    sidebar: getComputedStyle(document.querySelector('[data-testid="stSidebar"]') ?? document.body).display}
}"""


@pytest.fixture
def stage(context) -> Iterator[object]:
    found = context.new_page()
    found.set_viewport_size({"width": 1280, "height": 720})
    yield found
    found.close()


def at(page, url: str) -> None:
    page.goto(url)
    settled(page, 60_000)
    page.wait_for_selector("html.gf-stage", state="attached")
    page.wait_for_function("document.querySelector('.st-key-answer')", timeout=30_000)
    page.wait_for_timeout(1000)  # figures are measured when the page rests


def faults(page, least: float, large: bool) -> list[str]:
    """What does not hold of a view on the stage after a while: figures follow the page's height, in steps."""
    for _ in range(PATIENCE):
        found = page.evaluate(MEASURE)
        holds = {
            "as wide as the screen": found["wide"] <= 0 and found["right"] <= 0,
            "as high": found["bottom"] <= 1,
            "without the menu": found["sidebar"] == "none",
            "the figure is large": found["share"] >= least,
            "letters are large": not large
            or (found["answer"] >= 22 and found["caption"] >= 22 and found["ticks"] >= 16),
        }
        if all(holds.values()):
            return []
        page.wait_for_timeout(500)
    return [f"{what}: {found}" for what, held in holds.items() if not held]


def address(app_url: str, name: str) -> str:
    return f"{app_url}/{name}{'&' if '?' in name else '?'}stage=1"


def least(name: str, view: str) -> float:
    return 0 if view in NONE or (name, view) in NONE_AT else LESS.get(view, LEAST)


@pytest.mark.parametrize("name", [entry.url for entry in site.built() if entry.url not in UNDRAWN])
def test_the_figures_of_every_view_fill_the_stage(stage, app_url, name) -> None:
    stage.set_viewport_size({"width": 1280, "height": 720})
    at(stage, address(app_url, name))
    wrong = {}
    for view in range(max(1, views(stage))):
        chosen = choose(stage, view)
        if found := faults(stage, least(name, chosen), large=False):
            wrong[chosen] = found
    assert not wrong, "\n".join(f"{view}: {found}" for view, found in wrong.items())
    if stage.locator(
        ".gf-filmed"
    ).count():  # of the last view; key f asks for what is pointed at, or the largest
        stage.mouse.move(640, 400)
        stage.keyboard.press("f")
        stage.wait_for_selector(".gf-full")
        stage.keyboard.press("f")
        stage.wait_for_selector(".gf-full", state="detached")


@pytest.mark.parametrize("name", SECTIONS)
def test_on_a_large_projector_letters_are_large(stage, app_url, name) -> None:
    stage.set_viewport_size({"width": 1920, "height": 1080})
    at(stage, address(app_url, name))
    assert not faults(stage, 0, large=True)
    assert "svg" in stage.evaluate("getComputedStyle(document.body).cursor"), "seen from the back row"
    assert stage.locator('[data-testid="stException"]').count() == 0


def test_the_key_turns_it_on_and_it_stays(stage, app_url) -> None:
    stage.goto(f"{app_url}/parameters")
    settled(stage)
    stage.wait_for_selector(".gf-plot .main-svg")
    stage.wait_for_selector(".gf-stage-ui", state="attached")
    stage.keyboard.press("p")
    stage.wait_for_selector("html.gf-stage", state="attached")
    expect(stage).to_have_url(re.compile("stage=1"))
    stage.get_by_role("radio", name="FLOPs").click()
    expect(stage).to_have_url(re.compile("parameters_view=flops.*stage=1|stage=1.*parameters_view=flops"))
    stage.reload()
    stage.wait_for_selector("html.gf-stage", state="attached")
    settled(stage)
    stage.keyboard.press("Escape")
    expect(stage).not_to_have_url(re.compile("stage=1"))
    assert not stage.evaluate("document.documentElement.classList.contains('gf-stage')")


def test_letters_that_are_written_are_no_keys(stage, app_url) -> None:
    stage.goto(f"{app_url}/attention")
    settled(stage)
    stage.wait_for_selector(".gf-stage-ui", state="attached")
    stage.get_by_role("button", name="Words: what the terms mean").click()
    stage.get_by_label("Find a word").type("pfz")
    assert stage.get_by_label("Find a word").input_value() == "pfz"
    assert not stage.evaluate("document.documentElement.classList.contains('gf-stage')")


def test_on_the_stage_the_text_of_a_figure_grows_with_it(stage, app_url) -> None:
    stage.set_viewport_size({"width": 1920, "height": 1080})
    at(stage, f"{app_url}/attention?attention_view=scaling&stage=1")
    high = "() => document.querySelector('.gf-plot .xtick text').getBoundingClientRect().height"
    before = stage.evaluate(high)
    stage.hover(".gf-plot", position={"x": 60, "y": 60})
    stage.keyboard.press("f")
    stage.wait_for_selector(".gf-full")
    stage.wait_for_timeout(600)
    assert stage.evaluate(high) > 1.15 * before
    title = stage.evaluate("document.querySelector('.gf-full .annotation-text').getBoundingClientRect().top")
    assert title >= 0, "not cut off above"


@pytest.mark.parametrize(("name", "figure"), [("parameters", ".gf-plot"), ("attention", ".gf-heads")])
def test_a_figure_fills_the_screen_and_comes_back(stage, app_url, name, figure) -> None:
    stage.goto(f"{app_url}/{name}")
    settled(stage)
    stage.wait_for_selector(f"{figure} canvas, {figure} .main-svg")
    stage.wait_for_selector(".gf-stage-ui", state="attached")
    stage.wait_for_timeout(800)
    box = "s => { const r = document.querySelector(s).getBoundingClientRect(); return [r.x, r.y, r.width, r.height].map(Math.round) }"
    before = stage.evaluate(box, figure)
    stage.hover(figure, position={"x": 60, "y": 60})
    stage.keyboard.press("f")
    stage.wait_for_selector(".gf-full")
    stage.wait_for_timeout(600)
    size = stage.evaluate("[innerWidth, innerHeight]")
    x, y, wide, high = stage.evaluate(box, ".gf-full")
    assert [x, y] == [0, 0] and abs(wide - size[0]) <= 1 and abs(high - size[1]) <= 1
    if figure == ".gf-plot":
        assert stage.evaluate(box, ".gf-full .main-svg")[3] == size[1]
    stage.keyboard.press("f")
    stage.wait_for_selector(".gf-full", state="detached")
    stage.wait_for_timeout(600)
    assert stage.evaluate(box, figure) == before


def test_a_figure_has_a_button_for_it_and_escape_ends_it(stage, app_url) -> None:
    stage.goto(f"{app_url}/parameters")
    settled(stage)
    stage.wait_for_selector(".gf-plot .main-svg")
    stage.wait_for_selector(".gf-stage-ui", state="attached")
    stage.hover(".gf-plot")
    stage.locator(".gf-plot").get_by_role("button", name=re.compile("Fill the screen")).first.click()
    stage.wait_for_selector(".gf-full")
    stage.evaluate("document.exitFullscreen?.().catch(() => {})")  # what a browser makes of Escape by itself
    stage.keyboard.press("Escape")
    stage.wait_for_selector(".gf-full", state="detached")


def test_a_frozen_screen_does_not_move_until_released(stage, app_url) -> None:
    at(stage, f"{app_url}/parameters?stage=1")
    stage.keyboard.press("z")
    stage.wait_for_selector(".gf-frozen-copy")
    before = stage.screenshot()
    stage.evaluate("document.querySelector('[data-testid=stMain] .st-key-answer p').textContent = 'moved'")
    assert stage.screenshot() == before
    stage.keyboard.press("z")
    stage.wait_for_selector(".gf-frozen-copy", state="detached")
    assert stage.screenshot() != before


def test_the_room_answers(stage, app_url, browser) -> None:
    at(stage, f"{app_url}/attention?stage=1")
    stage.get_by_role("button", name="Ask the room").click()
    stage.get_by_role("textbox", name="Question").fill("What does <b>the mask</b> hide?")
    stage.get_by_role("textbox", name="Answers").fill("only one")
    stage.get_by_role("button", name="Ask", exact=True).click()
    expect(stage.locator(".gf-room-said")).to_contain_text("2 to 5 answers, one a line; here are 1")
    stage.get_by_role("textbox", name="Answers").fill("the future\nthe past")
    stage.get_by_role("button", name="Ask", exact=True).click()
    stage.wait_for_selector(".gf-room-bars li")
    room = stage.locator(".gf-room-way").get_attribute("data-room")
    # this test's server listens to this computer alone, and the lecturer is told so
    expect(stage.locator(".gf-room-note")).to_contain_text("This address leads to this computer alone")
    phones = []
    for _ in range(2):
        made = browser.new_context(viewport={"width": 390, "height": 844})
        phone = made.new_page()
        phone.goto(f"{app_url}/room?id={room}")
        expect(phone.get_by_role("heading", name="What does <b>the mask</b> hide?")).to_be_visible()
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
        others = "[data-testid=stSidebar], [data-testid=stExpandSidebarButton], [data-testid=stLogo]"
        expect(phone.locator(others).locator("visible=true"), "nothing but the question").to_have_count(0)
        phones.append(phone)
    counts = stage.locator(".gf-room-count")
    phones[0].get_by_role("button", name="the past").click()
    expect(counts.nth(1)).to_have_text("1 · 100%", timeout=6_000)
    phones[1].get_by_role("button", name="the future").click()
    expect(counts.nth(0)).to_have_text("1 · 50%", timeout=6_000)
    phones[0].get_by_role("button", name="the future").click()
    expect(counts.nth(0)).to_have_text("2 · 100%", timeout=6_000)
    assert stage.evaluate("[...document.querySelectorAll('.gf-room-bar')].map(e => e.style.width)") == [
        "100%",
        "0%",
    ]
    stage.get_by_role("button", name="No more answers").click()
    expect(stage.locator(".gf-room-total")).to_have_text("2 answers · closed")
    expect(phones[0].get_by_text("The question is closed. 2 answered.")).to_be_visible(timeout=8_000)
    expect(phones[0].get_by_role("button", name="the past")).to_be_disabled()
    for phone in phones:
        phone.context.close()


def test_a_room_that_is_none(stage, app_url) -> None:
    stage.goto(f"{app_url}/room?id=%3Cscript%3E")
    expect(stage.get_by_text("There is no such room")).to_be_visible()
    expect(stage.get_by_role("link", name="Your answer")).to_have_count(0)  # in no menu
