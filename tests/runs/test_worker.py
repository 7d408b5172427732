"""The worker on its own: its protocol, its imports, its end."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from engine.errors import ConfigError, CorpusError
from engine.training.records import Done, Evaluation, HeadScores, Record, Sample, Snapshot, Step, TrainState
from runs import protocol
from runs.process_guards import ROOT
from runs.processes import describe_exit
from runs.protocol import Alive, Records, dump, load_command, load_message
from runs.worker import Outbox, explain
from tests.runs.running import MODEL, SHORT, TEXT


def _worker(*options: str, **fields: Any) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *options, "-m", "runs.worker", "1"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=ROOT, **fields
    )


def _order(folder: Path) -> bytes:
    (folder / "text.txt").write_text(TEXT)
    return dump(protocol.Train(MODEL, SHORT, "text", str(folder / "text.txt"), str(folder)))


def _pipes(worker: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert worker.stdin is not None and worker.stdout is not None
    return worker.stdin, worker.stdout


def _until_done(answers: IO[bytes]) -> Iterator[bytes]:
    """What is said until the training is over: the process then waits for its input to end."""
    for line in answers:
        yield line
        if b'"Done"' in line:
            return


def test_a_worker_speaks_only_the_protocol_and_imports_no_screen(tmp_path: Path) -> None:
    with (tmp_path / "imports").open("wb") as imports:
        worker = _worker("-X", "importtime", stderr=imports)
        commands, answers = _pipes(worker)
        commands.write(_order(tmp_path))
        commands.flush()
        said = [load_message(line)[1] for line in _until_done(answers)]  # raises for anything else
        messages = [message for message in said if not isinstance(message, Alive)]
        commands.close()
        assert worker.wait(timeout=60) == 0
        answers.close()
    assert [type(m) for m in messages[:2]] == [protocol.Ready, protocol.Started] and Alive() in said
    records = [record for m in messages if isinstance(m, Records) for record in m.items]
    assert isinstance(records[-1], Done) and sum(isinstance(r, Step) for r in records) == SHORT.steps
    imported = {
        line.rpartition("|")[2].strip().partition(".")[0]
        for line in (tmp_path / "imports").read_text().splitlines()
    }
    assert "torch" in imported and "engine" in imported
    assert not imported & {"streamlit", "plotly", "pandas", "ui", "pages", "app"}


def test_a_fast_trainings_steps_are_sent_in_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("runs.worker.time.monotonic", lambda: now)
    reading, writing = os.pipe()
    outbox = Outbox(writing)
    steps = [Step(n, 1.0, 1.0, 0.1, n, 0.1) for n in range(1, 101)]
    for step in steps:
        now += 0.004
        outbox.add(step, at_once=False)
    outbox.add(Done(100, "finished", "", 1.0), at_once=True)
    os.close(writing)
    with open(reading, "rb") as lines:
        bundles = [load_message(line)[1] for line in lines]
    assert 7 <= len(bundles) <= 9, "one each 50 ms of these 400, and the last"
    assert [r for b in bundles if isinstance(b, Records) for r in b.items][:-1] == steps


def test_a_worker_that_is_starting_ends_with_its_input() -> None:
    worker = _worker(stderr=subprocess.DEVNULL)
    commands, answers = _pipes(worker)
    commands.close()
    assert worker.wait(timeout=60) == 0
    answers.close()


RECORDS: list[Record] = [
    Step(3, 1.25, 0.5, 1e-3, 96, 0.25), Step(3, float("inf"), 0.5, 1e-3, 96, 0.25), Evaluation(10, 1.5, 1.75, 2.0, True),
    Evaluation(10, 1.5, 1.75, 2.0, True, heads=HeadScores(((0.1, 0.2), (0.3, 0.4)), ((0.5, 0.6), (0.7, 0.8)), 4.1, 1.5)),
    Sample(10, "\n", 'a "quoted"\nline, \u2028 ümläut 🙂 \ud800'), Done(10, "diverged", "why", 1.0),
]  # fmt: skip


def test_records_survive_the_pipe() -> None:
    for record in RECORDS:
        line = dump(Records((record,)))
        assert line.count(b"\n") == 1 and line.isascii(), record
        assert load_message(line) == (0, Records((record,)))
    _, said = load_message(dump(Records((Step(1, float("nan"), 1.0, 1.0, 1, 1.0),))))
    assert isinstance(said, Records) and isinstance(said.items[0], Step)
    assert said.items[0].loss != said.items[0].loss, "a diverged loss"


COMMANDS: list[protocol.Command] = [
    protocol.Train(MODEL, SHORT, "text", "a \ud800 path", "folder", "resume", 0.1, "\u2028", True), protocol.Train(MODEL, SHORT, "python", None, "f"),
    protocol.Pause(), protocol.Resume(), protocol.SingleStep(), protocol.SetLearningRate(1e-3), protocol.SetPrompt("\n \ud800"), protocol.Stop(), protocol.Leave(),
]  # fmt: skip
MESSAGES: list[protocol.Message] = [
    protocol.Ready(),
    protocol.Started("float32"),
    protocol.SnapshotSaved(3, "path", 5),
    protocol.Warned("a"),
    protocol.Failed("b"),
]


def test_commands_and_messages_survive_the_pipe_and_are_not_each_other() -> None:
    for command in COMMANDS:
        line = dump(command, 3)
        assert line.count(b"\n") == 1 and line.isascii() and load_command(line) == (3, command)
        with pytest.raises(ValueError):
            load_message(line)
    for message in MESSAGES:
        line = dump(message, 3)
        assert load_message(line) == (3, message)
        with pytest.raises(ValueError):
            load_command(line)


TORN = [
    b'[0,["Reco', b"", b"[1]", b"{}", b'[0,[3]]', b'[0,["Nothing"]]', b'[0,["Stop",1]]', b'[0,["Train"]]',
    b'[0,["SnapshotSaved"]]', b'[0,["Records"]]', b'["0",["Stop"]]', b'[null,["Ready"]]', b'[0,["Step",1,1.0,1.0,1.0,1,1.0]]',
]  # fmt: skip


def test_torn_lines_are_refused_and_only_records_decoded() -> None:
    for line, load in itertools.product(TORN, (load_command, load_message)):
        with pytest.raises(ValueError):
            pytest.fail(f"{line!r} was read as {load(line)}")
    torn: list[list[Any]] = [[], ["Snapshot", 1], ["__import__", "os"], ["Step", 1]]
    for values in torn:
        with pytest.raises(ValueError):
            pytest.fail(f"{values} was read as {protocol.decode(values)}")
    with pytest.raises((TypeError, ValueError)):
        load_message(dump(Records((Snapshot(1, TrainState(1, 1.0, {})),))))


EXPLAINED: list[tuple[Exception, str]] = [
    (MemoryError(), "There was not enough memory for this training. A smaller batch, context or model needs less."),
    (RuntimeError("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried"), "There was not enough memory"),
    (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate"), "There was not enough memory"),
    (CorpusError("the text has 3 characters"), "The text has 3 characters."),
    (ConfigError("d_model", 3, "must be even"), "d_model = 3: must be even."),
    (ZeroDivisionError("division by zero\nmore"), "The training failed with ZeroDivisionError: division by zero."),
    (KeyError(), "The training failed with KeyError."),
]  # fmt: skip


def test_errors_are_explained() -> None:
    for error, says in EXPLAINED:
        assert explain(error).startswith(says)


def test_no_sentence_says_where_files_lie() -> None:
    where = "/home/somebody/glassformer/engine/model.py"
    for said in (
        explain(RuntimeError(f"[enforce fail at {where}:12] no kernel")),
        explain(CorpusError(f"the text at {where} is empty")),
        explain(FileNotFoundError(2, "No such file", where)),
        describe_exit(1, f'File "{where}", line 3'),
    ):
        assert "model.py" in said and "somebody" not in said and "glassformer" not in said, said
