"""A small app of these tests, served below a sub-path as hosts do: `ui.players.plot` in a real Chromium (one lasting node,
zoom that survives, files that can be saved), and faults outside every view.
"""

import re
import shutil

import pytest

from tests.browser.conftest import after_frames, settled
from tests.browser.server import ROOT, serve
from tests.browser.visit import linked

SCRIPT = """
import numpy as np, pandas as pd, plotly.graph_objects as go, streamlit as st
from ui import server
from ui.figures import theme
from streamlit.runtime.scriptrunner import get_script_run_ctx
from ui.players import served
from ui.players.plot import plot

@st.fragment(run_every=0.2)
def live():
    n = st.session_state.n = st.session_state.get("n", 0) + 1
    x = np.arange(200)
    y = np.cos(x / 9 + n).astype("f4")
    line = go.Scatter(x=x, y=y, mode="lines+markers", line={"color": theme.colour("attention")})
    layout = theme.base_layout()
    if "slow" in st.query_params:
        layout.update(transition={"duration": 1000})
    plot(go.Figure(line, layout), key="live", alt="a wave", data=pd.DataFrame({"x": x, "y": y}), name="wave")
    st.text(f"updates {n}")

def broken():
    raise KeyError("/home/somebody/secret")

if get_script_run_ctx(suppress_warning=True) is None:
    app = st.App(__file__, routes=served.routes(), on_script_error=server.report_error)
else:
    if "still" not in st.query_params:  # each run of the fragment would take away what stands below the page
        live()
    st.button("Press", on_click=broken)
    if "fault" in st.query_params:
        broken()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plot")
    (folder / "plot_app.py").write_text(SCRIPT)
    shutil.copytree(ROOT / ".streamlit", folder / ".streamlit")
    return folder


@pytest.fixture(scope="module")
def plot_url(browser, folder):
    with serve(folder, "plot_app.py", folder, "below/here", profile="local") as url:
        yield f"{url}/"


def updates(page):
    return int(page.get_by_text("updates").inner_text().split()[1])


def wait_for(page, count):
    start = updates(page)
    page.wait_for_function(
        "n => Number(document.body.innerText.match(/updates (\\d+)/)[1]) >= n", arg=start + count
    )


def test_one_node_lasts_zoom_survives_and_out_of_sight_nothing_is_drawn(page, plot_url):
    frames, fetched = [], []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(frame)))
    page.on("response", lambda response: fetched.append(response.url))
    page.goto(plot_url)
    page.wait_for_selector(".gf-figure .main-svg")
    page.evaluate("""() => {
      window.figure = document.querySelector('.gf-figure'); window.drawing = document.querySelector('.gf-figure .main-svg'); window.removed = 0
      const lost = (node) => node.nodeType === 1 && (node.matches('.gf-plot, .gf-figure, .main-svg') || node.querySelector('.gf-figure'))
      new MutationObserver((changes) => changes.forEach((c) => c.removedNodes.forEach((n) => { if (lost(n)) window.removed++ })))
        .observe(document.body, { childList: true, subtree: true })
    }""")
    # On a busy machine it may have no size yet.
    page.wait_for_function("window.figure.getBoundingClientRect().height > 0")
    box = page.evaluate("window.figure.getBoundingClientRect().toJSON()")
    page.mouse.move(box["x"] + 250, box["y"] + 120)
    page.mouse.down()
    page.mouse.move(box["x"] + 450, box["y"] + 220, steps=5)
    page.mouse.up()
    page.wait_for_function("window.figure.layout.xaxis.autorange === false")
    zoomed = page.evaluate("window.figure.layout.xaxis.range")
    wait_for(page, 10)
    assert page.evaluate("window.figure.layout.xaxis.range") == zoomed
    assert page.evaluate("window.removed") == 0
    same = "document.querySelector('.gf-figure') === window.figure && document.querySelector('.main-svg') === window.drawing"
    assert page.evaluate(same)
    assert page.locator(".gf-figure").get_attribute("aria-label") == "a wave"

    sent = b"".join(frame if isinstance(frame, bytes) else frame.encode() for frame in frames)
    assert b"load.js" in sent and b"Plotly" not in sent and b".gf-plot" not in sent
    modules = [url for url in fetched if "/below/here/app/static/" in url]
    assert len(modules) == len(set(modules)) and any(url.endswith("/plot.js") for url in modules)

    page.set_viewport_size({"width": 800, "height": 300})
    page.evaluate("""() => {
      document.querySelector('.gf-plot').style.marginTop = '1500px'; document.querySelector('.gf-plot').style.marginBottom = '1500px'
      new MutationObserver(() => window.draws++).observe(window.figure, { childList: true, subtree: true })
    }""")
    settled(page)
    page.evaluate("window.draws = 0")
    wait_for(page, 5)
    assert page.evaluate("window.draws") == 0
    y = "window.figure._fullData[0].y[0]"
    stale = page.evaluate(y)
    page.evaluate("window.figure.scrollIntoView()")
    page.wait_for_function("window.draws > 0")
    assert page.evaluate(y) != stale


def test_files_are_saved_and_colours_follow_the_page(page, plot_url):
    page.goto(plot_url)
    page.wait_for_selector(".gf-figure .main-svg")
    settled(page)
    for kind, start in (("CSV", b"x,y\n0,"), ("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        button = page.get_by_role("button", name=kind)
        button.focus()
        with page.expect_download() as download:
            button.click()
        assert download.value.suggested_filename == f"wave.{kind.lower()}"
        assert download.value.path().read_bytes().startswith(start)
    letters, line = ("f => f._fullLayout.font.color", "f => f._fullData[0].line.color.toLowerCase()")
    figure = page.locator(".gf-figure")
    light = figure.evaluate(letters)
    assert figure.evaluate(line) == "#d97706"
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"({line})(document.querySelector('.gf-figure')) === '#ffc22e'")
    assert figure.evaluate(letters) != light


def test_a_module_that_does_not_come_is_a_sentence_and_messages_that_overtake_it_leave_one_figure(
    page, plot_url
):
    page.route("**/plot.js", lambda route: route.abort())
    page.goto(plot_url)
    page.get_by_text("This part of the page did not load. Reload the page").first.wait_for()
    page.unroute("**/plot.js")
    held = []
    page.route("**/load.js", lambda route: held.append(route))
    page.add_init_script("""window.removed = 0
      new MutationObserver((changes) => changes.forEach((c) => c.removedNodes.forEach((n) => {
        if (n.nodeType === 1 && n.matches('.gf-plot')) window.removed++
      }))).observe(document, { childList: true, subtree: true })""")
    page.reload(wait_until="commit")
    while not held:
        after_frames(page, 1)
    after_frames(page, 60)  # long after the module was asked for
    while held:
        held.pop().continue_()
    page.wait_for_selector(".gf-figure .main-svg")
    wait_for(page, 5)
    assert page.evaluate("document.querySelectorAll('.gf-plot').length") == 1
    assert page.evaluate("window.removed") == 0


@pytest.mark.exhaustive
def test_a_drawing_that_interrupts_a_transition_ends_it(page, plot_url):
    page.goto(f"{plot_url}?slow=1")
    page.wait_for_selector(".gf-figure .main-svg")
    assert page.evaluate("document.querySelector('.gf-figure')._fullLayout.transition.duration") == 1000
    wait_for(page, 20)
    assert int(page.evaluate("document.documentElement.dataset.gfPending")) <= 1


def test_no_trace_reaches_a_visitor_from_the_router_or_a_callback(page, plot_url, folder):
    numbers = []
    for address, press in (("?still=1&fault=1", False), ("?still=1", True)):
        page.goto(plot_url + address)
        settled(page)
        if press:
            page.get_by_role("button", name="Press").click()
        told = page.get_by_text("the fault is ours")
        told.wait_for()
        numbers.append(re.search(r"[0-9a-f]{8}", told.text_content()).group())
        shown = page.content()
        assert "secret" not in shown and "Traceback" not in shown and "KeyError" not in shown
    log = (folder / "server.log").read_text()
    assert len(set(numbers)) == 2
    for number in numbers:
        assert number in log and "KeyError" in log[log.index(number) :]


POINTS = "context_points"
POINTED = "points => new URL(location.href).searchParams.get('context_points') === points"


def test_points_of_a_figure_are_dragged_moved_by_keys_and_removed(tab, app_url):
    where = f"{app_url}/after?after_view=context&context_size=1&{POINTS}=0%200,%201%201"
    linked(tab, where, ".gf-point")
    settled(tab)
    assert tab.get_by_role("button", name="Example 2: x 1, y 1.").count() == 1
    line = "() => document.querySelector('.st-key-context_plane .gf-figure')._fullData.map(t => t.y.at(-1))"
    before = tab.evaluate(line)
    first, second = (tab.locator(".gf-point").nth(i).bounding_box() for i in (0, 1))
    wide, high = (second[side] - first[side] for side in ("x", "y"))  # of one unit, which points upwards
    x, y = second["x"] + second["width"] / 2, second["y"] + second["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x + wide / 2, y - 2 * high, steps=6)
    tab.mouse.up()
    tab.wait_for_function(POINTED, arg="0 0, 1.5 -1")
    settled(tab)
    assert tab.evaluate(line) != before, "the predictions follow"
    moved = tab.locator(".gf-point").nth(1).bounding_box()
    assert abs(moved["x"] - second["x"] - wide / 2) < 2 and abs(moved["y"] - second["y"] + 2 * high) < 2
    tab.locator(".gf-point").nth(1).focus()
    for key in ("ArrowUp", "ArrowUp", "Shift+ArrowLeft"):
        tab.keyboard.press(key)
    tab.wait_for_function(POINTED, arg="0 0, 1 -0.8")
    tab.locator(".gf-point").nth(0).click()
    tab.wait_for_function(POINTED, arg="1 -0.8")
    settled(tab)
    assert tab.locator(".gf-point").count() == 1
    box = tab.get_by_role("textbox", name="Examples x y")
    box.fill("0 0, 1 1")
    box.press("Enter")
    tab.wait_for_function("document.querySelectorAll('.gf-point').length === 2")
    settled(tab)
    assert tab.locator(".gf-point").nth(1).bounding_box() == pytest.approx(second, abs=1), "typed ones too"
