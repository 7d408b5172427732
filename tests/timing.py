"""A pytest plugin: seconds for each group of tests, the slowest files, and a limit for a test of the fast tier.

`tests/conftest.py` loads it. Times travel from xdist's workers in each report's `user_properties`.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterator

import pytest

LIMIT_SECONDS = 20  # of processor time, for one test of the fast tier
SLOWEST = 10  # files named in the summary
CPU = "cpu_seconds"
_started = pytest.StashKey[float]()


def cpu_seconds() -> float:
    """Returns the processor time of this process and of its finished children, in seconds."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Iterator[None]:  # yields once, returns the report
    """Adds the processor time of the phase, and fails a test whose call exceeds the limit of its tier."""
    report = yield
    now = cpu_seconds()
    spent = now - item.stash.get(_started, now)
    item.stash[_started] = now
    report.user_properties = [(CPU, spent)]
    if call.when == "call" and report.passed and spent > LIMIT_SECONDS and not _is_exhaustive(item):
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid} took {spent:.0f} s of processor time; a test of the fast tier has {LIMIT_SECONDS}."
            " Make it cheaper, or mark it `exhaustive`."
        )
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_started] = cpu_seconds()


def _is_exhaustive(item: pytest.Item) -> bool:
    return item.get_closest_marker("exhaustive") is not None


def group_of(path: str) -> str:
    """
    >>> group_of("tests/browser/test_home.py"), group_of("engine/model.py"), group_of("tests/test_imports.py")
    ('browser', 'doctests', 'project')
    """
    parts = path.split("/")
    if parts[0] != "tests":
        return "doctests"
    return parts[1] if len(parts) > 2 else "project"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the seconds of each group and the slowest files: wall time of the tests, then processor time."""
    wall, cpu, tests = Counter[str](), Counter[str](), Counter[str]()
    for report in (r for reports in terminalreporter.stats.values() for r in reports):
        if not isinstance(report, pytest.TestReport):
            continue
        path = report.location[0]
        for key in (path, f":{group_of(path)}"):
            wall[key] += report.duration
            cpu[key] += dict(report.user_properties).get(CPU, 0.0)
            tests[key] += report.when == "call"
    if not wall:
        return
    groups = sorted((key for key in wall if key.startswith(":")), key=lambda key: -wall[key])
    terminalreporter.write_sep("-", "seconds of test time (of them processor)")
    terminalreporter.write_line(
        "; ".join(f"{key[1:]} {wall[key]:.0f} ({cpu[key]:.0f}), {tests[key]} tests" for key in groups)
    )
    for key in sorted((key for key in wall if not key.startswith(":")), key=lambda key: -wall[key])[:SLOWEST]:
        terminalreporter.write_line(f"{wall[key]:7.1f} ({cpu[key]:.1f}) {key}, {tests[key]} tests")
