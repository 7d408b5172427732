"""Trainings in a process of their own: `python -m runs.worker THREADS [PARENT]`, started and
driven by runs.manager; PARENT is the process that it is to end with. Usually it does one; those of
a race take turns (runs.race).

This process is the only place that sets what is process-wide (threads, allocator). Its other threads must
never run a torch operation: a second one that has would halve the speed of a two-thread training.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from engine.errors import without_paths
from runs import protocol
from runs.process_guards import die_with, end_first
from runs.protocol import Command, Message, dump, load_command

if TYPE_CHECKING:
    from engine.training.records import Record, Snapshot
    from runs.kinds import Data
    from runs.race import Entrant, Race

# a page that somebody is waiting for goes first; on a machine with nothing else to do this costs nothing
NICENESS = 10
BEAT_SECONDS = 1.0  # between two signs of life
FLUSH_SECONDS = 0.05  # steps are sent in bundles: a fast training makes hundreds a second


class Outbox:
    """Records and messages to the manager, those of one training in order, a bundle at a time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._records: dict[int, list[Record]] = {}  # by entrant
        self._flushed = time.monotonic()
        self._writing = threading.Lock()  # the signs of life come from a thread of their own

    def add(self, record: Record, at_once: bool, entrant: int = 0) -> None:
        self._records.setdefault(entrant, []).append(record)
        if at_once or time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def send(self, message: Message, entrant: int = 0) -> None:
        self.flush()
        self._write(dump(message, entrant))

    def flush(self) -> None:
        for entrant, records in self._records.items():
            self._write(dump(protocol.Records(tuple(records)), entrant))
        self._records = {}
        self._flushed = time.monotonic()

    def beat(self) -> NoReturn:
        while True:
            self._write(dump(protocol.Alive()))
            time.sleep(BEAT_SECONDS)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            with self._writing:
                while view:
                    view = view[os.write(self._descriptor, view) :]
        except OSError:  # nobody reads any more
            os._exit(0)


class Session:
    """One training: its order, what was told to it, and whether it is paused."""

    def __init__(self, entrant: int, order: protocol.Train, corpus: Data, outbox: Outbox) -> None:
        from engine.training.records import Control

        self.number, self.order, self.corpus, self.outbox = entrant, order, corpus, outbox
        self.config = order.train
        self.control = Control(learning_rate=order.learning_rate, prompt=order.prompt)
        self.paused = order.paused
        self.steps_wanted = 0  # single steps, while paused
        self.newest = Path(order.resume) if order.resume else None  # the one snapshot to go on from
        # what a pause still lets through: the evaluation, sample and snapshot of the step just done
        self.looks_due = 0

    @property
    def waits(self) -> bool:
        """True if it does nothing until a command arrives."""
        return self.paused and not self.steps_wanted and not self.looks_due

    def entrant(self) -> Entrant:
        from engine.checkpoints import load_state
        from engine.parts.registry import parts_of
        from runs.race import Entrant

        state = load_state(self.order.resume)[0] if self.order.resume else None
        parts = parts_of(self.order.parts)
        return Entrant(self.order.model, self.config, self.corpus, parts, self.control, state)

    def obey(self, command: Command) -> None:
        match command:
            case protocol.Pause() if not self.control.stop:
                self.paused, self.steps_wanted = True, 0
            case protocol.Resume():
                self.paused, self.steps_wanted = False, 0
            case protocol.SingleStep():
                self.paused, self.steps_wanted = True, self.steps_wanted + 1
            case protocol.SetLearningRate(value):
                self.control.learning_rate = value
            case protocol.SetPrompt(text):
                self.control.prompt = text
            case protocol.Stop():
                self.paused, self.control.stop = False, True

    def report(self, record: Record) -> None:
        """Tells the manager what happened; snapshots go to disk."""
        from engine.training.loop import look_due, snapshot_due
        from engine.training.optim import spent
        from engine.training.records import Snapshot, Step

        if isinstance(record, Step):
            c = self.config
            due = look_due(c, "eval", record.step) + look_due(c, "sample", record.step)
            self.looks_due = due + snapshot_due(c, record.step)
            self.steps_wanted = max(0, self.steps_wanted - 1)
            if spent(c, record.step, record.seconds) >= 1:
                self.paused = False  # only the last look remains
        else:
            self.looks_due = max(0, self.looks_due - 1)
        if isinstance(record, Snapshot) and not record.finite:
            text = f"After step {record.step:,} the model's outputs are not finite, so no snapshot is saved."
            self.say(protocol.Warned(text))
        elif isinstance(record, Snapshot):
            self._save(record)
        else:
            self.outbox.add(record, self.paused or not isinstance(record, Step), self.number)

    def say(self, message: Message) -> None:
        self.outbox.send(message, self.number)

    def _save(self, snapshot: Snapshot) -> None:
        """Writes a snapshot whole or not at all; a full disk does not end the training."""
        from safetensors import SafetensorError

        from engine.checkpoints import save_state
        from runs.kinds import OF_DATA

        kind = OF_DATA[type(self.corpus)]
        path = Path(self.order.folder) / f"step-{snapshot.step:09d}.safetensors"
        meta = {
            "kind": kind.name,
            **kind.metadata(self.order.model, self.corpus),
            "train": self.config.to_dict(),
            "parts": self.order.parts,
            "corpus": self.order.corpus,
        }
        try:
            size = save_state(path, snapshot.state, meta)
        except (OSError, SafetensorError, MemoryError) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            text = f"A snapshot could not be saved ({without_paths(why)}). Training continues without it."
            self.say(protocol.Warned(text))
        else:
            self.say(protocol.SnapshotSaved(snapshot.step, str(path), size))
            self._slim(path)

    def _slim(self, newest: Path) -> None:
        """Drops the optimiser's state, two thirds of the bytes, of the snapshot before the newest."""
        from safetensors import SafetensorError

        from engine.checkpoints import slim_state
        from engine.errors import CheckpointError

        before, self.newest = self.newest, newest
        if before is None or before == newest:
            return
        try:
            size = slim_state(before)
        except (OSError, SafetensorError, CheckpointError, MemoryError):
            return  # thinned out meanwhile, or the disk is full: it stays as it is
        self.say(protocol.SnapshotSaved(int(before.stem.removeprefix("step-")), str(before), size))


class Sessions:
    """All trainings of this process, in turns. A first order makes it a training; further ones, a race."""

    def __init__(self, commands: queue.SimpleQueue[tuple[int, Command]], outbox: Outbox) -> None:
        from runs.race import Race

        self.commands, self.outbox = commands, outbox
        self.race: Race = Race()
        self.sessions: dict[int, Session] = {}
        self._corpora: dict[tuple[str, str, bytes], Data] = {}

    def run(self) -> NoReturn:
        """Trains and reports until there is nobody who would tell it what to do (`_read`)."""
        while True:
            self._obey()
            who = self.race.turn(lambda who: self.sessions[who].waits)
            if who is not None:
                self._take_turn(who)

    def _take_turn(self, who: int) -> None:
        try:
            record = self.race.next(who)
            if record is None:
                self._forget(who)
            else:
                self.sessions[who].report(record)
        except Exception as error:
            self._failed(who, error)

    def _obey(self) -> None:
        """Carries out the commands that have come; where all are paused, waits for the next one."""
        while True:
            waiting = all(session.waits for session in self.sessions.values())
            if waiting:
                self.outbox.flush()
            try:
                who, command = self.commands.get(block=waiting)
            except queue.Empty:
                return
            if isinstance(command, protocol.Train):
                self._enter(who, command)
            elif isinstance(command, protocol.Leave):
                self._forget(who)
            elif who in self.sessions:  # else it has just ended
                self.sessions[who].obey(command)

    def _enter(self, who: int, order: protocol.Train) -> None:
        import torch

        from engine.training.numerics import choose

        if order.threads:
            torch.set_num_threads(order.threads)
        try:
            session = Session(who, order, self._corpus(order), self.outbox)
            self.race.enter(who, session.entrant())
        except Exception as error:
            self._failed(who, error)
        else:
            self.sessions[who] = session
            session.say(protocol.Started(choose(order.train.precision).sentence))

    def _corpus(self, order: protocol.Train) -> Data:
        """Its text, cut; entrants with the same share one."""
        from engine.data import corpora
        from runs.kinds import kind_of

        own = Path(order.text).read_bytes() if order.text else b""
        key = order.corpus, order.train.tokenizer, own
        if key not in self._corpora:
            self._corpora[key] = (
                corpora.from_text(own.decode("utf-8", "surrogatepass"), tokenizer=order.train.tokenizer)
                if order.text
                else kind_of(order.corpus).read(order.corpus, order.train.tokenizer)
            )
        return self._corpora[key]

    def _failed(self, who: int, error: Exception) -> None:
        """Said of the one training; the others go on."""
        traceback.print_exception(error)
        self._forget(who)
        self.outbox.send(protocol.Failed(explain(error)), who)

    def _forget(self, who: int) -> None:
        self.race.leave(who)
        self.sessions.pop(who, None)


def explain(error: Exception) -> str:
    """Returns a sentence on the error that ended a training."""
    from engine.errors import ConfigError, GlassformerError

    text = without_paths(str(error).strip())
    if isinstance(error, ConfigError):
        return text + "."  # begins with the name of a field, as it is written
    if isinstance(error, GlassformerError):
        return _sentence(text)
    if isinstance(error, MemoryError) or any(
        words in text.lower() for words in ("can't allocate memory", "not enough memory", "out of memory")
    ):
        return "There was not enough memory for this training. A smaller batch, context or model needs less."
    return _sentence(
        f"The training failed with {type(error).__name__}"
        + (f": {text.splitlines()[0][:300]}" if text else "")
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _read(commands: queue.SimpleQueue[tuple[int, Command]]) -> None:
    """Passes commands on. Their end means that the manager has ended: then so does this process."""
    with open(0, "rb", closefd=False) as lines:
        for line in lines:
            try:
                commands.put(load_command(line))
            except ValueError:
                continue  # the torn last line of a killed manager
    os._exit(0)


def _prepare(threads: int) -> None:
    """Sets everything process-wide and warms up: the first use of each operation is slow."""
    import torch

    from engine.config import ModelConfig, TrainConfig
    from engine.data.corpora import from_text
    from engine.training.numerics import keep_memory
    from engine.training.train import train

    torch.set_num_threads(threads)
    keep_memory()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    corpus = from_text("the quick brown fox jumps over the lazy dog " * 4)
    tiny = ModelConfig(corpus.vocab_size, context=8, d_model=16, n_layers=1, n_heads=2)
    for _ in train(tiny, TrainConfig(steps=2, batch_size=2, optimizer="muon", sample_length=2), corpus):
        pass


def main() -> None:
    """Reads orders, trains and reports, until its input ends. Never returns to the interpreter's own
    shutdown, which could hang on the reader.
    """
    if len(sys.argv) > 2:
        die_with(int(sys.argv[2]))
    end_first()
    outbox = Outbox(os.dup(1))
    os.dup2(2, 1)  # a library that prints must not speak the protocol
    sys.stdout = sys.stderr
    commands: queue.SimpleQueue[tuple[int, Command]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(commands,), daemon=True).start()
    threading.Thread(target=outbox.beat, daemon=True).start()
    _prepare(int(sys.argv[1]))
    outbox.send(protocol.Ready())
    try:
        Sessions(commands, outbox).run()
    except BaseException:
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    main()
