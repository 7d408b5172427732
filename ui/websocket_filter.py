"""Filter between strangers and Streamlit's websocket: origins, orders that are no visitor's to give, names of
no form or length that a browser sends, and the server's own folder.

Streamlit 1.67 asks a server in the world for its own address at each websocket whose origin it does not
know, in the thread that serves everybody (https://github.com/streamlit/streamlit/issues/7721); empties the
caches of everybody where one browser says so; writes a trace for each malformed message, and into the log
what a message says of fragments and files; and tells every browser where its script lies.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from starlette.datastructures import Headers
from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[1]
HERE = ("localhost", "127.0.0.1", "0.0.0.0")
QUIET_SECONDS = 30.0  # between two lines in the log about the same
UNSUPPORTED = 1003  # what a websocket is told that sends no message (RFC 6455)
DEVELOPERS = frozenset({"debug_disconnect_websocket", "debug_shutdown_runtime"})  # obeyed by no server
VISITORS = frozenset(
    {"rerun_script", "stop_script", "app_heartbeat", "file_urls_request", "backend_operation_request"}
)
MOST_FILES = 20  # that a browser asks to send at a time
MOST_NAME = 1_000  # characters of the name of a page, a file, a control
MOST_LINK = 64 * 1024  # characters of an address: what HTTP would take, too
_ID = re.compile(r"[A-Za-z0-9._-]{0,128}")  # of a session, a request, a page, a fragment, a file: hexadecimal
_said: dict[str, float] = {}


def same_origin(scope: Scope) -> Scope | None:
    """Returns the request with an origin that Streamlit need not ask anybody about; None where a page of
    another site makes it, or the host has a name that `server.allowedHosts` does not.

    Allowed are the host that was asked, this machine, and what `browser.serverAddress` and
    `server.corsAllowedOrigins` name; everybody where `server.enableCORS` is off.
    """
    headers = Headers(scope=scope)
    origin, host = headers.get("origin"), headers.get("host", "")
    if not is_host_allowed(host):  # Streamlit refuses it as well, and tells nobody
        _tell("websockets to a name that is not in server.allowedHosts are refused")
        return None
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
    """Leaves out orders that are no visitor's to give and what no browser of ours would send, and ends a
    websocket that sends what is no message.
    """

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
            kind = order.WhichOneof("type")
            if kind is None or kind in DEVELOPERS or (public and kind not in VISITORS):
                continue
            if not well_formed(order):
                _tell("a message was left out that no browser of ours sends")
                continue
            return message

    return received


def well_formed(order: BackMsg) -> bool:
    """True if every name in a browser's message is as short and plain as browsers write it: Streamlit logs
    some of them, sends others back, and keeps others with the session. The values of controls are as long as
    a message may be, and each page reads them as a stranger's.
    """
    kind = order.WhichOneof("type")
    check = _CHECKS.get(kind or "")
    return check is None or check(getattr(order, kind or ""))


def _rerun(asked: Any) -> bool:
    about = asked.context_info
    ids = (asked.fragment_id, asked.page_script_hash, *asked.cached_message_hashes)
    names = (asked.page_name, about.timezone, about.locale, about.color_scheme)
    return (
        all(map(_ID.fullmatch, ids))
        and all(
            len(name) <= MOST_NAME for name in (*names, *(each.id for each in asked.widget_states.widgets))
        )
        and max(len(asked.query_string), len(about.url)) <= MOST_LINK
    )


def _files(asked: Any) -> bool:
    return (
        all(map(_ID.fullmatch, (asked.request_id, asked.session_id)))
        and len(asked.file_names) <= MOST_FILES
        and all(len(name) <= MOST_NAME for name in asked.file_names)
    )


def _operation(asked: Any) -> bool:
    """A file that is made when it is asked for, which the app has. Streamlit's other operations act on this
    machine, or on tables that the app sends whole.
    """
    ids = (asked.request_id, asked.session_id, asked.deferred_file.file_id)
    return asked.WhichOneof("payload") == "deferred_file" and all(map(_ID.fullmatch, ids))


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "rerun_script": _rerun,
    "file_urls_request": _files,
    "backend_operation_request": _operation,
}


def sending(send: Send, folder: Path = ROOT) -> Send:
    """Makes Streamlit send the script's name in place of its path; what else holds the path is a text of
    somebody's, and goes as it is.
    """
    folder_bytes = str(folder).encode()

    async def sent(message: Message) -> None:
        data = message.get("bytes")
        if data is not None and folder_bytes in data:
            forward = ForwardMsg.FromString(data)
            # a field of a oneof: to set it in a message of another kind would empty that
            if forward.WhichOneof("type") == "new_session":
                forward.new_session.main_script_path = Path(forward.new_session.main_script_path).name
                message = {**message, "bytes": forward.SerializeToString()}
        await send(message)

    return sent


def _order(data: bytes | None) -> BackMsg | None:
    """Returns a browser's message; None where it is none."""
    try:
        return None if data is None else BackMsg.FromString(data)
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
