"""A hosted server under attack, over its own sockets: forged keys, too many bytes, what is not for the public."""

import asyncio
import http.client
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from streamlit.proto.BackMsg_pb2 import BackMsg

from benchmarks.visitor import Visitor
from runs.profiles import PROFILES, VARIABLE
from tests.aside import aside
from tests.browser.server import ROOT, serve
from ui import asgi_limits, identity, uploads
from ui.asgi_limits import ADDRESS, Guard
from ui.operate import log
from ui.uploads import Coming, Uploads

MB = 1 << 20


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    patch = pytest.MonkeyPatch()
    patch.setenv(log.VARIABLE, "json")
    patch.setenv(identity.TRUST, "1")
    patch.setenv(asgi_limits.FRAMES, "https://moodle.example.org; script-src *")
    with serve(home) as found:
        yield found
    patch.undo()


def ask(url: str, path: str, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, Any, bytes]:
    parts = urlsplit(url)
    talk = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    try:
        talk.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = talk.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        talk.close()


def test_every_answer_tells_the_browser_what_to_refuse(url: str) -> None:
    for path in ("/", "/train", "/_stcore/health", "/app/static/none.js", "/static/none.js"):
        _, headers, _ = ask(url, path)
        assert headers["X-Content-Type-Options"] == "nosniff", path
        assert headers["Referrer-Policy"] == "strict-origin-when-cross-origin", path
        policy = headers["Content-Security-Policy"]
        told = dict(part.split(" ", 1) for part in policy.split("; "))
        assert told["default-src"] == "'self'" and told["object-src"] == "'none'", path
        assert "http" not in told["script-src"] and "*" not in told["script-src"], "scripts from here alone"
        assert told["frame-ancestors"].startswith("https://moodle.example.org"), path
        assert policy.count("script-src") == 1 + told["frame-ancestors"].count("script-src"), path


def test_what_the_server_knows_of_itself_is_not_for_the_public(url: str) -> None:
    own = "metrics", "metrics/", "../_stcore/metrics", "agent/interact", "script-health-check"
    paths = [f"/_stcore/{name}" for name in own]
    for path in (*paths, "//_stcore/metrics", "/train/_stcore/metrics"):
        status, _, body = ask(url, path)
        assert status in (400, 404) and b"memory" not in body and b"session" not in body.lower(), path


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


def test_in_a_frame_of_another_site_the_cookies_are_such_as_browsers_keep_there(url: str) -> None:
    names = set()
    for path in ("/", "/_stcore/health"):
        for told in ask(url, path, X_Forwarded_Proto="https")[1].get_all("Set-Cookie"):
            name, attributes = told.partition("=")[0], told.split("; ")[1:]
            names.add(name)
            assert attributes[-3:] == ["SameSite=None", "Secure", "Partitioned"], told
            assert len({one.partition("=")[0] for one in attributes}) == len(attributes), told
            assert ("HttpOnly" in attributes) == (name == identity.COOKIE)
        for told in ask(url, path)[1].get_all("Set-Cookie"):
            assert "SameSite=Lax" in told and "Secure" not in told, "without TLS browsers keep no other"
    assert names == {identity.COOKIE, "_streamlit_xsrf"}


def test_where_nobody_may_frame_the_app_its_cookies_stay_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(asgi_limits.FRAMES, raising=False)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        told = [(b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": 200, "headers": told})

    asked = {"type": "http", "method": "GET", "path": "/", "scheme": "https", "headers": []}
    (cookie,) = (v for k, v in through(Guard(app), asked)[0]["headers"] if k.lower() == b"set-cookie")
    assert cookie.decode().split("; ")[-3:] == ["HttpOnly", "SameSite=Lax", "Secure"]


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


def test_no_path_leads_past_the_limits_of_files(url: str) -> None:
    beside = [UPLOAD[:-4] + name for name in ("..", ".", "%2e%2e")]
    for path in (*beside, "/x/.." + UPLOAD, "/_stcore/upload_file/../file"):
        assert ask(url, path, "PUT", b"x" * 1000)[0] == 400, path


def test_the_log_holds_nothing_that_somebody_typed_and_no_message_says_where_the_server_lies(
    url: str, home: Path
) -> None:
    typed, there = "Anna%20was%20here", {"X_Forwarded_For": "198.51.100.77"}
    for method, path in (
        *(("GET", f"/train?text={typed}"), ("POST", f"/?text={typed}"), ("GET", f"/media/{typed}")),
        *(("GET", f"/_stcore/stream?{typed}"), ("GET", f"/component/{typed}/x"), ("GET", "/" + "A" * 70_000)),
        *(("PUT", f"/_stcore/upload_file/{typed}/x"), ("DELETE", f"/_stcore/upload_file/a/{typed}")),
    ):
        ask(url, path, method, b"Anna" if method == "PUT" else None, **there)

    heard: list[bytes] = []

    class Listener(Visitor):
        def _take_in(self, data: bytes | str) -> None:
            heard.append(data if isinstance(data, bytes) else data.encode())
            super()._take_in(data)

    async def looks() -> None:
        visitor = Listener(url)
        await visitor.enter()
        for page in ("", "attention", "train", "tokens", "room", f"no{typed}"):
            await visitor.visit(page, f"text={typed}&steps={typed}&id={typed}&tokens_view={typed}")
        await visitor.leave(abruptly=True)

    aside(looks())
    assert any(b"app.py" in message for message in heard)
    for place in (str(ROOT).encode(), str(home).encode()):
        assert not [message[:200] for message in heard if place in message], "where the server lies"
    lines = [line for line in (home / "server.log").read_text().splitlines() if line.startswith("{")]
    assert any('"server started"' in line for line in lines)
    for line in lines:
        assert not re.search(r"Anna|AAAA|198\.51|127\.0\.0\.1", line), line


def through(guarded: Any, scope: dict[str, Any]) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    aside(guarded(scope, receive, send))
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


def test_uvicorn_believes_no_proxy_whatever_a_platform_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    assert asgi_limits.middleware()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["client"] == ("192.0.2.7", 1), "the peer is what it was"
        await send({"type": "http.response.start", "status": 204, "headers": []})

    config = uvicorn.Config(app, log_config=None)
    config.load()
    scope = put("s", 1, "192.0.2.7") | {"headers": [(b"x-forwarded-for", b"6.6.6.6")]}
    assert through(config.loaded_app, scope)[0]["status"] == 204


async def answered(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})


def put(session: str, size: int, peer: str = "127.0.0.1") -> dict[str, Any]:
    return {"type": "http", "method": "PUT", "path": f"/base/_stcore/upload_file/{session}/f", "scheme": "http",
            "client": (peer, 1), "headers": [(b"content-length", str(size).encode())]}  # fmt: skip


def test_what_sessions_hold_is_limited_each_and_in_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlit.config.get_option", lambda name: 10 if name.endswith("UploadSize") else "")
    held = {"full": 10 * MB}
    monkeypatch.setattr(asgi_limits, "_held", lambda: held)

    def status(session: str) -> int:
        return int(through(Guard(answered), put(session, 9 * MB))[0]["status"])

    assert status("new") == 204 and status("full") == 413
    padded = put("new", 0) | {"headers": [(b"content-length", b"0" * 13 + str(12 * MB).encode())]}
    assert through(Guard(answered), padded)[0]["status"] == 413
    held |= {f"other{n}": 10 * MB for n in range(uploads.HELD)}
    assert status("new") == 503


@pytest.mark.parametrize(("profile", "most"), [("small", PROFILES["small"].max_tabs_address), ("local", 0)])
def test_one_address_has_so_many_tabs_and_gets_their_places_back(
    monkeypatch: pytest.MonkeyPatch, profile: str, most: int
) -> None:
    monkeypatch.setenv(VARIABLE, profile)
    many, opened = most or 300, 0
    refused: list[tuple[int, Any]] = []

    async def story() -> None:
        leave = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            nonlocal opened
            opened += 1
            await leave.wait()

        guarded = Guard(app)

        async def tab(number: int, peer: str) -> None:
            async def send(message: Any) -> None:
                refused.append((number, message))

            await guarded({"type": "websocket", "client": (peer, 1), "headers": []}, None, send)  # type: ignore[arg-type]

        tabs = []
        for number, peer in enumerate(["192.0.2.7"] * (many + 1) + ["192.0.2.8"]):
            tabs.append(asyncio.create_task(tab(number, peer)))
            await asyncio.sleep(0)
        leave.set()
        await asyncio.gather(*tabs)
        await tab(many + 2, "192.0.2.7")

    aside(story())
    assert refused == ([(many, {"type": "websocket.close", "code": 1013})] if most else [])
    assert opened == many + (2 if most else 3)


@pytest.mark.parametrize(
    ("frame", "taken"),
    [
        ({"bytes": BackMsg(app_heartbeat=True).SerializeToString()}, True),
        ({"text": "x", "bytes": None}, False),
    ],
)
def test_a_tab_that_sends_text_is_ended_before_streamlit_writes_a_trace(
    frame: dict[str, Any], taken: bool
) -> None:
    heard: list[Any] = []
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        heard.append(await receive())

    async def receive() -> Any:
        return {"type": "websocket.receive"} | frame

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "websocket", "client": ("192.0.2.7", 1), "headers": []}
    aside(Guard(app)(scope, receive, send))
    assert (heard[0]["type"] == "websocket.receive") == taken
    assert sent == ([] if taken else [{"type": "websocket.close", "code": 1003}])


def together(monkeypatch: pytest.MonkeyPatch, files: list[dict[str, Any]]) -> list[int]:
    """The answers to files that are sent at once, by somebody who sends a byte a minute: in their order."""
    monkeypatch.setattr(asgi_limits, "_held", dict)
    monkeypatch.setattr(asgi_limits, "UPLOAD_SECONDS", 0.5)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(60)

    async def one(guarded: Guard, scope: dict[str, Any]) -> int:
        statuses: list[int] = []

        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        async def receive() -> Any:
            return {}

        await guarded(scope, receive, send)
        return statuses[0]

    async def all_of_them() -> list[int]:
        guarded = Guard(app)
        first = list(await asyncio.gather(*(one(guarded, file) for file in files)))
        assert await one(guarded, files[0]) == 408, "positions are given back"
        return first

    return aside(all_of_them())


def test_one_visitor_does_not_hold_every_place(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = together(monkeypatch, [put(f"s{n}", 10, f"192.0.2.{n}") for n in range(6)])
    assert statuses == [408] * 4 + [503] * 2 and uploads.AT_ONCE == 4
    slow = [put("slow", 10, "192.0.2.7") for _ in range(4)]  # one tab
    tabs = [put(f"tab{n}", 10, "192.0.2.7") for n in range(3)]  # and more of its address
    statuses = together(monkeypatch, [*slow, *tabs, put("lecturer", 10, "192.0.2.8")])
    assert statuses == [408, 429, 429, 429, 408, 429, 429, 408]


def test_one_visitor_does_not_hold_all_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlit.config.get_option", lambda name: 10 if name.endswith("UploadSize") else "")
    held: dict[str, int] = {}
    monkeypatch.setattr(asgi_limits, "_held", lambda: held)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        session = scope["path"].split("/")[-2]
        held[session] = int(dict(scope["headers"])[b"content-length"])
        await answered(scope, receive, send)

    guarded = Guard(app)

    def status(session: str, peer: str) -> int:
        return int(through(guarded, put(session, 11 * MB, peer))[0]["status"])

    assert [status(f"tab{n}", "192.0.2.7") for n in range(8)] == [204] * 4 + [429] * 4
    assert [status(f"hall{n}", f"198.51.100.{n}") for n in range(5)] == [204] * 4 + [503]
    held.clear()  # the tabs are closed
    assert status("tab9", "192.0.2.7") == 204


def test_what_is_on_its_way_counts_as_held() -> None:
    known = Uploads()
    one = [Coming(f"s{n}", f"192.0.2.{n}", 10) for n in range(3)]
    with known.coming(one[0], {}), known.coming(one[1], {}):
        assert known.refusal(one[2], {"other": 8 * 10 - 30}, 10) is None
        refusal = known.refusal(one[2], {"other": 8 * 10 - 29}, 10)
        assert refusal is not None and refusal[0] == 503
    assert known.refusal(one[2], {"other": 8 * 10 - 29}, 10) is None
