"""The process that measures for a server: `python -m runs.measure_worker PARENT`; it ends with PARENT.

It calls functions of `engine` and `studies` alone (runs.packing.LIBRARIES). Messages to it are `o` and a
measurement, `g` and the number of that whose result is waited for, `l` and the number of one that is left;
those from it are empty as a sign of life, or a number and progress, a result, a refusal, a fault.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from contextlib import suppress
from functools import lru_cache
from typing import IO, Any, NoReturn

from engine.data.progress import Progress, Steps
from engine.errors import GlassformerError
from engine.model import build
from runs.memory import share_memory
from runs.packing import NUMBER, Unsendable, pack, receive, send, unpack
from runs.process_guards import die_with, end_first

NICENESS = 5  # pages go first, trainings last
ALIVE_SECONDS = 1.0  # between two signs of life
STEP_SECONDS, LOOK_SECONDS = 0.05, 0.4  # between two messages about progress, and with what there is so far
WAITED_FOR_SECONDS = 1.5  # without a `g`: nobody waits now, perhaps since it is paused


class Inbox:
    """Orders, and which of them are still wanted; a thread reads them."""

    def __init__(self, file: IO[bytes]) -> None:
        self.orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.left: queue.SimpleQueue[int] = queue.SimpleQueue()  # the numbers of what was left
        self.current = 0  # the number of that whose result is waited for
        self._heard = time.monotonic()
        self._file = file
        self._said = threading.Event()  # something, since it was last waited for

    def read(self) -> NoReturn:
        """Reads to the end, which is that of the server and of this process."""
        while (data := receive(self._file)) is not None:
            self._heard = time.monotonic()
            if data[:1] == b"o":
                self.orders.put(data[1:])
            elif data[:1] == b"l":
                self.left.put(int(data[1:]))
            else:
                self.current = int(data[1:])
            self._said.set()
        os._exit(0)

    @property
    def waits(self) -> bool:
        """True if somebody waits for the current one now."""
        return time.monotonic() - self._heard <= WAITED_FOR_SECONDS

    def wait(self) -> None:
        """Waits until something is said."""
        self._said.wait()
        self._said.clear()


class Outbox:
    """Messages to the server; signs of life come from a thread of their own."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._at = self._looked = 0.0
        self._so_far: Any = None
        self._number = 0  # of the measurement whose progress was said last

    def send(self, number: int, *message: Any) -> None:
        """Says something of a measurement. Raises Unsendable."""
        self._write(NUMBER.pack(number) + pack(message))

    def step(self, number: int, at: Progress) -> None:
        """Says how far a measurement is, unless it has only just done so."""
        now = time.monotonic()
        if number != self._number:
            self._number, self._at, self._looked, self._so_far = number, 0.0, 0.0, None
        if at.so_far is not self._so_far and now - self._looked >= LOOK_SECONDS:
            self._at, self._looked, self._so_far = now, now, at.so_far
            self.send(number, "look", at.done, at.total, at.preparing, at.so_far)
        elif now - self._at >= STEP_SECONDS:
            self._at = now
            self.send(number, "step", at.done, at.total, at.preparing)

    def live(self) -> NoReturn:
        while True:
            self._write(b"")
            time.sleep(ALIVE_SECONDS)

    def _write(self, data: bytes) -> None:
        try:
            with self._lock:
                send(self._file, data)
        except OSError:  # nobody reads any more
            os._exit(0)


def made(kind: str, what: Any) -> Any:
    """Makes what a server described (runs.measuring)."""
    if kind == "published":
        name, path, is_model = what
        published = _published(name, path)
        return published.model if is_model else published.tokenizer
    if kind == "model":
        config, parts, weights, training, learns = what
        model = build(config, device="meta", parts=parts)
        model.load_state_dict(weights, assign=True)
        return model.train(training).requires_grad_(learns)
    return what


@lru_cache(maxsize=2)
def _published(name: str, path: str) -> Any:
    from studies.weights.pretrained import library

    return library.load(name, sys.maxsize, path)


class Bench:
    """The measurements that are open here, by number, and the models and texts that are held for them."""

    def __init__(self, outbox: Outbox) -> None:
        self.open: dict[int, Steps[Any]] = {}
        self._held: dict[int, Any] = {}
        self._outbox = outbox

    def begin(self, order: bytes) -> int:
        """Opens a measurement; returns its number."""
        number, left, descriptions, call = unpack(order)
        for each in left:
            self._held.pop(each, None)
        new = unpack(descriptions)
        try:
            self._held.update({each: made(*description) for each, description in new.items()})
            function, args, keywords = unpack(call, self._held)
            self.open[number] = function(*args, **keywords)
        except Exception as error:
            for each in new:  # as the server does
                self._held.pop(each, None)
            self._fail(number, error, begun=False)
        return int(number)

    def go_on(self, number: int) -> None:
        """Does a step of a measurement, and says how far it is or how it ended."""
        try:
            try:
                self._outbox.step(number, next(self.open[number]))
            except StopIteration as end:
                del self.open[number]
                self._outbox.send(number, "result", end.value)
        except Exception as error:
            self.open.pop(number, None)
            self._fail(number, error, begun=True)

    def leave(self, number: int) -> None:
        """Drops a measurement."""
        if (steps := self.open.pop(number, None)) is not None:
            steps.close()
            self._outbox.send(number, "left")

    def _fail(self, number: int, error: Exception, begun: bool) -> None:
        if isinstance(error, GlassformerError) and not isinstance(error, Unsendable):
            return self._outbox.send(number, "refused", str(error), "", begun)
        sentence = f"{type(error).__name__}: {error}"
        return self._outbox.send(number, "fault", sentence, traceback.format_exc(), begun)


def work(inbox: Inbox, bench: Bench) -> NoReturn:
    """Goes on with that measurement whose result is waited for, and drops those that are left."""
    while True:
        with suppress(queue.Empty):
            while True:
                inbox.current = bench.begin(inbox.orders.get_nowait())
        with suppress(queue.Empty):
            while True:
                bench.leave(inbox.left.get_nowait())
        if inbox.current in bench.open and inbox.waits:
            bench.go_on(inbox.current)
        else:
            inbox.wait()


def main() -> NoReturn:
    """Measures what it is sent until its input ends."""
    die_with(int(sys.argv[1]))
    end_first()
    outbox = Outbox(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # a library that prints must not speak the protocol
    sys.stdout = sys.stderr
    inbox = Inbox(os.fdopen(os.dup(0), "rb"))
    _prepare()
    threading.Thread(target=inbox.read, daemon=True).start()
    threading.Thread(target=outbox.live, daemon=True).start()
    work(inbox, Bench(outbox))


def _prepare() -> None:
    import torch

    torch.set_num_threads(1)
    share_memory()
    if hasattr(os, "nice"):
        os.nice(NICENESS)


if __name__ == "__main__":
    main()
