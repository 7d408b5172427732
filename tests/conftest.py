"""What every test shares: where data lies, and how property tests behave."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.day import WEEK, of_today  # before the workers begin, which have its day then

if TYPE_CHECKING:
    from engine.data.corpus import Corpus

ROOT = Path(__file__).resolve().parents[1]
# `make mutants` installs what it imports.
collect_ignore = [] if find_spec("cosmic_ray") else ["mutants.py"]
pytest_plugins = ["tests.affected", "tests.checks", "tests.timing"]

# Data that lies beside a development checkout is used when nothing else is said.
for _variable, _folder in (
    ("GLASSFORMER_DATA", ROOT.parent / "shared" / "data"),
    ("TIKTOKEN_CACHE_DIR", ROOT.parent / "shared" / "data" / "tiktoken"),
):
    if _folder.is_dir():
        os.environ.setdefault(_variable, str(_folder))

# The same examples every time, and no clock: a slow machine is not a failed test.
settings.register_profile("glassformer", deadline=None, derandomize=True, max_examples=60, database=None)
settings.load_profile("glassformer")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="run the tests marked `exhaustive` too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the exhaustive tier out unless --exhaustive asks for it, and then what is another day's: of the tests with
    many cases, and of those that take minutes, which name their day. Begins with the browser's: their files are long.
    """
    items.sort(key=lambda item: ROOT / "tests" / "browser" not in item.path.parents)
    marked = {item: marker for item in items if (marker := item.get_closest_marker("exhaustive"))}
    left_out = set(marked)
    if config.getoption("exhaustive"):
        cases: dict[tuple[Path, str], list[pytest.Item]] = {}
        for item in marked:
            cases.setdefault((item.path, getattr(item, "originalname", "")), []).append(item)
        many = [sorted(some, key=items.index) for some in cases.values() if len(some) > WEEK]
        left_out = {item for some in many for number, item in enumerate(some) if not of_today(number)}
        named = {item: marker.kwargs["day"] for item, marker in marked.items() if "day" in marker.kwargs}
        left_out |= {item for item, day in named.items() if not of_today(day)}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(autouse=True)
def _rooms_of_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rooms are made with the manager that first needs them: what a test sees must not hang on its turn."""
    if state := sys.modules.get("ui.session"):
        monkeypatch.setattr(state, "_ROOMS", [])


@pytest.fixture(scope="session")
def shakespeare() -> Corpus:
    """The Tiny Shakespeare corpus; its tests are skipped where the text does not lie already."""
    from engine.data import corpora

    if corpora.shakespeare_path() is None:
        pytest.skip(
            "Tiny Shakespeare is not on this machine ($GLASSFORMER_DATA names the folder that holds it)"
        )
    return corpora.load("shakespeare")
