"""Look inside, in a real Chromium: a click on a cell chooses, the keyboard walks, pictures stay where they are."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from tests.browser.conftest import open_fold, settled
from tests.browser.scrubbing import PICTURE
from tests.browser.visit import linked
from ui.page_frame import Listed
from ui.views import views

# Of each kind one: its question depends on what is shown, on the part that is chosen, on neither.
ALWAYS = ("attention/heads", "shapes/backward", "generation/beam")
FIGURES_ONLY = [
    pytest.param(listed, id=listed.id, marks=[] if listed.id in ALWAYS else pytest.mark.exhaustive)
    for listed in views()
    if listed.view.figures_only
]
AT = """([figure, row, column]) => {
  const plot = document.querySelectorAll('.gf-figure')[figure], { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect()
  return [box.left + xaxis._offset + xaxis.c2p(column), box.top + yaxis._offset + yaxis.c2p(row)]
}"""


def test_a_click_on_a_cell_chooses_its_neuron(tab: Page, app_url: str):
    linked(
        tab,
        f"{app_url}/feedforward?model=shakespeare-classic&feedforward_layer=1&feedforward_neuron=5&measure=true",
    )
    expect(tab.get_by_role("heading", name="Neuron 5 of block 1 on this text")).to_be_visible()
    tab.wait_for_function(
        "(all => all.length === 5 && all.every((f) => f._fullLayout))([...document.querySelectorAll('.gf-figure')])"
    )
    settled(tab)
    figures = tab.locator(".gf-figure").element_handles()

    tab.locator(".gf-figure").nth(3).scroll_into_view_if_needed()
    settled(tab)
    tab.mouse.click(*tab.evaluate(AT, [3, 2, 100]))  # the overview: layer 2, about neuron 100
    expect(tab).to_have_url(re.compile(r"(?=.*feedforward_layer=2)(?!.*feedforward_neuron=5(&|$))"))
    neuron = int(re.search(r"feedforward_neuron=(\d+)", tab.url)[1])
    assert abs(neuron - 100) <= 2
    expect(tab.get_by_role("heading", name=f"Neuron {neuron} of block 2 on this text")).to_be_visible()
    settled(tab)
    assert all(figure.evaluate("node => node.isConnected") for figure in figures)


def test_walking_with_the_keyboard_moves_everything(tab, app_url):
    linked(tab, f"{app_url}/shapes?model=shakespeare-classic&shapes_step=0", ".gf-walk .gf-step.gf-now")
    steps = tab.get_by_role("listbox", name="Steps of the forward pass")
    steps.focus()
    for _ in range(5):
        tab.keyboard.press("ArrowDown")
    expect(tab.locator(".gf-card-title code")).to_have_text("blocks.0.norm1")
    expect(tab.locator(".gf-step.gf-now code")).to_have_text("norm1")
    expect(tab.locator(".gf-station.gf-now")).to_have_text("norm")
    expect(tab).to_have_url(re.compile(r"shapes_step=5(&|$)"))
    open_fold(tab, "By hand")
    expect(tab.locator(".gf-source .gf-ran")).to_contain_text("F.layer_norm")
    figure = tab.locator(".gf-figure")
    expect(figure).to_have_attribute("aria-label", re.compile(r"blocks\.0\.norm1"))
    node = figure.element_handle()
    tab.get_by_role("button", name="One step forward").click()
    expect(figure).to_have_attribute("aria-label", re.compile(r"blocks\.0\.qkv_flat"))
    assert node.evaluate("(n) => n.isConnected")  # drawn in place
    tab.get_by_role("combobox", name="Trace").click()
    tab.get_by_role("option", name="GPT-2 small").click()
    expect(tab.locator(".gf-card-shapes")).to_contain_text("2,304")  # the same step of the other model
    expect(tab.locator(".gf-card-title code")).to_have_text("blocks.0.qkv_flat")
    tab.get_by_role("button", name="One step forward").click()
    expect(tab.locator(".gf-card-title code")).to_have_text("blocks.0.qkv_heads")
    expect(tab.locator(".gf-source .gf-ran").last).to_contain_text("split")
    expect(tab).to_have_url(re.compile(r"shapes_step=7(&|$)"))
    settled(tab)
    tab.go_back()
    expect(tab.locator(".gf-card-title code")).to_have_text("blocks.0.qkv_flat")
    settled(tab)
    expect(tab).to_have_url(re.compile(r"shapes_step=6(&|$)"))


# How often the page spoke to the server, and its address, while the hand led the picture to each of these steps.
HELD = """async ([picture, indexes]) => {
  const slider = document.querySelector('.gf-scrubber input[type=range]'), { send } = WebSocket.prototype
  let said = 0
  WebSocket.prototype.send = function (...message) { said++; return send.apply(this, message) }
  for (const index of indexes) {
    const before = eval(picture)()
    slider.value = index
    while (eval(picture)() === before) {  // the hand does not rest: it goes on to move, to where it is
      slider.dispatchEvent(new Event('input', { bubbles: true }))
      await new Promise((done) => setTimeout(done, 20))
    }
  }
  WebSocket.prototype.send = send
  return [said, location.search.includes('step=')]
}"""


# What answer stands after each picture of a training that is played, how often the page speaks to the server meanwhile,
# and of each picture that is asked for, where the slider stands then and which step is asked for.
PLAYED = """async () => {
  const { send } = WebSocket.prototype, { fetch } = window, said = {}, asked = []
  let sent = 0
  window.fetch = (address, ...how) => {
    if (`${address}`.includes('live/frame')) asked.push([Number(bar.querySelector('input').value), Number(new URL(address).searchParams.get('step'))])
    return fetch(address, ...how)
  }
  WebSocket.prototype.send = function (...message) { sent++; return send.apply(this, message) }
  const bar = document.querySelector('.gf-scrubber'), button = bar.querySelector('.gf-scrub-play')
  button.click()
  while (button.title === 'Pause') {
    const then = document.querySelector('.gf-answer-then')
    if (then) said[bar.querySelector('input').value] = then.innerText.trim()
    await new Promise(requestAnimationFrame)
  }
  const there = sent
  WebSocket.prototype.send = send
  window.fetch = fetch
  return [said, there, asked]
}"""


def test_a_training_is_played_past_the_page(tab, app_url):
    linked(tab, f"{app_url}/residual?residual_view=push&model=timelapse", ".gf-scrubber")
    tab.wait_for_function(f"({PICTURE})() !== ''")
    settled(tab)
    said, sent, asked = tab.evaluate(PLAYED)
    settled(tab)
    assert sent == 0 and len(set(said.values())) > 5
    end = int(tab.locator(".gf-scrubber input[type=range]").get_attribute("max") or 0)
    stood, steps = zip(*asked, strict=True)
    assert stood == (0, *range(end)), "each but the first while the one before stands"
    assert steps == (*sorted(set(steps[:-1])), -1), "each once, the newest last"
    assert tab.locator(".gf-answer-then").count() == 0, "the page's is there again"
    last = max(said, key=int)
    assert tab.locator(".st-key-answer").inner_text() == said[last]
    slider = tab.locator(".gf-scrubber input[type=range]")
    slider.evaluate(MOVE, "7")
    tab.wait_for_url("**step=**")
    settled(tab)
    assert tab.locator(".st-key-answer").inner_text() == said["7"]


MOVE = "(slider, to) => { slider.value = to; slider.dispatchEvent(new Event('input', { bubbles: true })) }"


def test_figures_follow_the_hand_and_the_page_when_it_rests(tab, app_url):
    linked(tab, f"{app_url}/residual?residual_view=push&model=timelapse", ".gf-scrubber")
    tab.wait_for_function(f"({PICTURE})() !== ''")
    settled(tab)
    assert tab.evaluate(HELD, [PICTURE, [9, 5, 0]]) == [0, False]
    tab.wait_for_url("**step=0**")
    settled(tab)
    first, answer = tab.evaluate(PICTURE), tab.locator(".st-key-answer").inner_text()
    linked(tab, f"{app_url}/tokens", "h1:has-text('Tokens')")
    linked(tab, f"{app_url}/residual?residual_view=push&model=timelapse&step=0", ".gf-scrubber")
    tab.wait_for_function(f"({PICTURE})() !== ''")
    settled(tab)
    assert tab.evaluate(PICTURE) == first and tab.locator(".st-key-answer").inner_text() == answer


# How many figures have points or lines, and what of them looks different once it has been styled a second time. Areas have no
# stroke, however wide.
STYLED = """() => {
  const figures = [...document.querySelectorAll('.gf-figure')].filter((one) => one._fullData?.some(({ type }) => type === 'scatter'))
  const drawn = (figure) => [...figure.querySelectorAll('*')].map((node) => node.cloneNode().outerHTML.replace(' stroke-width: 0;', ''))
  return [figures.length, figures.flatMap((figure) => {
    const before = drawn(figure)
    figure._fullData.find(({ type }) => type === 'scatter')._module.twice(figure)
    return drawn(figure).flatMap((node, at) => (node === before[at] ? [] : [[before[at], node]]))
  })]
}"""


# What labels and scales leave of each figure. Where they need more room at another step, it steps aside, and is laid out twice.
MARGINS = """() => [...document.querySelectorAll('.gf-figure')].filter((figure) => figure._fullLayout).map((figure) => {
  const { l, r, t, b } = figure._fullLayout._size
  return [figure.closest('[class*=st-key]').className, [l, r, t, b].join()]
})"""


@pytest.mark.parametrize("listed", FIGURES_ONLY)
def test_it_is_drawn_past_the_page_again_once_the_page_has_followed(tab, app_url, listed: Listed):
    address = listed.address()
    linked(tab, f"{app_url}/{address}{'&' if '?' in address else '?'}model=timelapse", ".gf-scrubber")
    settled(tab)
    slider = tab.locator(".gf-scrubber input[type=range]")

    def past(index: str) -> Any:
        """What is drawn past the page at a step, before the page has followed; None where it has to be measured."""
        try:
            with tab.expect_response("**/live/frame/**", timeout=5_000) as answered:
                slider.evaluate(MOVE, index)
        except TimeoutError:  # the page is still to come, after a step that had to be measured
            return None
        finally:
            settled(tab)
        return answered.value.json() if answered.value.status == 200 else None

    for _ in range(10):
        first, second = past("9"), past("5")
        if first and second and first["whole"] and second["whole"]:
            break
    assert first and second and first["whole"] and second["whole"] and first["answer"] and second["answer"]
    assert second["parts"].keys() == first["parts"].keys() != set()
    figures, others = tab.evaluate(STYLED)
    assert others == [] and (figures or listed.id != "generation/beam"), "all is styled as it is drawn"
    stands: dict[str, set[str]] = {key: {margins} for key, margins in tab.evaluate(MARGINS)}
    assert stands or not figures
    for index in ("0", "3", "14", "20", "25", "31"):
        slider.evaluate(MOVE, index)
        settled(tab)
        for key, margins in tab.evaluate(MARGINS):  # none where a step has to be measured first
            stands.setdefault(key, set()).add(margins)
    assert all(len(each) == 1 for each in stands.values()), stands
