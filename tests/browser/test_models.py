"""Three families write in step, in a real Chromium."""

from playwright.sync_api import expect

from tests.browser.conftest import reruns
from tests.browser.visit import linked


def test_three_families_write_in_step_without_the_server_and_letters_are_hidden(tab, app_url):
    linked(tab, f"{app_url}/families?families_view=three&families_show=live", ".gf-three-cell")
    encoder, decoder, both = (tab.locator(".gf-three-column").nth(i) for i in range(3))
    before = reruns(tab)
    slider = tab.get_by_role("slider", name="Writing step")
    slider.focus()
    slider.press("Home")
    expect(decoder.locator(".gf-three-later")).to_have_count(24)
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    expect(encoder.locator(".gf-three-written")).to_have_count(8)
    expect(encoder.locator(".gf-three-wrong")).to_have_count(3)
    expect(decoder.locator(".gf-three-written")).to_have_count(2)
    expect(both.locator(".gf-three-line")).to_have_text("1 pass to read, 2 to write: one each")
    tab.wait_for_url("**live_step=2*")
    slider.press("End")
    both.locator(".gf-three-written", has_text="sem").hover()
    most = both.locator(".gf-three-cell", has_text="friend")
    assert float(most.evaluate("cell => cell.style.getPropertyValue('--read')")) == 1
    slider.fill("22")
    play = tab.get_by_role("button", name="Play: all three write")
    play.click()
    expect(tab.locator(".gf-three output")).to_have_text("step 24 of 24")
    expect(play).to_be_visible()
    assert reruns(tab) == before

    cells, answer = encoder.locator(".gf-three-cell"), tab.locator(".st-key-answer")
    cells.nth(0).click()
    expect(answer).to_contain_text("9 blanks in 1 pass")
    tab.wait_for_url("**live_clicked=0*")
    cells.nth(0).focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Enter")
    expect(answer).to_contain_text("10 blanks in 1 pass")
    tab.wait_for_url("**live_clicked=0-1*")
    tab.reload()
    expect(tab.locator(".st-key-answer")).to_contain_text("10 blanks in 1 pass")
    tab.get_by_role("button", name="Another").click()
    expect(tab.locator(".st-key-answer")).not_to_contain_text("10 blanks")
    tab.wait_for_function("!location.search.includes('live_clicked')")
