"""A click that a browser sends twice, once by accident, is carried out once."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner_utils import script_requests

from ui.operate import twice


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A tab's session as far as requests pass through it: `asked` holds what its runs are to draw."""
    monkeypatch.setattr(AppSession, "request_rerun", twice._REQUEST)
    twice.heed_once()
    made: Any = SimpleNamespace(asked=[], has_fragment=lambda part: True, _state=None, _scriptrunner=None)
    made._create_scriptrunner = made.asked.append
    yield made


def sent(*, by_itself: bool, pressed: bool = True) -> ClientState:
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
    AppSession.request_rerun(session, sent(by_itself=True))
    AppSession.request_rerun(session, sent(by_itself=False))
    AppSession.request_rerun(session, sent(by_itself=True, pressed=False))
    assert [names(one) for one in session.asked] == [["width"], ["width", "pause", "player"], ["width"]]
    assert [one.is_auto_rerun for one in session.asked] == [True, False, True]


def test_a_request_without_a_browser_passes(session: Any) -> None:
    AppSession.request_rerun(session, None)
    assert len(session.asked) == 1


def test_all_that_is_pressed_is_known() -> None:
    assert twice.PRESSED == script_requests._TRIGGER_PROTO_FIELDS
