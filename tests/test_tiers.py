"""What `make check` takes: a change reaches the tests that its file can change, and not those of another room. What `make test`
leaves to `make test-all`, and what fails with the checks beside the tests.
"""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import affected, checks, conftest
from tests.affected import ROOT, Reach, git
from tests.day import DAY, DAYS, WEEK


@pytest.fixture(scope="module")
def reach() -> Reach:
    return Reach(name for name in git("ls-files", "-z") if (ROOT / name).is_file())


@pytest.mark.parametrize(
    ("changed", "test", "reached"),
    [
        ("engine/parts/attention.py", "tests/studies/test_attention.py", True),
        ("engine/parts/attention.py", "tests/pages/inside/test_residual.py", True),
        ("engine/parts/attention.py", "tests/browser/test_every_view.py", True),
        ("pages/inside/circuits/page.py", "tests/pages/inside/test_circuits.py", True),
        ("pages/inside/circuits/page.py", "tests/pages/inside/test_residual.py", False),
        ("pages/inside/circuits/page.py", "tests/browser/test_bpe.py", False),
        ("pages/inside/circuits/page.py", "tests/browser/test_every_view.py", True),
        (
            "pages/inside/circuits/page.py",
            "tests/pages/start/test_courses.py",
            True,
        ),  # a course leads everywhere
        ("checkpoints/ladder.json", "tests/pages/lab/test_ladder.py", True),
        ("checkpoints/ladder.json", "tests/engine/test_rope.py", False),
        ("scenes/01-ten-minutes.yaml", "tests/pages/start/test_courses.py", True),
        ("pages/input/tokens/bpe.js", "tests/browser/test_bpe.py", True),
        ("pages/input/tokens/bpe.js", "tests/browser/test_train.py", False),
        ("ui/assets/shared/play.js", "tests/browser/test_bpe.py", True),  # bpe.js imports it
        ("runs/worker.py", "tests/runs/test_runs.py", True),  # a process runs it by name
        ("docs/python.md", "tests/test_python_page.py", True),
        ("README.md", "tests/engine/test_rope.py", False),
        ("tests/engine/toys.py", "tests/studies/test_attention.py", True),
        ("ui/site.py", "tests/test_source.py", True),  # it reads the whole source
    ],
)
def test_a_change_reaches_the_tests_that_its_file_can_change(
    reach: Reach, changed: str, test: str, reached: bool
) -> None:
    assert (changed in reach.of_test(test)) == reached


def test_a_test_of_one_room_is_not_one_of_the_others(reach: Reach) -> None:
    sweep = "tests/browser/test_every_view.py"
    assert "pages/input/tokens/page.py" in reach.of_test(sweep)
    assert "pages/input/tokens/page.py" not in reach.of_test(sweep, ("pages/inside/circuits/page.py",))


def test_what_nobody_names_is_told(reach: Reach, tmp_path: Path) -> None:
    (tmp_path / "weights.bin").touch()
    (tmp_path / "reader.py").write_text('FILE = "known.bin"')
    small = Reach(["weights.bin", "known.bin", "reader.py"], tmp_path)
    assert small.unknown(["weights.bin", "known.bin", "reader.py"]) == {"weights.bin"}
    assert not reach.unknown(["checkpoints/ladder.json", "scenes/01-ten-minutes.yaml", "ui/assets/app.css"])


def test_in_four_days_all_have_had_their_turn_and_what_a_change_reaches_has_it_daily(
    reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = ["tests/browser/test_bpe.py", "tests/pages/input/test_tokens.py", "tests/engine/test_rope.py"]
    names = ["tests/pages/inside/test_circuits.py", *others * 4]
    given: dict[str, Any] = {"since": None, "today": True}
    left_out: list[Any] = []
    config: Any = SimpleNamespace(
        getoption=given.get,
        hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)),
        workeroutput={},
    )
    monkeypatch.setattr(affected, "Reach", lambda names: reach)
    monkeypatch.setattr(affected, "changed", lambda since: {"pages/inside/circuits/patching.py"})
    taken: list[set[int]] = []
    for day in range(DAY, DAY + DAYS):
        monkeypatch.setattr(affected, "DAY", day)
        items: list[Any] = [SimpleNamespace(path=ROOT / name, number=n) for n, name in enumerate(names)]
        affected.pytest_collection_modifyitems(config, items)
        taken.append({item.number for item in items})
        assert len(items) - (items[0].number == 0) == 3, "of twelve that no change reaches, three"
    assert set.union(*taken) == set(range(len(names))) and set.intersection(*taken) == {0}
    assert len(left_out) == 9 * DAYS and config.workeroutput["left_out"].startswith(
        "9 of 13 tests of another"
    )


SUITE = """
import pytest

def test_fast(): pass

@pytest.mark.exhaustive
def test_slow(): pass

@pytest.mark.skip(reason="no such machine")
def test_elsewhere(): pass
"""


def test_exhaustive_tests_run_when_asked_for_and_what_is_left_out_is_told(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    told = ("-q", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *told, "-p", "tests.conftest", str(tmp_path)]
    fast, every = (
        subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
        for more in (["--install-seconds=3"], ["--exhaustive"])
    )
    assert fast[-1].startswith("1 passed, 1 skipped, 1 deselected"), fast
    assert fast[-2].startswith("install 3; ") and "Left out: 1 test (no such machine)" in fast
    assert every[-1].startswith("2 passed, 1 skipped in"), every


def test_a_failed_check_fails_the_run_and_is_told_like_a_failed_test() -> None:
    terminal = SimpleNamespace(stats={})
    manager = SimpleNamespace(get_plugin=lambda name: terminal)
    commands = {"mypy": ["sh", "-c", "echo a.py:3: error; exit 1"], "npm": ["echo", "Skipped: tsc"]}
    running = checks.Checks(commands)
    session: Any = SimpleNamespace(
        config=SimpleNamespace(stash={checks.RUNNING: running}, pluginmanager=manager), exitstatus=0
    )
    checks.pytest_sessionfinish(session, 0)
    assert session.exitstatus == 1 and running.left_out == ["tsc"]
    (failed,) = terminal.stats["failed"]
    assert failed.nodeid == "mypy" and failed.longrepr == "a.py:3: error\n"


def test_a_week_takes_every_case_and_each_day_a_seventh_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    class Item:
        path = ROOT / "tests" / "test_a.py"

        def __init__(self, name: str, marked: bool = True, **when: int) -> None:
            marker = SimpleNamespace(kwargs=when) if marked else None
            self.originalname, self.get_closest_marker = name, lambda _: marker

    items: list[Any] = [Item("many") for _ in range(WEEK + 1)] + [Item("few") for _ in range(WEEK)]
    items += [Item("fast", marked=False) for _ in range(WEEK + 1)]
    items += [Item("long", day=3), Item("longer", day=5)]
    hook = SimpleNamespace(pytest_deselected=lambda items: None)
    config: Any = SimpleNamespace(hook=hook, getoption=lambda name: name == "exhaustive")

    def taken(day: int, whole: bool = False) -> list[Any]:
        monkeypatch.setattr("tests.day.DAY", day)
        monkeypatch.setattr("tests.day.WHOLE", whole)
        conftest.pytest_collection_modifyitems(config, found := items.copy())
        return found

    days = [taken(day) for day in range(DAY, DAY + WEEK)]
    assert {id(each) for found in days for each in found} == set(map(id, items))
    assert sum(map(len, days)) == (2 * WEEK + 2) * WEEK + 1 + 2
    assert [len(found) for found in days].count(2 * WEEK + 2) >= WEEK - 3
    assert taken(DAY, whole=True) == items
