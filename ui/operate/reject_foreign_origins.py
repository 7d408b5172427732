"""Websockets from other sites, and malformed messages: refused at once, without a question to the world or a
flood in the log.

For a websocket that names another site as its origin, Streamlit 1.67 looks whether that is its own address in
the world, and asks a stranger's server for it, in the thread that serves everybody. Where that does not
answer it asks again each time: in a container without a way out one forged request kept all pages waiting for
twenty seconds.
"""

from __future__ import annotations

import logging
import time

from streamlit import net_util

from ui.operate.file_descriptors import QUIET_SECONDS

# Streamlit's own: one of the names by which an origin counts as the server itself. Those who come by the
# server's name, or from one that `server.corsAllowedOrigins` holds, are known without it.


def know_no_address() -> None:
    """Disables Streamlit's external-IP lookup."""
    net_util.get_external_ip = _none


def _none() -> None:
    return None


def say_seldom() -> None:
    """Limits the log to a line of each kind once in a while, without a trace and without what a stranger
    wrote.
    """
    refuses = logging.getLogger("streamlit.web.server.starlette.starlette_websocket")
    if not any(isinstance(each, _Seldom) for each in refuses.filters):
        refuses.addFilter(_Seldom())


REFUSALS = {
    "Rejecting WebSocket": "websockets from another site are refused",
    "Error deserializing": "a malformed message came, and its connection was ended",
    "Client WebSocket message size": "a message that is too large came, and its connection was ended",
    "Client tried to": "a message for developers came, and was ignored",
}


class _Seldom(logging.Filter):
    """Streamlit's own: a line for each of them, with a trace or with the names that they gave."""

    def __init__(self) -> None:
        super().__init__()
        self._said = dict.fromkeys(REFUSALS, -QUIET_SECONDS)

    def filter(self, record: logging.LogRecord) -> bool:
        kind = next((begin for begin in REFUSALS if str(record.msg).startswith(begin)), None)
        if kind is None:
            return True
        if time.monotonic() - self._said[kind] < QUIET_SECONDS:
            return False
        self._said[kind] = time.monotonic()
        record.msg, record.args, record.exc_info = REFUSALS[kind], (), None
        return True
