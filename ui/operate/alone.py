"""A server asks nobody in the world for its own address.

For a websocket that names another site as its origin, Streamlit 1.67 looks whether that is its own address in
the world, and asks a stranger's server for it, in the thread that serves everybody. Where that does not
answer it asks again each time: in a container without a way out one forged request kept all pages waiting for
twenty seconds.
"""

from __future__ import annotations

from streamlit import net_util

# Streamlit's own: one of the names by which an origin counts as the server itself. Those who come by the
# server's name, or from one that `server.corsAllowedOrigins` holds, are known without it.


def know_no_address() -> None:
    """From now on it has none."""
    net_util.get_external_ip = _none


def _none() -> None:
    return None
