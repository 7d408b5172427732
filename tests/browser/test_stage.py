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
        pytest.param("shapes?model=shakespeare-classic&shapes_step=0", ".gf-walk", "output", id="shapes"),
        pytest.param(
            "positions?positions_view=rope&model=shakespeare-modern&rope_query=2&rope_key=1",
            ".gf-rope",
            ".gf-rope-said",
            id="rope",
            marks=pytest.mark.exhaustive,
        ),
    ],
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
    expect(where).to_have_text("6 of 10")
    settled(stage)
    for _ in range(3):
        stage.keyboard.press("ArrowLeft")
    expect(where).to_have_text("3 of 10")
    settled(stage)
    stage.keyboard.press("p")
    stage.wait_for_selector("html.gf-stage", state="attached")
    stage.get_by_role("button", name=re.compile("^Freeze")).click()
    stage.wait_for_selector(".gf-frozen-copy")
    stage.keyboard.press("ArrowLeft")
    expect(where).to_have_text("2 of 10")
    stage.wait_for_selector(".gf-frozen-copy", state="detached")
    with stage.expect_popup() as second:
        stage.get_by_role("button", name="Notes for the speaker").click()
    expect(second.value.locator("body")).to_contain_text("Our small model uses the first row")
    expect(stage.locator(".gf-tour-notes")).to_be_hidden()
    second.value.close()

    for number in (3, 4):
        stage.keyboard.press("ArrowRight")
        expect(where).to_have_text(f"{number} of 10")
    settled(stage)
    stage.get_by_role("button", name="Let phones answer").click()
    stage.get_by_role("button", name="Ask", exact=True).click()
    stage.get_by_role("button", name="No more answers").click()
    stage.get_by_role("button", name="Put the same question a second time").click()
    expect(stage.locator(".gf-room-total")).to_have_text("Second vote: 0 answers")
    expect(stage.locator(".gf-room-bars .right")).to_have_count(0)
    stage.get_by_role("button", name="No more answers").click()
    expect(stage.locator(".gf-room-shift")).to_contain_text("nothing to compare")
    expect(stage.locator(".gf-room-bars .right")).to_contain_text("Nothing: each word gets exactly the same")
    expect(stage.locator(".gf-room-why")).to_contain_text("Nothing in its arithmetic depends on")
    stage.get_by_role("button", name="Hide the answers").click()
    expect(stage.locator(".gf-tour-ask")).to_be_hidden()
    stage.keyboard.press("ArrowRight")
    expect(where).to_have_text("5 of 10")


SHOWN = """() => ({ scene: parseInt(document.querySelector('.gf-tour-where')?.textContent),
  part: document.querySelector('.gf-tour-ask')?.hidden !== false ? 'figure' : document.querySelector('.gf-tour-why').textContent ? 'answer' : 'question' })"""


def shows(page, scene: int, part: str) -> None:
    page.wait_for_function(
        f"([scene, part]) => {{ const found = ({SHOWN})(); return found.scene === scene && found.part === part }}",
        arg=[scene, part],
    )
    settled(page)


ONWARDS = [(4, "question"), (4, "answer"), (4, "figure"), (5, "figure")]  # from the third scene
LIT = """() => [...document.querySelectorAll('.gf-tour-answers button:not(.right)')].map((one) => getComputedStyle(one).borderTopColor)
  .filter((colour, i, all) => colour !== all[(i + 1) % all.length]).length
  + [...document.querySelectorAll('.gf-tools')].filter((one) => Number(getComputedStyle(one).opacity)).length"""


def test_one_clicker_leads_through_question_answer_and_figure_and_the_same_way_back(stage, app_url) -> None:
    """Meanwhile a pointer that rests lights nothing."""
    stage.goto(f"{app_url}/embeddings?embed_view=lookup&course=ten-minutes&scene=3&stage=1")
    shows(stage, 3, "figure")
    stage.mouse.move(640, 320)
    stage.wait_for_function(LIT)
    for place in ONWARDS[:3]:
        stage.keyboard.press("PageDown")
        shows(stage, *place)
        after_frames(stage, 30)
        assert stage.evaluate(LIT) == 0, place
    stage.mouse.move(300, 300)
    stage.wait_for_function(LIT)
    stage.keyboard.press("PageDown")
    shows(stage, *ONWARDS[3])
    for key, place in zip(
        ["ArrowLeft", "PageUp", "ArrowLeft", "PageUp"], [*ONWARDS[2::-1], (3, "figure")], strict=True
    ):
        stage.keyboard.press(key)
        shows(stage, *place)
    stage.goto(f"{app_url}/attention?attention_view=heads&course=ten-minutes&scene=5&stage=1")
    shows(stage, 5, "figure")
    with stage.expect_popup() as popup:  # which keeps the keys
        stage.get_by_role("button", name="Notes for the speaker").click()
    for key, place in zip(["ArrowLeft", "PageUp"], ONWARDS[2:0:-1], strict=True):
        popup.value.keyboard.press(key)
        shows(stage, *place)
    popup.value.keyboard.press("PageUp")
    shows(stage, 4, "question")
    expect(stage.get_by_role("button", name="Show the answer")).to_be_visible()
    popup.value.keyboard.press("1")
    shows(stage, 4, "answer")
    expect(stage.locator(".gf-tour-why")).to_contain_text("Not quite. Nothing in its arithmetic")
    expect(stage.locator(".gf-tour-answers .right")).to_have_text(
        "Nothing: each word gets exactly the same output"
    )
    popup.value.close()
    stage.keyboard.press("PageDown")
    shows(stage, 4, "figure")
    stage.keyboard.press("f")  # fills the screen, and the keys still lead
    stage.wait_for_selector(".gf-full")
    stage.keyboard.press("PageUp")
    shows(stage, 4, "answer")
    stage.wait_for_selector(".gf-full", state="detached")
    stage.keyboard.press("PageDown")
    stage.keyboard.press("f")
    stage.wait_for_selector(".gf-full")
    stage.keyboard.press("PageDown")
    shows(stage, 5, "figure")


@pytest.mark.parametrize(
    ("address", "field"),
    [
        ("?home_view=living&model=shakespeare-classic&course=ten-minutes&scene=1", ".gf-live-text"),
        pytest.param(
            "positions?positions_view=why&course=built-live&scene=17",
            ".st-key-why_sentence input",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_the_clicker_leads_on_from_what_was_typed_and_escape_leaves_it_first(
    stage, app_url, address, field
) -> None:
    opened(stage, f"{app_url}/{address}&stage=1")
    at = int(stage.locator(".gf-tour-where").inner_text().split()[0])
    stage.locator(field).fill("man bites a dog")
    stage.keyboard.press("Enter")
    settled(stage)
    stage.keyboard.press("ArrowRight")
    shows(stage, at + 1, "figure")
    stage.keyboard.press("ArrowLeft")
    shows(stage, at, "figure")
    stage.locator(field).click()
    stage.keyboard.press("ArrowRight")  # the cursor's
    stage.keyboard.press("Escape")
    assert stage.evaluate("document.activeElement === document.body")
    assert stage.evaluate("document.documentElement.classList.contains('gf-stage')")
    stage.locator(field).click()
    stage.keyboard.press("PageDown")
    shows(stage, at + 1, "figure")


@pytest.mark.exhaustive
def test_a_clicker_leads_through_a_vote(stage, app_url) -> None:
    stage.goto(f"{app_url}/positions?positions_view=why&course=ten-minutes&scene=4&stage=1")
    shows(stage, 4, "question")
    stage.get_by_role("button", name="Let phones answer").click()
    stage.keyboard.press("PageDown")  # asks what the course has written
    stage.wait_for_selector(".gf-room-bars li")
    stage.keyboard.press("PageUp")
    shows(stage, 4, "question")
    expect(stage.locator(".gf-room")).to_be_hidden()
    stage.get_by_role("button", name="Let phones answer").click()
    expect(stage.locator(".gf-room-form")).to_be_hidden()  # the room is still open
    stage.keyboard.press("PageDown")
    expect(stage.locator(".gf-room-total")).to_have_text("0 answers · closed")
    expect(stage.locator(".gf-room-why")).to_be_hidden()  # it may vote again first
    stage.keyboard.press("PageDown")
    expect(stage.locator(".gf-room-why")).to_contain_text("Nothing in its arithmetic")
    stage.keyboard.press("PageDown")
    shows(stage, 4, "figure")
    stage.keyboard.press("PageDown")
    shows(stage, 5, "figure")


def test_a_panel_that_the_pointer_had_opened_goes_where_the_keys_lead_on(stage, app_url) -> None:
    opened(stage, f"{app_url}/?home_view=living&model=shakespeare-classic&course=ten-minutes&scene=1&stage=1")
    card = stage.locator(".gf-live-said b")
    before = card.inner_text()
    stage.locator(".gf-live-bars button").nth(2).hover()
    expect(card).not_to_have_text(before)
    stage.keyboard.press("PageDown")
    shows(stage, 2, "figure")
    stage.keyboard.press("PageUp")
    shows(stage, 1, "figure")
    expect(card).to_have_text(before)


def test_the_room_answers(stage, tab, app_url, browser) -> None:
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
    phones = [tab, browser.new_context().new_page()]  # of two people
    for phone in phones:
        phone.set_viewport_size({"width": 390, "height": 844})
        phone.goto(f"{app_url}/room?id={room}")
        expect(phone.get_by_role("heading", name="What does <b>the mask</b> hide?")).to_be_visible()
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
        others = "[data-testid=stSidebar], [data-testid=stExpandSidebarButton], [data-testid=stLogo]"
        expect(phone.locator(others).locator("visible=true"), "nothing but the question").to_have_count(0)
    counts, total = stage.locator(".gf-room-count"), stage.locator(".gf-room-total")
    phones[0].get_by_role("button", name="the past").click()
    expect(total).to_have_text("1 answer")
    phones[1].get_by_role("button", name="the future").click()
    expect(total).to_have_text("2 answers")
    phones[0].get_by_role("button", name="the future").click()
    expect(phones[0].get_by_text("You chose “the future”")).to_be_visible()
    assert counts.all_inner_texts() == ["", ""], "what others chose would tell"
    assert not stage.locator(".gf-room-bar").evaluate_all("all => all.some(one => one.offsetWidth)")
    stage.get_by_role("button", name="No more answers").click()
    expect(total).to_have_text("2 answers · closed")
    expect(counts.nth(0)).to_have_text("2 · 100%")
    expect(phones[0].get_by_text("The question is closed. 2 people answered.")).to_be_visible()
    expect(phones[0].get_by_role("button", name="the past")).to_be_disabled()
    stage.get_by_role("button", name="Put the same question a second time").click()
    expect(total).to_have_text("Second vote: 0 answers")
    expect(phones[1].get_by_text("The second vote on this question")).to_be_visible()
    phones[1].get_by_role("button", name="the past").click()
    expect(total).to_have_text("Second vote: 1 answer")
    assert counts.all_inner_texts() == ["100% → ?", "0% → ?"], "the first vote stays"
    stage.get_by_role("button", name="No more answers").click()
    expect(counts.nth(1)).to_have_text("0% → 100%")
    expect(stage.locator(".gf-room-shift")).to_have_text(
        "Largest shift, “the future”: 100% before, 0% after (2 and 1 answers)."
    )
    firsts = stage.locator(".gf-room-first .gf-room-bar").evaluate_all(
        "all => all.map(one => one.style.width)"
    )
    assert firsts == ["100%", "0%"]
    expect(stage.get_by_role("button", name="Put the same question a second time")).to_be_hidden()
    tab.goto("about:blank")
    phones[1].context.close()
    stage.goto(f"{app_url}/room?id=%3Cscript%3E")
    expect(stage.get_by_text("There is no such room")).to_be_visible()
    expect(stage.get_by_role("link", name="Your answer")).to_have_count(0)  # in no menu


def test_the_room_guesses_the_next_character_from_phones(stage, tab, app_url) -> None:
    address = "sampling?sampling_view=you&you_part=room&you_seed=3&model=shakespeare-classic&stage=1"
    opened(stage, f"{app_url}/{address}", ".gf-class .gf-play-cursor")
    stage.get_by_role("button", name="Ask the room", exact=True).last.click()
    expect(stage.locator(".gf-class-voted")).to_have_text("0 answers")
    room = stage.locator(".gf-class-way").get_attribute("data-room")
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.goto(f"{app_url}/room?id={room}")
    keys = tab.get_by_role("group", name="Characters")
    keys.get_by_role("button", name="q", exact=True).click()
    expect(stage.locator(".gf-class-voted")).to_have_text("1 answer")
    keys.get_by_role("button", name="Capital letters").click()
    keys.get_by_role("button", name="Z", exact=True).click()
    expect(tab.get_by_text("You chose “Z”")).to_be_visible()
    expect(tab.locator(".gf-letters-next")).to_have_text("Z")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    stage.get_by_role("button", name="Show the guesses").click()
    rows = stage.locator(".gf-class-rows li")
    expect(rows.filter(has_text="Z")).to_contain_text("51%")  # (1 + 1/65) / 2
    expect(stage.locator(".gf-class-right")).to_have_count(0)
    expect(keys.get_by_role("button", name="q", exact=True)).to_be_disabled()
    text = stage.locator(".gf-class .gf-play-text").inner_text()
    stage.get_by_role("button", name="Reveal").click()
    right = stage.locator(".gf-class-right .gf-class-character").inner_text().removesuffix(" ✓")
    expect(stage.locator(".gf-class .gf-play-cursor")).to_have_text(right)
    expect(stage.locator(".gf-play-class .gf-play-nats")).to_have_text("4.87")  # ln(65 * 2)
    stage.get_by_role("button", name="Next character").click()
    expect(tab.locator(".gf-letters-text")).to_have_text(f"{text[:-1]}{right}?", use_inner_text=False)
    tab.goto("about:blank")
