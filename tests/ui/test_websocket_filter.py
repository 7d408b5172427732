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


REAL = "0123456789abcdef" * 2  # an id as Streamlit makes them
FORGED = "x\n[ERROR] the disk is full"


def rerun(**fields: Any) -> BackMsg:
    message = BackMsg()
    message.rerun_script.SetInParent()
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(message.rerun_script, name).extend(value)
        else:
            setattr(message.rerun_script, name, value)
    return message


def operation(request: str = REAL, file: str | None = REAL, **rest: Any) -> BackMsg:
    message = BackMsg()
    message.backend_operation_request.request_id = request
    if file is not None:
        message.backend_operation_request.deferred_file.file_id = file
    for name in rest:
        getattr(message.backend_operation_request, name).SetInParent()
    return message


def files(*names: str, request: str = REAL) -> BackMsg:
    message = BackMsg()
    message.file_urls_request.request_id = request
    message.file_urls_request.file_names.extend(names)
    return message


def control(name: str, **value: Any) -> BackMsg:
    message = rerun()
    message.rerun_script.widget_states.widgets.add(id=name, **value)
    return message


def browser_at(**about: str) -> BackMsg:
    message = rerun()
    for name, value in about.items():
        setattr(message.rerun_script.context_info, name, value)
    return message


PLAIN = {
    "a page": rerun(page_name="train", query_string="text=" + "%F0%9F%92%A5" * 2_000, page_script_hash=REAL),
    "a fragment": rerun(fragment_id=REAL, cached_message_hashes=[REAL, "ab12"]),
    "a long text in a control": control(f"$$ID-{REAL}-text", string_value="x" * 300_000),
    "a browser": browser_at(timezone="Europe/Berlin", locale="de-DE", url="http://app.example/train?a=b"),
    "a download": operation(),
    "files": files("my text.txt", "ä.gguf"),
    "a stop": BackMsg(stop_script=True),
    "a heartbeat": BackMsg(app_heartbeat=True),
}
ODD = {
    "nothing": BackMsg(),
    "a fragment's forged line": rerun(fragment_id=FORGED),
    "a long fragment": rerun(fragment_id="a" * 1_000_000),
    "a page's forged line": rerun(page_script_hash=FORGED),
    "a long page": rerun(page_name="a" * 1_000_000),
    "a long link": rerun(query_string="a=" + "b" * 1_000_000),
    "a forged message": rerun(cached_message_hashes=[FORGED]),
    "a long control": control("$$ID-" + "x" * 1_000_000),
    "a long timezone": browser_at(timezone="x" * 1_000_000),
    "a long locale": browser_at(locale="x" * 1_000_000),
    "a long address": browser_at(url="x" * 1_000_000),
    "a request's forged line": operation(request=FORGED),
    "a long request": operation(request="a" * 1_000_000),
    "a file's forged line": operation(file=FORGED),
    "a long file": operation(file="a" * 1_000_000),
    "an operation on nothing": operation(file=None),
    "an operation on the machine": operation(file=None, install_skills=True),
    "another one": operation(file=None, dismiss_skills_nudge=True),
    "a table's rows": operation(file=None, dataframe_chunk=True),
    "many files": files(*["a.txt"] * 10_000),
    "a file of a long name": files("a" * 1_000_000),
    "a forged request of files": files("a.txt", request=FORGED),
}


@pytest.mark.parametrize("what", PLAIN)
def test_what_a_browser_sends_is_heard(what: str) -> None:
    sent = PLAIN[what].SerializeToString()
    assert passing(True, sent) == ([sent], [])


@pytest.mark.parametrize("what", ODD)
def test_what_no_browser_sends_reaches_neither_streamlit_nor_its_log(what: str) -> None:
    last = BackMsg(app_heartbeat=True).SerializeToString()
    assert passing(True, ODD[what].SerializeToString(), last) == ([last], [])


def test_every_kind_of_order_is_one_or_the_other() -> None:
    kinds = {field.name for field in BackMsg.DESCRIPTOR.oneofs_by_name["type"].fields}
    assert kinds > websocket_filter.VISITORS and kinds > websocket_filter.DEVELOPERS
    assert {each.WhichOneof("type") for each in PLAIN.values()} == websocket_filter.VISITORS


def through_sending(*sent: dict[str, Any], folder: str = "/app") -> list[Any]:
    heard: list[Any] = []

    async def send(message: Any) -> None:
        heard.append(message)

    async def play() -> None:
        passed = websocket_filter.sending(send, Path(folder))
        for message in sent:
            await passed(message)

    aside(play())
    return heard


def with_text(kind: str, text: str) -> ForwardMsg:
    """A message of that kind, with the text in the first of its fields that hold any."""
    message = ForwardMsg(hash=text)

    def fill(part: Any, depth: int) -> bool:
        for field in part.DESCRIPTOR.fields:
            if field.is_repeated:
                continue
            if field.type == field.TYPE_STRING:
                setattr(part, field.name, text)
                return True
            if field.type == field.TYPE_MESSAGE and depth < 4 and fill(getattr(part, field.name), depth + 1):
                return True
        return False

    field = ForwardMsg.DESCRIPTOR.fields_by_name[kind]
    if field.type == field.TYPE_STRING:
        setattr(message, kind, text)
    elif field.type == field.TYPE_MESSAGE:
        getattr(message, kind).SetInParent()
        fill(getattr(message, kind), 0)
    else:
        setattr(message, kind, 1)
    return message


KINDS = [field.name for field in ForwardMsg.DESCRIPTOR.oneofs_by_name["type"].fields]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["and/appropriate", "api/apple", "/app", "/app/app.py"])
def test_a_text_that_holds_the_servers_folder_is_sent_as_it_is(kind: str, text: str) -> None:
    before = with_text(kind, text)
    (heard,) = through_sending({"type": "websocket.send", "bytes": before.SerializeToString()})
    after = ForwardMsg.FromString(heard["bytes"])
    assert after.WhichOneof("type") == kind and after.hash == text
    if kind == "new_session":
        assert not after.new_session.main_script_path
    assert after == before


def test_no_message_says_where_the_server_lies() -> None:
    told = ForwardMsg()
    told.new_session.main_script_path, told.new_session.name = "/srv/place/app.py", "app"
    plain = ForwardMsg(script_finished=1).SerializeToString()
    heard = through_sending(
        {"type": "websocket.send", "bytes": told.SerializeToString()},
        {"type": "websocket.send", "bytes": plain},
        {"type": "websocket.accept"},
        folder="/srv/place",
    )
    assert ForwardMsg.FromString(heard[0]["bytes"]).new_session.main_script_path == "app.py"
    assert ForwardMsg.FromString(heard[0]["bytes"]).new_session.name == "app"
    assert heard[1]["bytes"] == plain and heard[2] == {"type": "websocket.accept"}
