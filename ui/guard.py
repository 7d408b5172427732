"""Between the network and Streamlit: who asks (a signed cookie, an address), how much may be sent up at a
time, what is not for the public, and what browsers are told to refuse.

Everything here is about the server as a whole; limits on trainings are in engine.service.profiles.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import cookie_parser
from streamlit import config
from streamlit.runtime import Runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from ui import identity

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDRESS = "x-glassformer-address"  # a header that only this module writes
FRAMES = "GLASSFORMER_FRAME_ANCESTORS"
YEAR = 365 * 24 * 3600
MB = 1 << 20
UPLOADS_AT_ONCE = 4  # each held in memory while it comes in
UPLOAD_SECONDS = 120.0  # for one of them
HELD = 8  # times the largest file: what all sessions together may have sent up
FORM_BYTES = 1 * MB  # around a file
PRIVATE = ("/_stcore/metrics", "/_stcore/script-health-check", "/_stcore/agent")
UPLOAD = "/_stcore/upload_file/"


def policy() -> str:
    """The Content-Security-Policy. `frame-ancestors` are the pages that may show this one in a frame, from
    $GLASSFORMER_FRAME_ANCESTORS ("https://moodle.example.org"): none but our own, unless that says so.

    Streamlit 1.67 needs the rest: the scripts and styles of components come in a message, and the page runs
    them as text (`unsafe-inline`, `blob:`). Nothing is run that was made from text by `eval`.
    """
    frames = " ".join(os.environ.get(FRAMES, "").replace(";", " ").replace(",", " ").split())
    return "; ".join(
        (
            "default-src 'self'",
            "script-src 'self' 'unsafe-inline' blob:",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "media-src 'self' blob:",
            "worker-src 'self' blob:",
            "connect-src 'self' data: blob:",
            "frame-src 'self' blob:",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            f"frame-ancestors {frames or chr(39) + 'self' + chr(39)}",
        )
    )


def headers() -> dict[str, str]:
    """What every answer carries."""
    return {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "strict-origin-when-cross-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
        "Content-Security-Policy": policy(),
    }


def middleware() -> list[Middleware]:
    """For `st.App`. Only here a proxy is believed: uvicorn believes every one on this machine by itself."""
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "")
    return [Middleware(Guard)]


class Guard:
    """The outermost ASGI layer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._headers, self._proxies = app, headers(), identity.proxies()
        self._uploads = 0  # that come in this moment
        self._base = "/" + (config.get_option("server.baseUrlPath") or "").strip("/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._app(self._addressed(scope), receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, self._dressed(scope, send))
        else:
            await self._app(scope, receive, send)

    def _addressed(self, scope: Scope) -> Scope:
        """With the address of who asks, in place of what a stranger may have written there."""
        found = Headers(scope=scope)
        peer = (scope.get("client") or (None,))[0]
        where = identity.address(peer, ",".join(found.getlist("x-forwarded-for")), self._proxies)
        own = ADDRESS.encode("latin-1")
        kept = [(name, value) for name, value in scope["headers"] if name.lower() != own]
        return {**scope, "headers": [*kept, (own, where.encode("latin-1"))]}

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = self._path(scope)
        if any(path == one or path.startswith(one + "/") for one in PRIVATE):
            await _refuse(send, 404, "Not found")
        elif path.startswith(UPLOAD) and scope["method"] == "PUT":
            await self._upload(path, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _path(self, scope: Scope) -> str:
        """Below the base, whatever stands before it in the address."""
        path = posixpath.normpath(str(scope.get("path", "")))
        at = path.find("/_stcore/")
        return path[at:] if at >= 0 else path

    async def _upload(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """A file whose size is known and fits, and few of them at a time: before a byte of it is read."""
        length = Headers(scope=scope).get("content-length", "")
        most = int(config.get_option("server.maxUploadSize")) * MB + FORM_BYTES
        held, session = _held(), path.removeprefix(UPLOAD).partition("/")[0]
        if not (length.isascii() and length.isdigit()):
            await _refuse(send, 411, "Say how long the file is")
        elif len(length) > 12 or int(length) > most:
            await _refuse(send, 413, "File too large")
        elif held.get(session, 0) + int(length) > most:
            await _refuse(send, 413, "Too many files: remove one first")
        elif self._uploads >= UPLOADS_AT_ONCE or sum(held.values()) + int(length) > HELD * most:
            await _refuse(send, 503, "Others are sending files just now: try again in a moment")
        else:
            self._uploads += 1
            try:
                async with asyncio.timeout(UPLOAD_SECONDS):
                    await self._app(scope, receive, send)
            except TimeoutError:
                await _refuse(send, 408, "This took too long")
            finally:
                self._uploads -= 1

    def _dressed(self, scope: Scope, send: Send) -> Send:
        """With the headers; and with a key for a browser that has none and is given a page."""

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in self._headers.items():
                    told[name] = value
                # a page that the browser kept is one, too: of what has not changed, only that is told
                kept = message["status"] == 304 and "text/html" in Headers(scope=scope).get("accept", "")
                if (kept or told.get("content-type", "").startswith("text/html")) and not _known(scope):
                    told.append("Set-Cookie", self._cookie(scope))
            await send(message)

        return dressed

    def _cookie(self, scope: Scope) -> str:
        secure = "; Secure" if self._https(scope) else ""
        value = identity.new_cookie()
        return f"{identity.COOKIE}={value}; Path={self._base}; Max-Age={YEAR}; HttpOnly; SameSite=Lax{secure}"

    def _https(self, scope: Scope) -> bool:
        said = Headers(scope=scope).get("x-forwarded-proto", "") if self._proxies else ""
        return scope.get("scheme") == "https" or said.rpartition(",")[2].strip() == "https"


def _known(scope: Scope) -> bool:
    """Whether the browser sent a key that this server made."""
    sent = cookie_parser(Headers(scope=scope).get("cookie", ""))
    return identity.key_in(sent.get(identity.COOKIE)) is not None


def _held() -> dict[str, int]:
    """Bytes of uploaded files that the server holds, by session."""
    files = Runtime.instance().uploaded_file_mgr
    if not isinstance(files, MemoryUploadedFileManager):
        return {}
    return {
        session: sum(len(file.data) for file in dict(kept).values())
        for session, kept in dict(files.file_storage).items()
    }


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = sentence.encode()
    told = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})
