"""Requests that come late: a part of a page that asks to be drawn again (a bar that refreshes by itself, a
component of its own) when another page is shown already.

Streamlit answers such a request as one for the page that was left, and the browser then takes away all that
it shows: a blank page, until somebody reloads it. It happens where the network is slow, or the server busy.
Where the click that leads to another page waits for its turn, such a request is even taken together with it,
and the page that was left is drawn: the click is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)


def waiter(original: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Returns a `ScriptRequests._request_rerun_locked` that leaves such requests unanswered."""
    from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType

    def wait(self: Any, new_data: Any) -> bool:
        pending, part = self._rerun_data, new_data.fragment_id or new_data.fragment_id_queue
        waits = self._state == ScriptRequestType.RERUN and not pending.fragment_id_queue
        another = pending.page_script_hash not in ("", new_data.page_script_hash)  # "": it has come back
        if waits and part and another:
            log.debug("a part of a page was asked for that somebody is leaving")
            return True
        return original(self, new_data)

    return wait


def runner(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Returns a `ScriptRunner._run_script` that leaves such requests unanswered."""

    def run(self: Any, rerun_data: Any) -> None:
        shown = self._pages_manager.current_page_script_hash
        if rerun_data.fragment_id_queue and rerun_data.page_script_hash != shown:
            log.debug("a part of a page was asked for that is not shown any more")
            return
        original(self, rerun_data)

    return run
