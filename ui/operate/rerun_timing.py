"""How long a page takes: every run of the script, and of a fragment, from asked for to drawn."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from streamlit.runtime.scriptrunner.script_runner import ScriptRunner


def measure(report: Callable[[str, float], None]) -> None:
    """Calls `report` with `page` or `fragment` and the seconds it took, after each run on this server."""
    # Streamlit's own: it measures its runs only for its makers' statistics, which are off here.
    inside = ScriptRunner._run_script

    def measured(self: ScriptRunner, rerun_data: Any) -> None:
        what = "fragment" if rerun_data.fragment_id_queue else "page"  # the run empties that list
        begun = time.perf_counter()
        try:
            inside(self, rerun_data)
        finally:
            report(what, time.perf_counter() - begun)

    ScriptRunner._run_script = measured  # type: ignore[method-assign]
