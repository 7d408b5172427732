"""The embeddings' cloud in a real Chromium: it is turned, and a click chooses a token."""

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
MIDDLE = """(word) => {
  const node = [...document.querySelectorAll('.gf-cloud [data-i]')].find((n) => n.querySelector('text')?.textContent === word)
  const box = node.getBoundingClientRect()
  return [box.x + box.width / 2, box.y + box.height / 2]
}"""


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


def test_a_click_chooses_a_token_in_either_picture(page, app_url):
    opened(page, f"{app_url}/{MAP}&embed_token=e", CLOUD)
    page.mouse.click(*page.evaluate(MIDDLE, "$"))
    expect(page).to_have_url(re.compile(r"embed_token=(%24|\$)"))
    expect(page.locator(".st-key-answer")).to_contain_text("Nearest to “$”:")

    bars = page.locator(".st-key-embed_near .gf-figure .nsewdrag").first.bounding_box()
    page.mouse.click(bars["x"] + 8, bars["y"] + bars["height"] * 0.5 / 10)  # the nearest of them
    expect(page.locator(".st-key-answer")).not_to_contain_text("Nearest to “$”:")
    assert "embed_token=%24" not in page.url
