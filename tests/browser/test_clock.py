"""The many-handed clock in a real Chromium: it turns without the server, plays and pauses, obeys the
keyboard, and its link brings it back.
"""

from __future__ import annotations

import math
import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import after_frames, settled

SLOW = 90_000
CLOCK = ".gf-clock"


def opened(page, url, query="", width=8):
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(
        f"{url}/positions?positions_view=Sinusoidal&sinusoid_part=Clock&sinusoid_length=32&sinusoid_width={width}{query}"
    )
    page.wait_for_selector(f"{CLOCK} .gf-clock-dial", timeout=SLOW)
    settled(page)
    return problems


def turned(page) -> list[float]:
    """Radians by which each dial's hand stands turned."""
    found = page.evaluate(
        "[...document.querySelectorAll('.gf-clock-dial .gf-clock-hand')].map(e => e.style.transform)"
    )
    return [float(re.fullmatch(r"rotate\(([-\d.e]+)rad\)", text)[1]) for text in found]


def count_messages(page):
    """Watches the web socket of a page that is yet to be opened: what it sends is a rerun."""
    sent = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    return sent


def test_the_slider_turns_the_hands_without_the_server_and_the_link_brings_them_back(page, app_url):
    sent = count_messages(page)
    problems = opened(page, app_url)
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
    page.get_by_role("radio", name="Table").click()  # leaves the clock and comes back
    expect(page.locator(CLOCK)).to_have_count(0)
    page.get_by_role("radio", name="Clock").click()
    expect(page.locator(f"{CLOCK} output")).to_have_text("position 30", timeout=SLOW)
    page.goto(page.url)
    expect(page.locator(f"{CLOCK} output")).to_have_text("position 30", timeout=SLOW)
    assert problems == []


def test_it_plays_and_pauses_and_a_rerun_does_not_disturb_it(page, app_url):
    problems = opened(page, app_url, "&clock_position=29")
    page.evaluate("window.clock = document.querySelector('.gf-clock')")
    output = page.locator(f"{CLOCK} output")
    page.get_by_role("button", name="Play").click()
    expect(output).to_have_text(re.compile(r"position 3[01]"))
    expect(output).to_have_text(re.compile(r"position \d$"))  # past the last it begins again
    page.get_by_role("button", name="Pause").click()
    stopped = output.text_content()
    after_frames(page, 60)
    assert output.text_content() == stopped
    page.get_by_role("slider", name="Width d").press("ArrowRight")  # the server sends other frequencies
    expect(page.locator(".gf-clock-dial")).to_have_count(5, timeout=SLOW)
    assert output.text_content() == stopped and page.evaluate("window.clock.isConnected")
    assert problems == []


@pytest.mark.exhaustive
def test_a_dial_tells_its_hand_and_the_keyboard_goes_from_dial_to_dial(page, app_url):
    opened(page, app_url)
    dials = page.locator(".gf-clock-dial")
    assert [text.strip() for text in dials.all_text_contents()] == ["6.28", "62.8", "628", "6,283"]
    dials.nth(0).focus()
    page.keyboard.press("ArrowRight")
    said = page.locator(".gf-clock-said")
    expect(said).to_contain_text("Hand 1: wavelength 62.8, 0.08 rounds so far")
    expect(said).to_contain_text(f"sine {math.sin(0.5):.3f}, cosine {math.cos(0.5):.3f}")
    opacities = page.evaluate(
        "[...document.querySelectorAll('.gf-clock-face .gf-clock-hand')].map(e => e.style.opacity)"
    )
    assert opacities.count("1") == 1


@pytest.mark.exhaustive
def test_a_phone_holds_it_and_reduced_motion_stops_the_sweep(page, app_url):
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(reduced_motion="reduce")
    opened(page, app_url, width=64)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(
        "document.querySelector('.gf-clock').scrollWidth <= document.querySelector('.gf-clock').clientWidth"
    )
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.gf-clock-hand')).transitionProperty")
        == "none"
    )
