"""Does a test turn red when a number on a screen is wrong? Breaks one line at a time and runs the tests that should notice.

    python -m tests.mutants [WORD ...] [--jobs 2] [--list]

A tool, not a part of `make test`. The mutants stand in mutants.toml: a file, a text in it that occurs once, what to put in its
place, and the test files that must fail. Each is applied in a copy of the checkout, so nothing here is touched. With WORDs, only
mutants whose file or description holds one of them. Prints a line a mutant with the test that killed it; exits with 1 where more
than SURVIVORS of them survive.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix(".toml")
SURVIVORS = 0.05  # the share that may survive
SECONDS = 600  # for the tests of one mutant
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "node_modules", "__pycache__", ".*_cache", "shots")


@dataclass(frozen=True)
class Mutant:
    """`old` becomes `new` in `file`; `tests` are the files of which one at least must then fail."""

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def mutants() -> list[Mutant]:
    found = tomllib.loads(LIST.read_text("utf-8"))["mutant"]
    return [Mutant(**(one | {"tests": tuple(one["tests"])})) for one in found]


def fault_of(mutant: Mutant, root: Path = ROOT) -> str | None:
    """Why a mutant cannot be applied any more; None where it can."""
    path = root / mutant.file
    if not path.is_file():
        return f"there is no {mutant.file}"
    times = path.read_text("utf-8").count(mutant.old)
    if times != 1:
        return f"its text occurs {times} times in {mutant.file}"
    missing = [test for test in mutant.tests if not (root / test).is_file()]
    return f"there is no {missing[0]}" if missing else None


@contextmanager
def applied(mutant: Mutant, tree: Path) -> Iterator[None]:
    """The mutant in a copy of the checkout, taken back afterwards."""
    path = tree / mutant.file
    healthy = path.read_text("utf-8")
    path.write_text(healthy.replace(mutant.old, mutant.new), "utf-8")
    try:
        yield
    finally:
        path.write_text(healthy, "utf-8")


def killer(mutant: Mutant, tree: Path) -> str | None:
    """The first test that fails with the mutant in place; None where all pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutant.tests]
    with applied(mutant, tree):
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode == 0:
        return None
    failed = [
        line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
    ]
    return failed[0].split(" ", 1)[1] if failed else f"pytest ended with {done.returncode}"


def run(chosen: Sequence[Mutant], jobs: int) -> list[tuple[Mutant, str | None]]:
    """(mutant, its killer or None), each printed as it is known."""
    trees: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory(prefix="glassformer-mutants-") as folder:
        for job in range(jobs):
            trees.put(Path(shutil.copytree(ROOT, Path(folder) / str(job), ignore=LEFT_OUT, symlinks=True)))

        def one(mutant: Mutant) -> tuple[Mutant, str | None]:
            tree = trees.get()
            try:
                found = killer(mutant, tree)
            finally:
                trees.put(tree)
            print(
                f"{'killed  ' if found else 'SURVIVED'} {mutant.what} [{mutant.file}] {found or ''}",
                flush=True,
            )
            return mutant, found

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(one, chosen))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--list", action="store_true", help="only say which there are, and which cannot be applied"
    )
    options = parser.parse_args()
    chosen = [
        m for m in mutants() if not options.words or any(w in m.file or w in m.what for w in options.words)
    ]
    faults = {m.what: fault for m in chosen if (fault := fault_of(m))}
    for what, fault in faults.items():
        print(f"STALE    {what}: {fault}")
    chosen = [m for m in chosen if m.what not in faults]
    if options.list:
        print("\n".join(f"{m.what} [{m.file}]" for m in chosen))
        sys.exit(bool(faults))
    results = run(chosen, options.jobs)
    alive = sum(found is None for _, found in results)
    print(f"{len(results) - alive} of {len(results)} mutants killed, {alive} survived")
    sys.exit(bool(faults) or alive > SURVIVORS * len(results))


if __name__ == "__main__":
    main()
