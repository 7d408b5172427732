"""A pytest plugin: `--since REV` runs the tests that the changes since REV can reach, and says in a line what it leaves out;
`--today` runs a quarter of the others as well, another each day (tests/day.py).

A file reaches a test by imports, by a string that names it (a module that a process runs, a stored run, a text, a module of
the browser), by an import of the browser's modules among themselves, and a page's files by the room that the test names. What
nobody names reaches every test. `make check` asks for the first, `make test` for the second; CI and `make test-all` take all.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from tests.day import DAY, DAYS

ROOT = Path(__file__).resolve().parents[1]
TOPS = ("", "engine", "studies", "runs", "ui", "pages", "docs", "tests")  # folders that any string may name
# A change of these is one of everything, and one of those reaches no test.
SETTINGS = re.compile(r"requirements(-dev)?\.(txt|lock)|pyproject\.toml|\.streamlit/.*|tests/conftest\.py")
SCRIPTS = re.compile(
    r"ui/assets/.*\.js|pages/.*\.js|tests/js/.*|package(-lock)?\.json|tsconfig\.json|eslint\.config\.js"
)
UNREAD = re.compile(
    r"tests/js/.*|package.*|tsconfig.*|eslint.*|\.gitignore|\.github/.*|.*/mutants\.tsv|docs/[\w-]+\.md"
)
ASSETS = "ui/assets/"
MOUNTING = "ui/players/component.py"  # who imports it names modules of the browser
READS_ALL = "tests/source.py"  # what it is imported by reads the whole source
PAGES = ("tests/pages/", "tests/browser/")  # a test there that names no room is one of all rooms
# A test that imports these is one of all rooms, whatever it names.
ALL_ROOMS = re.compile(
    r"ui\.site(\.ENTRIES|\.built)?|ui\.tour\.courses\.shelf|tests\.pages\.(rooms|addresses)\..*"
)
EXAMPLES = ("tests/affected.py", "tests/test_tiers.py")  # they name files that they do not read
LEFT_OUT = "left_out"
LONGEST = 200  # characters of a string that may name something


@dataclass(frozen=True)
class Told:
    """What the text of a Python file says of others."""

    imported: frozenset[str]  # dotted names
    strings: frozenset[str]

    @classmethod
    def by(cls, path: Path) -> Told:
        imported, strings = set(), set()
        tree = ast.parse(path.read_text("utf-8"))
        # what a fixture of conftest.py imports when it is made, its tests import as well
        for node in tree.body if path.name == "conftest.py" else ast.walk(tree):
            if isinstance(node, ast.Import):
                imported |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported |= {f"{node.module}.{each.name}" for each in node.names}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < LONGEST:
                strings.add(node.value)
        return cls(frozenset(imported), frozenset(strings))


class Reach:
    """What each file of the repository needs: `names` are all of them, relative to `root`."""

    def __init__(self, names: Iterable[str], root: Path = ROOT) -> None:
        self.root, self.names = root, frozenset(names)
        self.told = {name: Told.by(root / name) for name in self.names if name.endswith(".py")}
        for name in self.told.keys() & {*EXAMPLES}:
            self.told[name] = replace(self.told[name], strings=frozenset())
        self.modules = {
            name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name for name in self.told
        }
        pages = [
            str(PurePosixPath(n).parent) for n in self.names if re.fullmatch(r"pages(/\w+){2,}/page\.py", n)
        ]
        self.rooms = {
            at: room for room in pages for at in (room.removeprefix("pages/"), room.rpartition("/")[2])
        }
        at = "|".join(map(re.escape, sorted(self.rooms, key=len, reverse=True)))
        self._room = re.compile(rf"(?:^|[/}}])({at})(?:/page\.py)?(?:$|[?/&#])")
        self._needs = {name: frozenset(self._needed(name)) - {name} for name in self.names}

    @cached_property
    def _files_named(self) -> dict[str, set[str]]:
        """The files that are no Python, by each string of the source that names them: by path, name or, in ui/assets,
        as a module; by their nearest folder where nothing else does.
        """
        said = {word for told in self.told.values() for word in told.strings}
        found = defaultdict(set)
        for name in self.names - self.told.keys():
            path = PurePosixPath(name)
            own = name.removeprefix(ASSETS).rpartition(".")[0] if name.startswith(ASSETS) else path.stem
            folders = [
                folder.name for folder in path.parents if folder.name not in TOPS and folder.name in said
            ]
            for word in {name, path.name, own} & said or set(folders[:1]):
                found[word].add(name)
        return found

    def _needed(self, name: str) -> Iterator[str]:
        """The files that one needs by itself, without what these need."""
        if name.endswith(".js"):
            text, here = (self.root / name).read_text("utf-8"), PurePosixPath(name).parent
            paths = re.findall(r"""(?:from|import)\s*\(?\s*["'](\.[^"']+)["']""", text)
            yield from {os.path.normpath(here / path).replace(os.sep, "/") for path in paths} & self.names
        elif told := self.told.get(name):
            for dotted in told.imported:
                parts = dotted.removeprefix("glassformer.").split(".")
                packages = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
                yield from (self.modules[each] for each in packages if each in self.modules)
            mounts = name == MOUNTING or any("ui.players.component" in dotted for dotted in told.imported)
            for text in told.strings:
                yield from self._named_by(text, name, mounts)

    def _named_by(self, text: str, where: str, mounts: bool) -> Iterator[str]:
        """The files that a string of a file names; modules of the browser only where they are mounted."""
        if where.startswith("tests/") or not text.startswith("pages/"):  # the menu names every page
            yield from {text} & self.told.keys()
        dotted = re.findall(r"\w+(?:\.\w+)+", text)
        yield from (self.modules[each] for each in dotted if each in self.modules)
        for file in self._files_named.get(text, ()):
            if mounts or "." in text or not file.endswith((".js", ".css")):
                yield file

    def closure(self, names: Iterable[str]) -> set[str]:
        """These files and all that they need."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            if (name := waiting.pop()) not in found:
                found.add(name)
                waiting += self._needs[name]
        return found

    def rooms_in(self, texts: Iterable[str]) -> set[str]:
        """The folders of the pages that texts name, by folder ("inside/attention") or by address ("/attention?step=3")."""
        return {self.rooms[at] for text in texts for at in self._room.findall(text)}

    def of_test(self, name: str, parameters: Iterable[str] = ()) -> set[str]:
        """All that can change a test of this file: one with such parameters, where they name a room."""
        set_up = {f"{folder}/conftest.py" for folder in PurePosixPath(name).parents} & self.names
        own = self.closure({name, *set_up})
        if READS_ALL in own:
            return set(self.names)
        if not name.startswith(PAGES):
            return own
        helpers = [
            file for file in own if file.startswith(str(PurePosixPath(name).parent)) and file not in set_up
        ]
        told = [self.told[file] for file in helpers if file in self.told]
        rooms = self.rooms_in(parameters)
        if not rooms and not any(map(ALL_ROOMS.fullmatch, self.told[name].imported)):
            rooms = self.rooms_in(text for each in told for text in each.strings)
        rooms = rooms or set(self.rooms.values())
        frame = {"app.py"} if name.startswith(PAGES[1]) else set()
        return own | self.closure(
            {file for file in self.names if file.startswith(tuple(f"{r}/" for r in rooms))} | frame
        )

    def unknown(self, changed: Iterable[str]) -> set[str]:
        """Those of these files of which nobody says whom they reach."""
        known = set().union(*self._needs.values())
        return {
            name
            for name in changed
            if name not in self.told and name not in known and not UNREAD.fullmatch(name)
        }


def git(*arguments: str) -> list[str]:
    ran = subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True)
    return ran.stdout.replace("\0", "\n").split("\n")[:-1] if ran.returncode == 0 else []


def landed() -> str:
    """The commit that this work goes out from: where it left the branch that it goes to, or else the last one."""
    found = git("merge-base", "HEAD", "@{upstream}") or git("merge-base", "HEAD", "origin/HEAD")
    return found[0] if found else "HEAD"


def changed(since: str) -> set[str]:
    """The files that differ from a commit, new ones and those that are gone among them."""
    return {
        *git("diff", "--name-only", "-z", since, "--"),
        *git("ls-files", "--others", "--exclude-standard", "-z"),
    }


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--since", metavar="REV", help="only what the changes since this commit can reach")
    parser.addoption("--today", action="store_true", help="and of the others a quarter, another each day")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    since, today = config.getoption("since"), config.getoption("today")
    if since is None and not today:
        return
    since = since or landed()
    there = changed(since)
    names = {*git("ls-files", "-z"), *there} if there else set()  # of a fresh clone nothing need be read
    reach = Reach(name for name in names if (ROOT / name).is_file())
    # what imported a file that is gone has changed, too
    if any(map(SETTINGS.fullmatch, there)) or reach.unknown(there & reach.names):
        return
    reached = cache(lambda *asked: bool(there) and not there.isdisjoint(reach.of_test(*asked)))
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for place, item in enumerate(items):
        name = item.path.relative_to(ROOT).as_posix()
        turn = today and place % DAYS == DAY % DAYS
        (kept if turn or reached(name, _words(item)) else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept
    whose = "of another day, which" if today else "which"
    told = f"{len(left_out)} of {len(items) + len(left_out)} tests {whose} no change since {since} reaches"
    getattr(config, "workeroutput", _told)[LEFT_OUT] = told


_told: dict[str, str] = {}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hears from a worker of xdist what it left out; each leaves out the same."""
    if told := getattr(node, "workeroutput", {}).get(LEFT_OUT):
        _told[LEFT_OUT] = told


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if LEFT_OUT in _told:
        terminalreporter.write_line(f"Left out: {_told[LEFT_OUT]}; make test-all takes all.")


def _words(item: pytest.Item) -> tuple[str, ...]:
    """What a test is given in which a room may be named: strings, files, and entries of the menu."""
    given = getattr(item, "callspec", None)
    values = given.params.values() if given else ()
    return tuple(str(getattr(value, "path", value)) for value in values)
