"""A click beside a fragment runs the page, also where both go in one message."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState

from ui.operate import patches

FRAGMENT = "player"
Send = Callable[..., str | None]


@pytest.fixture(autouse=True)
def patched() -> Iterator[None]:
    patches.install()
    yield
    patches.withdraw()


@pytest.fixture
def session() -> Iterator[Any]:
    """A session at rest, whose page has a view, a button and, in a fragment, a player."""
    made: Any = AppSession.__new__(AppSession)
    made._state, made._scriptrunner, made._client_state = AppSessionState.APP_NOT_RUNNING, None, ClientState()
    made._session_state = SessionState()
    for name, kind in {"view": "string_value", "button": "trigger_value", "player": "json_value"}.items():
        within = FRAGMENT if name == "player" else None
        made._session_state.register_widget(
            WidgetMetadata(name, lambda value: value or "", lambda value: value, kind, fragment_id=within),
            None,
        )
    made.has_fragment = lambda name: name == FRAGMENT
    yield made
    made._state = AppSessionState.SHUTDOWN_REQUESTED


@pytest.fixture
def send(session: Any) -> Send:
    """Sends a message; returns the fragment that runs, None for the page."""
    run: list[Any] = []

    def create(data: Any) -> None:
        run.append(data.fragment_id)
        session._session_state.set_widgets_from_proto(data.widget_states)

    session._create_scriptrunner = create

    def sent(fragment: str = FRAGMENT, pressed: bool = False, **values: str) -> str | None:
        message = ClientState(fragment_id=fragment)
        for name, value in values.items():
            kind: dict[str, Any] = {"json_value" if name == "player" else "string_value": value}
            message.widget_states.widgets.add(id=name, **kind)
        if pressed:
            message.widget_states.widgets.add(id="button", trigger_value=True)
        session.request_rerun(message)
        return run[-1]

    return sent


def test_a_fragments_message_runs_the_fragment_alone(send: Send) -> None:
    assert send(view="", player='"1"') == FRAGMENT
    assert send(view="", player='"2"') == FRAGMENT


def test_with_a_click_beside_it_runs_the_page(send: Send) -> None:
    """The browser's first message, and a later one; a button as well as a choice."""
    assert send(view="other", player='"1"') is None
    assert send(view="other", player='"2"') == FRAGMENT, "which the page knows by now"
    assert send(view="third", player='"2"') is None
    assert send(pressed=True, view="third", player='"3"') is None


def test_what_the_server_has_changed_is_no_click(session: Any, send: Send) -> None:
    assert send(fragment="", view="old") is None
    session._session_state._new_widget_state.set_from_value("view", "new")  # by a callback, say
    assert send(view="old", player='"1"') == FRAGMENT, "sent before the browser heard of it"
    assert send(view="new", player='"1"') is None, "and by now it has"


def test_what_the_server_does_not_know_or_cannot_read_is_no_click(session: Any, send: Send) -> None:
    def refuse(value: Any) -> Any:
        raise ValueError(value)

    assert send(unknown="1", player='"1"') == FRAGMENT
    session._session_state._set_widget_metadata(WidgetMetadata("view", refuse, refuse, "string_value"))
    assert send(view="forged", player='"1"') == FRAGMENT
