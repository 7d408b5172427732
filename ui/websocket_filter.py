"""Filter between strangers and Streamlit's websocket: origins, orders that are no visitor's to give, and the
server's own folder.

Streamlit 1.67 asks a server in the world for its own address at each websocket whose origin it does not
know, in the thread that serves everybody (https://github.com/streamlit/streamlit/issues/7721); empties the
caches of everybody where one browser says so; writes a trace for each malformed message; and tells every
browser where its script lies.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from starlette.datastructures import Headers
from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[1]
HERE = ("localhost", "127.0.0.1", "0.0.0.0")
QUIET_SECONDS = 30.0  # between two lines in the log about the same
UNSUPPORTED = 1003  # what a websocket is told that sends no message (RFC 6455)
DEVELOPERS = frozenset({"debug_disconnect_websocket", "debug_shutdown_runtime"})  # obeyed by no server
STRANGERS = DEVELOPERS | {"clear_cache", "set_run_on_save", "load_git_info"}
_said: dict[str, float] = {}


def same_origin(scope: Scope) -> Scope | None:
    """Returns the request with an origin that Streamlit need not ask anybody about; None where a page of
    another site makes it, which is refused.

    Allowed are the host that was asked, this machine, and what `browser.serverAddress` and
    `server.corsAllowedOrigins` name; everybody where `server.enableCORS` is off.
    """
    headers = Headers(scope=scope)
    origin, host = headers.get("origin"), headers.get("host", "")
    if origin is None or not config.get_option("server.enableCORS"):
        return scope
    named = _host(origin)
    others = [_host(str(allowed)) for allowed in config.get_option("server.corsAllowedOrigins") or ()]
    server_address = config.get_option("browser.serverAddress")
    if named is None or not (
        urlsplit(origin).netloc == host or named in {*HERE, server_address, *others} - {None}
    ):
        _tell("websockets from another site are refused")
        return None
    rest = [(name, value) for name, value in scope["headers"] if name.lower() != b"origin"]
    return {**scope, "headers": [*rest, (b"origin", f"http://{host}".encode("latin-1"))]}


def receiving(receive: Receive, send: Send, public: bool) -> Receive:
    """Leaves out orders that are no visitor's to give, and ends a websocket that sends what is no message."""

    async def received() -> Message:
        while True:
            message = await receive()
            if message["type"] != "websocket.receive":
                return message
            order = _order(message.get("bytes"))
            if order is None:
                _tell("a malformed message came, and its connection was ended")
                await send({"type": "websocket.close", "code": UNSUPPORTED})
                return {"type": "websocket.disconnect", "code": UNSUPPORTED}
            if order not in (STRANGERS if public else DEVELOPERS):
                return message

    return received


def sending(send: Send, folder: Path = ROOT) -> Send:
    """Makes Streamlit send the script's name in place of its path."""
    folder_bytes = str(folder).encode()

    async def sent(message: Message) -> None:
        data = message.get("bytes")
        if data is not None and folder_bytes in data:
            forward = ForwardMsg.FromString(data)
            forward.new_session.main_script_path = Path(forward.new_session.main_script_path).name
            message = {**message, "bytes": forward.SerializeToString()}
        await send(message)

    return sent


def _order(data: bytes | None) -> str | None:
    """Returns a message's subject; empty where it says nothing, None where it is none."""
    try:
        return None if data is None else BackMsg.FromString(data).WhichOneof("type") or ""
    except DecodeError:
        return None


def _host(origin: str) -> str | None:
    """The name in an origin, or alone.

    >>> _host("https://a.example:8501"), _host("a.example"), _host("null"), _host("http://[")
    ('a.example', 'a.example', 'null', None)
    """
    try:
        return urlsplit(origin if "//" in origin else f"//{origin}").hostname
    except ValueError:
        return None


def _tell(line: str) -> None:
    """A line of each kind once in a while, and nothing that a stranger wrote."""
    if time.monotonic() - _said.get(line, -QUIET_SECONDS) >= QUIET_SECONDS:
        _said[line] = time.monotonic()
        log.warning(line)
