"""The input's pages in a real Chromium: clouds, clocks and arrows turn in the browser, tokens tell what they are."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import reruns, settled
from tests.browser.visit import linked

MAP = "embeddings?model=shakespeare-classic&embed_view=map&embed_picture=3-D"
CLOUD = ".gf-cloud [data-i]"
PLACES = (
    "() => [...document.querySelectorAll('.gf-cloud [data-i]')].map((node) =>"
    " node.getAttribute('transform')).join()"
)


def test_the_cloud_turns_in_the_browser_and_its_angle_is_in_the_link(tab, app_url):
    linked(tab, f"{app_url}/{MAP}&embed_turn=15,25", CLOUD)
    cloud, before = tab.locator(".gf-cloud").element_handle(), tab.evaluate(PLACES)
    tab.locator(".gf-cloud > svg").focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowUp")
    expect(tab).to_have_url(re.compile(r"embed_turn=20(%2C|,)30"))
    turned = tab.evaluate(PLACES)
    assert turned != before

    area = tab.locator(".gf-cloud > svg").bounding_box()
    tab.mouse.move(area["x"] + 20, area["y"] + 20)
    tab.mouse.down()
    tab.mouse.move(area["x"] + 70, area["y"] + 20, steps=4)
    tab.mouse.up()
    expect(tab).to_have_url(re.compile(r"embed_turn=0(%2C|,)30"))
    assert tab.evaluate(PLACES) != turned
    tab.locator(".gf-cloud > svg").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown"):
        tab.keyboard.press(key)
    expect(tab).to_have_url(re.compile(r"embed_turn=15(%2C|,)25"))
    settled(tab)
    assert tab.evaluate(PLACES) == before, "as the link had it"
    assert cloud.evaluate("node => node.isConnected")


CLOCKS = "positions?positions_view=sinusoidal&sinusoid_part=clock&sinusoid_length=32&sinusoid_width=8"
HANDS = "[...document.querySelectorAll('.gf-clock-dial .gf-clock-hand')].map(e => e.style.transform)"


def test_the_slider_turns_the_hands_without_the_server_and_the_link_brings_them_back(tab, app_url):
    linked(tab, f"{app_url}/{CLOCKS}&clock_position=7", ".gf-clock .gf-clock-dial")
    shown = tab.locator(".gf-clock output")
    expect(shown).to_have_text("position 7")
    before = reruns(tab)
    slider = tab.get_by_role("slider", name="Position", exact=True)
    slider.focus()
    for key, position in (("ArrowRight", 8), ("ArrowRight", 9), ("ArrowLeft", 8), ("Home", 0), ("End", 31)):
        slider.press(key)
        expect(shown).to_have_text(f"position {position}")
        angles = [float(re.fullmatch(r"rotate\(([-\d.e]+)rad\)", text)[1]) for text in tab.evaluate(HANDS)]
        assert angles == pytest.approx([position * theta for theta in (1.0, 0.1, 0.01, 0.001)], abs=1e-9)
    assert "".join(tab.locator(".gf-clock-bit b").all_text_contents()) == "11111"
    tab.get_by_role("button", name="One position back").click()
    expect(tab).to_have_url(re.compile(r"clock_position=30"))
    assert reruns(tab) == before, "the server was asked"


VIEW = (
    "positions?positions_view=rope&model=shakespeare-modern&text=First%20Citizen%3A%0A"
    "&rope_query=9&rope_key=5&measure=true"
)
SCORE = "() => document.querySelector('.gf-rope-said').textContent.match(/q·k = (\\S+),/)[1]"
ANGLE = "() => document.querySelector('.gf-rope-big .gf-rope-arrow-q').getAttribute('transform')"


def test_arrows_turn_and_together_they_leave_the_score(tab, app_url):
    linked(tab, f"{app_url}/{VIEW}", ".gf-rope-small")
    rope = tab.locator(".gf-rope").element_handle()
    expect(tab.locator(".gf-rope-small")).to_have_count(16)
    products = tab.locator(".gf-rope-small .gf-rope-value").all_inner_texts()
    score, angle = tab.evaluate(SCORE), tab.evaluate(ANGLE)
    total = sum(float(product.replace("−", "-")) for product in products)
    assert abs(total - float(score.replace("−", "-"))) < 0.09  # 16 roundings of 0.005

    tab.get_by_label("move both together").click()
    query = tab.get_by_label("Position of the query")
    query.focus()
    for _ in range(3):
        query.press("ArrowRight")
    expect(tab.locator(".gf-rope-q .gf-rope-name")).to_contain_text("at position 12")
    expect(tab.locator(".gf-rope-k .gf-rope-name")).to_contain_text("at position 8")
    assert tab.evaluate(SCORE) == score and tab.evaluate(ANGLE) != angle
    assert tab.locator(".gf-rope-small .gf-rope-value").all_inner_texts() == products

    tab.get_by_label("move both together").click()
    query.press("ArrowRight")
    expect(tab.locator(".gf-rope-q .gf-rope-name")).to_contain_text("at position 13")
    assert tab.evaluate(SCORE) != score
    expect(tab).to_have_url(re.compile(r"rope_at=13-8-0"))
    expect(tab.locator("table")).to_contain_text("q·k at (13, 8)")  # the figures follow when the hand lets go
    assert rope.evaluate("node => node.isConnected")
