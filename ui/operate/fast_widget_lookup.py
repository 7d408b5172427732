"""A control asks after its own value by its key. Streamlit 1.67 collects the values of all keys for each
control, an eighth of what a hall of visitors costs a server (py-spy beside benchmarks/load.py): here that one
is looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamlit.runtime.state.common import is_element_id
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.state.session_state import _is_internal_key

# Streamlit's own: what its widgets read before they are drawn
_COLLECTED = SafeSessionState.filtered_state


def singly() -> None:
    """Makes Streamlit look keys up one by one."""
    SafeSessionState.filtered_state = property(_Values)  # type: ignore[assignment, method-assign]


class _Values(Mapping[str, Any]):
    """The values of one tab by their keys, as they are now: collected where all of them are wanted."""

    def __init__(self, state: SafeSessionState) -> None:
        self._state = state

    def __getitem__(self, key: str) -> Any:
        if is_element_id(key) or _is_internal_key(key):
            raise KeyError(key)
        with self._state._lock:
            return self._state._state[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(self._all())

    def _all(self) -> dict[str, Any]:
        collected: dict[str, Any] = _COLLECTED.__get__(self._state)
        return collected
