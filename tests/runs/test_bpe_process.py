"""Merges learned in another process are the merges learned here; the process never outlives its use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.data.progress import Progress, Steps, finish
from engine.data.tokenizers import bpe
from engine.data.tokenizers.bpe import Level, Split
from engine.errors import TokenizerError
from runs import bpe_process
from runs.process_guards import FIRST
from studies.tokens import bpe_watch
from tests.engine.cases import for_each
from tests.runs.running import freeze, lives, wait

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="these tests look at processes through /proc"
)
ROOT = Path(__file__).resolve().parents[2]
TEXT = "the sea 海 and the shells\u00e9, \ud800 half a sign; " * 3 + "".join(f"w{i:x} " for i in range(500))


def processes(of: int | None = None) -> list[int]:
    """The children of a process, else of this one, that learn merges."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has just ended
            continue
        if int(parent) == (of or os.getpid()) and state != "Z" and b"runs.bpe_process" in command:
            found.append(int(folder.name))
    return found


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(bpe_process, "SHORT", -1)
    yield
    assert processes() == []


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(("level", "split"), [("byte", "words"), ("char", "words"), ("byte", "none")])
def test_the_same_merges(level: Level, split: Split) -> None:
    here = bpe.train(TEXT, 320 if level == "byte" else 60, level=level, split=split)
    there = finish(bpe_process.learning(TEXT, here.vocab_size, level=level, split=split))
    assert there == here and there.encode(TEXT) == here.encode(TEXT)
    watched = bpe_watch.watch(TEXT, 40, level=level, split=split)
    assert finish(bpe_process.watching(TEXT, 40, level=level, split=split)) == watched
    assert watched.runners_up[0]


def test_a_short_text_needs_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpe_process.subprocess, "Popen", None)
    assert finish(bpe_process.learning("ab ab", 300)) == bpe.train("ab ab", 300)
    assert finish(bpe_process.watching("ab ab", 3)) == bpe_watch.watch("ab ab", 3)


def test_the_process_imports_no_torch() -> None:
    """Which takes ten times as long as all the rest of its start."""
    code = "import sys, runs.bpe_process; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.usefixtures("always")
def test_what_is_refused_there_is_refused_here() -> None:
    for steps, said in (
        (bpe_process.learning("", 300), "no text to learn merges from"),
        (bpe_process.learning("abc", 3), "a vocabulary of 3 is smaller"),
        (bpe_process.watching("abc", -1), "must not be negative"),
    ):
        with pytest.raises(TokenizerError, match=said):
            finish(steps)


LONG = "".join(f"{i * 7919:x}" for i in range(700_000))
MERGES = 300_000  # a minute of work or more: looking through /proc takes seconds where much else runs


def test_it_says_how_far_it_is_and_is_left_at_once() -> None:
    steps = bpe_process.learning(LONG, MERGES, split="none")
    first = next(steps)
    assert first == Progress(0, MERGES - 256) and len(processes()) == 1
    assert any((at := next(steps)).total == MERGES - 256 and at.share < 1 for _ in range(200))
    steps.close()
    assert processes() == []


def begun(steps: Steps[object]) -> None:
    """Until it computes: the first progress is its start, the next is said by itself."""
    next(steps), next(steps)


def test_a_killed_process_is_a_sentence() -> None:
    steps = bpe_process.learning(LONG, MERGES, split="none")
    begun(steps)
    score = int(Path(f"/proc/{processes()[0]}/oom_score_adj").read_text())
    assert score >= FIRST, "where memory runs out it is the first, and a server outlives it"
    os.kill(processes()[0], signal.SIGKILL)
    with pytest.raises(TokenizerError, match="ended from outside"):
        finish(steps)


def test_a_stopped_process_is_noticed_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = bpe_process.learning(LONG, MERGES, split="none")
    begun(steps)
    monkeypatch.setattr(bpe_process, "SILENT_SECONDS", 1.0)
    freeze(processes()[0])
    with pytest.raises(TokenizerError, match="ended from outside"):
        finish(steps)
    assert processes() == []


@for_each("stopped", [False, True])
def test_it_ends_with_who_started_it(stopped: bool) -> None:
    code = (
        "from runs import bpe_process; import os, time\n"
        "steps = bpe_process.learning(''.join(f'{i * 7919:x}' for i in range(300_000)), 60_000, split='none')\n"
        "next(steps), next(steps); print('begun', flush=True); time.sleep(60)"
    )
    server = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert server.stdout is not None and server.stdout.readline() == b"begun\n"
    (child,) = processes(server.pid)
    if stopped:
        freeze(child)
    server.kill()
    server.wait()
    server.stdout.close()
    assert wait(lambda: not lives(child), 30)  # of the minute that it would compute
