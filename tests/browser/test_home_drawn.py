"""The living map's component alone in a real Chromium, fed with what the page sends: what it unpacks and draws is
the recording, and five hundred written tokens leave it as large as it was.
"""

from __future__ import annotations

import numpy as np
import pytest

from engine.recording import record
from tests.browser.conftest import after_frames
from tests.models import REAL, SHIPPED, TEXTS, opened
from tests.pages.start.home import home, sent
from ui.figures import theme
from ui.players import served

# The component as Streamlit would hold it, in a page of nothing else. What it asks is answered by `answer`.
MOUNT = """async ({ data, assets, wide }) => {
  document.body.replaceChildren()
  const style = document.createElement('link')
  Object.assign(style, { rel: 'stylesheet', href: `${assets}/livemap.css` })
  const loaded = new Promise((done) => { style.onload = done })
  document.head.append(style)
  await loaded
  const place = document.createElement('div')
  place.style.width = `${wide}px`
  Object.assign(place.dataset, { testid: 'stApp', testScriptState: 'notRunning' }) // or a question waits its turn
  document.body.append(place)
  const { default: draw } = await import(`${assets}/livemap.js`)
  window.asked = []
  window.show = (sent) => draw({ data: sent, parentElement: place, key: 'x', setStateValue: () => {}, setTriggerValue: (_, ask) => { window.asked.push(ask); window.answer?.(ask) } })
  window.show(data)
  window.data = data
}"""
SETTLED = """async () => {
  const root = document.querySelector('.gf-live')
  for (let last = '', same = 0; same < 6; ) {
    await new Promise(requestAnimationFrame)
    same = root.dataset.frames === last ? same + 1 : 0
    last = root.dataset.frames
  }
}"""
# The colours at the middle of each cell of the strips.
DRAWN = """async ({ assets, focus }) => {
  const { has, layout, unpack } = await import(`${assets}/livemap_state.js`)
  const p = unpack(window.data.picture), canvas = document.querySelector('.gf-live-stage > canvas'), brush = canvas.getContext('2d')
  const g = layout({ along: canvas.clientWidth, across: canvas.clientHeight, lanes: p.lanes, earlier: p.earlier > 0, layers: p.layers, focus, tall: false, there: has(p) })
  const column = ([from, to]) => Array.from({ length: p.lanes }, (_, lane) => Array.from({ length: p.cells }, (_, cell) => {
    const y = Math.floor(g.lane(lane) - g.thick / 2 + ((cell + 0.5) * g.thick) / p.cells)
    return [...brush.getImageData(Math.floor((from + to) / 2), y, 1, 1).data.slice(0, 3)]
  }))
  const ranges = { ...Object.fromEntries(g.strips.map((range, depth) => [`stream ${depth}`, range])), attention: g.attention, middle: g.middle, feedforward: g.feedforward, before: g.before, between: g.between, final: g.final }
  return {
    cell: g.thick / p.cells, thin: Math.min(...g.strips.map(([a, b]) => b - a)),
    columns: Object.fromEntries(Object.entries(ranges).filter(([, range]) => range).map(([name, range]) => [name, column(range)])),
  }
}"""


@pytest.fixture
def assets(page, app_url):
    """A page of the app's origin with nothing on it; the address of the modules."""
    page.goto(f"{app_url}/_stcore/health")
    return f"{app_url}/app/static/{served.modules()}/pages/start/home"


def mount(page, assets, data, *, wide=1000, query=""):
    if query:
        page.evaluate("(query) => history.replaceState(null, '', query)", query)
    page.evaluate(MOUNT, {"data": data, "assets": assets, "wide": wide})
    page.evaluate(SETTLED)


def colours(values):
    stops = np.array(
        [[int(theme.palette()[f"div{i}"][0][k : k + 2], 16) for k in (1, 3, 5)] for i in range(7)]
    )
    place = (np.rint(values * 127) / 127 + 1) * 3
    low = np.minimum(5, np.floor(place)).astype(int)
    part = (place - low)[..., None]
    return stops[low] + (stops[low + 1] - stops[low]) * part


def scaled(rows):
    """A recording's rows (lane, d_model) as they are drawn: sixteen means, in the scale of what is typical."""
    means = rows.reshape(len(rows), 16, -1).mean(-1)
    typical = float(np.median([max(abs(x) for x in row) for row in means]))
    return np.clip(means / typical, -1, 1)


# Each model once; with every text, and the real model, in the exhaustive tier.
DRAWINGS = [(name, TEXTS[number]) for number, name in enumerate(SHIPPED)]
REST = [(name, text) for name in SHIPPED for text in TEXTS if (name, text) not in DRAWINGS]
REST = [pytest.param(*pair, marks=pytest.mark.exhaustive) for pair in REST]
REST += [pytest.param(name, text, marks=pytest.mark.exhaustive) for name in REAL for text in TEXTS]


@pytest.mark.parametrize(("name", "text"), DRAWINGS + REST)
def test_what_is_unpacked_and_drawn_is_the_recording(page, assets, name, text):
    page.set_viewport_size({"width": 1280, "height": 1400})
    model, tokenizer = opened(name)
    app = home(text, name if name in SHIPPED else f"pretrained-{name}")
    data = sent(app)
    focus = 1
    page.emulate_media(reduced_motion="reduce")
    mount(page, assets, data, query=f"?home_block={focus}")
    found = page.evaluate(DRAWN, {"assets": assets, "focus": focus})
    full = record(model, list(tokenizer.encode(text)))
    lanes, layers = len(data["picture"]["ids"]), model.config.n_layers
    assert lanes == min(16, len(full.ids)) and found["cell"] >= 1

    wanted = {f"stream {depth + 1}": full[f"blocks.{depth}.resid_post"] for depth in range(layers)}
    wanted |= {
        "stream 0": full["blocks.0.resid_pre"],
        "attention": full[f"blocks.{focus}.attn_out"],
        "middle": full[f"blocks.{focus}.resid_mid"],
        "feedforward": full[f"blocks.{focus}.ffn_out"],
        "before": full[f"blocks.{focus}.norm1"],
        "between": full[f"blocks.{focus}.norm2"],
        "final": full["norm_final"],
    }
    assert set(found["columns"]) == set(wanted)
    for place, rows in wanted.items():
        drawn = np.array(found["columns"][place], dtype=float)  # (lane, cell, colour)
        values = scaled(rows[-lanes:].astype(np.float64))
        inner = slice(1, -1) if place in ("before", "between", "final") else slice(None)  # these are framed
        by = np.abs(drawn - colours(values))[:, inner].max()
        # one step of 127, and rounding to whole colours
        assert by <= 4, f"{place} is {by} off"


# Somebody types on while each answer comes, at last while one that was asked for by the button comes.
TYPED = """async () => {
  const field = document.querySelector('.gf-live-text')
  const type = async (text) => {
    field.value = text
    field.dispatchEvent(new Event('input'))
    await new Promise((done) => setTimeout(done, 50))
  }
  const answer = (turn, text, wrote = null) =>
    window.show({ ...JSON.parse(JSON.stringify(window.data)), text, answered: window.asked[turn].id, wrote })
  field.focus()
  await type('To b')
  await type('To bx')
  answer(0, 'To b')
  await type('To b')
  answer(1, 'To bx')
  answer(2, 'To b')
  document.querySelector('.gf-live-primary').click()
  await type('To be,')
  answer(3, 'To be', { id: window.asked[3].id, token: 0, word: 'e', chance: 0.5 })
  return [window.asked.map((ask) => ask.text ?? ask.do), field.value]
}"""


def test_an_older_answer_is_not_taken_for_what_is_typed_by_now(page, assets):
    mount(page, assets, sent(home("To be")))
    assert page.evaluate(TYPED) == [["To b", "To bx", "To b", "write", "To be,"], "To be,"]


# Each question is answered at once with another text of the same size, as if a token had been written. What the
# component waits for between two tokens is left out.
WRITE = """() => {
  const later = window.setTimeout
  window.setTimeout = (act, ms, ...rest) => later(act, ms > 20 && ms < 1000 ? 0 : ms, ...rest)
  let turn = 0
  window.answer = (ask) => later(() => {
    const next = JSON.parse(JSON.stringify(window.data))
    Object.assign(next, { answered: ask.id, wrote: { id: ask.id, token: next.picture.ids[0], word: 'x', chance: 0.5 } })
    next.picture.name = `text ${++turn}`
    window.show(next)
  }, 0)
}"""
COUNT = "() => window.asked.length"


def size(page):
    cdp = page.context.new_cdp_session(page)
    for _ in range(2):
        cdp.send("HeapProfiler.collectGarbage")
    heap, counted = cdp.send("Runtime.getHeapUsage"), cdp.send("Memory.getDOMCounters")
    cdp.detach()
    return heap["usedSize"], counted["nodes"], counted["jsEventListeners"]


@pytest.mark.exhaustive
def test_five_hundred_tokens_are_written_and_leave_it_as_it_was(page, assets):
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    mount(page, assets, sent(home("ROMEO:\nO, she d")))
    page.evaluate(WRITE)
    play = page.locator(".gf-live-write button").last
    play.click()
    page.wait_for_function("window.asked.length >= 60")
    play.click()  # it stops when it is told to
    after_frames(page, 40)
    stopped = page.evaluate(COUNT)
    after_frames(page, 30)
    assert page.evaluate(COUNT) == stopped
    before = size(page)
    play.click()
    page.wait_for_function("(n) => window.asked.length >= n + 500", arg=stopped)
    after_frames(page, 60)
    assert page.evaluate(COUNT) == stopped + 500  # it stops by itself, and each token was asked for once
    assert play.inner_text() == "▶" and page.locator(".gf-live-flying").count() == 0
    after = size(page)
    assert after[0] - before[0] < 1_000_000, "the heap grows"
    assert after[1] - before[1] <= 40 and after[2] - before[2] <= 10, "nodes or listeners are left"
    assert {ask["do"] for ask in page.evaluate("window.asked")} == {"write"}
    assert problems == []


@pytest.mark.exhaustive
def test_the_rest_of_a_large_model_is_added_to_what_is_drawn(page, assets):
    data = sent(home("To be"))
    picture = data["picture"]
    few = {"known": [], "guesses": "", "chances": "", "outlook": None, "whole": False}
    mount(page, assets, data | {"picture": picture | few})
    assert page.locator(".gf-live").get_attribute("data-whole") == "false"
    tell = """async ({ assets, more }) => {
      const { default: draw } = await import(`${assets}/livemap_further.js`)
      draw({ data: more, parentElement: document.body.appendChild(document.createElement('div')), key: 'y' })
    }"""
    rest = {key: picture[key] for key in (*few, "words", "name")}
    page.evaluate(tell, {"assets": assets, "more": rest | {"name": "another"}})
    assert page.locator(".gf-live").get_attribute("data-whole") == "false"
    page.evaluate(tell, {"assets": assets, "more": rest})
    assert page.locator(".gf-live").get_attribute("data-whole") == "true"
    assert page.locator(".gf-live-bars button").count() >= 8
    assert page.evaluate(COUNT) == 0  # nobody asked for it
