"""A method called again and again: rounds of housekeeping, signs of life."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable

LOG = logging.getLogger(__name__)


class Repeater:
    """Calls a method every so many seconds, in a thread, and does not keep its object alive."""

    def __init__(self, method: Callable[[], None], seconds: float) -> None:
        self._stop = threading.Event()
        arguments, name = (weakref.WeakMethod(method), seconds, self._stop), f"repeated-{method.__name__}"
        self._thread = threading.Thread(target=_go_round, args=arguments, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def join(self) -> None:
        """Waits until the last round is over, unless it is the one that asks."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=10)


def _go_round(weak: weakref.WeakMethod[Callable[[], None]], seconds: float, stop: threading.Event) -> None:
    while not stop.wait(seconds) and (method := weak()) is not None:
        try:
            method()
        except Exception:  # the next round must come whatever happened in this one
            LOG.exception("a round failed")
        del method
