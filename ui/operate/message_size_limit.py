"""How large a message of a browser may be."""

from __future__ import annotations

from typing import Any

from streamlit import config
from uvicorn.protocols.websockets import websockets_sansio_impl as spoken
from websockets.server import ServerProtocol

MB = 1_000_000  # as Streamlit counts


def bound(megabytes: int) -> None:
    """Connections that are made from now on end (1009) at the head of a longer message, before it is read;
    and what a page's controls hold together may be no more.

    uvicorn would hold as much of it as Streamlit may send, 200 MB, before anybody is asked: the two have one
    option (`server.maxMessageSize`), which is read before the profile is known.
    """
    config.set_option("server.maxWidgetStateSize", megabytes)

    def bounded(**named: Any) -> ServerProtocol:
        return ServerProtocol(**{**named, "max_size": min(named["max_size"], megabytes * MB)})

    # uvicorn's own: it makes one of these for each connection, and has no other place for a number.
    setattr(spoken, "ServerProtocol", bounded)  # noqa: B010
