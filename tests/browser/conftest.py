"""A running app and a real Chromium. Every test in this folder carries the marker `browser`.

`app_url` and `browser` live for the whole session, `page` for one test; `settled(page)` waits until the script has run.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run")
START_SECONDS = 60
TIMEOUT_MS = 20_000  # for one action in the browser


def settled(page, timeout: float = TIMEOUT_MS) -> None:
    """Waits until Streamlit has run the script to its end. Then wait for the element that you want."""
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=timeout)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def app_url(browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `streamlit run app.py`, served for this session from a home folder of its own.

    It asks for `browser` first, so that nothing is started where there is none.
    """
    home = tmp_path_factory.mktemp("home")
    log = home / "server.log"
    port = _free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("STREAMLIT_", "XDG_"))}
    command = [
        sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port), "--server.address", "127.0.0.1",
        "--server.headless", "true", "--server.fileWatcherType", "none", "--browser.gatherUsageStats", "false",
    ]
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, cwd=ROOT, env=environment | {"HOME": str(home)}, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_healthy(server, url, log)
            yield url
        finally:
            _end_group(server)


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """One Chromium for the session. Skips where Playwright or the browser is missing."""
    playwright_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (requirements-dev.txt has it)")
    with playwright_api.sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, BROWSERS)), None) or playwright.chromium.executable_path
        if not Path(path).exists():
            pytest.skip("no Chromium on this machine: install chromium, or run `playwright install chromium`")
        chromium = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser) -> Iterator[object]:
    """A fresh page, 1280 x 800, with its own cookies. A failed test leaves a screenshot and prints its path."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(TIMEOUT_MS)
    yield context.new_page()
    context.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    outcome = yield
    report = outcome.get_result()
    open_page = getattr(item, "funcargs", {}).get("page")
    if call.when == "call" and report.failed and open_page is not None:
        name = re.sub(r"\W+", "-", item.name).strip("-")
        path = Path(tempfile.mkdtemp(prefix="glassformer-failed-")) / f"{name}.png"
        try:
            open_page.screenshot(path=path)
            report.sections.append(("screenshot", str(path)))
        except Exception as error:  # the page may have crashed: that must not hide the test's own failure
            report.sections.append(("screenshot", f"none could be taken: {error}"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_healthy(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"the app did not start; its log ends:\n{log.read_text(errors='replace')[-3000:]}")


def _end_group(server: subprocess.Popen[bytes]) -> None:
    """Asks the server to end, so that it can end its workers, and then ends whatever of its group is left."""
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(timeout=15)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(server.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    server.wait(timeout=15)
