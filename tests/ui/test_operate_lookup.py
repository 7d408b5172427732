"""The values of a tab, looked up one by one, are those that Streamlit collects."""

from collections.abc import Iterator

import pytest
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.testing.v1 import AppTest

from ui.operate import lookup


@pytest.fixture
def singly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(SafeSessionState, "filtered_state", SafeSessionState.filtered_state)
    lookup.singly()
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
    collected, values = lookup._COLLECTED.__get__(state), state.filtered_state
    assert isinstance(values, lookup._Values) and {"own", "steps", "emptied", "heat"} <= set(collected)
    assert dict(values) == collected and len(values) == len(collected) and repr(values) == repr(collected)
    assert "nobody" not in values
    hidden = [key for key in state._state._keys() if key not in collected]
    assert hidden and not [key for key in hidden if key in values]
