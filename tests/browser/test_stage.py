"""The stage: its key, figures that fill the screen, freeze, and a room that answers."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import after_frames, settled
from tests.browser.visit import linked, opened, stage_faults


@pytest.fixture
def stage(page):
    page.set_viewport_size({"width": 1280, "height": 720})
    return page


BOX = "s => { const r = document.querySelector(s).getBoundingClientRect(); return [r.x, r.y, r.width, r.height].map(Math.round) }"
FILLED = f"""() => {{ const box = {BOX}, [x, y, wide, high] = box('.gf-full')
  return x === 0 && y === 0 && Math.abs(wide - innerWidth) <= 1 && Math.abs(high - innerHeight) <= 1 && box('.gf-full .main-svg')[3] === innerHeight }}"""


def test_keys_fill_the_screen_open_the_stage_whose_letters_are_large_and_freeze_it(stage, app_url) -> None:
    stage.goto(f"{app_url}/parameters")
    settled(stage)
    stage.wait_for_selector(".gf-plot .main-svg")
    stage.wait_for_selector(".gf-stage-ui", state="attached")
    expect(stage.get_by_role("button", name=re.compile("^Stage mode"))).to_be_in_viewport(ratio=1)
    before = stage.evaluate(BOX, ".gf-plot")
    stage.hover(".gf-plot", position={"x": 60, "y": 60})
    stage.keyboard.press("f")
    stage.wait_for_function(FILLED)
    stage.keyboard.press("f")
    stage.wait_for_selector(".gf-full", state="detached")
    stage.wait_for_function(f"before => ({BOX})('.gf-plot').join() === before.join()", arg=before)
    stage.hover(".gf-plot")
    stage.locator(".gf-plot").get_by_role("button", name=re.compile("Fill the screen")).first.click()
    stage.wait_for_selector(".gf-full")
    stage.evaluate("document.exitFullscreen?.().catch(() => {})")  # what a browser makes of Escape by itself
    stage.keyboard.press("Escape")
    stage.wait_for_selector(".gf-full", state="detached")

    stage.keyboard.press("p")
    stage.wait_for_selector("html.gf-stage", state="attached")
    expect(stage).to_have_url(re.compile("stage=1"))
    stage.get_by_role("radio", name="FLOPs").click()
    expect(stage).to_have_url(re.compile("parameters_view=flops.*stage=1|stage=1.*parameters_view=flops"))
    stage.reload()
    stage.wait_for_selector("html.gf-stage", state="attached")
    settled(stage)
    stage.set_viewport_size({"width": 1920, "height": 1080})
    assert not stage_faults(stage, 0, large=True)
    assert "svg" in stage.evaluate("getComputedStyle(document.body).cursor"), "seen from the back row"
    stage.keyboard.press("z")
    stage.wait_for_selector(".gf-frozen-copy")
    answer = stage.locator(
        ".gf-frozen-copy .st-key-answer"
    ).bounding_box()  # pictures may still load elsewhere
    before = stage.screenshot(clip=answer)
    stage.evaluate("document.querySelector('[data-testid=stMain] .st-key-answer p').textContent = 'moved'")
    assert stage.screenshot(clip=answer) == before
    stage.keyboard.press("z")
    stage.wait_for_selector(".gf-frozen-copy", state="detached")
    assert stage.screenshot(clip=answer) != before
    stage.keyboard.press("Escape")
    expect(stage).not_to_have_url(re.compile("stage=1"))
    assert not stage.evaluate("document.documentElement.classList.contains('gf-stage')")


@pytest.mark.parametrize(
    ("address", "player", "shown"),
    [
        ("shapes?model=shakespeare-classic&shapes_step=0", ".gf-walk", "output"),
        (
            "positions?positions_view=rope&model=shakespeare-modern&rope_query=2&rope_key=1",
            ".gf-rope",
            ".gf-rope-said",
        ),
    ],
    ids=["shapes", "rope"],
)
def test_a_player_waits_while_the_screen_is_frozen(tab, app_url, address, player, shown) -> None:
    linked(tab, f"{app_url}/{address}", player)
    where = tab.locator(player).locator(shown)
    before = where.text_content()
    tab.evaluate("document.documentElement.classList.add('gf-frozen')")
    tab.locator(player).get_by_role("button", name=re.compile("^Play")).click()
    after_frames(tab, 90)
    assert where.text_content() == before
    tab.evaluate("document.documentElement.classList.remove('gf-frozen')")
    expect(where).not_to_have_text(before)


def test_a_presenters_keys_work_in_a_course_whatever_was_clicked_and_the_room_answers_its_question(
    stage, app_url
) -> None:
    stage.goto(f"{app_url}/attention?attention_view=heads&course=ten-minutes&scene=5")
    settled(stage)
    where = stage.locator(".gf-tour-where")
    stage.locator(".gf-head").nth(5).click()
    stage.keyboard.press("ArrowRight")
    expect(where).to_have_text("6 of 9")
    settled(stage)
    for _ in range(3):
        stage.keyboard.press("ArrowLeft")
    expect(where).to_have_text("3 of 9")
    settled(stage)
    stage.keyboard.press("p")
    stage.wait_for_selector("html.gf-stage", state="attached")
    stage.get_by_role("button", name=re.compile("^Freeze")).click()
    stage.wait_for_selector(".gf-frozen-copy")
    stage.keyboard.press("ArrowLeft")
    expect(where).to_have_text("2 of 9")
    stage.wait_for_selector(".gf-frozen-copy", state="detached")
    with stage.expect_popup() as second:
        stage.get_by_role("button", name="Notes for the speaker").click()
    expect(second.value.locator("body")).to_contain_text("Our small model uses the first row")
    expect(stage.locator(".gf-tour-notes")).to_be_hidden()
    second.value.close()

    for number in (3, 4):
        stage.keyboard.press("ArrowRight")
        expect(where).to_have_text(f"{number} of 9")
    settled(stage)
    stage.get_by_role("button", name="Let phones answer").click()
    stage.get_by_role("button", name="Ask", exact=True).click()
    stage.get_by_role("button", name="No more answers").click()
    expect(stage.locator(".gf-room-bars .right")).to_contain_text("Nothing: each word gets exactly the same")
    stage.get_by_role("button", name="Hide the answers").click()
    expect(stage.locator(".gf-tour-ask")).to_be_hidden()
    stage.keyboard.press("ArrowRight")
    expect(where).to_have_text("5 of 9")


def test_the_room_answers(stage, app_url, browser) -> None:
    opened(stage, f"{app_url}/attention?stage=1", "html.gf-stage .st-key-answer")
    stage.get_by_role("button", name="Ask the room").click()
    stage.get_by_role("textbox", name="Question").fill("What does <b>the mask</b> hide?")
    stage.get_by_role("textbox", name="Answers").fill("only one")
    stage.get_by_role("button", name="Ask", exact=True).click()
    expect(stage.locator(".gf-room-said")).to_contain_text("2 to 5 answers, one per line; you gave 1")
    stage.get_by_role("textbox", name="Answers").fill("the future\nthe past")
    stage.get_by_role("button", name="Ask", exact=True).click()
    stage.wait_for_selector(".gf-room-bars li")
    room = stage.locator(".gf-room-way").get_attribute("data-room")
    # this test's server listens to this computer alone, and the lecturer is told so
    expect(stage.locator(".gf-room-note")).to_contain_text("This address works only on this computer")
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
    expect(counts.nth(1)).to_have_text("1 · 100%")
    phones[1].get_by_role("button", name="the future").click()
    expect(counts.nth(0)).to_have_text("1 · 50%")
    phones[0].get_by_role("button", name="the future").click()
    expect(counts.nth(0)).to_have_text("2 · 100%")
    stage.get_by_role("button", name="No more answers").click()
    expect(stage.locator(".gf-room-total")).to_have_text("2 answers · closed")
    expect(phones[0].get_by_text("The question is closed. 2 people answered.")).to_be_visible()
    expect(phones[0].get_by_role("button", name="the past")).to_be_disabled()
    for phone in phones:
        phone.context.close()
    stage.goto(f"{app_url}/room?id=%3Cscript%3E")
    expect(stage.get_by_text("There is no such room")).to_be_visible()
    expect(stage.get_by_role("link", name="Your answer")).to_have_count(0)  # in no menu
