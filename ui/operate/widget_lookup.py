"""Streamlit's select boxes, sliders and text fields look up whether their own value is None in a copy of the
whole state: all that a tab has kept of every page that it has visited.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class ByKey(Mapping[str, Any]):
    """The same state, read key by key, and copied only by who wants all of it."""

    def __init__(self, state: Any, copied: property) -> None:
        self._state, self._copied = state, copied

    def __contains__(self, key: object) -> bool:
        return key in self._state

    def __getitem__(self, key: str) -> Any:
        return self._state[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._copied.__get__(self._state))

    def __len__(self) -> int:
        return len(self._copied.__get__(self._state))


def by_key(original: property) -> property:
    """Returns a `SessionState.filtered_state` that copies nothing."""
    return property(lambda state: ByKey(state, original))
