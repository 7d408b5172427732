"""Values that no widget can hold: a word where a number is asked for, a list where there is one, JSON that
is none. No browser sends them, but whoever speaks to the server without one may, and a page that was open
while the server got a new version.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetState

log = logging.getLogger(__name__)

_NUMBERS = {"int_value": "double_value", "int_array_value": "double_array_value"}  # browsers send either


def reader(original: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """Returns a `WStates.__getitem__` for which such a widget was not touched."""

    def read(self: Any, k: str) -> Any:
        sent, known = getattr(self.states.get(k), "value", None), self.widget_metadata.get(k)
        if not isinstance(sent, WidgetState) or known is None:
            return original(self, k)
        kind = sent.WhichOneof("value") or known.value_type  # none: emptied
        try:
            if _NUMBERS.get(kind, kind) == _NUMBERS.get(known.value_type, known.value_type):
                return original(self, k)
        except Exception as error:  # of the right kind, and senseless: JSON that is none, say
            log.debug("%s held what it cannot hold: %r", k, error)
        self.set_from_value(k, known.deserializer(None))
        return original(self, k)

    return read
