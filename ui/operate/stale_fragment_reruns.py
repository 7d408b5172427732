"""Requests that come late: a part of a page that asks to be drawn again (a bar that refreshes by itself, a
component of its own) when another page is shown already.

Streamlit answers such a request as one for the page that was left, and the browser then takes away all that
it shows: a blank page, until somebody reloads it. It happens where the network is slow, or the server busy.
Where the click that leads to another page waits for its turn, such a request is even taken together with it,
and the page that was left is drawn: the click is lost.
"""

from __future__ import annotations

import logging

from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests, ScriptRequestType

log = logging.getLogger(__name__)

# Streamlit's own: where requests wait, and where all of them pass, after those before them have been answered
_WAIT = ScriptRequests._request_rerun_locked
_INSIDE = ScriptRunner._run_script


def ignore() -> None:
    """Leaves such requests unanswered: what asked for them is no longer there."""
    ScriptRequests._request_rerun_locked = _wait  # type: ignore[method-assign]
    ScriptRunner._run_script = _run  # type: ignore[method-assign]


def _wait(self: ScriptRequests, new_data: RerunData) -> bool:
    """True if the rerun was queued or can be dropped."""
    pending, part = self._rerun_data, new_data.fragment_id or new_data.fragment_id_queue
    waits = self._state == ScriptRequestType.RERUN and not pending.fragment_id_queue
    another = pending.page_script_hash not in ("", new_data.page_script_hash)  # "": a browser has come back
    if waits and part and another:
        log.debug("a part of a page was asked for that somebody is leaving")
        return True
    return _WAIT(self, new_data)


def _run(self: ScriptRunner, rerun_data: RerunData) -> None:
    shown = self._pages_manager.current_page_script_hash
    if rerun_data.fragment_id_queue and rerun_data.page_script_hash != shown:
        log.debug("a part of a page was asked for that is not shown any more")
        return
    _INSIDE(self, rerun_data)
