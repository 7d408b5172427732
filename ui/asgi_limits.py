"""Between the network and Streamlit: who asks (a signed cookie, an address), how much may be sent up at a
time, what is not for the public, and what browsers are told to refuse.

Everything here is about the server as a whole; limits on trainings are in runs.profiles.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import time
from collections import Counter
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse
from streamlit import config
from streamlit.runtime import Runtime

from runs import profiles
from runs.snapshots import temporary_folder
from ui import identity, websocket_filter
from ui.uploads import Coming, Uploads

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDRESS = "x-glassformer-address"  # a header that only this module writes
FRAMES = "GLASSFORMER_FRAME_ANCESTORS"
YEAR = 365 * 24 * 3600
MB = 1 << 20
UPLOAD_SECONDS = 120.0  # for one file
FORM_BYTES = 1 * MB  # around a file
PRIVATE = ("/_stcore/metrics", "/_stcore/script-health-check", "/_stcore/agent")
ASKS = 4  # requests of LIVE a second, for each tab that an address may have
LIVE = "/live/"  # ui.live
UPLOAD = "/_stcore/upload_file/"
POLICY, TRY_LATER = 1008, 1013  # what a WebSocket that is not taken is told (RFC 6455, IANA registry)
_TABS = Counter[str]()  # open tabs of this server by address
_heard = [0.0]  # when any of them last said something


def policy() -> str:
    """Returns the Content-Security-Policy. `frame-ancestors` are the pages that may show this one in a frame,
    from $GLASSFORMER_FRAME_ANCESTORS ("https://moodle.example.org"): none but our own, unless that says
    so.

    Streamlit 1.67 needs the rest: the scripts and styles of components come in a message, and the page runs
    them as text (`unsafe-inline`, `blob:`). Nothing is run that was made from text by `eval`.
    """
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
            f"frame-ancestors {frames() or chr(39) + 'self' + chr(39)}",
        )
    )


def frames() -> str:
    """Returns the sites that may show the app in a frame, with blanks between them; none where nobody named
    any.
    """
    return " ".join(os.environ.get(FRAMES, "").replace(";", " ").replace(",", " ").split())


def in_frame(cookie: str) -> str:
    """Returns a cookie that browsers keep for a frame of another site, too: over TLS only, and for each such
    site apart (`Partitioned`), so that it tells none of them who somebody is on another.

    >>> in_frame("a=1; Path=/; SameSite=Lax; Secure")
    'a=1; Path=/; SameSite=None; Secure; Partitioned'
    """
    replaced = ("samesite", "secure", "partitioned")
    attributes = [part for part in cookie.split("; ") if part.partition("=")[0].lower() not in replaced]
    return "; ".join([*attributes, "SameSite=None", "Secure", "Partitioned"])


def headers() -> dict[str, str]:
    """Returns the HTTP headers of every response."""
    return {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "strict-origin-when-cross-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
        "Content-Security-Policy": policy(),
    }


def open_tabs() -> int:
    """Returns how many browser tabs are connected."""
    return _TABS.total()


def quiet_seconds() -> float:
    """Returns how long no tab has said anything."""
    return time.monotonic() - _heard[0]


def middleware() -> list[Middleware]:
    """Returns the middleware for `st.App`. Only here a proxy is believed: uvicorn by itself believes every
    one on this machine, and whom a platform names (`*`, say). Then the peer would be what a visitor wrote,
    before anybody counts it.

    Ends the server, which has not begun, where its secret is too short: else every page would fail for a
    browser without a key.
    """
    try:
        identity.chosen()
    except identity.SecretError as error:
        raise SystemExit(str(error)) from error
    os.environ["FORWARDED_ALLOW_IPS"] = ""
    return [Middleware(Guard)]


class Guard:
    """The outermost ASGI layer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._headers, self._proxies = app, headers(), identity.proxies()
        self._uploads, self._framed = Uploads(), bool(frames())
        self._tabs, profile = _TABS, profiles.current()
        self._most_tabs, self._public = profile.max_tabs_address, profile.public
        self._base = "/" + (config.get_option("server.baseUrlPath") or "").strip("/")
        self._live = f"{self._base.rstrip('/')}{LIVE}"
        self._second, self._asked = 0, Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._tab(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, self._dressed(scope, send))
        else:
            await self._app(scope, receive, send)

    async def _tab(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A tab, as long as it is open: each takes descriptors and memory, and strangers open many."""
        where, allowed = self._address(scope), websocket_filter.same_origin(scope)
        if allowed is None:
            await send({"type": "websocket.close", "code": POLICY})
            return
        if where and 0 < self._most_tabs <= self._tabs[where]:
            await send({"type": "websocket.close", "code": TRY_LATER})
            return
        receive = websocket_filter.receiving(receive, send, self._public)
        if self._public:
            send = websocket_filter.sending(send)
        self._tabs[where] += 1
        try:
            await self._app(self._addressed(allowed), _noting(receive), send)
        finally:
            self._tabs[where] -= 1
            if not self._tabs[where]:
                del self._tabs[where]

    def _addressed(self, scope: Scope) -> Scope:
        """With the address of who asks, in place of what a stranger may have written there."""
        where = self._address(scope)
        header = ADDRESS.encode("latin-1")
        others = [(name, value) for name, value in scope["headers"] if name.lower() != header]
        return {**scope, "headers": [*others, (header, where.encode("latin-1"))]}

    def _address(self, scope: Scope) -> str:
        """Returns the client's address, as limits count it."""
        peer = (scope.get("client") or (None,))[0]
        forwarded = ",".join(Headers(scope=scope).getlist("x-forwarded-for"))
        return identity.address(peer, forwarded, self._proxies)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, raw = self._path(scope), str(scope.get("path", ""))
        answer: ASGIApp = self._app
        if UPLOAD in raw and {".", ".."} & set(raw.split("/")):  # Streamlit takes `..` for a file's name
            answer = PlainTextResponse("Files cannot be uploaded here", 400)
        elif any(path == one or path.startswith(one + "/") for one in PRIVATE):
            answer = PlainTextResponse("Not found", 404)
        elif self._asks_too_often(scope, raw):
            answer = PlainTextResponse("Too many requests from your network", 429)
        elif path.startswith(UPLOAD) and scope["method"] == "PUT":
            answer = self._upload
        await answer(scope, receive, send)

    def _asks_too_often(self, scope: Scope, raw: str) -> bool:
        """True for an address that follows runs more often in this second than all its tabs together may."""
        where, now = self._address(scope), int(time.monotonic())
        if not raw.startswith(self._live) or not where:
            return False
        if self._second != now:
            self._second, self._asked = now, Counter[str]()
        self._asked[where] += 1
        return 0 < self._most_tabs * ASKS < self._asked[where]

    def _path(self, scope: Scope) -> str:
        """Below the base, whatever stands before it in the address."""
        path = posixpath.normpath(str(scope.get("path", "")))
        at = path.find("/_stcore/")
        return path[at:] if at >= 0 else path

    async def _upload(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A file whose size is known and fits, and few of them at a time: before a byte of it is read."""
        answer = await self._received(scope, receive, send)
        if answer is not None:
            await PlainTextResponse(answer[1], answer[0])(scope, receive, send)

    async def _received(self, scope: Scope, receive: Receive, send: Send) -> tuple[int, str] | None:
        """Has Streamlit take a file. Returns (HTTP status, sentence) where it may not come, or did not."""
        length = Headers(scope=scope).get("content-length", "")
        most = int(config.get_option("server.maxUploadSize")) * MB + FORM_BYTES
        if not (length.isascii() and length.isdigit()):
            return 411, "The size of the file is missing"
        session = self._path(scope).removeprefix(UPLOAD).partition("/")[0]
        file, held = Coming(session, self._address(scope), int(length.lstrip("0")[:13] or 0)), _held()
        if held is None:
            return 503, "This server does not accept files"
        if refusal := self._uploads.refusal(file, held, most):
            return refusal
        temporary_folder()  # where Streamlit puts what is larger than a megabyte
        with self._uploads.coming(file, held):
            try:
                async with asyncio.timeout(UPLOAD_SECONDS):
                    await self._app(scope, receive, send)
            except TimeoutError:
                return 408, "The upload took too long"
        return None

    def _dressed(self, scope: Scope, send: Send) -> Send:
        """With the headers; and with a key for a browser that has none and is given a page. Where other sites
        may show the app, cookies are such as a browser keeps there: Streamlit's, too, which uploads need.
        """

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer_headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in self._headers.items():
                    answer_headers[name] = value
                # a page that the browser kept is one, too: of what has not changed, only that is told
                unchanged_page = message["status"] == 304 and "text/html" in Headers(scope=scope).get(
                    "accept", ""
                )
                if (
                    unchanged_page or answer_headers.get("content-type", "").startswith("text/html")
                ) and not _known(scope):
                    answer_headers.append("Set-Cookie", self._cookie(scope))
                if self._framed and self._https(scope):  # else browsers would keep none of them
                    cookies = answer_headers.getlist("Set-Cookie")
                    del answer_headers["Set-Cookie"]
                    for cookie in cookies:
                        answer_headers.append("Set-Cookie", in_frame(cookie))
            await send(message)

        return dressed

    def _cookie(self, scope: Scope) -> str:
        secure = "; Secure" if self._https(scope) else ""
        value = identity.new_cookie()
        return f"{identity.COOKIE}={value}; Path={self._base}; Max-Age={YEAR}; HttpOnly; SameSite=Lax{secure}"

    def _https(self, scope: Scope) -> bool:
        forwarded = Headers(scope=scope).get("x-forwarded-proto", "") if self._proxies else ""
        return scope.get("scheme") == "https" or forwarded.rpartition(",")[2].strip() == "https"


def _noting(receive: Receive) -> Receive:
    """Notes when a tab says something."""

    async def noted() -> Message:
        message = await receive()
        _heard[0] = time.monotonic()
        return message

    return noted


def _known(scope: Scope) -> bool:
    """True if the browser sent a key that this server made."""
    sent = cookie_parser(Headers(scope=scope).get("cookie", ""))
    return identity.key_in(sent.get(identity.COOKIE)) is not None


def _held() -> dict[str, int] | None:
    """Bytes of uploaded files that the server holds, by session; None where Streamlit does not tell."""
    files = getattr(Runtime.instance().uploaded_file_mgr, "file_storage", None)
    if not isinstance(files, dict):
        return None
    try:
        return {
            session: sum(len(file.data) for file in dict(uploads).values())
            for session, uploads in dict(files).items()
        }
    except (AttributeError, TypeError):
        return None
