"""A running app and a real Chromium. Every test in this folder carries the marker `browser`.

`app_url`, `browser` and `tab` live for the whole session, `page` for one test; `settled(page)` waits until the
script has run and every component has drawn, `after_frames` for frames of the screen; nothing sleeps.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.server import ARGUMENTS, chromium_path, shared

TIMEOUT_MS = 120_000  # for one action in the browser, on a machine that does other things as well
MOST_LINES = 40  # of a page's text, in the report of a failed test

# When the page asked the server for something, until a message comes: the script begins a little later, and on a busy machine
# a page that looks at rest until then would pass for the answer.
ASKED = """{
  const send = WebSocket.prototype.send, heard = new WeakSet()
  WebSocket.prototype.send = function (data) {
    if (!heard.has(this)) this.addEventListener('message', () => { window.gfAsked = 0 })
    heard.add(this)
    window.gfAsked = performance.now()
    return send.call(this, data)
  }
}"""
UNANSWERED = "window.gfAsked > 0 && performance.now() - window.gfAsked < 5000"  # or nothing comes of it

# A script has run and ended, nothing is faded, and nothing loads or draws, neither a component of ours nor a module of
# Streamlit's; so for three frames in a row, since what has just arrived begins to draw in the next one.
AT_REST = f"""() => {{
  const rests = document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === "notRunning"
    && document.querySelector('[data-testid="stElementContainer"]') && !({UNANSWERED})
    && (document.documentElement.dataset.gfPending === "0" || !document.querySelector('[data-testid^="stBidiComponent"]'))
    && !document.querySelector('[data-stale="true"], [data-testid="stSkeleton"]')
  window.gfRested = rests ? (window.gfRested ?? 0) + 1 : 0
  if (window.gfRested < 3) return false
  window.gfRested = 0
  return true
}}"""
MOVING = f"""() => ({{ script: document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState, unanswered: {UNANSWERED},
  pending: document.documentElement.dataset.gfPending, stale: [...document.querySelectorAll('[data-stale="true"]')].map((e) => e.className) }})"""
TEXT = "() => (document.querySelector('[data-testid=stMain]') ?? document.body)?.innerText ?? ''"
LINK = "address => { history.pushState({}, '', address); dispatchEvent(new PopStateEvent('popstate')) }"
TOP = "() => document.querySelector('[data-testid=stMain]')?.scrollTo(0, 0)"
FRAMES = """frames => new Promise((done) => {
  const next = () => (frames-- > 0 ? requestAnimationFrame(next) : done())
  next()
})"""


def settled(page, timeout: float = TIMEOUT_MS) -> None:
    try:
        page.wait_for_function(AT_REST, timeout=timeout)
    except Exception as error:
        raise AssertionError(f"the page does not come to rest: {page.evaluate(MOVING)}") from error


def after_frames(page, frames: int = 30) -> None:
    """Lets the browser draw so many frames: what is paused has had every chance to move by then."""
    page.evaluate(FRAMES, frames)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def app_url(browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `streamlit run app.py`, served from a home folder of its own: one server for all of pytest-xdist's
    workers, which keep a visitor apart from another as a server does.

    It asks for `browser` first, so that nothing is started where there is none.
    """
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "served"
    folder.mkdir(exist_ok=True)
    with shared(folder) as url:
        yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """One Chromium for the session. Skips where Playwright or the browser is missing."""
    playwright_api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed (requirements-dev.txt has it)"
    )
    playwright_api.expect.set_options(timeout=TIMEOUT_MS)
    with playwright_api.sync_playwright() as playwright:
        path = chromium_path(playwright)
        if path is None:
            pytest.skip("no Chromium on this machine: install chromium, or run `playwright install chromium`")
        chromium = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@contextmanager
def person(browser) -> Iterator[Any]:
    """One person's browser: it keeps the scripts that it fetched, as a visitor's does. It does not mind the server's
    policy against eval, which is what `wait_for_function` runs on; tests/browser/test_hosted.py has one that does.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True)
    context.set_default_timeout(TIMEOUT_MS)
    context.add_init_script(ASKED)
    yield context
    context.close()


@pytest.fixture(scope="session")
def context(browser) -> Iterator[Any]:
    with person(browser) as context:
        yield context


FORGET = """
try { if (!sessionStorage.getItem('fresh')) { localStorage.clear(); sessionStorage.setItem('fresh', '1') } }
catch { /* a frame or file without storage */ }"""
_runs: Counter[str] = Counter()  # of the script, in `tab`: how many it asked for, and how many have ended


@contextmanager
def fresh_page(context) -> Iterator[tuple[Any, list[str]]]:
    """A page, 1280 x 800, of somebody who was never here (no cookies, nothing stored), and what its scripts raised.

    It stays, empty, until the next has come: with the last page would go the process that has compiled the scripts.
    """
    context.clear_cookies()
    before = context.pages
    fresh, raised = context.new_page(), []
    for page in before:
        page.close()
    fresh.on("pageerror", lambda error: raised.append(str(error)))
    fresh.add_init_script(FORGET)
    yield fresh, raised
    for page in context.pages:
        if page is not fresh:
            page.close()
    if not fresh.is_closed():
        fresh.goto("about:blank")


@pytest.fixture
def page(context) -> Iterator[Any]:
    """A fresh page for one test. No script of it may raise; a failed test leaves a screenshot and prints its path, and what
    was on the screen.
    """
    with fresh_page(context) as (page, raised):
        yield page
    assert raised == []


@pytest.fixture(scope="session")
def lasting(browser) -> Iterator[tuple[Any, list[str]]]:
    """The page of `tab`. It is another person's than `page`: whose a run is, is in a cookie."""

    def received(data: bytes) -> None:
        message = ForwardMsg.FromString(data)
        whole = message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY  # not of a fragment
        _runs["ended"] += message.WhichOneof("type") == "script_finished" and whole

    def sent(data: bytes) -> None:
        _runs["asked"] += BackMsg.FromString(data).WhichOneof("type") == "rerun_script"

    with person(browser) as context, fresh_page(context) as (page, raised):
        page.on(
            "websocket", lambda socket: (socket.on("framereceived", received), socket.on("framesent", sent))
        )
        yield page, raised


@pytest.fixture
def tab(lasting, app_url) -> Iterator[Any]:
    """One page for many tests, each of which goes on in it by `visit.linked`, as a link inside the app does: the scripts
    are compiled once. For a test that neither asks what a fresh page does nor needs its cookies, as a training does.
    """
    tab, raised = lasting
    tab.evaluate(
        "() => document.fullscreenElement && document.exitFullscreen()"
    )  # of a stage that a test left
    tab.set_viewport_size({"width": 1280, "height": 800})
    raised.clear()
    yield tab
    assert raised == []


@pytest.fixture(scope="module")
def anew(lasting) -> Iterator[None]:
    """The page of `tab` is loaded anew for a file's tests, and after them."""
    tab, _ = lasting
    tab.goto("about:blank")
    yield
    tab.goto("about:blank")


def reruns(tab) -> int:
    """How many runs of the script `tab` has asked the server for."""
    after_frames(tab, 1)  # what was sent is counted meanwhile
    return _runs["asked"]


def follow(tab, address: str) -> None:
    """Follows a link inside the app, and waits until the script has run."""
    settled(tab)  # the end of what the test before has asked for would pass for that of this
    before, until = _runs["ended"], time.monotonic() + TIMEOUT_MS / 1000
    tab.evaluate(TOP)  # where a click on a link of the menu ends, too
    tab.evaluate(LINK, address)
    while _runs["ended"] == before:
        assert time.monotonic() < until, f"nothing comes of the link to {address}"
        after_frames(tab, 1)
    settled(tab)


def on_screen(page) -> str:
    """A page's address, whether it is at work, and the text that it shows, as far as a report has room for it."""
    lines = [line for line in page.evaluate(TEXT).splitlines() if line.strip()]
    more = [f"({len(lines) - MOST_LINES} more lines)"] if len(lines) > MOST_LINES else []
    return "\n".join([page.url, str(page.evaluate(MOVING)), *lines[:MOST_LINES], *more])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    outcome = yield
    report = outcome.get_result()
    given = getattr(item, "funcargs", {})
    open_page = given.get("page") or given.get("tab")
    if call.when == "call" and report.failed and open_page is not None:
        name = re.sub(r"\W+", "-", item.name).strip("-")
        path = Path(tempfile.mkdtemp(prefix="glassformer-failed-")) / f"{name}.png"
        try:
            open_page.screenshot(path=path)
            report.sections.append(("screenshot", str(path)))
            report.sections += [("on the screen", on_screen(one)) for one in open_page.context.pages]
            if "tab" in given:
                open_page.goto("about:blank")  # the next test begins anew
        except Exception as error:  # the page may have crashed: that must not hide the test's own failure
            report.sections.append(("screenshot", f"none could be taken: {error}"))


def open_bar(page) -> None:
    if page.get_by_test_id("stPopoverBody").count() == 0:
        page.locator(".st-key-subject_bar button").first.click()
    page.get_by_test_id("stPopoverBody").wait_for()


def open_fold(page, name: str) -> None:
    page.locator('[data-testid="stExpander"] summary', has_text=name).first.click()
    settled(page)
