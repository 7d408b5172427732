"""A pytest plugin: with `--checks`, what needs no pytest (style, types, the browser's modules) runs beside the tests.

`make test` asks for it. The checks run one after the other on a thread of their own; one that fails is told like a
failed test, with its output, and makes pytest fail. The browser's modules are left out where none has changed since what
landed last, but not in `make test-all` and not where $CI is set.
"""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests import affected

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = "make scripts"
COMMANDS = {
    "ruff": [sys.executable, "-m", "ruff", "check", "--quiet", "."],
    "mypy": [sys.executable, "-m", "mypy"],
    SCRIPTS: ["make", "--no-print-directory", "scripts"],
}


class Checks:
    """Commands that run one after the other, beside whoever started them.

    >>> checks = Checks({"is well": ["true"], "is ill": ["sh", "-c", "echo why; exit 3"]})
    >>> checks.failed(), checks.left_out
    ({'is ill': 'why\\n'}, [])
    """

    def __init__(self, commands: dict[str, list[str]]) -> None:
        self._commands = commands
        self._running: subprocess.Popen[str] | None = None
        self._stopped = False
        self._failed: dict[str, str] = {}
        self.left_out: list[str] = []  # what a command says that it could not do
        self.seconds = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        start = time.monotonic()
        for name, command in self._commands.items():
            if self._stopped:
                break
            self._running = subprocess.Popen(
                command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            output, _ = self._running.communicate()
            skipped = (line for line in output.splitlines() if line.startswith("Skipped: "))
            self.left_out += [line.removeprefix("Skipped: ") for line in skipped]
            if self._running.returncode:
                self._failed[name] = output or f"{name} failed and said nothing"
        self.seconds = time.monotonic() - start

    def failed(self) -> dict[str, str]:
        """Waits for the end, and returns name -> output of those that failed."""
        self._thread.join()
        return self._failed

    def stop(self) -> None:
        self._stopped = True
        if self._running is not None and self._running.poll() is None:
            self._running.terminate()


RUNNING = pytest.StashKey[Checks]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--checks", action="store_true", help="run ruff, mypy and `make scripts` beside the tests"
    )


def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    if config.getoption("checks") and not hasattr(config, "workerinput"):  # not in a worker of xdist
        since = config.getoption("since") or affected.landed()
        scripts = any(map(affected.SCRIPTS.fullmatch, affected.changed(since)))
        if scripts or config.getoption("exhaustive") or os.environ.get("CI"):
            config.stash[RUNNING] = Checks(COMMANDS)
            return
        config.stash[RUNNING] = Checks(
            {name: command for name, command in COMMANDS.items() if name != SCRIPTS}
        )
        config.stash[RUNNING].left_out.append(
            f"{SCRIPTS} (none of the browser's modules changed since {since[:8]})"
        )


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Tells failed checks like failed tests, before the summary is written."""
    if (checks := session.config.stash.get(RUNNING, None)) is None:
        return
    if exitstatus == pytest.ExitCode.INTERRUPTED:
        checks.stop()
        return
    terminal: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    for name, output in checks.failed().items():
        terminal.stats.setdefault("failed", []).append(
            pytest.TestReport(name, (name, None, name), {}, "failed", output, "call")
        )
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    if (checks := config.stash.get(RUNNING, None)) is not None:
        checks.stop()
