"""A click that comes in one message with what a part of the page asked for."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.scriptrunner_utils.script_requests import (
    RerunData,
    ScriptRequests,
    ScriptRequestType,
)
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState, WStates

from ui.operate import joined

ITSELF = dict(serializer=lambda value: value, deserializer=lambda value: value)


@pytest.fixture(autouse=True)
def heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SessionState, "on_script_will_rerun", SessionState.on_script_will_rerun)
    joined.heed()


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptRequests]:
    """Those of a run that draws the part "stage" again."""
    made = ScriptRequests()
    context = SimpleNamespace(
        fragment_ids_this_run=["stage"],
        script_requests=made,
        query_string="stage=1",
        page_script_hash="page",
        cached_message_hashes=frozenset({"kept"}),
        context_info=None,
    )
    monkeypatch.setattr(joined, "get_script_run_ctx", lambda: context)
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
    """What is drawn in place of the part."""
    request = requests.on_scriptrunner_yield()
    return None if request is None else request.rerun_data


def after(requests: ScriptRequests) -> RerunData | None:
    """What is drawn after the part."""
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
    monkeypatch.setattr(joined, "get_script_run_ctx", lambda: found)
    state().on_script_will_rerun(sent(view="second"))
    assert whole(requests) is None and after(requests) is None
