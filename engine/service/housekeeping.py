"""The thread that looks after the runs a few times a second."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable

LOG = logging.getLogger(__name__)
TICK = 0.25  # seconds between rounds


class Housekeeping:
    """Calls a method again and again, and does not keep its object alive."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=_go_round,
            args=(weakref.WeakMethod(tick), self._stop),
            name="runs-housekeeping",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def join(self) -> None:
        """Waits until the last round is over, unless that is who asks."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=10)


def _go_round(method: weakref.WeakMethod[Callable[[], None]], stop: threading.Event) -> None:
    while not stop.wait(TICK):
        tick = method()
        if tick is None:
            return
        try:
            tick()
        except Exception:  # leases and limits must go on being kept whatever happened to one run
            LOG.exception("a round of housekeeping failed")
        del tick
