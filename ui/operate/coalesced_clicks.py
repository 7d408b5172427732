"""Clicks that a browser sends together with what a part of the page asks for by itself.

Streamlit 1.67's browser collects what changes until a timer of no milliseconds fires, which is long where it
is busy drawing, and sends all of it as one request: that of the first part (a fragment) which asked. Only
that one is drawn again, and who clicked on anything else sees nothing happen. On a stage, which tells its
address soon after each view, that was one click of three within a second.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from streamlit.runtime.scriptrunner import get_script_run_ctx

log = logging.getLogger(__name__)


def taker(original: Callable[..., None]) -> Callable[..., None]:
    """Returns a `SessionState.on_script_will_rerun` after which such a click draws what it would have alone:
    its own part, or the page.
    """
    from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

    def take(self: Any, fresh_widget_states: Any, **rest: Any) -> None:
        original(self, fresh_widget_states, **rest)
        context = get_script_run_ctx()
        if context is None or not context.fragment_ids_this_run or not context.script_requests:
            return
        changed = [] if fresh_widget_states is None else [one.id for one in fresh_widget_states.widgets]
        missed = {part for one in changed for part in _missed(self, one, context.fragment_ids_this_run)}
        if not missed:
            return
        log.debug("a click came with what a part of the page asked for")
        # as if a function that was just called had ended in st.rerun(): what was pressed stays pressed
        context.script_requests.request_rerun(
            RerunData(
                query_string=context.query_string,
                page_script_hash=context.page_script_hash,
                fragment_id_queue=[] if "" in missed else sorted(missed),
                cached_message_hashes=context.cached_message_hashes,
                replay_trigger_states=fresh_widget_states,
                context_info=context.context_info,
            )
        )

    return take


def _missed(state: Any, control: str, parts: list[str]) -> list[str]:
    """The part in which this control was changed, if it is none of these; "" for the page itself."""
    known = state._new_widget_state.widget_metadata.get(control)
    if known is None or known.disabled or known.fragment_id in parts or not state._widget_changed(control):
        return []
    return [known.fragment_id or ""]
