"""Values of controls: what none can hold is as it was at first, and one by one they are those that Streamlit collects."""

from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.state.session_state import WStates
from streamlit.testing.v1 import AppTest

from ui.operate import fast_widget_lookup, invalid_widget_values

FIRST = 7.0


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> WStates:
    """One control that holds a number, as Streamlit's own number input reads it."""
    monkeypatch.setattr(WStates, "__getitem__", WStates.__getitem__)
    invalid_widget_values.ignore()
    found = WStates()

    def read(sent: Any) -> float | None:
        return FIRST if sent is None else float(sent)

    found.set_widget_metadata(WidgetMetadata("n", read, lambda value: value, "double_value"))
    return found


def sent(**value: Any) -> WidgetState:
    state = WidgetState(id="n")
    for name, each in value.items():
        if isinstance(each, list):
            getattr(state, name).data.extend(each)
        else:
            setattr(state, name, each)
    return state


@pytest.mark.parametrize("value, read", [({"double_value": 2.5}, 2.5), ({"int_value": 3}, 3.0)])
def test_a_number_is_a_number_however_a_browser_writes_it(
    states: WStates, value: dict[str, Any], read: float
) -> None:
    states.set_widget_from_proto(sent(**value))
    assert states["n"] == read and states.get("n") == read


@pytest.mark.parametrize(
    "value", [{"string_value": "9"}, {"bool_value": True}, {"double_array_value": [1.0]}, {"json_value": "{"}]
)
def test_anything_else_is_what_stood_there_at_first(states: WStates, value: dict[str, Any]) -> None:
    states.set_widget_from_proto(sent(**value))
    assert states["n"] == FIRST
    serialized = states.get_serialized("n")
    assert serialized is not None and serialized.double_value == FIRST, "and it can be sent back"


@pytest.fixture
def singly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(SafeSessionState, "filtered_state", SafeSessionState.filtered_state)
    fast_widget_lookup.singly()
    yield


def page() -> None:
    import streamlit as st

    st.session_state.setdefault("own", [1])
    st.session_state.setdefault("emptied", None)
    st.session_state.setdefault("text", None)
    st.number_input("Steps", 1, 9, 4, key="steps")
    st.number_input("Seed", 1, 9, 4, key="emptied")
    st.selectbox("Kind", ["a", "b"], key="kind")
    st.text_input("Text", "x", key="text")
    st.slider("Heat", 0.0, 2.0, 1.0, key="heat")
    st.text_input("Without a key")
    st.write(dict(st.session_state.to_dict()), len(st.session_state), str(st.session_state))


def test_it_holds_what_streamlit_collects(singly: None) -> None:
    at = AppTest.from_function(page, default_timeout=60).run()
    state = at.session_state._state
    assert isinstance(state, SafeSessionState)
    collected, values = fast_widget_lookup._COLLECTED.__get__(state), state.filtered_state
    assert isinstance(values, fast_widget_lookup._Values) and {"own", "steps", "emptied", "heat"} <= set(
        collected
    )
    assert dict(values) == collected and len(values) == len(collected) and repr(values) == repr(collected)
    assert "nobody" not in values
    hidden = [key for key in state._state._keys() if key not in collected]
    assert hidden and not [key for key in hidden if key in values]
