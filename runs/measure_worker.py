"""The process that measures for a server: `python -m runs.measure_worker PARENT`; it ends with PARENT.

It calls functions of `engine` and `studies` alone (runs.packing.LIBRARIES). Messages to it are `o` and a
measurement, `g` while somebody waits for the result, `l` and the number of a measurement that is left; those
from it are empty as a sign of life, or progress, a result, a refusal, a fault.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from functools import lru_cache
from typing import IO, Any, NoReturn

from engine.data.progress import Progress
from engine.errors import GlassformerError
from engine.model import build
from engine.training.numerics import share_memory
from runs.packing import Unsendable, pack, receive, send, unpack
from runs.process_guards import die_with, end_first

NICENESS = 5  # pages go first, trainings last
ALIVE_SECONDS = 1.0  # between two signs of life
STEP_SECONDS, LOOK_SECONDS = 0.05, 0.4  # between two messages about progress, and with what there is so far
WAITED_FOR_SECONDS = 1.5  # without a `g`: nobody waits now, perhaps since it is paused


class Inbox:
    """Orders, and how far they are still wanted; a thread reads them."""

    def __init__(self, file: IO[bytes]) -> None:
        self.orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._left = 0  # the number of the last measurement that was left
        self._heard = time.monotonic()
        self._file = file

    def read(self) -> NoReturn:
        """Reads to the end, which is that of the server and of this process."""
        while (data := receive(self._file)) is not None:
            self._heard = time.monotonic()
            if data[:1] == b"o":
                self.orders.put(data[1:])
            elif data[:1] == b"l":
                self._left = int(data[1:])
        os._exit(0)

    def wants(self, number: int) -> bool:
        """Waits until somebody waits for the measurement; False where it was left."""
        while self._left < number and time.monotonic() - self._heard > WAITED_FOR_SECONDS:
            time.sleep(0.05)
        return self._left < number


class Outbox:
    """Messages to the server; signs of life come from a thread of their own."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._at = self._looked = 0.0
        self._so_far: Any = None

    def send(self, *message: Any) -> None:
        self._write(pack(message))

    def step(self, at: Progress) -> None:
        """Says how far it is, unless it has only just done so."""
        now = time.monotonic()
        if at.so_far is not self._so_far and now - self._looked >= LOOK_SECONDS:
            self._at, self._looked, self._so_far = now, now, at.so_far
            self.send("look", at.done, at.total, at.preparing, at.so_far)
        elif now - self._at >= STEP_SECONDS:
            self._at = now
            self.send("step", at.done, at.total, at.preparing)

    def begin(self) -> None:
        """Forgets the progress of the measurement before."""
        self._at = self._looked = 0.0
        self._so_far = None

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


def measure(order: bytes, held: dict[int, Any], inbox: Inbox, outbox: Outbox) -> None:
    """Does a measurement to its end, or until it is left, and says how it ended."""
    number, left, descriptions, call = unpack(order)
    for each in left:
        held.pop(each, None)
    outbox.begin()
    new = unpack(descriptions)
    try:
        held.update({each: made(*description) for each, description in new.items()})
        function, args, keywords = unpack(call, held)
        steps = function(*args, **keywords)
        while inbox.wants(number):
            try:
                outbox.step(next(steps))
            except StopIteration as end:
                return outbox.send("result", end.value)
        steps.close()
        outbox.send("left")
    except Exception as error:
        for each in new:  # as the server does
            held.pop(each, None)
        if isinstance(error, GlassformerError) and not isinstance(error, Unsendable):
            return outbox.send("refused", str(error), "")
        outbox.send("fault", f"{type(error).__name__}: {error}", traceback.format_exc())


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
    held: dict[int, Any] = {}
    while True:
        measure(inbox.orders.get(), held, inbox, outbox)


def _prepare() -> None:
    import torch

    torch.set_num_threads(1)
    share_memory()
    if hasattr(os, "nice"):
        os.nice(NICENESS)


if __name__ == "__main__":
    main()
