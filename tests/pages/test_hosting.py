"""A hosted server under attack, over its own sockets: forged keys, too many bytes, what is not for the public."""

from __future__ import annotations

import asyncio
import http.client
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from engine.service.profiles import PROFILES
from tests.browser.server import serve
from ui import guard, identity
from ui.guard import ADDRESS, Guard

MB = 1 << 20


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    patch = pytest.MonkeyPatch()
    patch.setenv(identity.TRUST, "1")
    patch.setenv(guard.FRAMES, "https://moodle.example.org; script-src *")
    with serve(tmp_path_factory.mktemp("home")) as found:
        yield found
    patch.undo()


def ask(url: str, path: str, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, Any, bytes]:
    """(status, headers, body) of one request."""
    parts = urlsplit(url)
    talk = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    try:
        talk.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = talk.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        talk.close()


@pytest.mark.parametrize("path", ["/", "/train", "/_stcore/health", "/app/static/none.js", "/static/none.js"])
def test_every_answer_tells_the_browser_what_to_refuse(url: str, path: str) -> None:
    _, headers, _ = ask(url, path)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "strict-origin-when-cross-origin"
    told = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert told["default-src"] == "'self'" and told["object-src"] == "'none'"
    assert "http" not in told["script-src"] and "*" not in told["script-src"], "scripts come from here alone"
    assert told["frame-ancestors"].startswith("https://moodle.example.org")
    assert headers["Content-Security-Policy"].count("script-src") == 1 + told["frame-ancestors"].count(
        "script-src"
    )


@pytest.mark.parametrize(
    "path", ["/_stcore/metrics", "//_stcore/metrics", "/train/_stcore/metrics", "/_stcore/../_stcore/metrics",
             "/_stcore/metrics/", "/_stcore/agent/interact", "/_stcore/script-health-check"]
)  # fmt: skip
def test_what_the_server_knows_of_itself_is_not_for_the_public(url: str, path: str) -> None:
    status, _, body = ask(url, path)
    assert status in (400, 404) and b"memory" not in body and b"session" not in body.lower()


def test_a_browser_gets_a_key_once_and_a_forged_one_is_replaced(url: str) -> None:
    _, headers, _ = ask(url, "/train")
    (told,) = [c for c in headers.get_all("Set-Cookie") if c.startswith("glassformer=")]
    assert re.fullmatch(
        r"glassformer=[\w-]{43}\.[\w-]{43}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax", told
    )
    own = told.split(";")[0]
    assert "glassformer=" not in str(ask(url, "/", Cookie=own)[1].get_all("Set-Cookie"))
    for forged in ("glassformer=" + "A" * 43, own[:-3] + "AAA", "glassformer=", own.replace(".", "")):
        assert "glassformer=" in str(ask(url, "/", Cookie=forged)[1].get_all("Set-Cookie")), forged
    assert "; Secure" in str(ask(url, "/", X_Forwarded_Proto="https")[1].get_all("Set-Cookie"))


def test_a_browser_that_kept_the_page_and_not_its_key_gets_one(url: str) -> None:
    _, headers, _ = ask(url, "/")
    kept = {"If_None_Match": headers["ETag"], "Accept": "text/html,*/*"}
    status, told, body = ask(url, "/", **kept)
    assert (status, body) == (304, b"") and "glassformer=" in str(told.get_all("Set-Cookie"))
    own = headers["Set-Cookie"].split(";")[0]
    assert "glassformer=" not in str(ask(url, "/", Cookie=own, **kept)[1].get_all("Set-Cookie"))
    assert "glassformer=" not in str(ask(url, "/", **kept | {"Accept": "*/*"})[1].get_all("Set-Cookie"))


UPLOAD = "/_stcore/upload_file/nobody/file"


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(url: str) -> None:
    most = PROFILES["hosted"].max_upload_mb
    assert most < 50, "what fell held 8 x 49 MB"
    for length in (str((most + 2) * MB), "9" * 30):
        parts = urlsplit(url)
        talk = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
        talk.putrequest("PUT", UPLOAD)
        talk.putheader("Content-Length", length)
        talk.endheaders()  # and not a byte of it
        answer = talk.getresponse()
        assert answer.status in (400, 413), length
        talk.close()
    status, *_ = ask(url, UPLOAD, "PUT", iter([b"x" * 1000]), Transfer_Encoding="chunked")
    assert status == 411, "without a length nobody knows how much comes"


# Inside, without a server -------------------------------------------------------------------------


def through(guarded: Guard, scope: dict[str, Any]) -> list[dict[str, Any]]:
    """What is sent back."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    with ThreadPoolExecutor(1) as thread:  # where browser tests ran before, this one has an event loop
        thread.submit(asyncio.run, guarded(scope, receive, send)).result()
    return sent


@pytest.mark.parametrize("trusted, address", [("", "192.0.2.7"), ("1", "198.51.100.9")])
def test_the_app_is_told_the_address_and_nobody_else_can_say_it(
    trusted: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(identity.TRUST, trusted)
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append([value for name, value in scope["headers"] if name.lower() == ADDRESS.encode()])

    forged = [(b"X-Glassformer-Address", b"6.6.6.6"), (b"x-forwarded-for", b"5.5.5.5, 198.51.100.9")]
    through(Guard(app), {"type": "websocket", "client": ("192.0.2.7", 1), "headers": forged})
    assert seen == [[address.encode()]]


def put(session: str, size: int) -> dict[str, Any]:
    return {"type": "http", "method": "PUT", "path": f"/base/_stcore/upload_file/{session}/f", "scheme": "http",
            "headers": [(b"content-length", str(size).encode())]}  # fmt: skip


def test_what_sessions_hold_is_limited_each_and_in_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlit.config.get_option", lambda name: 10 if name.endswith("UploadSize") else "")
    held = {"full": 10 * MB}
    monkeypatch.setattr(guard, "_held", lambda: held)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})

    def status(session: str) -> int:
        return int(through(Guard(app), put(session, 9 * MB))[0]["status"])

    assert status("new") == 204 and status("full") == 413
    held |= {f"other{n}": 10 * MB for n in range(guard.HELD)}
    assert status("new") == 503


def test_uploads_at_once_are_counted_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_held", dict)
    monkeypatch.setattr(guard, "UPLOAD_SECONDS", 0.5)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(60)  # somebody who sends a byte a minute

    async def together(guarded: Guard) -> list[int]:
        statuses: list[int] = []

        async def send(message: Any) -> None:
            if "status" in message:
                statuses.append(message["status"])

        async def receive() -> Any:
            return {}

        many = [guarded(put(f"s{n}", 10), receive, send) for n in range(guard.UPLOADS_AT_ONCE + 2)]
        await asyncio.gather(*many)
        return statuses

    guarded = Guard(app)
    with ThreadPoolExecutor(1) as thread:
        statuses = thread.submit(asyncio.run, together(guarded)).result()
    assert statuses.count(503) == 2 and statuses.count(408) == guard.UPLOADS_AT_ONCE
    assert guarded._uploads == 0
