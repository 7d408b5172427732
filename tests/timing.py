"""A pytest plugin: seconds for each group of tests, the slowest files, and a limit for a test of the fast tier.

`tests/conftest.py` loads it. Times travel from xdist's workers in each report's `user_properties`.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator

import pytest

from tests.checks import COMMANDS, RUNNING

try:
    import resource
except ModuleNotFoundError:  # Windows
    resource = None  # type: ignore[assignment]

LIMIT_SECONDS = 20  # of processor time, for one test of the fast tier
SLOWEST = 10  # files named in the summary
CPU = "cpu_seconds"
_started = pytest.StashKey[float]()


def cpu_seconds() -> float:
    """Returns the processor time of this process and of its finished children, in seconds."""
    if resource is None:
        return time.process_time()
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the processor time of the phase, and fails a test whose call exceeds the limit of its tier."""
    report = yield
    now = cpu_seconds()
    spent = now - item.stash.get(_started, now)
    item.stash[_started] = now
    report.user_properties = [(CPU, spent)]
    exhaustive = item.get_closest_marker("exhaustive") is not None
    if call.when == "call" and report.passed and (words := excess(spent, exhaustive)):
        report.outcome, report.longrepr = "failed", f"{item.nodeid} {words}"
    return report


def excess(spent: float, exhaustive: bool) -> str:
    """Says by how much a test exceeds its limit, and what to do.

    >>> excess(21, exhaustive=False).partition(".")[0]
    'took 21 s of processor time; a test of the fast tier has 20'
    >>> excess(19, exhaustive=False) + excess(300, exhaustive=True)
    ''
    """
    if exhaustive or spent <= LIMIT_SECONDS:
        return ""
    return (
        f"took {spent:.0f} s of processor time; a test of the fast tier has {LIMIT_SECONDS}."
        " Make it cheaper, or mark it `exhaustive`."
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_started] = cpu_seconds()


def group_of(path: str) -> str:
    """
    >>> group_of("tests/browser/test_home.py"), group_of("engine/model.py"), group_of("tests/test_source.py")
    ('browser', 'doctests', 'project')
    """
    parts = path.split("/")
    if parts[0] != "tests":
        return "doctests"
    return parts[1] if len(parts) > 2 else "project"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--install-seconds", type=float, metavar="S", help="name them in the summary")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Prints, below everything but pytest's own last line: what was left out, the slowest files, seconds by group."""
    yield
    config = terminalreporter.config
    checks = config.stash.get(RUNNING, None)
    reports = [
        report
        for each in terminalreporter.stats.values()
        for report in each
        if isinstance(report, pytest.TestReport) and report.nodeid not in COMMANDS
    ]
    wall: defaultdict[str, float] = defaultdict(float)
    cpu: defaultdict[str, float] = defaultdict(float)
    tests: Counter[str] = Counter()
    for report in reports:
        path = report.location[0]
        for key in (path, f":{group_of(path)}"):
            wall[key] += report.duration
            cpu[key] += sum(
                value for name, value in report.user_properties if name == CPU and isinstance(value, float)
            )
            tests[key] += report.when == "call"
    if not wall:
        return
    left_out = left_out_words([r for r in reports if r.skipped]) + (checks.left_out if checks else [])
    if left_out:
        terminalreporter.write_line("Left out: " + "; ".join(left_out))
    terminalreporter.write_sep("-", "seconds of test time (of them processor)")
    files = sorted((key for key in wall if not key.startswith(":")), key=lambda key: -wall[key])
    for key in files[:SLOWEST]:
        terminalreporter.write_line(f"{wall[key]:7.1f} ({cpu[key]:.1f}) {key}, {tests[key]} tests")
    parts = []
    if (install := config.getoption("install_seconds")) is not None:
        parts.append(f"install {install:.0f}")
    if checks:
        parts.append(f"lint {checks.seconds:.0f} (beside the tests)")
    groups = sorted((key for key in wall if key.startswith(":")), key=lambda key: -wall[key])
    parts += [f"{key[1:]} {wall[key]:.0f} ({cpu[key]:.0f}), {tests[key]} tests" for key in groups]
    terminalreporter.write_line("; ".join(parts))


def left_out_words(skipped: list[pytest.TestReport]) -> list[str]:
    """Returns, for each reason, how many tests were skipped for it."""
    reasons: Counter[str] = Counter()
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    return [f"{n} test{'s' * (n > 1)} ({reason})" for reason, n in reasons.most_common()]
