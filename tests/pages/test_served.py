"""What the browser fetches by itself: put there once, whole, under names that hold what is in them."""

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from streamlit.file_util import get_directory_size

from ui.players import component, served


def lying(folder: Path) -> dict[str, int]:
    return {str(p.relative_to(folder)): p.stat().st_ino for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def assets(tmp_path, monkeypatch):
    """A copy of ui/assets that a test may change."""
    copy = tmp_path / "assets"
    shutil.copytree(served.ASSETS, copy)
    monkeypatch.setattr(served, "ASSETS", copy)
    found = (served.modules, served._wanted)
    for cached in found:
        cached.cache_clear()
    yield copy
    for cached in found:
        cached.cache_clear()


def test_all_is_put_there_once(tmp_path):
    folder = tmp_path / "static"
    assert served.ensure_static(folder) is None
    first = lying(folder)
    library = (folder / served.library()).stat()
    assert library.st_size > 1_000_000
    assert time.time() - library.st_mtime > 10 * 365 * 24 * 3600, (
        "a browser keeps a file for a tenth of its age"
    )
    for path in served.ASSETS.rglob("*.js"):
        copy = folder / served.modules() / path.relative_to(served.ASSETS)
        assert copy.read_bytes() == path.read_bytes()
    assert served.ensure_static(folder) is None
    assert lying(folder) == first  # nothing was written again
    assert not [name for name in first if name.endswith(".svg")]


def test_two_servers_may_begin_at_once(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: served.ensure_static(tmp_path / "static"), range(8))) == {None}
    assert set(lying(tmp_path / "static")) == set(served._wanted())  # and nothing of theirs is left over
    assert [path.name for path in tmp_path.iterdir()] == ["static"]


def test_a_server_may_begin_while_another_one_copies(tmp_path, monkeypatch):
    seen, copy = [], shutil.copyfile

    def watched(source, target):
        copy(source, target)
        seen.extend(os.listdir(path) for path, _, _ in os.walk(tmp_path / "static"))

    monkeypatch.setattr(served.shutil, "copyfile", watched)
    assert served.ensure_static(tmp_path / "static") is None
    assert len(seen) > 10
    there = {part for name in served._wanted() for part in Path(name).parts}
    assert {name for names in seen for name in names} <= there  # nothing that will have another name
    assert get_directory_size(str(tmp_path / "static")) > 1_000_000


def test_other_content_has_another_address(tmp_path, assets):
    before = served.modules()
    served.ensure_static(tmp_path / "static")
    with (assets / "clock.css").open("a") as style:
        style.write("/* another */")
    served.modules.cache_clear(), served._wanted.cache_clear()
    assert served.modules() != before and served.modules() in component.script("clock", ("clock",))
    served.ensure_static(tmp_path / "static")
    # A page that is still open goes on fetching what it knows of.
    there = {path.name for path in (tmp_path / "static").iterdir()}
    assert there == {before, served.modules(), served.library()}


def test_what_an_older_version_left_goes_after_a_day(tmp_path, monkeypatch):
    old = [tmp_path / "assets-0123456789ab", tmp_path / "plotly-0123456789ab.min.js", tmp_path / "mine.txt"]
    old[0].mkdir()
    (old[0] / "load.js").write_text("")
    for path in old[1:]:
        path.write_text("")
    monkeypatch.setattr(served, "KEPT_SECONDS", -60)
    assert served.ensure_static(tmp_path) is None
    assert [path.exists() for path in old] == [False, False, True]


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    problem = served.ensure_static(tmp_path / "file")
    assert problem is not None and problem.startswith("Figures cannot be drawn") and "writable" in problem

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(served.shutil, "copyfile", full)
    assert "No space left" in str(served.ensure_static(tmp_path / "full"))
    assert lying(tmp_path / "full") == {}
