"""Server time of the pages that look inside: the first view, and a change of one control.

    python -m benchmarks.views [--rounds 15]

Each page is run as Streamlit runs it for a browser, but without one (streamlit.testing), in this process: milliseconds of the
script alone, median. `first` is a session's first look at a page, with the model read before; `again` moves on to another text
of 64 tokens, so that nothing of it was computed before; `same` asks for the same view again. The browser test measures the rest.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

from streamlit.testing.v1 import AppTest

from benchmarks.report import Goals, finish, table
from ui.site import ROOT, built

TEXT = "First Citizen:\nBefore we proceed any further, hear me speak.\nAll:\nSpeak, speak.\nFirst Citizen:\nYou are all resolved rather to die than to famish?\n"
LENGTH = 64
GOALS: Goals = {"slowest_first_ms": ("<=", 1500.0), "slowest_again_ms": ("<=", 100.0)}


def timed(page: AppTest) -> float:
    started = time.perf_counter()
    page.run()
    took = (time.perf_counter() - started) * 1e3
    assert not page.exception, page.exception
    return took


def measure(path: str, rounds: int) -> dict[str, float]:
    """Milliseconds of one page."""
    first = []
    for _ in range(3):
        page = AppTest.from_file(path, default_timeout=60)
        page.query_params["text"] = TEXT[:LENGTH]
        first.append(timed(page))
    again, same = [], []
    for turn in range(rounds):
        page.session_state["text"] = TEXT[turn + 1 : turn + 1 + LENGTH]
        again.append(timed(page))
        same.append(timed(page))
    return {"first": statistics.median(first), "again": statistics.median(again), "same": statistics.median(same)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    os.environ.setdefault("GLASSFORMER_PROFILE", "hosted")
    rows = [{"page": e.title, **measure(str(ROOT / e.path), options.rounds)} for e in built() if e.section == "Look inside"]
    table(rows)
    figures: dict[str, float] = {}
    for row in rows:
        name = str(row["page"]).lower().replace(" ", "_")
        figures |= {f"{name}.{kind}_ms": float(row[kind]) for kind in ("first", "again", "same")}  # type: ignore[arg-type]
    for kind in ("first", "again"):
        figures[f"slowest_{kind}_ms"] = max(float(row[kind]) for row in rows)  # type: ignore[arg-type]
    finish("views", figures, GOALS)


if __name__ == "__main__":
    main()
