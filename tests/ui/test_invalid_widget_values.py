"""Values of controls: what none can hold is as it was at first."""

from typing import Any

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import WStates

from ui.operate import invalid_widget_values

FIRST = 7.0


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> WStates:
    """One control that holds a number, as Streamlit's own number input reads it."""
    monkeypatch.setattr(WStates, "__getitem__", invalid_widget_values.reader(WStates.__getitem__))
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
