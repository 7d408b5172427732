"""Clicks that a browser sends together with what a part of the page asks for by itself.

Streamlit 1.67's browser collects what changes until a timer of no milliseconds fires, which is long where it
is busy drawing, and sends all of it as one request: that of the first part (a fragment) which asked. Only this
part is drawn again, and who clicked on anything else sees nothing happen. On a stage, which tells its address
soon after each view, that was one click of three within a second.
"""

from __future__ import annotations

import logging
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.runtime.state.session_state import SessionState

log = logging.getLogger(__name__)

# Streamlit's own: takes over what a browser sent, and calls what was to be called for it
_TAKE = SessionState.on_script_will_rerun


def heed() -> None:
    """From now on such a click draws the whole page, as it would have alone."""
    SessionState.on_script_will_rerun = _take  # type: ignore[method-assign]


def _take(self: SessionState, fresh_widget_states: WidgetStates | None, **rest: Any) -> None:
    _TAKE(self, fresh_widget_states, **rest)
    context = get_script_run_ctx()
    if context is None or not context.fragment_ids_this_run or not context.script_requests:
        return
    if fresh_widget_states is None or not any(
        _of_others(self, one.id, context.fragment_ids_this_run) for one in fresh_widget_states.widgets
    ):
        return
    log.debug("a click came with what a part of the page asked for")
    # as if a function that was just called had ended in st.rerun(): what was pressed stays pressed
    context.script_requests.request_rerun(
        RerunData(
            query_string=context.query_string,
            page_script_hash=context.page_script_hash,
            cached_message_hashes=context.cached_message_hashes,
            replay_trigger_states=fresh_widget_states,
            context_info=context.context_info,
        )
    )


def _of_others(state: SessionState, control: str, parts: list[str]) -> bool:
    """Whether this control was changed, and lies outside of the parts that are drawn again."""
    known = state._new_widget_state.widget_metadata.get(control)
    if known is None or known.disabled or known.fragment_id in parts:
        return False
    return state._widget_changed(control)
