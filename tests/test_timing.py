"""The tiers of the suite, its limit for one test, and the checks that run beside it."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests import checks, timing

ROOT = Path(__file__).resolve().parents[1]


def report(spent: float, monkeypatch: pytest.MonkeyPatch, *marks: str) -> Any:
    item: Any = SimpleNamespace(
        nodeid="tests/test_a.py::test_b",
        stash={timing._started: 100.0},
        get_closest_marker=lambda name: name if name in marks else None,
    )
    hook = timing.pytest_runtest_makereport(item, cast(Any, SimpleNamespace(when="call")))
    next(hook)
    made: Any = SimpleNamespace(when="call", passed=True, outcome="passed", longrepr=None)
    # Only here: the plugin that times this very test reads the same clock.
    with monkeypatch.context() as patched, pytest.raises(StopIteration) as stopped:
        patched.setattr(timing, "cpu_seconds", lambda: 100.0 + spent)
        hook.send(made)
    return stopped.value.value


def test_fast_test_over_its_limit_of_processor_time_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert report(timing.LIMIT_SECONDS - 1, monkeypatch).outcome == "passed"
    failed = report(timing.LIMIT_SECONDS + 1, monkeypatch)
    assert failed.outcome == "failed" and "tests/test_a.py::test_b took 21 s" in failed.longrepr
    assert report(timing.LIMIT_SECONDS + 1, monkeypatch, "exhaustive").outcome == "passed"
    assert failed.user_properties == [(timing.CPU, timing.LIMIT_SECONDS + 1)]


SUITE = """
import pytest

def test_fast(): pass

@pytest.mark.exhaustive
def test_slow(): pass

@pytest.mark.skip(reason="no such machine")
def test_elsewhere(): pass
"""


def run_suite(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_suite.py").write_text(SUITE)
    told = ("-q", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *told, "-p", "tests.conftest", *arguments, str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_exhaustive_tests_run_only_when_asked_for_and_the_summary_ends_the_output(tmp_path: Path) -> None:
    fast = run_suite(tmp_path, "--install-seconds=3").stdout.splitlines()
    assert fast[-1].startswith("1 passed, 1 skipped, 1 deselected"), fast
    assert fast[-2].startswith("install 3; ") and "Left out: 1 test (no such machine)" in fast
    every = run_suite(tmp_path, "--exhaustive").stdout.splitlines()
    assert every[-1].startswith("2 passed, 1 skipped in"), every


def test_failed_check_fails_the_run_and_is_told_like_a_failed_test() -> None:
    terminal = SimpleNamespace(stats={})
    manager = SimpleNamespace(get_plugin=lambda name: terminal)
    running = checks.Checks(
        {"mypy": ["sh", "-c", "echo a.py:3: error; exit 1"], "npm": ["echo", "Skipped: tsc"]}
    )
    session: Any = SimpleNamespace(
        config=SimpleNamespace(stash={checks.RUNNING: running}, pluginmanager=manager), exitstatus=0
    )
    checks.pytest_sessionfinish(session, 0)
    assert session.exitstatus == 1 and running.left_out == ["tsc"]
    (failed,) = terminal.stats["failed"]
    assert failed.nodeid == "mypy" and failed.longrepr == "a.py:3: error\n"
