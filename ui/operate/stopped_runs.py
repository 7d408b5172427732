"""A run of a page that has been stopped for another writes nothing more into the session of both.

Streamlit stops a run at its next look, and begins the other at once, in a thread of its own. Each run looks
whether it is stopped before it takes a lock, and each has a lock of its own: one that was held up between the
two put the values of before a click over those of the click, whose button was lit on a page that stayed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType

_LOCKS: WeakValueDictionary[int, Any] = WeakValueDictionary()  # by the id of a session's state
_MAKING = threading.Lock()


class Turn:
    """The session's lock; who holds it looks once more whether it has been stopped."""

    def __init__(self, state: Any, look: Callable[[], None]) -> None:
        self._state, self._look = state, look  # while the state is held, no other has its id
        with _MAKING:
            self._lock = _LOCKS.setdefault(id(state), threading.RLock())

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            self._look()
        except BaseException:  # Streamlit's own signals are none of Exception
            self._lock.release()
            raise

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def sharing_a_lock(original: Callable[..., None]) -> Callable[..., None]:
    """Returns a `SafeSessionState.__init__` for which all runs of a session take turns."""

    def __init__(self: Any, state: Any, yield_callback: Callable[[], None]) -> None:
        original(self, state, yield_callback)
        object.__setattr__(self, "_lock", Turn(state, yield_callback))

    return __init__


def unless_stopped(original: Callable[..., None]) -> Callable[..., None]:
    """Returns a `SafeSessionState.on_script_finished` that leaves a button pressed for the next run."""

    def on_script_finished(self: Any, *told: Any, **named: Any) -> None:
        with self._lock:
            runner = getattr(self._yield_callback, "__self__", None)  # none where nothing runs
            if runner is None or runner._requests._state is not ScriptRequestType.STOP:
                original(self, *told, **named)

    return on_script_finished
