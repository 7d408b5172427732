"""Serving the app to a browser, for the browser tests and for the benchmark of the live page."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run")
START_SECONDS = 60


def chromium_path(playwright: Any) -> str | None:
    """The system's Chromium, else Playwright's own; None where there is neither."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None) or playwright.chromium.executable_path
    return path if Path(path).exists() else None


@contextmanager
def serve(home: Path) -> Iterator[str]:
    """The address of `streamlit run app.py` on a free port, with `home` for its home folder and its log. Raises RuntimeError."""
    log, port = home / "server.log", _free_port()
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
    raise RuntimeError(f"the app did not start; its log ends:\n{log.read_text(errors='replace')[-3000:]}")


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
