"""The main job, as a person does it: open the page, press Train, watch, steer, come back."""

import pytest
from playwright.sync_api import Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.browser.conftest import after_frames, settled
from tests.browser.scrubbing import PICTURE, in_url, where
from tests.browser.training import LINK, begun, button, ended, opened, steps_done, wait_for_steps
from tests.browser.visit import linked

KEPT = ".gf-figure, .gf-samples, .gf-scrubber"  # nodes that last while a run is watched and scrubbed
WATCH = f"""() => {{
  window.__removed = 0
  window.__marks = [...document.querySelectorAll('{KEPT}')]
  new MutationObserver((changes) => changes.forEach((change) => change.removedNodes.forEach((node) => {{
    if (node.nodeType === 1 && (node.matches('{KEPT}, .gf-plot') || node.querySelector('{KEPT}'))) window.__removed++
  }}))).observe(document.body, {{ childList: true, subtree: true }})
}}"""
LASTED = (
    "window.__removed === 0 && window.__marks.length >= 2 && window.__marks.every((node) => node.isConnected)"
)


# Looks come at steps 1, 2, 5, 10, 20, 50 ... : between two of them nothing but steps is new, and the longer the later.
SELDOM = LINK.replace("steps=400", "steps=5000").replace("=20&", "=4000&")
POINTS = "() => document.querySelector('.st-key-loss_chart .gf-figure')._fullData[0].x.length"
SAMPLES = "() => Number(document.querySelector('.gf-samples input').max)"
WINDOWS = 12  # in which a page may be drawn again for a look, before it must have rested in one


def test_from_noise_to_text_while_the_page_rests_with_pause_resume_stop_and_reload(page: Page, app_url: str):
    sent: list[bytes] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    opened(page, app_url, SELDOM.replace("every=50", "every=4000"))
    assert "run=" not in page.url  # a link starts nothing by itself
    button(page, "Train").click()
    wait_for_steps(page, 5)
    settled(page)  # the empty chart that stood here before has gone
    page.wait_for_function("document.querySelectorAll('.gf-figure').length === 1")
    page.evaluate(WATCH)
    text = page.locator(".gf-samples pre")
    first = text.inner_text()
    for _ in range(WINDOWS):
        begin, done = page.evaluate(POINTS), steps_done(page)
        sent.clear()
        for _ in range(6):  # the page asks for the run, and its menu for the training
            page.wait_for_event("response", lambda answer: "/live/" in answer.url and answer.status == 200)
        page.wait_for_function(f"least => ({POINTS})() >= least", arg=begin + 20)
        if all(BackMsg.FromString(frame).WhichOneof("type") != "rerun_script" for frame in sent):
            break
    else:
        pytest.fail("the page is drawn again and again while nothing but steps is new")
    assert steps_done(page) > done
    expect(text).not_to_have_text(first)
    loss = page.locator(".gf-figure").first.locator(".legendtext", has_text="fast").first.text_content()
    assert float(loss.split()[-1]) < 3.5  # nats; a guess among about 100 characters costs 4.6

    button(page, "Pause").click()
    button(page, "Resume").wait_for()
    settled(page)
    for _ in range(5):  # the page may lag behind the worker, which has stopped
        held = steps_done(page)
        after_frames(page, 90)
        if steps_done(page) == held:
            break
    assert steps_done(page) == held
    button(page, "One step").click()
    wait_for_steps(page, held + 1)
    after_frames(page, 60)
    assert steps_done(page) == held + 1

    page.locator(".gf-samples input").fill("0")  # the first sample stays there while new ones come
    there = page.evaluate(SAMPLES)
    button(page, "Resume").click()
    page.wait_for_function(f"there => ({SAMPLES})() > there", arg=there)
    assert "step 0" in page.locator(".gf-samples output").inner_text()
    assert page.evaluate(LASTED)

    page.set_viewport_size({"width": 1280, "height": 720})
    settled(page)
    for at in (".gf-figure", ".gf-samples", ".st-key-answer"):  # one screen holds them all
        box = page.locator(at).first.bounding_box()
        assert box["y"] > 0 and box["y"] + box["height"] <= 720, (at, box)

    button(page, "Stop").click()
    ended(page)
    done, address = steps_done(page), page.url
    assert "run=" in address and "d_model=64" in address
    page.reload()
    ended(page)
    assert steps_done(page) == done
    expect(page.get_by_text("belongs to another browser")).to_have_count(0)


STEP = """() => Number(document.querySelector('.gf-scrubber output').innerText
  .match(/step ([\\d,]+)/)[1].replaceAll(',', ''))"""


@pytest.mark.exhaustive
def test_an_arrow_key_goes_back_in_training_time_and_the_newest_is_followed(page: Page, app_url: str):
    begun(page, app_url, SELDOM)
    page.wait_for_function("location.search.includes('run=')")
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Feed-forward").click()
    slider = page.locator(".gf-scrubber input[type=range]")
    slider.wait_for()
    settled(page)
    # The run in hand, without having been asked for.
    assert "model=run-" in page.url and in_url(page) is None and "(newest)" in where(page)

    first = page.evaluate(STEP)
    page.wait_for_function(f"first => ({STEP})() > first", arg=first)
    assert "(newest)" in where(page) and in_url(page) is None  # it followed

    page.wait_for_function(f"({PICTURE})() !== ''")
    settled(page)
    page.evaluate(WATCH)
    before, newest = page.evaluate(PICTURE), page.evaluate(STEP)
    slider.focus()
    slider.press("Home")
    page.wait_for_function("new URL(location).searchParams.get('step') === '0'")
    page.wait_for_function(f"before => ({PICTURE})() !== before", arg=before)
    settled(page)
    assert page.evaluate(STEP) == 0 < newest
    after_frames(page, 120)  # the training goes on, and what is looked at stays
    assert page.evaluate(STEP) == 0 and in_url(page) == "0"

    slider.press("End")
    page.wait_for_function(
        "!location.search.includes('step=') && document.querySelector('.gf-scrubber"
        " output').innerText.includes('(newest)')"
    )
    assert page.evaluate(LASTED)
    page.get_by_role("link", name="Back to this run").click()
    button(page, "Stop").click()
    ended(page)  # else it holds its place for as long as it may be unwatched


ON_TOP = """what => {
  const one = document.querySelector(what), box = one.getBoundingClientRect()
  return [0.03, 0.5, 0.97].map((share) =>
    one.contains(document.elementFromPoint(box.left + box.width * share, box.top + box.height / 2)))
}"""


def test_the_scrubber_leaves_the_model_picker_clickable_beside_a_guess(tab: Page, app_url: str):
    for view, width in (("circuits?circuits_view=induction", 1240), ("sampling?sampling_view=stages", 1440)):
        tab.set_viewport_size({"width": width, "height": 720})
        linked(tab, f"{app_url}/{view}&model=timelapse", ".gf-scrubber")
        tab.locator(".gf-guess-pill").wait_for()
        settled(tab)
        for what in (".st-key-subject_bar button", ".gf-guess-pill", ".gf-scrub-film"):
            assert tab.evaluate(ON_TOP, what) == [True, True, True], (view, what)


@pytest.mark.exhaustive
def test_on_a_phone_the_run_comes_first_and_can_be_held(page: Page, app_url: str):
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, app_url, LINK.replace("steps=400", "steps=5000").replace("n_layers=2", "n_layers=8"))
    bar = page.locator(".st-key-run_bar")
    expect(bar).to_be_hidden()
    button(page, "Train").click()
    expect(bar).to_contain_text("loss")
    box = bar.bounding_box()
    assert box["y"] + box["height"] <= 844 and box["y"] > 700
    chart, controls = (
        page.locator(at).bounding_box()["y"]
        for at in (".gf-figure", '[data-testid="stPopover"] button:has-text("Another run")')
    )
    assert chart < controls
    bar.get_by_role("button", name="Pause").click()
    bar.get_by_role("button", name="Resume").wait_for()
    button(page, "Stop").click()
    ended(page)


# A browser so busy that what was pressed is sent late.
BUSY = """(() => {
  const real = window.setTimeout
  window.setTimeout = (f, ms, ...rest) => real(f, window.busy && !ms ? 1200 : ms, ...rest)
})()"""


@pytest.mark.exhaustive
def test_a_click_in_a_busy_browser_is_sent_once_and_heard(page: Page, app_url: str) -> None:
    page.add_init_script(BUSY)
    sent: list[bytes] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda one: sent.append(one)))
    page.goto(
        f"{app_url}/ladder?ladder_view=race&ladder_rungs=Last+letter&ladder_rungs=Average&ladder_text=python"
        "&ladder_steps=1200"
    )
    start, pause, resume, end = (
        page.get_by_role("button", name=name, exact=True).first
        for name in ("Race", "Pause", "Resume", "Cancel")
    )
    expect(start).to_be_enabled()
    settled(page)
    start.click()
    expect(pause).to_be_enabled()
    page.wait_for_function("document.querySelectorAll('.st-key-race_panel [role=progressbar]').length > 0")
    sent.clear()
    page.evaluate("window.busy = true")
    pause.click()
    after_frames(page, 6)
    page.evaluate("window.busy = false")
    expect(resume).to_be_visible()
    after_frames(page, 180)  # what is sent twice would be heard twice
    assert sum(b"race_go_ladder" in one for one in sent) == 1
    expect(resume).to_be_visible()
    end.click()
    expect(start).to_be_enabled()
