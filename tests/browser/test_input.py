"""The input's pages in a real Chromium: clouds, clocks and arrows turn in the browser, tokens tell what they are."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import settled
from tests.browser.visit import opened

MAP = "embeddings?embed_view=The+map&embed_picture=3-D"
CLOUD = ".gf-cloud [data-i]"
PLACES = (
    "() => [...document.querySelectorAll('.gf-cloud [data-i]')].map((node) =>"
    " node.getAttribute('transform')).join()"
)


def test_the_cloud_turns_in_the_browser_and_its_angle_is_in_the_link(page, app_url):
    opened(page, f"{app_url}/{MAP}", CLOUD)
    page.evaluate("window.cloud = document.querySelector('.gf-cloud')")
    before = page.evaluate(PLACES)
    page.locator(".gf-cloud > svg").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    page.wait_for_function(f"before => ({PLACES})() !== before", arg=before)
    expect(page).to_have_url(re.compile(r"embed_turn=35(%2C|,)25"))
    turned = page.evaluate(PLACES)

    area = page.locator(".gf-cloud > svg").bounding_box()
    page.mouse.move(area["x"] + 20, area["y"] + 20)
    page.mouse.down()
    page.mouse.move(area["x"] + 70, area["y"] + 20, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"embed_turn=15(%2C|,)25"))
    assert page.evaluate(PLACES) != turned and page.evaluate("window.cloud.isConnected")
    settled(page)
    final = page.evaluate(PLACES)

    opened(page, f"{app_url}/{MAP}&embed_turn=15,25", CLOUD)
    assert page.evaluate(PLACES) == final


CLOCK = ".gf-clock"
DIAL = f"{CLOCK} .gf-clock-dial"
CLOCKS = "positions?positions_view=Sinusoidal&sinusoid_part=Clock&sinusoid_length=32&sinusoid_width=8"


def turned(page) -> list[float]:
    found = page.evaluate(
        "[...document.querySelectorAll('.gf-clock-dial .gf-clock-hand')].map(e => e.style.transform)"
    )
    return [float(re.fullmatch(r"rotate\(([-\d.e]+)rad\)", text)[1]) for text in found]


def test_the_slider_turns_the_hands_without_the_server_and_the_link_brings_them_back(page, app_url):
    sent = []  # what its socket sends is a rerun
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    opened(page, f"{app_url}/{CLOCKS}", DIAL)
    assert turned(page) == [5 * theta for theta in (1.0, 0.1, 0.01, 0.001)]
    before = len(sent)
    page.evaluate("window.clock = document.querySelector('.gf-clock')")
    slider = page.get_by_role("slider", name="Position", exact=True)
    slider.focus()
    for key, position in (("ArrowRight", 6), ("ArrowRight", 7), ("ArrowLeft", 6), ("Home", 0), ("End", 31)):
        slider.press(key)
        expect(page.locator(f"{CLOCK} output")).to_have_text(f"position {position}")
        assert [round(angle, 9) for angle in turned(page)] == [
            round(position * theta, 9) for theta in (1.0, 0.1, 0.01, 0.001)
        ]
    assert "".join(page.locator(".gf-clock-bit b").all_text_contents()) == "11111"
    page.get_by_role("button", name="One position back").click()
    expect(page).to_have_url(re.compile(r"clock_position=30"))
    assert len(sent) == before, "the server was asked"
    page.goto(page.url)
    expect(page.locator(f"{CLOCK} output")).to_have_text("position 30")


VIEW = (
    "positions?positions_view=RoPE&model=shakespeare-modern&text=First%20Citizen%3A%0A"
    "&rope_query=9&rope_key=5&measure=true"
)
SCORE = "() => document.querySelector('.gf-rope-said').textContent.match(/q·k = (\\S+),/)[1]"
ANGLE = "() => document.querySelector('.gf-rope-big .gf-rope-arrow-q').getAttribute('transform')"


def test_arrows_turn_and_together_they_leave_the_score(page, app_url):
    opened(page, f"{app_url}/{VIEW}", ".gf-rope-small")
    page.evaluate("window.kept = document.querySelector('.gf-rope')")
    expect(page.locator(".gf-rope-small")).to_have_count(16)
    products = page.locator(".gf-rope-small .gf-rope-value").all_inner_texts()
    score, angle = page.evaluate(SCORE), page.evaluate(ANGLE)
    assert (
        abs(sum(float(p.replace("−", "-")) for p in products) - float(score.replace("−", "-"))) < 0.09
    )  # 16 roundings of 0.005

    page.get_by_label("move both together").click()
    query = page.get_by_label("Position of the query")
    query.focus()
    for _ in range(3):
        query.press("ArrowRight")
    expect(page.locator(".gf-rope-q .gf-rope-name")).to_contain_text("at position 12")
    expect(page.locator(".gf-rope-k .gf-rope-name")).to_contain_text("at position 8")
    assert page.evaluate(SCORE) == score and page.evaluate(ANGLE) != angle
    assert page.locator(".gf-rope-small .gf-rope-value").all_inner_texts() == products

    page.get_by_label("move both together").click()
    query.press("ArrowRight")
    expect(page.locator(".gf-rope-q .gf-rope-name")).to_contain_text("at position 13")
    assert page.evaluate(SCORE) != score
    expect(page).to_have_url(re.compile(r"rope_at=13-8-0"))
    expect(page.locator("table")).to_contain_text(
        "q·k at (13, 8)"
    )  # the figures below follow when the hand lets go
    assert page.evaluate("window.kept.isConnected")
