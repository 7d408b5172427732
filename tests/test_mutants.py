"""The mutation tester changes what it says it changes, and asks the tests that reach it."""

import pytest

from tests.judging import ROOT, Judge, nearest

pytest.importorskip("cosmic_ray", reason="cosmic-ray is not installed (requirements-mutants.txt)")
from tests.mutants import Mutant, effective, located, mutated, places, store, stored

FILE = "engine/ledger/sizes.py"


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("def f(x: int | None): return x", "def f(x: int + None): return x", True),
        ("@cache\ndef f(): return 1", "def f(): return 1", True),
        ("x = 1", "x = 2", False),
        ("def f(x=1): return x", "def f(x=2): return x", False),
    ],
)
def test_a_change_without_effect_is_told_from_one_with(before: str, after: str, same: bool) -> None:
    assert (effective(before) == effective(after)) is same


def test_a_stored_sample_is_found_again(tmp_path) -> None:
    found = [place for place in places(FILE) if mutated(place)][:3]
    store(tmp_path / "sample.tsv", found)
    wanted = stored(tmp_path / "sample.tsv")
    assert list(located(wanted)) == [(place.mutant, place) for place in found]
    gone = Mutant(FILE, "NumberReplacer", "nowhere", "return 7", 0)
    assert list(located([gone])) == [(gone, None)]


def test_the_tests_nearest_to_a_file_come_first() -> None:
    file = "engine/measure/positions/rope.py"
    assert nearest(file)[:2] == (file, "tests/engine/test_rope.py")  # its own doctests first


@pytest.mark.exhaustive
def test_a_wrong_module_is_noticed_and_a_right_one_is_not(tmp_path) -> None:
    judge = Judge(str(tmp_path))
    file = "engine/measure/positions/rope.py"
    source = (ROOT / file).read_text("utf-8")
    assert judge.verdict(file, "", source).outcome == "survived"
    assert judge.verdict(file, "", source + "\n1 / 0\n").outcome == "killed"
    file = "engine/training/loop.py"
    later = (ROOT / file).read_text("utf-8").replace("return 0 < step <", "return 1 < step <")
    assert judge.verdict(file, "early", later).by.startswith(file), "its doctest sees it"
