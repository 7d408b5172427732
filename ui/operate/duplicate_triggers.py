"""Clicks that a browser sends twice: what somebody pressed while a part of the page asked to be drawn again.

Streamlit 1.67's browser sends what was pressed from a timer of no milliseconds, and forgets it then. A part
that refreshes by itself sends all that stands by then, and forgets nothing. Where that comes between the two
the server hears of a click twice and carries it out twice: a run was paused and went on at once, and a step
was two. On a busy machine, with a race that refreshes twice a second, that was one click of twenty.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)

PRESSED = frozenset({"trigger_value", "string_trigger_value", "chat_input_value", "json_trigger_value"})


def requester(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Returns an `AppSession.request_rerun` in which an automatic rerun presses nothing."""

    def request(self: Any, client_state: Any) -> None:
        if client_state is not None and client_state.is_auto_rerun:
            sent = client_state.widget_states.widgets
            kept = [one for one in sent if one.WhichOneof("value") not in PRESSED]
            if len(kept) < len(sent):
                log.debug("a click came with what a part of the page asks for by itself; it is sent again")
                del sent[:]
                sent.extend(kept)
        original(self, client_state)

    return request
