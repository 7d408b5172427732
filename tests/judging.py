"""Which of the engine's tests notice a changed module: each verdict is pytest in a fork that imports the change.

A test file is run once as it is, to learn which functions each of its tests reaches, how long it takes and that it passes. A
mutant meets the nearest files first (by what they import and what they are called), in each the tests that reach its function
before the others, up to a limit of processor time. Tests that start processes are left out: those import the file on disk.
"""

import ast
import builtins
import importlib.abc
import importlib.machinery
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = "tests/engine"
FAR_ONES = [
    "subprocess",
    "multiprocessing",
    "ray",
    "engine.service",
    "tests.engine.running",
]  # they start processes
SPEND = 120.0  # seconds of processor time, as it is, that one mutant's tests may take
TEST_LIMIT = 20.0  # a test that takes longer judges no mutant
FILES = 12  # that reach the function
LOOKED_AT = 30  # to find them
LEARN_LIMIT = 60  # processor seconds to learn a file
OPTIONS = [
    "-q",
    "--doctest-modules",
    "--assert=plain",  # to rewrite asserts, pytest would import the files that it is given itself, unchanged
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-o",
    "addopts=--strict-markers",
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
    reaches: frozenset[str]


class _Loader(importlib.machinery.SourceFileLoader):
    """Imports a module with the code that `compiled` makes of its file."""

    def __init__(self, name: str, path: str, compiled: Callable[[str], CodeType | None]) -> None:
        super().__init__(name, path)
        self.compiled = compiled

    def get_code(self, fullname: str) -> CodeType | None:
        return self.compiled(self.path) or super().get_code(fullname)


class Importing(importlib.abc.MetaPathFinder):
    def __init__(self, compiled: Callable[[str], CodeType | None]) -> None:
        self.compiled = compiled

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname.split(".")[0] != "engine":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec and spec.origin and spec.origin.endswith(".py"):
            spec.loader = _Loader(fullname, spec.origin, self.compiled)
        return spec


class _Reporting(ast.NodeTransformer):
    """Lets each function say that it is entered."""

    def __init__(self, file: str) -> None:
        self.file, self.name = file, ""

    def _inside(self, node: Any) -> Any:
        before, self.name = self.name, f"{self.name}.{node.name}".lstrip(".")
        self.generic_visit(node)
        if not isinstance(node, ast.ClassDef):
            call = ast.parse(f"__reached__({self.file + ':' + self.name!r})").body[0]
            first = bool(ast.get_docstring(node))
            node.body.insert(first, ast.copy_location(call, node.body[0]))
            for part in ast.walk(call):
                ast.copy_location(part, node.body[-1])
        self.name = before
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _inside


class _Learning:
    def __init__(self, out: Path) -> None:
        self.out, self.reached, self.passed, self.start = out, set[str](), True, 0.0
        builtins.__reached__ = self.reached.add  # type: ignore[attr-defined]

    def pytest_runtest_logstart(self) -> None:
        self.passed, self.start = True, time.process_time()
        self.reached.clear()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed &= report.passed

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self.passed:
            row = [nodeid, round(time.process_time() - self.start, 3), sorted(self.reached)]
            with self.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")


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


def _name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _modules() -> dict[str, Path]:
    return {_name(file): file for part in ("engine", TESTS) for file in (ROOT / part).rglob("*.py")}


@cache
def imports(module: str) -> frozenset[str]:
    found = set()
    for node in ast.walk(ast.parse(_modules()[module].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


@cache
def distances(module: str) -> dict[str, int]:
    """How many imports away the modules are that one leads to."""
    away, queue = {module: 0}, deque([module])
    while queue:
        here = queue.popleft()
        for other in sorted(imports(here) & _modules().keys()):
            if other not in away:
                away[other] = away[here] + 1
                queue.append(other)
    return away


@cache
def judges() -> tuple[str, ...]:
    found = (name for name in _modules() if name.rpartition(".")[2].startswith("test_"))
    return tuple(
        n
        for n in found
        if not any(i == far or i.startswith(far + ".") for i in imports(n) for far in FAR_ONES)
    )


@cache
def nearest(file: str, where: str = "") -> tuple[str, ...]:
    """Test files that lead to a function in a file of the engine, the most promising first."""
    module = _name(ROOT / file)
    words = set(Path(file).stem.split("_"))

    def far(test: str) -> tuple[int, int, str]:
        shared = words & set(test.rpartition(".")[2].split("_"))
        return distances(test)[module], -len(shared), test

    found = sorted((test for test in judges() if module in distances(test)), key=far)
    named = [test for test in found if words <= set(test.rpartition(".")[2].split("_"))]
    called = re.compile(rf"\b{where.rpartition('.')[2]}\b") if where else None
    asking = [test for test in found if called and called.search(_modules()[test].read_text("utf-8"))]
    order = dict.fromkeys([*named, *asking, *found])
    own = [file] if ">>> " in (ROOT / file).read_text("utf-8") else []  # its doctests
    return (*own, *(_modules()[test].relative_to(ROOT).as_posix() for test in order))


class Judge:
    """Gives verdicts; what it has learnt about the tests it keeps while it lives, and in `memory` if that is named."""

    def __init__(self, memory: str | None = os.environ.get("MUTANTS_MEMORY")) -> None:
        import torch

        torch.set_num_threads(1)
        self.memory = Path(memory) if memory else Path(tempfile.mkdtemp())
        self.memory.mkdir(parents=True, exist_ok=True)

    def verdict(self, file: str, where: str, text: str) -> Verdict:
        """Of the tests on a file of the engine whose text has become `text`, in function `where`."""
        code = compile(text, str(ROOT / file), "exec", dont_inherit=True)
        spent, asked, used, met = 0.0, 0, 0.0, 0
        for test_file in nearest(file, where)[:LOOKED_AT]:
            learnt = self._learnt(test_file)
            spot = f"{file}:{where}"
            near = [one for one in learnt if spot in one.reaches or not where]
            if not near:
                continue
            met += 1
            turn = sorted(learnt, key=lambda one: (one not in near, one.seconds))
            tests, wanted = [], 0.0
            for one in turn:
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

    def _learnt(self, test_file: str) -> list[Learnt]:
        kept = self.memory / (test_file.replace("/", ".") + ".jsonl")
        if not kept.exists():
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "learnt"
                out.touch()

                def reporting(path: str) -> CodeType:
                    file = Path(path).relative_to(ROOT).as_posix()
                    tree = _Reporting(file).visit(ast.parse(Path(path).read_text("utf-8")))
                    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)

                self._forked(
                    lambda: pytest.main([*OPTIONS, test_file], plugins=[_Learning(out)]),
                    reporting,
                    LEARN_LIMIT,
                )
                kept.write_text(out.read_text("utf-8"), "utf-8")
        rows = map(json.loads, kept.read_text("utf-8").splitlines())
        return [Learnt(test, seconds, frozenset(reaches)) for test, seconds, reaches in rows]

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
        """Runs in a child that imports the engine through `compiled`; its exit status, as wait gives it."""
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
                for name in [name for name in sys.modules if name.partition(".")[0] in ("engine", "tests")]:
                    del sys.modules[name]  # whoever imported it before saw the text of the disk
                sys.dont_write_bytecode = True
                sys.meta_path.insert(0, Importing(compiled))
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
