"""What strangers send over the websocket: origins of other sites, orders that are not theirs to give."""

import logging
from pathlib import Path
from typing import Any

import pytest
from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server.starlette.starlette_websocket import _is_origin_allowed

from tests.aside import aside
from ui import websocket_filter

HOST = b"app.example:8501"


def asked(origin: str | None) -> dict[str, Any]:
    told = [] if origin is None else [(b"origin", origin.encode())]
    return {"type": "websocket", "headers": [(b"host", HOST), *told]}


@pytest.fixture
def nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: Any) -> None:
        raise AssertionError("Streamlit asks the world for its address")

    monkeypatch.setattr("streamlit.net_util.get_external_ip", ask)


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        (None, True),
        ("http://app.example:8501", True),
        ("https://app.example:8501", True),
        ("http://localhost:3000", True),
        ("https://moodle.example", True),
        ("http://elsewhere.example", False),
        ("http://app.example.evil.example", False),
        ("http://app.example@evil.example", False),
        ("null", False),
        ("http://None", False),
        ("http://[", False),
        ("", False),
    ],
)
def test_another_sites_origin_is_refused_without_asking_the_world(
    origin: str | None, allowed: bool, nobody_is_asked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = config.get_option
    mine = {"server.corsAllowedOrigins": ["https://moodle.example"]}
    monkeypatch.setattr(config, "get_option", lambda name: mine.get(name, real(name)))
    passed = websocket_filter.same_origin(asked(origin))  # type: ignore[arg-type]
    assert (passed is not None) == allowed
    if passed is not None:
        told = dict(passed["headers"]).get(b"origin")
        assert _is_origin_allowed(told.decode() if told else None, HOST.decode())


def test_the_log_is_not_flooded_by_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [100.0]
    monkeypatch.setattr(websocket_filter, "_said", {})
    monkeypatch.setattr(websocket_filter.time, "monotonic", lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            websocket_filter.same_origin(asked("http://evil.example"))  # type: ignore[arg-type]
        now[0] += websocket_filter.QUIET_SECONDS
        websocket_filter.same_origin(asked("http://evil.example"))  # type: ignore[arg-type]
    assert len(caplog.records) == 2 and "evil" not in caplog.text


def passing(public: bool, *sent: bytes) -> tuple[list[Any], list[Any]]:
    """What the server hears of these messages, and what it answers."""
    messages = [{"type": "websocket.receive", "bytes": data} for data in sent]
    answers: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0) if messages else {"type": "websocket.disconnect"}

    async def send(message: Any) -> None:
        answers.append(message)

    async def play() -> list[Any]:
        received, heard = websocket_filter.receiving(receive, send, public), list[Any]()
        while not heard or heard[-1]["type"] == "websocket.receive":
            heard.append(await received())
        return [one.get("bytes") for one in heard[:-1]]

    return aside(play()), answers


@pytest.mark.parametrize(("public", "kept"), [(True, False), (False, True)])
def test_no_stranger_empties_what_is_kept_for_all(public: bool, kept: bool) -> None:
    rerun = BackMsg()
    rerun.rerun_script.query_string = "x=1"
    order, debug = BackMsg(clear_cache=True), BackMsg(debug_shutdown_runtime=True)
    sent = [one.SerializeToString() for one in (order, debug, rerun)]
    heard, answers = passing(public, *sent)
    assert heard == ([sent[0]] if kept else []) + [sent[2]] and not answers


def test_a_malformed_message_ends_its_connection_with_a_line_and_no_trace(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(websocket_filter, "_said", {})
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            heard, answers = passing(True, b"\xff\xff", BackMsg(stop_script=True).SerializeToString())
            assert heard == [] and answers == [{"type": "websocket.close", "code": 1003}]
    assert len(caplog.records) == 1 and not caplog.records[0].exc_info


def test_no_message_says_where_the_server_lies() -> None:
    told = ForwardMsg()
    told.new_session.main_script_path, told.new_session.name = "/srv/place/app.py", "app"
    plain = ForwardMsg(script_finished=1).SerializeToString()
    heard: list[Any] = []

    async def send(message: Any) -> None:
        heard.append(message)

    async def play() -> None:
        sent = websocket_filter.sending(send, Path("/srv/place"))
        for data in (told.SerializeToString(), plain):
            await sent({"type": "websocket.send", "bytes": data})
        await sent({"type": "websocket.accept"})

    aside(play())
    assert ForwardMsg.FromString(heard[0]["bytes"]).new_session.main_script_path == "app.py"
    assert ForwardMsg.FromString(heard[0]["bytes"]).new_session.name == "app"
    assert heard[1]["bytes"] == plain and heard[2] == {"type": "websocket.accept"}
