"""A click beside a fragment runs the page, also where a component of the fragment speaks in the same moment.

The browser sends what changes in one moment as one message, in the name of the fragment that it finds in it.
After a click outside of it only the fragment ran: the button was lit, and the page stayed as it was.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.state.common import unpack_widget_state_value
from streamlit.runtime.state.session_state import SessionState

log = logging.getLogger(__name__)

# session -> widget -> hash of what the browser last sent
_last: WeakKeyDictionary[Any, dict[str, int]] = WeakKeyDictionary()


def whole_page(original: Callable[..., None]) -> Callable[..., None]:
    """Returns an `AppSession.request_rerun` that runs the page where a click is beside a fragment."""

    @functools.wraps(original)
    def request_rerun(self: Any, client_state: ClientState | None) -> None:
        if client_state is not None:
            before = _last.get(self, {})
            _last[self] = {w.id: hash(w.SerializeToString()) for w in client_state.widget_states.widgets}
            if client_state.fragment_id and clicked_beside(self._session_state, client_state, before):
                message, client_state = client_state, ClientState()
                client_state.CopyFrom(message)
                client_state.ClearField("fragment_id")
        original(self, client_state)

    return request_rerun


def clicked_beside(state: SessionState, message: ClientState, before: dict[str, int]) -> bool:
    """True if a widget outside the fragment of a message has another value than the server knows, and than
    the browser sent `before` (hashes by widget). A change by the server itself is no click.
    """
    for sent in message.widget_states.widgets:
        metadata = state.get_widget_metadata(sent.id)
        if metadata is None or metadata.fragment_id == message.fragment_id:
            continue
        if before.get(sent.id) == hash(sent.SerializeToString()):
            continue
        try:
            value = metadata.deserializer(unpack_widget_state_value(sent))
            if bool(value != state.get_widget_value(sent.id)):
                return True
        except Exception:  # a forged value, or none that can be compared: the run that meets it refuses it
            log.debug("%s cannot be compared", sent.id)
    return False
