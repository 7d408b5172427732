"""The list of mutants fits the code: each can still be applied, and names tests that are there."""

from __future__ import annotations

import pytest

from tests.mutants import Mutant, applied, fault_of, mutants


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.what)
def test_each_can_be_applied(mutant: Mutant) -> None:
    assert fault_of(mutant) is None
    assert mutant.old != mutant.new and mutant.tests


def test_a_mutant_is_taken_back(tmp_path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    mutant = Mutant("one becomes two", "a.py", "1", "2", ())
    with applied(mutant, tmp_path):
        assert (tmp_path / "a.py").read_text() == "x = 2\n"
    assert (tmp_path / "a.py").read_text() == "x = 1\n"
    assert fault_of(mutant, tmp_path) is None
    assert fault_of(Mutant("gone", "a.py", "7", "8", ()), tmp_path) == "its text occurs 0 times in a.py"
