"""Websockets from other sites: refused at once, without a question to the world or a flood in the log.

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
    """Limits the log to a line about them once in a while, and none of what a stranger wrote there."""
    refuses = logging.getLogger("streamlit.web.server.starlette.starlette_websocket")
    if not any(isinstance(one, _Seldom) for one in refuses.filters):
        refuses.addFilter(_Seldom())


class _Seldom(logging.Filter):
    """Streamlit's own: a line for each of them, with the names that they gave."""

    def __init__(self) -> None:
        super().__init__()
        self._said = -QUIET_SECONDS

    def filter(self, record: logging.LogRecord) -> bool:
        if not str(record.msg).startswith("Rejecting WebSocket"):
            return True
        if time.monotonic() - self._said < QUIET_SECONDS:
            return False
        self._said = time.monotonic()
        record.msg, record.args = "websockets from another site are refused", ()
        return True
