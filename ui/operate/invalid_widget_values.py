"""Values that no control can hold: a word where a number is asked for, a list where there is one, JSON that
is none. No browser sends them, but whoever speaks to the server without one may, and a page that was open
while the server got a new version. And an order that is no visitor's to give.
"""

from __future__ import annotations

import logging
from typing import Any

from streamlit.runtime.app_session import AppSession
from streamlit.runtime.state.session_state import Serialized, Value, WStates

log = logging.getLogger(__name__)

# Streamlit's own: it reads a value where it first asks for it, before any of a page's code, and what fails
# there ends the run
_INSIDE = WStates.__getitem__
_NUMBERS = {"int_value": "double_value", "int_array_value": "double_array_value"}  # browsers send either


def ignore() -> None:
    """Makes such a control behave as if nobody had touched it."""
    WStates.__getitem__ = _read  # type: ignore[method-assign]


def keep_caches() -> None:
    """Prevents browsers from emptying what is kept for everybody (`BackMsg.clear_cache`, which a stranger may
    send in a loop): the next page of each would be made anew. Its sender forgets its own state, as ever.
    """
    AppSession._handle_clear_cache_request = _forget_own  # type: ignore[method-assign]


def _forget_own(self: AppSession) -> None:
    self._session_state.clear()


def _read(self: WStates, k: str) -> Any:
    sent, known = self.states.get(k), self.widget_metadata.get(k)
    if not isinstance(sent, Serialized) or known is None:
        return _INSIDE(self, k)
    kind = sent.value.WhichOneof("value") or known.value_type  # none: emptied
    try:
        if _NUMBERS.get(kind, kind) == _NUMBERS.get(known.value_type, known.value_type):
            return _INSIDE(self, k)
    except Exception as error:  # of the right kind, and senseless: JSON that is none, say
        log.debug("%s held what it cannot hold: %r", k, error)
    self.states[k] = Value(known.deserializer(None))
    return _INSIDE(self, k)
