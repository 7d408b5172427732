"""Serving the app to a browser, for the browser tests and for the benchmark of the live page."""

import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--renderer-process-limit=1",  # a second tab of the app runs the scripts that the first has compiled
)
START_SECONDS = 60
ADDRESS, VISITORS = "address", "visitors"  # files of a shared server
# The trainings of two workers of pytest-xdist do not wait for one another.
PLACES = (
    "from dataclasses import replace; from runs.profiles import PROFILES;"
    " PROFILES['hosted'] = replace(PROFILES['hosted'], max_runs=3); "
)


def chromium_path(playwright: Any) -> str | None:
    """The system's Chromium, else Playwright's own; None where there is neither."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None) or playwright.chromium.executable_path
    return path if Path(path).exists() else None


@contextmanager
def serve(
    home: Path,
    script: str = "app.py",
    folder: Path = ROOT,
    base: str = "",
    profile: str = "hosted",
    before: str = "",
) -> Iterator[str]:
    """The address of `streamlit run script` in `folder`, on a free port, with `home` for its home folder and
    its log.

    `base` is a path below which it is served, as some hosts do. `before` is Python that runs first. `profile` is `hosted` because its trainings
    have one thread: beside a browser on two cores, the threads of a larger one wait for each other most of
    the time. Raises RuntimeError when it does not start.
    """
    log, port = home / "server.log", _free_port()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("STREAMLIT_", "XDG_"))
    }
    main = ["-c", f"{before}from streamlit.web.cli import main; main()"] if before else ["-m", "streamlit"]
    command = [sys.executable, *main, "run", script]
    for name, value in {
        "server.port": str(port),
        "server.address": "127.0.0.1",
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
        "server.baseUrlPath": base,
    }.items():
        command += [f"--{name}", value]
    with log.open("wb") as output:
        own = {"HOME": str(home), "PYTHONPATH": str(ROOT), "GLASSFORMER_PROFILE": profile}
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=environment | own,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            url = f"http://127.0.0.1:{port}" + (f"/{base}" if base else "")
            _wait_until_healthy(server, url, log)
            yield url
        finally:
            _end_group(server)


@contextmanager
def shared(folder: Path) -> Iterator[str]:
    """The address of the app that all of pytest-xdist's workers visit, served from `folder`, which they share.

    The first to come starts a keeper, which serves the app until the last has gone: each holds a shared lock, which the
    system takes from it however it ends, and the keeper waits for the whole lock. Raises RuntimeError when it does not start.
    """
    address = folder / ADDRESS
    with (folder / VISITORS).open("ab") as visitor:
        fcntl.flock(visitor, fcntl.LOCK_SH)
        with (folder / "turn").open("ab") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            if not address.exists():
                _start_keeper(folder)
        yield address.read_text("utf-8")


def _start_keeper(folder: Path) -> None:
    """Returns once the app is served."""
    log = folder / "keeper.log"
    with log.open("wb") as output:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.browser.server", str(folder)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C reaches it by way of the tests
        )
    while not (folder / ADDRESS).exists():
        if keeper.poll() is not None:
            raise RuntimeError(log.read_text(errors="replace"))
        time.sleep(0.1)


def keep(folder: Path) -> None:
    """Serves the app to everybody who holds the lock in `folder`, and ends with the last."""
    address = folder / ADDRESS
    with (folder / VISITORS).open("ab") as visitors, serve(folder, before=PLACES) as url:
        whole = folder / "address.new"
        whole.write_text(url, "utf-8")
        whole.replace(address)
        fcntl.flock(
            visitors, fcntl.LOCK_EX
        )  # kept until all has ended: who comes meanwhile waits, and starts another
        address.unlink()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_row(count: int) -> int:
    """The first of so many free ports in a row, below those that the system gives by itself."""
    while True:
        first = random.randrange(15_000, 30_000)
        with ExitStack() as probes, suppress(OSError):
            for port in range(first, first + count):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


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
        with suppress(subprocess.TimeoutExpired):
            server.wait(timeout=15)
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait(timeout=15)


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
