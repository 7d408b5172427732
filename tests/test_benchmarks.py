"""Each benchmark still runs. Those whose size can be chosen run once at their smallest, where goals may be missed;
of those that train to the end or watch a server for minutes only the start is asked for.
"""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.load import Tally
from benchmarks.visitor import Visitor
from tests.aside import aside
from tests.browser.server import chromium_path
from tests.source import ROOT

pytestmark = pytest.mark.exhaustive

SHORT = {
    "bpe": "--rounds 1 --naive-merges 1",
    "experts": "--rounds 1",
    "finetune": "--rounds 1 --small",
    "generation": "--rounds 1 --positions rope",
    "seq2seq": "--rounds 1 --precision float32",
    "scrub": "--view residual/lens --steps 2",
    "training": "--rounds 1 --precision float32 --config A",
    "pretrained": "--rounds 1 --tokens 4",
    "bytes": "--rounds 1",
    "live": "--presses 1",
    "race": "--passes 1 --steps 5 --presses 1",
    "views": "--page attention --rounds 2",
}
WATCHED = {"bytes", "live", "race", "scrub", "views"}  # by a browser
SAID = {
    "cold_start": "--times 1",
    "load": "--sessions 3 --seconds 10 --views 3",
}  # short, too: figures as sentences
LONG = {"formation", "recipes", "soak", "time_to_quality"}
SHARED = {"__init__", "floor", "peers", "report", "texts", "visitor"}  # by the others


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def has_chromium() -> bool:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        return chromium_path(driver) is not None


def test_every_benchmark_is_run_here_and_stands_in_the_list() -> None:
    names = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    assert names == SHARED | LONG | SAID.keys() | SHORT.keys()
    listed = re.findall(
        r"^\| `(\w+)` \|.*`benchmarks\.\1\b", (ROOT / "benchmarks" / "README.md").read_text(), re.M
    )
    assert sorted(listed) == sorted(names - SHARED | {"texts"})


class Waiting(Visitor):
    """A visitor whose page shows a bar until two seconds have gone by."""

    waits = True

    @property
    def bars(self) -> list[str]:
        return ["bar"] * self.waits

    async def result(self, patience: float) -> float:
        self.waits = False
        return 2.0


def test_an_answer_counts_to_its_result_and_not_to_its_bar() -> None:
    async def asked() -> float:
        return 0.7

    tally, visitor = Tally(), Waiting("http://127.0.0.1")
    aside(tally.answer(visitor, asked(), moved=False))
    assert tally.seconds == {"home": [2.7]} and tally.bars == [0.7] and not tally.unfinished
    aside(tally.answer(visitor, asked(), moved=False))
    assert tally.seconds == {"home": [2.7, 0.7]} and tally.bars == [0.7]


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.usefixtures("shakespeare")
def test_short_benchmark_ends_with_its_line_of_figures(name: str) -> None:
    if name in WATCHED:
        with ThreadPoolExecutor() as beside:  # this thread may drive a browser of other tests
            if not beside.submit(has_chromium).result():
                pytest.skip("there is no Chromium")
    done = run(name, *SHORT[name].split())
    assert "Traceback" not in done.stderr, done.stderr
    if name == "pretrained" and len(done.stdout.splitlines()) == 1:
        pytest.skip(done.stdout)  # SmolLM2 is not on this machine, or transformers
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["benchmark"] == name and last["figures"], last


@pytest.mark.parametrize("name", SAID)
def test_short_benchmark_of_a_server_ends_well(name: str) -> None:
    done = run(name, *SAID[name].split())
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert "median" in done.stdout or "p95" in done.stdout, done.stdout


def test_long_benchmarks_start() -> None:
    for name in sorted(LONG):
        done = run(name, "--help")
        assert done.returncode == 0 and "usage" in done.stdout, f"{name}: {done.stderr}"
