"""Worker processes that say what a test lets them say: places, limits and the queue without a process."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from runs.processes import Job
from runs.protocol import Command, Message

NUMBERS = itertools.count(1)
ENDED = threading.Thread(target=int)
ENDED.start()
ENDED.join()  # nobody who closes a manager waits for a puppet's reader


class Puppet:
    """In the place of a worker process: says what the test lets it say, and ends when it is told to."""

    alive: set[Puppet]
    most = 0
    quiet, frozen = 0.0, False  # it speaks when the test lets it: nobody waits for more

    vanished = False  # whether its machine was lost with it

    def __init__(
        self, threads: int, on_message: Callable[[], Any], on_exit: Callable[[], Any], *_: object
    ) -> None:
        self._said, self._on_exit = on_message(), on_exit()
        self.jobs: list[Job] = []
        self.ready = True
        self.pid = next(NUMBERS)
        self.heard: list[Command] = []
        self.told: set[tuple[int, Command]] = set()
        self.ending = self.gone = False
        self.reader = ENDED
        type(self).alive.add(self)
        type(self).most = max(type(self).most, len(type(self).alive))

    @property
    def transport(self) -> Puppet:
        return self

    @property
    def job(self) -> Job | None:
        return self.jobs[0] if self.jobs else None

    def send(self, command: Command, entrant: int = 0) -> bool:
        self.heard.append(command)
        self.told.add((entrant, command))
        return not self.ending

    def say(self, *messages: Message, entrant: int = 0) -> None:
        for message in messages:
            self._said(self, entrant, message)

    def retire(self) -> None:
        self.ending = True

    kill = retire

    def end(self, code: int = 0) -> None:
        """The process is gone, as its reader finds out."""
        self.ending = self.gone = True
        type(self).alive.discard(self)
        self._on_exit(self, code)

    def listens(self) -> bool:
        return not self.ending

    def lives(self) -> bool:
        return not self.gone

    def resident_bytes(self) -> int:
        return 0

    def last_error_line(self) -> str:
        return ""

    def trim_errors(self) -> None:
        pass
