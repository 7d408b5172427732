"""What a page follows: the route answers whoever drew it, tells changes, and the page is drawn again for another state."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from tests.aside import aside
from ui import asgi_limits, identity, live, session
from ui.asgi_limits import Guard
from ui.live import Sight

NOW: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def at_first(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    live._followed.clear()
    NOW.clear()
    NOW.update(state="running", step=3, owner="somebody", cookie=None)
    monkeypatch.setattr(session, "owner", lambda: NOW["owner"])
    monkeypatch.setattr(st, "context", SimpleNamespace(cookies={}, headers={}))
    yield
    live._followed.clear()


def page() -> None:
    from tests.ui.test_live import NOW, look
    from ui import live

    live.follow("run", look, drawn=NOW.get("drawn"), every=0.5)


def look() -> Sight:
    if NOW["state"] == "broken":
        raise ZeroDivisionError
    return Sight(NOW["state"], NOW["step"], 0.3, f"step {NOW['step']}", lambda: {"chart": b'{"a": 1}'})


def opened() -> dict[str, Any]:
    """What the page sends its component."""
    (told,) = AppTest.from_function(page, default_timeout=60).run().get("bidi_component")
    found: dict[str, Any] = json.loads(told.proto.json)
    return found


def client(**cookies: str) -> TestClient:
    return TestClient(Starlette(routes=live.routes()), cookies=cookies)


def test_the_route_tells_what_has_changed_and_nothing_where_nothing_has() -> None:
    sent, asked = opened(), client()
    assert sent["text"] == "step 3" and sent["share"] == 0.3 and "figures" not in sent
    address = f"/live/{sent['token']}"
    assert asked.get(address, params={"since": sent["version"]}).status_code == 204
    NOW["step"] = 4
    told = asked.get(address, params={"since": sent["version"]}).json()
    assert told["text"] == "step 4" and told["figures"] == {"chart": '{"a": 1}'}
    assert told["state"] == sent["state"] and told["version"] != sent["version"]
    NOW["state"] = "finished"
    assert asked.get(address, params={"since": told["version"]}).json()["state"] != sent["state"]


def test_a_page_that_shows_an_older_state_hears_of_the_new_one_though_nothing_changes_any_more() -> None:
    """As one whose run ends while the page is being drawn."""
    NOW.update(state="finished", drawn="running")
    sent = opened()
    told = client().get(f"/live/{sent['token']}", params={"since": sent["version"]})
    assert told.status_code == 200 and told.json()["state"] != sent["state"]


def test_only_the_browser_that_drew_it_may_ask_where_it_keeps_a_cookie(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cookie, other = identity.new_cookie(), identity.new_cookie()
    NOW["owner"] = identity.key_in(cookie)
    monkeypatch.setattr(st, "context", SimpleNamespace(cookies={identity.COOKIE: cookie}, headers={}))
    address = f"/live/{opened()['token']}"
    assert client(**{identity.COOKIE: cookie}).get(address).status_code == 200
    assert client(**{identity.COOKIE: other}).get(address).status_code == 403
    assert client().get(address).status_code == 403


@pytest.mark.parametrize("token", ["unknown", "a" * 24, "%2e%2e"])
def test_nobody_follows_what_no_page_has_drawn(token: str) -> None:
    assert client().get(f"/live/{token}").status_code == 404


def test_what_cannot_be_looked_at_is_left_to_the_page() -> None:
    address = f"/live/{opened()['token']}"
    NOW["state"] = "broken"
    assert client().get(address).status_code == 404


def test_what_nobody_asks_about_is_forgotten_and_there_are_not_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "MOST", 3)
    tokens = [opened()["token"] for _ in range(5)]
    assert list(live._followed) == tokens[2:]
    live._followed[tokens[2]] = live._followed[tokens[2]]._replace(asked=-1e9)
    last = opened()["token"]
    assert list(live._followed) == [*tokens[3:], last]


@pytest.mark.parametrize(("peer", "refused"), [("192.0.2.7", 4), ("127.0.0.1", 0)])
def test_an_address_asks_as_often_as_all_its_tabs_may(
    monkeypatch: pytest.MonkeyPatch, peer: str, refused: int
) -> None:
    monkeypatch.setattr(asgi_limits.time, "monotonic", lambda: 1000.5)
    monkeypatch.setattr(asgi_limits, "ASKS", 1)
    answers: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})

    async def send(message: Any) -> None:
        answers.extend([message["status"]] if "status" in message else [])

    guarded = Guard(app)
    guarded._most_tabs = 10
    scope = {"type": "http", "method": "GET", "client": (peer, 1), "headers": []}

    async def play() -> None:
        for path in (*("/live/x", "/live/y") * 7, *["/search"] * 3):
            await guarded({**scope, "path": path, "scheme": "http"}, None, send)  # type: ignore[arg-type]

    aside(play())
    assert answers.count(429) == refused and answers.count(204) == 17 - refused
