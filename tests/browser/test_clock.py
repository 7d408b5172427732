"""The many-handed clock in a real Chromium: it turns without the server, plays and pauses, obeys the
keyboard, and its link brings it back.
"""

import re

from playwright.sync_api import expect

from tests.browser.conftest import after_frames
from tests.browser.visit import opened

SLOW = 90_000
CLOCK = ".gf-clock"
DIAL = f"{CLOCK} .gf-clock-dial"
ADDRESS = "positions?positions_view=Sinusoidal&sinusoid_part=Clock&sinusoid_length=32&sinusoid_width=8"


def turned(page) -> list[float]:
    """Radians by which each dial's hand stands turned."""
    found = page.evaluate(
        "[...document.querySelectorAll('.gf-clock-dial .gf-clock-hand')].map(e => e.style.transform)"
    )
    return [float(re.fullmatch(r"rotate\(([-\d.e]+)rad\)", text)[1]) for text in found]


def test_the_slider_turns_the_hands_without_the_server_and_the_link_brings_them_back(page, app_url):
    sent = []  # what its socket sends is a rerun
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    opened(page, f"{app_url}/{ADDRESS}", DIAL)
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


def test_it_plays_and_pauses_and_a_rerun_does_not_disturb_it(page, app_url):
    opened(page, f"{app_url}/{ADDRESS}&clock_position=29", DIAL)
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
    dials = page.locator(".gf-clock-dial")
    dials.nth(0).focus()
    page.keyboard.press("ArrowRight")
    said = page.locator(".gf-clock-said")
    expect(said).to_contain_text(re.compile(r"Hand 1: wavelength \d"))
    opacities = page.evaluate(
        "[...document.querySelectorAll('.gf-clock-face .gf-clock-hand')].map(e => e.style.opacity)"
    )
    assert opacities.count("1") == 1
