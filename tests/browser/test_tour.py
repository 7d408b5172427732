"""A course in a browser, from its first scene to its last: everything is there, above the bar, and soon."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import after_frames, settled
from tests.browser.visit import linked
from tests.pages.start.scene_claims import marks, unread
from ui.tour import bar
from ui.tour.courses import FOLDER, shelf

COURSES = shelf().courses
MARKS = {path.stem.partition("-")[2]: marks(path) for path in FOLDER.glob("*.yaml")}
LAPTOP, PROJECTOR = {"width": 1280, "height": 720}, {"width": 1920, "height": 1080}
ROUNDS = 16  # of fifteen frames, after which a figure fits its screen
SEEN = """point => {
  const box = (e) => { const r = e?.getBoundingClientRect(); return r && {top: r.top, bottom: r.bottom, left: r.left, right: r.right, wide: r.width, high: r.height} }
  const main = document.querySelector('[data-testid="stMain"]'), at = main.querySelector('.st-key-' + point)
  const drawn = at && [...at.querySelectorAll('svg, canvas, table, img, button, input, [class*="gf-"]')].some(e => e.getBoundingClientRect().width > 1)
  return {point: box(at), drawn: drawn || (at?.innerText ?? '').trim().length > 0, outline: at && getComputedStyle(at).outlineStyle,
    answer: box(main.querySelector('.st-key-answer')), bar: box(document.querySelector('.gf-tour-bar')),
    said: document.querySelector('.gf-tour-said')?.innerText,
    broken: main.querySelectorAll('[data-testid="stException"], [data-testid="stAlertContentError"]').length}
}"""


# All that can be read above the fold: texts in sight, and what stands in fields; of a drawing on a canvas its description.
READ = """() => {
  const main = document.querySelector('[data-testid="stMain"]'), bar = document.querySelector('.gf-tour-bar').getBoundingClientRect().top, range = document.createRange(), said = []
  const seen = ({top, bottom, width, height}) => width > 0 && height > 0 && top >= -1 && bottom <= bar + 1
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest('style, script, .katex, .gf-tour, .gf-stage-ui')) continue
    range.selectNodeContents(node)
    if (seen(range.getBoundingClientRect())) said.push(node.textContent)
  }
  for (const one of main.querySelectorAll('input, textarea')) if (seen(one.getBoundingClientRect())) said.push(one.value)
  for (const one of main.querySelectorAll('[aria-valuetext]')) if (seen(one.getBoundingClientRect())) said.push(one.getAttribute('aria-valuetext'))
  for (const one of main.querySelectorAll('.katex-html')) if (seen(one.getBoundingClientRect())) said.push(one.textContent)
  return said.join(' | ')
}"""


@pytest.fixture
def screen(page):
    page.set_viewport_size(LAPTOP)
    return page


def at_scene(page, number: int, count: int) -> None:
    expect(page.locator(".gf-tour-where")).to_have_text(f"{number} of {count}")


def shown(page, scene) -> None:
    """The scene's own figure is there, and its answer; nothing is being made any more, so that they are not
    those of the scene before.
    """
    page.locator(f'[data-testid="stMain"] .st-key-{scene.point}').first.wait_for()
    page.locator('[data-testid="stMain"] .st-key-answer').first.wait_for()
    settled(page)
    page.wait_for_function(f"point => ({SEEN})(point).drawn", arg=scene.point)


def played(page, course) -> list[str]:
    wrong = []
    for number, scene in enumerate(course.scenes, 1):
        if number > 1:
            page.keyboard.press("PageDown")
        at_scene(page, number, len(course.scenes))
        shown(page, scene)
        if asked := course.question(number - 1):
            page.locator(".gf-tour-answers button").nth(asked.right).click()
            expect(page.locator(".gf-tour-why")).to_contain_text("Yes.")
            page.locator(".gf-tour-show").click()
        said = seen_faults(page, scene)
        if page.viewport_size == PROJECTOR:
            said += unread(scene.text, MARKS[course.id][number - 1], page.evaluate(READ))
        wrong += [f"{number} {scene.title}: {line}" for line in said]
    return wrong


def seen_faults(page, scene) -> list[str]:
    """What is wrong once the figure is drawn, and on a stage has been fitted after that."""
    for _ in range(ROUNDS):
        settled(page)
        if not (said := faults(page.evaluate(SEEN, scene.point), scene, page.viewport_size)):
            break
        after_frames(page, 15)
    return said


def faults(seen: dict, scene, screen: dict) -> list[str]:
    zoom = screen["height"] / LAPTOP["height"]
    top, point, answer = seen["bar"]["top"], seen["point"], seen["answer"]
    said = [] if not seen["broken"] else ["an exception"]
    if seen["bar"]["high"] > 56 * zoom or round(seen["bar"]["bottom"]) != screen["height"]:
        said.append(f"the bar is {seen['bar']}")
    if scene.title not in seen["said"] or scene.text not in seen["said"]:
        said.append(f"the bar says {seen['said']}")
    if not seen["drawn"] or point["wide"] < 20 or point["high"] < 20:
        said.append(f"{scene.point} is empty: {point}")
    elif seen["outline"] != "solid" or point["top"] > top - 40 * zoom:
        said.append(f"{scene.point} is not pointed at: {point}")
    elif (
        point["top"] < answer["top"] < point["bottom"] + 5 * zoom
        and point["left"] < answer["right"]
        and answer["left"] < point["right"]
    ):
        said.append(
            f"the outline ends at {point['bottom']:.0f}, in the answer, which begins at {answer['top']:.0f}"
        )
    if answer["bottom"] > top + 1:
        said.append(f"the answer reaches down to {answer['bottom']:.0f}, the bar begins at {top:.0f}")
    return said


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", COURSES)
def test_a_course_is_played_from_the_first_scene_to_the_last(screen, app_url, name):
    course = COURSES[name]
    if bar.missing(course):
        pytest.skip(f"{', '.join(bar.missing(course))} is not installed")
    for size, stage in ((LAPTOP, ""), (PROJECTOR, "?stage=1")):
        screen.set_viewport_size(size)
        screen.goto(f"{app_url}/courses{stage}")
        settled(screen)  # on a stage all grows once, as soon as its script is there
        screen.locator(f".st-key-start_{name} button").click()
        wrong = played(screen, course)
        assert not wrong, "\n".join(wrong)
        # Streamlit writes the address once more after the last run; the stage amends it
        expect(screen).to_have_url(re.compile("stage=1" if stage else r"^(?!.*stage=1)"))
    last = urlsplit(screen.url).path
    screen.keyboard.press("ArrowRight")  # after the last there is none
    after_frames(screen, 60)
    settled(screen)
    assert urlsplit(screen.url).path == last and f"scene={len(course.scenes)}" in screen.url
    at_scene(screen, len(course.scenes), len(course.scenes))


def test_a_course_begun_before_the_stage_is_mounted_stays_on_it(screen, app_url):
    """Streamlit writes the address of the first scene, without `stage=1`, while the stage's module is on its way."""
    held = []
    screen.route("**/stage.js", lambda route: held.append(route))
    with screen.expect_request("**/stage.js"):
        screen.goto(f"{app_url}/courses?stage=1")
    screen.locator(".st-key-start_ten-minutes button").click()
    expect(screen).to_have_url(re.compile("scene=1"))
    held.pop().continue_()
    count = len(COURSES["ten-minutes"].scenes)
    for number in (1, 2):
        if number > 1:
            screen.keyboard.press("PageDown")
        at_scene(screen, number, count)
        shown(screen, COURSES["ten-minutes"].scenes[number - 1])
        screen.wait_for_selector("html.gf-stage", state="attached")
        expect(screen).to_have_url(re.compile("stage=1"))


@pytest.mark.exhaustive
def test_the_course_shows_notes_goes_along_the_menu_and_ends_when_asked(screen, app_url):
    screen.goto(f"{app_url}/tokens?tokens_view=compare&course=ten-minutes&scene=2")
    at_scene(screen, 2, 10)
    settled(screen)
    notes = screen.locator(".gf-tour-notes")
    expect(notes).to_be_hidden()
    screen.get_by_role("button", name="Notes for the speaker").click()
    expect(notes).to_contain_text("Our small model uses the first row")
    screen.keyboard.press("Escape")
    expect(notes).to_be_hidden()
    screen.get_by_test_id("stSidebarNav").get_by_text("Sampling", exact=True).click()
    back = screen.get_by_role("button", name="Back to the scene")
    expect(back).to_have_text("Back to Tokens")
    expect(screen).to_have_url(re.compile(r"/sampling\?.*course=ten-minutes&scene=2"))
    settled(screen)
    back.click()
    expect(screen).to_have_url(re.compile(r"/tokens\?.*scene=2"))
    expect(back).to_be_hidden()
    settled(screen)
    screen.get_by_role("button", name="End the course").click()
    expect(screen).to_have_url(re.compile(r"/courses$"))
    expect(screen.locator(".gf-tour")).to_have_count(0)
    assert not screen.evaluate("document.documentElement.classList.contains('gf-tour-on')")


def test_a_fold_that_gets_the_focus_scrolls_the_page_and_not_the_app(screen, app_url):
    """Folds lie below the bar; the title stays where it is for who goes there by keyboard."""
    linked(screen, f"{app_url}/tokens?tokens_view=compare&course=ten-minutes&scene=2")
    at_scene(screen, 2, 10)
    screen.keyboard.press("Escape")
    folds = screen.locator('[data-testid="stMain"] summary')
    folds.last.focus()
    moved = """() => [document.querySelector('[data-testid="stAppViewContainer"]').scrollTop,
      document.activeElement.getBoundingClientRect().bottom <= document.querySelector('.gf-tour-bar').getBoundingClientRect().top]"""
    assert screen.evaluate(moved) == [0, True]


@pytest.mark.exhaustive
def test_on_a_phone_a_scene_scrolls_to_what_it_points_at(tab, app_url):
    """Two of five whose figure lay behind the bar, and one taller than the screen."""
    tab.set_viewport_size({"width": 390, "height": 844})
    linked(tab, f"{app_url}/attention?attention_view=heads&course=ten-minutes&scene=5")
    for number in (5, 6, 7):
        if number > 5:
            tab.get_by_role("button", name="Next scene").click()
        at_scene(tab, number, 10)
        scene = COURSES["ten-minutes"].scenes[number - 1]
        shown(tab, scene)
        tab.wait_for_function(
            f"""point => {{ const {{ point: at, bar }} = ({SEEN})(point), room = bar.top - 46
              return at.top >= 46 && (at.bottom <= bar.top || (at.high > room - 16 && at.top < 80)) }}""",
            arg=scene.point,
        )
