"""Measurements in processes of their own, where they do not hold the lock of the Python that draws pages.

A `partial` of a function of `engine` or `studies` travels, its arguments written by `runs.packing`. A model
is sent once and held there by a number; a published model goes by its name, and its weights are mapped.
Anything that cannot travel, or finds no process ready, is measured in the thread that asks. A process has
several measurements open and computes that whose result is waited for: a long one rests for a short one.
"""

from __future__ import annotations

import queue
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Container
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, TypeVar

from engine.data.corpus import Corpus
from engine.data.progress import Progress, Steps
from engine.errors import GlassformerError
from engine.model import Transformer
from runs.events import note
from runs.packing import LIBRARIES, NUMBER, Unsendable, pack, receive, send, unpack
from runs.process_guards import start_beside
from studies.weights.pretrained import library
from studies.weights.pretrained.vocabulary import PretrainedTokenizer

T = TypeVar("T")
HELD = 8  # models and texts that one process holds, at most
OPEN = 12  # measurements that are open in one process, likewise
BEAT_SECONDS = 0.2  # after which who listens looks whether the result is still wanted
READ_SECONDS = 5.0  # to read the last of what a process that is gone has said
SILENT_SECONDS = 20.0  # without a sign of life: the process is ended
LEAVE_SECONDS = 10.0  # that a step may still take once it is not wanted
RETRY_SECONDS = 30.0  # after a process that could not start
GONE = "The process that measured this was ended from outside, perhaps for want of memory. Measure it again."


class MeasureError(GlassformerError):
    """A measurement that another process refused, or did not live to end."""


class MeasureFault(RuntimeError):
    """A fault of a measurement in another process; its trace is a note."""


class Measurers:
    """At most `limit` processes that measure, each begun by a measurement that finds none. Each holds models
    and texts of at most `held` bytes, mapped weights aside. At most `limit` measurements may be gone
    on with at a time.
    """

    def __init__(self, limit: int, held: int = 64 << 20) -> None:
        self._limit, self._held = limit, held
        self._workers: list[Measurer] = []
        self._starting = 0
        self._not_before = 0.0
        self._closed = False
        self._lock = threading.Lock()
        # Linux ends a process with the *thread* that started it (process_guards.die_with)
        self._starter = ThreadPoolExecutor(1, "measurer-starter")

    def steps(self, measure: Callable[[], Steps[T]]) -> Steps[T]:
        """Measures in a process where that can be, else here. Raises as `measure` does; of a process,
        MeasureError for a refusal and where it ended, MeasureFault for a fault.
        """
        worker = self._take() if travels(measure) else None
        if worker is None:
            return (yield from measure())
        try:
            try:
                worker.begin(measure)  # type: ignore[arg-type]
            except Unsendable as error:
                note("measured here", why=str(error))
                return (yield from measure())
            return (yield from worker.steps())
        finally:
            with self._lock:
                worker.busy -= 1

    def pids(self) -> list[int]:
        """Returns the ids of its processes."""
        with self._lock:
            return [worker.pid for worker in self._workers if not worker.ended]

    def idle(self) -> bool:
        """True if a process waits for work. Has one started where there is none."""
        worker = self._take()
        if worker is None:
            return False
        with self._lock:
            worker.busy -= 1
            return not worker.busy

    def close(self) -> None:
        """Ends every process, and waits until it is gone."""
        with self._lock:
            self._closed = True
        self._starter.shutdown()
        for worker in self._workers:
            worker.end()

    def _take(self) -> Measurer | None:
        """Returns a process that waits for work, or one whose measurements rest; None where there is none.
        Has one started as long as there may be more.
        """
        with self._lock:
            for worker in [worker for worker in self._workers if worker.ended]:
                self._workers.remove(worker)
                if not worker.ready:
                    self._not_before = time.monotonic() + RETRY_SECONDS
            able = [each for each in self._workers if each.ready and (not each.busy or each.rests)]
            if able:
                worker = min(able, key=lambda each: each.busy)
                worker.busy += 1
                return worker
            room = len(self._workers) + self._starting < self._limit
            if room and not self._closed and time.monotonic() >= self._not_before:
                self._starting += 1
                self._starter.submit(self._start)
        return None

    def _start(self) -> None:
        try:
            worker = Measurer(self._held)
        except OSError:
            with self._lock:
                self._starting, self._not_before = self._starting - 1, time.monotonic() + RETRY_SECONDS
            return
        with self._lock:
            self._starting -= 1
            self._workers.append(worker)


def travels(measure: Callable[[], Any]) -> bool:
    """Returns True for a `partial` of a function of `engine` or `studies`."""
    return isinstance(measure, partial) and measure.func.__module__.partition(".")[0] in LIBRARIES


class Measurer:
    """A process that measures (runs.measure_worker): what it is asked to go on with, one thing at a time."""

    def __init__(self, most: int) -> None:
        self._most = most  # bytes that it holds
        self.ready = self.ended = False
        self.busy = 0  # measurements that it was taken for
        self._held: OrderedDict[int, int] = OrderedDict()  # the numbers of what it holds, and their bytes
        self._new: dict[int, tuple[int, ...]] = {}  # by measurement, of them those that came with it
        self._needs: dict[int, dict[int, int]] = {}  # likewise, those that it needs
        self._number = 0  # of the last measurement
        self._current = 0  # of the one that is gone on with
        self._waited_for = False  # a thread waits for the next message about it
        self._quiet = 0.0  # seconds since it last said anything, counted while a result is waited for
        self._went_on = 0.0
        self._messages: dict[int, queue.SimpleQueue[bytes | None]] = {}  # by measurement
        self._process = start_beside("runs.measure_worker")
        note("measurer started", pid=self.pid)
        self._reader = threading.Thread(target=self._read, name="measurer", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def rests(self) -> bool:
        """True if no measurement of it is gone on with, and it may have one more."""
        return not self._waited_for and self.busy < OPEN

    def begin(self, measure: partial[Steps[Any]]) -> None:
        """Sends a measurement, with the models that it needs and that are not there. Raises Unsendable, and
        MeasureError where the process is gone.
        """
        needed: dict[int, Any] = {}

        def refer(value: Any) -> int | None:
            if not isinstance(value, Transformer | Corpus | PretrainedTokenizer):
                return None
            number = _number_of(value)
            needed[number] = value
            return number

        call = pack((measure.func, measure.args, measure.keywords), refer)
        sizes = {number: _size(value) for number, value in needed.items()}
        together = {number: size for each in (*self._needs.values(), sizes) for number, size in each.items()}
        if sum(together.values()) > self._most:
            raise Unsendable(f"{sum(together.values()):,} bytes of models and texts")
        new = {number: _described(value) for number, value in needed.items() if number not in self._held}
        described = pack(new)
        left = self._make_room(sizes, together)
        self._number += 1
        self._current = self._number
        self._new[self._number], self._needs[self._number] = tuple(new), sizes
        self._messages[self._number] = queue.SimpleQueue()
        self._quiet, self._went_on = 0.0, time.monotonic()
        stuck = threading.Timer(SILENT_SECONDS, self._process.kill)  # a process that is stopped reads nothing
        stuck.start()
        try:
            self._send(b"o" + pack((self._number, left, described, call)))
        finally:
            stuck.cancel()

    def steps(self) -> Steps[Any]:
        """Yields the progress of what was begun last, and again at every beat; returns its result. To close
        it leaves the measurement.
        """
        number, at, ended = self._number, Progress(0, 1), False
        try:
            while True:
                match self._next(number):
                    case None:
                        pass
                    case "step", done, total, preparing:
                        at = Progress(done, total, at.so_far, preparing)
                    case "look", done, total, preparing, so_far:
                        at = Progress(done, total, so_far, preparing)
                    case "result", result:
                        ended = True
                        return result
                    case "refused" | "fault" as how, sentence, trace, begun:
                        ended = True
                        for each in () if begun else self._new[number]:  # as the process does
                            self._held.pop(each, None)
                        raise _error(how, sentence, trace)
                yield at
        finally:
            if not ended:
                self._leave(number)
            for table in (self._messages, self._new, self._needs):
                table.pop(number, None)

    def end(self) -> None:
        """Ends the process whatever it does, and waits until it is gone."""
        self._process.kill()
        self._process.wait()
        if threading.current_thread() is not self._reader:
            self._reader.join(READ_SECONDS)  # it notes that the process has ended

    def _make_room(self, sizes: dict[int, int], needed: Container[int]) -> tuple[int, ...]:
        """Returns the numbers that the process is to give up for those that it needs now; none of those that
        are `needed` in all.
        """
        for number, size in sizes.items():
            self._held[number] = size
            self._held.move_to_end(number)
        left = []
        for number in [number for number in self._held if number not in needed]:
            if sum(self._held.values()) <= self._most and len(self._held) <= HELD:
                break
            del self._held[number]
            left.append(number)
        return tuple(left)

    def _next(self, number: int) -> Any:
        """Returns the next message; None where there was none within a beat. Raises MeasureError."""
        if self._current != number or time.monotonic() - self._went_on > BEAT_SECONDS:
            self._current, self._went_on = number, time.monotonic()
            self._send(b"g" + str(number).encode())
        self._waited_for = True
        try:
            data = self._messages[number].get(timeout=BEAT_SECONDS)
        except queue.Empty:
            self._quiet += BEAT_SECONDS
            if self._quiet > SILENT_SECONDS:
                self.end()
            if self.ended:
                raise MeasureError(GONE) from None
            return None
        finally:
            self._waited_for = False
        if data is None:
            raise MeasureError(GONE)
        return unpack(data)

    def _leave(self, number: int) -> None:
        """Has it drop a measurement, and ends it where it does not within LEAVE_SECONDS. Where it goes on
        with another one, nobody waits for that.
        """
        with suppress(MeasureError, queue.Empty):
            self._send(b"l" + str(number).encode())
            if self._current != number:
                return
            until = time.monotonic() + LEAVE_SECONDS
            while (
                data := self._messages[number].get(timeout=max(0.0, until - time.monotonic()))
            ) is not None:
                if unpack(data)[0] not in ("step", "look"):
                    return
        self.end()
        self.ended = True

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            send(self._process.stdin, data)
        except (OSError, ValueError) as error:
            raise MeasureError(GONE) from error

    def _read(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(OSError, ValueError), self._process.stdout as messages:
            while (data := receive(messages)) is not None:
                self.ready, self._quiet = True, 0.0
                if data and (messages_of := self._messages.get(NUMBER.unpack_from(data)[0])) is not None:
                    messages_of.put(data[NUMBER.size :])
        self.ended = True
        for each in list(self._messages.values()):
            each.put(None)
        note("measurer ended", pid=self.pid, code=self._process.wait())
        with suppress(OSError):
            self._process.stdin.close()


def _error(how: str, sentence: str, trace: str) -> Exception:
    if how == "refused":
        return MeasureError(sentence)
    fault = MeasureFault(sentence)
    fault.add_note(trace)
    return fault


_numbers: dict[int, int] = {}  # id -> number, of the models and texts that were sent and live
_numbered = count(1)


def _number_of(value: Any) -> int:
    """Returns the number of a model or text, the same as long as it lives."""
    number = _numbers.get(id(value))
    if number is None:
        number = _numbers[id(value)] = next(_numbered)
        weakref.finalize(value, _numbers.pop, id(value), None).atexit = False
    return number


def _described(value: Any) -> tuple[str, Any]:
    """Returns what the process makes a model or text from (runs.measure_worker.made)."""
    if origin := None if isinstance(value, Corpus) else library.origin(value):
        name, path = origin
        return "published", (name, str(path), isinstance(value, Transformer))
    if isinstance(value, Transformer):
        weights = dict(value.named_parameters())
        learns = any(p.requires_grad for p in weights.values())
        return "model", (value.config, value.parts, weights, value.training, learns)
    return "value", value


def _size(value: Any) -> int:
    """Bytes that a model or text takes there; none for mapped weights."""
    if isinstance(value, Corpus):
        return value.train.nbytes + value.validation.nbytes + len(value.text)
    if library.origin(value):
        return 0
    return sum(p.nbytes for p in value.parameters())
