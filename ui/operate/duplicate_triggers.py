"""Clicks that a browser sends twice: what somebody pressed while a part of the page asked to be drawn again.

Streamlit 1.67's browser sends what was pressed from a timer of no milliseconds, and forgets it then. A part
that refreshes by itself sends all that stands by then, and forgets nothing. Where that comes between the two
the server hears of a click twice and carries it out twice: a run was paused and went on at once, and a step
was two. On a busy machine, with a race that refreshes twice a second, that was one click of twenty.
"""

from __future__ import annotations

import logging

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession

log = logging.getLogger(__name__)

# Streamlit's own: the kinds of values that are pressed rather than set, and where every request arrives
PRESSED = frozenset({"trigger_value", "string_trigger_value", "chat_input_value", "json_trigger_value"})
_REQUEST = AppSession.request_rerun


def heed_once() -> None:
    """Makes a click count where it is sent as one; what a part asks for by itself presses nothing."""
    AppSession.request_rerun = _request  # type: ignore[method-assign]


def _request(self: AppSession, client_state: ClientState | None) -> None:
    if client_state is not None and client_state.is_auto_rerun:
        sent = client_state.widget_states.widgets
        kept = [one for one in sent if one.WhichOneof("value") not in PRESSED]
        if len(kept) < len(sent):
            log.debug("a click came with what a part of the page asks for by itself; it is sent again")
            del sent[:]
            sent.extend(kept)
    _REQUEST(self, client_state)
