"""Which tests notice a changed module: each verdict is pytest in a fork that imports the change, so no file is touched.

A test file is run once as it is, to learn which functions each of its tests reaches, how long it takes and that it passes. A
mutant meets the likeliest file first (one that names its module or function), the tests that reach its function before the
others; then those that reach it in further files, up to a limit of processor time. Tests that start processes are left out: those import the file on disk.

cosmic-ray's own runner (`cosmic-ray exec`) is not used: it writes each mutant over the file on disk, runs one command for all of
them, the whole suite each time, as it knows nothing of what a test reaches, and numbers mutants by their place in the file, so
that no sample outlives an edit.
"""

from __future__ import annotations

import ast
import builtins
import compileall
import importlib.machinery
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = ("engine", "studies", "runs", "ui", "pages")  # whose modules can be changed
# The tests that judge a module, by its top folder; and what marks those among them that start processes
JUDGES = {
    "engine": ("tests/engine", "tests/studies"),
    "studies": ("tests/studies", "tests/engine"),
    "runs": ("tests/runs", "tests/engine"),
    "ui": ("tests/pages", "tests/ui"),
    "pages": ("tests/pages", "tests/ui"),
}
# the modules of runs/ that start processes or talk to them; its others only reckon and hold
_LIVE = (
    "bpe_process|cluster|manager|measure_worker|measuring|processes|scheduler|service|shared|transport|worker"
)
_RUNS = rf"runs\.(?:{_LIVE})|runs import [^\n]*\b(?:{_LIVE})|tests\.runs\.(?:nursery|running)"
PROCESSES = rf"subprocess|multiprocessing|ray|{_RUNS}"
STARTERS = {
    "tests/engine": PROCESSES,
    "tests/studies": PROCESSES,
    "tests/runs": PROCESSES,
    "tests/pages": r"subprocess|multiprocessing|tests\.browser",
    "tests/ui": r"subprocess|multiprocessing|tests\.browser",
}
MEMORY = ROOT / ".pytest_cache" / "mutants"  # what was learnt, until a file that it is about changes
SPEND = 60.0  # seconds of processor time, as it is, that one mutant's tests may take
TEST_LIMIT = 20.0  # a test that takes longer judges no mutant
FILES = 12  # that reach the function
LEARN_LIMIT = 120  # processor seconds to learn a file
OPTIONS = [
    "-q",
    "--doctest-modules",
    "--assert=plain",  # to rewrite asserts, pytest would import the files that it is given itself, unchanged
    *("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:tests.timing"),
    *("-o", "addopts=--strict-markers"),
]
IMPORTED = [  # once, and not in each fork
    *("torch", "streamlit.testing.v1", "plotly.graph_objects", "pandas", "hypothesis", "safetensors.torch"),
    *("tiktoken", "tokenizers"),
]
WALL = 900  # seconds, for what waits without computing


@dataclass(frozen=True)
class Verdict:
    outcome: str  # killed, survived, or uncovered where no test reaches the function
    by: str  # the test that failed, or what else ended it
    tests: int  # that were run against it, at most
    seconds: float  # of processor time


@dataclass(frozen=True)
class Learnt:
    test: str
    seconds: float
    reaches: frozenset[str]  # "file:function" of what it enters, "file:" of what is imported by then


def _import_through(compiled: Callable[[str], CodeType | None]) -> None:
    """Lets this process import our modules with the code that `compiled` makes of a file, where it makes any."""
    loader = importlib.machinery.SourceFileLoader
    as_it_is, folders = loader.get_code, tuple(f"{ROOT}/{top}/" for top in OURS)

    def get_code(self: Any, fullname: str) -> CodeType | None:
        ours = self.path.startswith(folders)
        return (compiled(self.path) if ours else None) or as_it_is(self, fullname)

    loader.get_code = get_code  # type: ignore[method-assign]
    for name in [name for name in sys.modules if name.partition(".")[0] in (*OURS, "tests")]:
        del sys.modules[name]  # whoever imported it before saw the text of the disk
    sys.dont_write_bytecode = True


class _Reporting(ast.NodeTransformer):
    """Lets a module say that it is imported, and each of its functions that it is entered."""

    def __init__(self, file: str) -> None:
        self.file, self.name = file, ""

    def _inside(self, node: Any) -> Any:
        before, self.name = self.name, f"{self.name}.{getattr(node, 'name', '')}".strip(".")
        self.generic_visit(node)
        if not isinstance(node, ast.ClassDef) and node.body:
            call = ast.parse(f"__reached__({self.file + ':' + self.name!r})").body[0]
            first = int(ast.get_docstring(node) is not None)
            first += sum(
                isinstance(each, ast.ImportFrom) and each.module == "__future__" for each in node.body
            )
            for part in ast.walk(call):
                ast.copy_location(part, node.body[-1])
            node.body.insert(first, call)
        self.name = before
        return node

    visit_Module = visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _inside


def _reporting(path: str) -> CodeType:
    tree = _Reporting(Path(path).relative_to(ROOT).as_posix()).visit(ast.parse(Path(path).read_text("utf-8")))
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class _Learning:
    def __init__(self, out: Path) -> None:
        self.out, self.reached, self.imported = out, set[str](), set[str]()
        self.passed, self.start = True, 0.0
        builtins.__reached__ = self._reach  # type: ignore[attr-defined]

    def _reach(self, spot: str) -> None:
        on_import = spot.endswith(":") or not self.start  # before the first test: all of them meet it
        (self.imported if on_import else self.reached).add(spot)

    def pytest_runtest_logstart(self) -> None:
        self.passed, self.start = True, time.process_time()
        self.reached.clear()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed &= report.passed

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self.passed:
            took = round(time.process_time() - self.start, 3)
            with self.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps([nodeid, took, sorted(self.reached | self.imported)]) + "\n")


class _Judging:
    def __init__(self, out: Path, tests: Sequence[str]) -> None:
        self.out, self.turn = out, {test: turn for turn, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (i for i in items if i.nodeid in self.turn), key=lambda item: self.turn[item.nodeid]
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.out.write_text(report.nodeid, "utf-8")


@cache
def judges(top: str) -> dict[str, str]:
    """Returns test file -> text, of those that judge modules of a top folder; not the one that would end by its
    time limit, which is no kill.
    """
    return {
        path.relative_to(ROOT).as_posix(): text
        for folder in JUDGES[top]
        for path in sorted((ROOT / folder).rglob("test_*.py"))
        if path.name != "test_fuzz.py"
        and not re.search(
            rf"^\s*(?:from|import) (?:{STARTERS[folder]})\b", text := path.read_text("utf-8"), re.M
        )
    }


def likeliest(file: str, where: str = "") -> list[str]:
    """Returns the test files that may reach a function of a file, the most promising first.

    >>> likeliest("studies/positions/rope.py")[:2]
    ['studies/positions/rope.py', 'tests/engine/test_rope.py']
    >>> likeliest("pages/inside/residual/wirings.py")[0]
    'tests/pages/inside/test_residual.py'
    """
    parts = Path(file).with_suffix("").parts
    module, package = re.escape(".".join(parts)), re.escape(".".join(parts[:-1]))
    imported = re.compile(rf"\b{module}\b|\bfrom {package} import [^\n]*\b{parts[-1]}\b")
    room = f'"{"/".join(parts[1:3])}"'  # as tests/pages/helpers.py opens it
    called = re.compile(rf"\b{where.rpartition('.')[2]}\b")
    words = {word for part in parts[1:] for word in part.split("_")}

    def unlikely(test: str) -> tuple[int, int, str]:
        text, name = judges(parts[0])[test], set(re.split(r"[/_.]", test))
        named = set(parts[-1].split("_")) <= name or parts[-2] in name
        signs = (named, bool(imported.search(text)), room in text, bool(where and called.search(text)))
        return -sum(signs), -len(words & name), test

    own = [file] if ">>> " in (ROOT / file).read_text("utf-8") else []  # its doctests
    return own + sorted(judges(parts[0]), key=unlikely)


class Judge:
    """Gives verdicts; what it learns about the tests it keeps in `memory`."""

    def __init__(self, memory: Path = MEMORY) -> None:
        for name in IMPORTED:
            importlib.import_module(name)
        sys.modules["torch"].set_num_threads(1)
        for top in (*OURS, "tests"):
            compileall.compile_dir(ROOT / top, quiet=2)
        self.memory, self.known = memory, dict[str, list[Learnt]]()
        memory.mkdir(parents=True, exist_ok=True)

    def verdict(self, file: str, where: str, text: str, killer: str = "") -> Verdict:
        """Judges a file whose text has become `text` in function `where`, by the test `killer` first if it is still there."""
        code = compile(text, str(ROOT / file), "exec", dont_inherit=True)
        spent, asked, used, met = 0.0, 0, 0.0, 0
        if "::" in killer and (ROOT / killer.partition("::")[0]).exists():
            by, used = self._failing(killer.partition("::")[0], file, code, [killer], TEST_LIMIT)
            if by == killer:
                return Verdict("killed", by, 1, round(used, 1))
        for test_file in likeliest(file, where):
            learnt = self.learnt(test_file)
            near = [one for one in learnt if f"{file}:{where}" in one.reaches]
            if not near:
                continue
            met += 1
            tests, wanted = [], 0.0
            asks = learnt if met == 1 else near  # in the likeliest, some read what another has opened
            for one in sorted(asks, key=lambda one: (one not in near, one.seconds)):
                if one.seconds < TEST_LIMIT and spent + wanted + one.seconds <= SPEND:
                    wanted += one.seconds
                    tests.append(one.test)
            by, took = self._failing(test_file, file, code, tests, wanted) if tests else ("", 0.0)
            spent, asked, used = spent + wanted, asked + len(tests), used + took
            if by:
                return Verdict("killed", by, asked, round(used, 1))
            if met == FILES or spent >= SPEND:
                break
        return Verdict("survived" if met else "uncovered", "", asked, round(used, 1))

    def learnt(self, test_file: str) -> list[Learnt]:
        if test_file not in self.known:
            kept = self.memory / (test_file.replace("/", ".") + ".jsonl")
            if not kept.exists() or not self._current(kept.read_text("utf-8"), test_file):
                kept.write_text(self._learn(test_file), "utf-8")
            rows = map(json.loads, kept.read_text("utf-8").splitlines()[1:])
            self.known[test_file] = [Learnt(test, took, frozenset(reaches)) for test, took, reaches in rows]
        return self.known[test_file]

    @staticmethod
    def _current(rows: str, test_file: str) -> bool:
        digests = json.loads(rows.splitlines()[0])
        return bool(digests == _digests([test_file, *digests]))

    def _learn(self, test_file: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "learnt"
            out.touch()
            run = [*OPTIONS, test_file]
            self._forked(lambda: pytest.main(run, plugins=[_Learning(out)]), _reporting, LEARN_LIMIT)
            rows = out.read_text("utf-8")
        last = json.loads(rows.splitlines()[-1])[2] if rows else []
        imported = [spot.removesuffix(":") for spot in last if spot.endswith(":")]
        return json.dumps(_digests([test_file, *imported])) + "\n" + rows

    def _failing(
        self, test_file: str, file: str, code: CodeType, tests: list[str], wanted: float
    ) -> tuple[str, float]:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "failed"
            path = str(ROOT / file)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            status = self._forked(
                lambda: pytest.main([*OPTIONS, "-x", test_file], plugins=[_Judging(out, tests)]),
                lambda other: code if other == path else None,
                int(10 + 4 * wanted),
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            if os.WIFSIGNALED(status):
                return f"time limit in {test_file}", took
            code_ = os.waitstatus_to_exitcode(status)
            if code_ in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                return "", took
            return (out.read_text("utf-8") if out.exists() else f"collecting {test_file}"), took

    @staticmethod
    def _forked(run: Callable[[], int], compiled: Callable[[str], CodeType | None], seconds: int) -> int:
        """Runs in a child that imports our modules through `compiled`; its exit status, as wait gives it."""
        sys.stdout.flush()
        child = os.fork()
        if not child:
            status = 70
            with suppress(BaseException):
                os.setsid()
                quiet = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(quiet, stream)
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
                os.chdir(ROOT)
                _import_through(compiled)
                status = int(run())
            os._exit(status)
        end = time.monotonic() + WALL
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return status
            time.sleep(0.05)
        os.killpg(child, signal.SIGKILL)
        return os.waitpid(child, 0)[1]


def _digests(files: Sequence[str]) -> dict[str, str]:
    return {
        name: sha256((ROOT / name).read_bytes()).hexdigest() if (ROOT / name).exists() else ""
        for name in files
    }
