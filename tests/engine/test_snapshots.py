"""The managers' folders, and what is kept within a budget."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.service.snapshots import MAX_SNAPSHOTS, Store, clear_partial, thinned
from engine.service.transport import ROOT


@given(
    st.dictionaries(st.integers(0, 10_000), st.integers(1, 100), min_size=1, max_size=300),
    st.integers(0, 5000),
)
def test_thinning_keeps_the_newest_and_if_it_can_the_first(sizes: dict[int, int], budget: int) -> None:
    kept = thinned(sizes, budget)
    assert kept == sorted(kept) and set(kept) <= set(sizes)
    assert kept[-1] == max(sizes) and len(kept) <= MAX_SNAPSHOTS
    assert sum(sizes[step] for step in kept) <= budget or kept == [max(sizes)]
    assert kept[0] == min(sizes) or len(kept) == 1
    assert thinned({step: sizes[step] for step in kept}, budget) == kept


def test_a_store_comes_and_goes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = store.make()
    (folder / "x").write_bytes(b"x")
    (folder / ".x.tmp").write_bytes(b"x")
    clear_partial(folder)
    assert [p.name for p in folder.iterdir()] == ["x"]
    store.remove(tmp_path)  # not a run's folder: untouched
    store.remove(folder)
    assert not folder.exists() and tmp_path.exists()
    store.close()
    assert list(tmp_path.iterdir()) == []


def test_only_dead_managers_are_swept(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from engine.service.snapshots import Store;"
        " Store(Path(sys.argv[1])).make(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, cwd=ROOT)
    (dead,) = tmp_path.glob("manager-*")
    first = Store(tmp_path)
    assert not dead.exists()
    run = first.make()
    second = Store(tmp_path)
    assert run.is_dir() and first.folder != second.folder
    first.close()
    assert not first.folder.exists() and second.folder.is_dir()
    second.close()
    assert list(tmp_path.iterdir()) == []


def test_many_processes_may_begin_and_end_at_once(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from engine.service.snapshots import Store
for _ in range(8):
    store = Store(Path(sys.argv[1]))
    run = store.make()
    (run / "file").write_bytes(b"mine")
    assert (run / "file").read_bytes() == b"mine"
    store.close()
    assert not store.folder.exists()
"""
    processes = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT) for _ in range(3)]
    assert [p.wait(timeout=60) for p in processes] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []


def test_the_usual_place_is_private_and_one_that_others_may_write_to_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    usual = Store()
    assert usual.parent.parent == tmp_path
    assert usual.parent.stat().st_mode & 0o077 == usual.folder.stat().st_mode & 0o077 == 0
    usual.close()
    assert list(tmp_path.iterdir()) == []
    usual.parent.mkdir()
    usual.parent.chmod(0o777)
    store = Store()
    assert store.parent != usual.parent and store.parent.parent == tmp_path
    store.close()
    assert list(usual.parent.iterdir()) == []
