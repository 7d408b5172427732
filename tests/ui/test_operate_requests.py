"""Requests of a tab: parts of a page that was left, clicks that come together or twice."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner_utils import script_requests
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests, ScriptRequestType
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState, WStates

from ui.operate import coalesced_clicks, duplicate_triggers, stale_fragment_reruns

ITSELF = dict(serializer=lambda value: value, deserializer=lambda value: value)


@pytest.fixture(autouse=True)
def heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        SessionState, "on_script_will_rerun", coalesced_clicks.taker(SessionState.on_script_will_rerun)
    )


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptRequests]:
    made = ScriptRequests()
    context = SimpleNamespace(
        fragment_ids_this_run=["stage"],
        script_requests=made,
        query_string="stage=1",
        page_script_hash="page",
        cached_message_hashes=frozenset({"kept"}),
        context_info=None,
    )
    monkeypatch.setattr(coalesced_clicks, "get_script_run_ctx", lambda: context)
    yield made


def state(*, disabled: bool = False) -> SessionState:
    """As they stand on a page that was drawn: a choice "view" and a button "go" of the page itself, checks
    "inside" and "beside" of the parts "stage" and "bar".
    """
    made = SessionState()
    controls: dict[str, tuple[Any, str | None, Any]] = {
        "view": ("string_value", None, "first"),
        "go": ("trigger_value", None, False),
        "inside": ("bool_value", "stage", False),
        "beside": ("bool_value", "bar", False),
    }
    for name, (kind, part, value) in controls.items():
        made._set_widget_metadata(
            WidgetMetadata(id=name, value_type=kind, fragment_id=part, disabled=disabled, **ITSELF)
        )
        made._new_widget_state.set_from_value(name, value)
    return made


def sent(view: str = "first", go: bool = False, inside: bool = False, beside: bool = False) -> WidgetStates:
    checks = [WidgetState(id=name, bool_value=on) for name, on in (("inside", inside), ("beside", beside))]
    pressed = [WidgetState(id="go", trigger_value=True)] if go else []
    return WidgetStates(widgets=[WidgetState(id="view", string_value=view), *checks, *pressed])


def whole(requests: ScriptRequests) -> RerunData | None:
    request = requests.on_scriptrunner_yield()
    return None if request is None else request.rerun_data


def after(requests: ScriptRequests) -> RerunData | None:
    request = requests.on_scriptrunner_ready()
    return request.rerun_data if request.type == ScriptRequestType.RERUN else None


def test_the_whole_page_is_drawn_for_a_choice_outside_of_the_part(requests: ScriptRequests) -> None:
    page = state()
    page.on_script_will_rerun(sent(view="second"))
    found = whole(requests)
    assert found is not None and not found.fragment_id_queue
    assert (found.query_string, found.page_script_hash) == ("stage=1", "page")
    assert found.cached_message_hashes == {"kept"}
    page.on_script_will_rerun(found.widget_states, replay_trigger_states=found.replay_trigger_states)
    assert page["view"] == "second"
    assert whole(requests) is None, "once"


def test_what_was_pressed_stays_pressed_and_its_function_is_called_once(
    monkeypatch: pytest.MonkeyPatch, requests: ScriptRequests
) -> None:
    page, called = state(), []
    monkeypatch.setattr(WStates, "call_callback", lambda _, name: called.append(name))
    page._set_widget_metadata(
        WidgetMetadata(id="go", value_type="trigger_value", fragment_id=None, callback=lambda: None, **ITSELF)
    )
    page.on_script_will_rerun(sent(go=True))
    found = whole(requests)
    assert found is not None
    page.on_script_will_rerun(found.widget_states, replay_trigger_states=found.replay_trigger_states)
    assert page["go"] is True and called == ["go"]


@pytest.mark.parametrize("values", [{}, {"inside": True}])
def test_a_part_alone_is_drawn_alone(requests: ScriptRequests, values: dict[str, bool]) -> None:
    state().on_script_will_rerun(sent(**values))
    assert whole(requests) is None and after(requests) is None


def test_two_parts_are_drawn_one_after_the_other(requests: ScriptRequests) -> None:
    page = state()
    page.on_script_will_rerun(sent(beside=True, inside=True))
    assert whole(requests) is None, "the first is drawn to its end"
    found = after(requests)
    assert found is not None and found.fragment_id_queue == ["bar"]
    page.on_script_will_rerun(found.widget_states, replay_trigger_states=found.replay_trigger_states)
    assert page["beside"] is True


def test_what_cannot_be_clicked_or_is_not_known_draws_nothing(requests: ScriptRequests) -> None:
    state(disabled=True).on_script_will_rerun(sent(view="forged"))
    forged = WidgetStates(widgets=[WidgetState(id="never drawn", string_value="forged")])
    state().on_script_will_rerun(forged)
    state().on_script_will_rerun(None)
    assert whole(requests) is None and after(requests) is None


@pytest.mark.parametrize("context", [None, {"fragment_ids_this_run": None}])
def test_a_whole_page_is_not_asked_for_twice(
    monkeypatch: pytest.MonkeyPatch, requests: ScriptRequests, context: Any
) -> None:
    found = None if context is None else SimpleNamespace(**context, script_requests=requests)
    monkeypatch.setattr(coalesced_clicks, "get_script_run_ctx", lambda: found)
    state().on_script_will_rerun(sent(view="second"))
    assert whole(requests) is None and after(requests) is None


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (RerunData(page_script_hash="shown", fragment_id_queue=["part"]), True),
        (RerunData(page_script_hash="left", fragment_id_queue=["part"]), False),
        (RerunData(page_script_hash="", fragment_id_queue=["part"]), False),
        (RerunData(page_script_hash="left"), True),  # somebody goes there
        (RerunData(), True),
    ],
)
def test_a_part_is_drawn_again_on_its_own_page_only(monkeypatch, asked: RerunData, answered: bool) -> None:
    heard: list[RerunData] = []
    runner = SimpleNamespace(_pages_manager=SimpleNamespace(current_page_script_hash="shown"))
    stale_fragment_reruns.runner(lambda _, data: heard.append(data))(runner, asked)
    assert heard == [asked] * answered


def part(page: str, name: str = "bar") -> RerunData:
    return RerunData(page_script_hash=page, fragment_id=name)


@pytest.mark.parametrize(
    ("waits", "comes", "answered"),
    [
        (RerunData(page_script_hash="next"), part("left"), ("next", [])),
        (
            RerunData(page_name="here"),
            part("here"),
            ("here", []),
        ),  # who has come back is on the page that was shown
        (RerunData(page_script_hash="here"), part("here"), ("here", [])),
        (RerunData(page_script_hash="next"), RerunData(page_script_hash="other"), ("other", [])),
        (part("here", "one"), part("here"), ("here", ["one", "bar"])),
        (part("left"), RerunData(page_script_hash="next"), ("next", [])),
    ],
)
def test_a_click_that_waits_is_not_undone_by_a_part_of_the_page_that_is_left(
    monkeypatch, waits: RerunData, comes: RerunData, answered: tuple[str, list[str]]
) -> None:
    replaced = stale_fragment_reruns.waiter(ScriptRequests._request_rerun_locked)
    monkeypatch.setattr(ScriptRequests, "_request_rerun_locked", replaced)
    requests = ScriptRequests()
    assert requests.request_rerun(waits) and requests.request_rerun(comes)
    request = requests.on_scriptrunner_ready()
    assert (request.rerun_data.page_script_hash, request.rerun_data.fragment_id_queue) == answered


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A tab's session as far as requests pass through it: `asked` holds what its runs are to draw."""
    monkeypatch.setattr(AppSession, "request_rerun", duplicate_triggers.requester(AppSession.request_rerun))
    made: Any = SimpleNamespace(asked=[], has_fragment=lambda part: True, _state=None, _scriptrunner=None)
    made._create_scriptrunner = made.asked.append
    yield made


def pressed_message(*, by_itself: bool, pressed: bool = True) -> ClientState:
    states = [WidgetState(id="width", int_value=7)]
    if pressed:
        states += [
            WidgetState(id="pause", trigger_value=True),
            WidgetState(id="player", json_trigger_value='[{"event": "asked"}]'),
        ]
    message = ClientState(fragment_id="panel", is_auto_rerun=by_itself)
    message.widget_states.widgets.extend(states)
    return message


def names(request: Any) -> list[str]:
    return [one.id for one in request.widget_states.widgets]


def test_what_a_part_asks_for_by_itself_presses_nothing(session: Any) -> None:
    AppSession.request_rerun(session, pressed_message(by_itself=True))
    AppSession.request_rerun(session, pressed_message(by_itself=False))
    AppSession.request_rerun(session, pressed_message(by_itself=True, pressed=False))
    assert [names(one) for one in session.asked] == [["width"], ["width", "pause", "player"], ["width"]]
    assert [one.is_auto_rerun for one in session.asked] == [True, False, True]


def test_all_that_is_pressed_is_known() -> None:
    assert duplicate_triggers.PRESSED == script_requests._TRIGGER_PROTO_FIELDS
