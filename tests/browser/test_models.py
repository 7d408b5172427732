"""Three families write in step, in a real Chromium."""

from playwright.sync_api import expect

from tests.browser.conftest import settled

TEXT = "this horse will fear the funny old friend"


def columns(page, url):
    page.goto(f"{url}/families?families_view=live")
    page.locator(".gf-three-cell").first.wait_for()
    settled(page, 90_000)
    return [page.locator(".gf-three-column").nth(i) for i in range(3)]


def test_all_three_write_in_step_without_the_server(page, app_url):
    encoder, decoder, both = columns(page, app_url)
    sent = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    slider = page.get_by_role("slider", name="Step of the writing")
    slider.focus()
    slider.press("Home")
    expect(encoder.locator(".gf-three-hidden")).to_have_count(8)
    expect(decoder.locator(".gf-three-later")).to_have_count(24)
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    expect(encoder.locator(".gf-three-written")).to_have_count(8)
    expect(encoder.locator(".gf-three-wrong")).to_have_count(3)
    expect(decoder.locator(".gf-three-written")).to_have_count(2)
    expect(both.locator(".gf-three-written")).to_have_count(2)
    expect(decoder.locator(".gf-three-read")).to_have_count(len(TEXT) + 1)  # back only, of the second letter
    expect(encoder.locator(".gf-three-read")).to_have_count(len(TEXT))  # both sides
    expect(both.locator(".gf-three-read")).to_have_count(9 + 2)  # the source whole, and its own two
    expect(both.locator(".gf-three-line")).to_have_text("1 pass to read, 2 to write: one each")
    page.wait_for_url("**live_step=2*")
    slider.press("End")
    both.locator(".gf-three-written", has_text="sem").hover()
    expect(both.locator(".gf-three-mark")).to_have_text("sem")
    most = both.locator(".gf-three-cell", has_text="friend")
    assert float(most.evaluate("cell => cell.style.getPropertyValue('--read')")) == 1
    slider.fill("22")
    page.get_by_role("button", name="Play: all three write").click()
    expect(page.locator(".gf-three output")).to_have_text("step 24 of 24")
    expect(page.get_by_role("button", name="Play: all three write")).to_be_visible()
    assert not sent


def test_letters_are_hidden_by_a_click_and_by_the_keyboard(page, app_url):
    encoder, *_ = columns(page, app_url)
    cells = encoder.locator(".gf-three-cell")
    cells.nth(0).click()
    expect(page.locator(".st-key-answer")).to_contain_text("9 blanks in 1 pass")
    page.wait_for_url("**live_clicked=0*")
    cells.nth(0).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-answer")).to_contain_text("10 blanks in 1 pass")
    page.wait_for_url("**live_clicked=0-1*")
    page.reload()
    expect(page.locator(".st-key-answer")).to_contain_text("10 blanks in 1 pass")
    page.get_by_role("button", name="Another").click()
    expect(page.locator(".st-key-answer")).not_to_contain_text("10 blanks")
    page.wait_for_function("!location.search.includes('live_clicked')")
