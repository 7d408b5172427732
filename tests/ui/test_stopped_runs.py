"""A run that is stopped for another writes nothing more into the session of both."""

import threading
from collections.abc import Callable, Iterator

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.scriptrunner_utils.exceptions import StopException
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests, ScriptRequestType
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.state.session_state import SessionState

from ui.operate import patches, stopped_runs

SOON = 0.3  # seconds in which a run that may begin has begun


@pytest.fixture(autouse=True)
def patched() -> Iterator[None]:
    patches.install()
    yield
    patches.withdraw()


class Run:
    """What of a script runner the state of a session knows."""

    def __init__(self, state: SessionState) -> None:
        self._requests = ScriptRequests()
        self.executes = True  # what it is no more when it tells that it has ended
        self.held_up: Callable[[], None] = lambda: None  # after the first look, once
        self.state = SafeSessionState(state, self.look)

    def look(self) -> None:
        if self.executes and self._requests._state is ScriptRequestType.STOP:
            raise StopException
        held_up, self.held_up = self.held_up, lambda: None
        held_up()

    def begins(self, chosen: str, pressed: bool = False) -> None:
        self.state.on_script_will_rerun(sent(chosen, pressed))

    def ends(self) -> None:
        self.executes = False
        self.state.on_script_finished(frozenset({"view", "button"}))

    def stop(self) -> None:
        self._requests.request_stop()


def sent(chosen: str, pressed: bool) -> WidgetStates:
    states = WidgetStates()
    states.widgets.add(id="view", string_value=chosen)
    if pressed:
        states.widgets.add(id="button", trigger_value=True)
    return states


@pytest.fixture
def session() -> SessionState:
    state = SessionState()
    for name, kind in (("view", "string_value"), ("button", "trigger_value")):
        state.register_widget(WidgetMetadata(name, lambda value: value, lambda value: value, kind), None)
    return state


def test_the_values_of_before_a_click_are_not_put_over_those_of_the_click(session: SessionState) -> None:
    before, click = Run(session), Run(session)
    clicked = threading.Thread(target=click.begins, args=("new", True))

    def held_up() -> None:
        before.stop()
        clicked.start()
        clicked.join(SOON)

    before.held_up = held_up
    with pytest.raises(StopException):
        before.begins("old")
    clicked.join()
    assert session["view"] == "new" and session["button"]


def test_a_stopped_run_that_ends_lets_the_next_ones_button_be(session: SessionState) -> None:
    before, click = Run(session), Run(session)
    before.begins("old")
    before.stop()
    click.begins("new", pressed=True)
    before.ends()
    assert session["button"]
    click.ends()
    assert not session["button"], "a run that was not stopped lets its own button go"


def test_a_run_that_is_asked_to_stop_writes_nothing_more_and_frees_the_lock(session: SessionState) -> None:
    before = Run(session)
    before.held_up = before.stop
    with pytest.raises(StopException):
        before.state["kept"] = "old"
    assert "kept" not in session
    after = threading.Thread(target=Run(session).begins, args=("new",), daemon=True)
    after.start()
    after.join(5.0)
    assert session["view"] == "new"


def test_sessions_have_locks_of_their_own_and_leave_none_behind() -> None:
    first, second = SessionState(), SessionState()
    turns = [stopped_runs.Turn(state, lambda: None) for state in (first, first, second)]
    locks = [turn._lock for turn in turns]
    assert locks[0] is locks[1] is not locks[2]
    held = len(stopped_runs._LOCKS)
    del turns, locks
    assert len(stopped_runs._LOCKS) == held - 2


def test_a_state_that_no_run_reads_ends_as_before(session: SessionState) -> None:
    alone = SafeSessionState(session, lambda: None)
    alone.on_script_will_rerun(sent("old", True))
    alone.on_script_finished(frozenset({"view", "button"}))
    assert not session["button"]
