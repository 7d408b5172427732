"""Measurements that take longer than a glance: in a thread, with a bar and a way out, and done once for all.

    found = measured(("patching", subject.key, ids), lambda: patch(model, ids), "Patching")
    if found is None:
        return

A measurement goes on while somebody watches it; the next one who asks for the same finds it under way, or
done.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import streamlit as st

from engine.errors import GlassformerError
from engine.progress import Progress, Steps
from ui.text.markdown import safe

T = TypeVar("T")
Key = tuple[Hashable, ...]

GLANCE = 0.7  # seconds in which a result is simply there
UNWATCHED = 75.0  # seconds: a browser lets a hidden tab ask once a minute
KEPT = 64  # results, the oldest go first


class Job:
    """One measurement in a thread of its own. `at` waits for its turn, so that the server can still draw."""

    def __init__(self, measure: Callable[[], Steps[Any]], turn: threading.Semaphore) -> None:
        self.progress = Progress(0, 1)
        self.result: Any = None
        self.error: Exception | None = None
        self.left = False  # cancelled, or nobody watched it any more
        self._cancelled = threading.Event()
        self._ended = threading.Event()
        self._watched = time.monotonic()
        self._turn = turn
        threading.Thread(target=self._run, args=(measure,), name="measurement", daemon=True).start()

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended by then."""
        self._watched = time.monotonic()
        return self._ended.wait(seconds)

    def cancel(self) -> None:
        """It ends with its present step."""
        self._cancelled.set()

    def _unwanted(self) -> bool:
        return self._cancelled.is_set() or time.monotonic() - self._watched > UNWATCHED

    def _run(self, measure: Callable[[], Steps[Any]]) -> None:
        try:
            while not self._turn.acquire(timeout=0.2):
                if self._unwanted():
                    self.left = True
                    return
            try:
                self._steps(measure())
            finally:
                self._turn.release()
        except Exception as error:  # drawn by who asked
            self.error = error
        finally:
            self._ended.set()

    def _steps(self, steps: Steps[Any]) -> None:
        while True:
            if self._unwanted():
                self.left = True
                steps.close()
                return
            try:
                self.progress = next(steps)
            except StopIteration as end:
                self.result = end.value
                return


class Jobs:
    """The measurements of a server by key: those under way, and the last results."""

    def __init__(self, at_once: int = 1, kept: int = KEPT) -> None:
        self._turn = threading.Semaphore(at_once)
        self._kept = kept
        self._jobs: OrderedDict[Key, Job] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, key: Key, measure: Callable[[], Steps[Any]]) -> Job:
        """The measurement of that key, begun now if there is none."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None:
                job = self._jobs[key] = Job(measure, self._turn)
            self._jobs.move_to_end(key)
            for old in [k for k, j in self._jobs.items() if j.ended][: max(0, len(self._jobs) - self._kept)]:
                if old != key:
                    del self._jobs[old]
            return job

    def made(self, key: Key) -> Job | None:
        """The measurement of that key, if it has ended."""
        with self._lock:
            job = self._jobs.get(key)
            return job if job is not None and job.ended else None

    def begun(self, key: Key) -> bool:
        """Whether the measurement of that key is under way, has ended, or was left."""
        with self._lock:
            return key in self._jobs

    def leave(self, seconds: float = 5.0) -> None:
        """Cancels all, and waits until none computes: a thread inside PyTorch would crash a Python that
        ends.
        """
        with self._lock:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.cancel()
        until = time.monotonic() + seconds
        for job in jobs:
            job.wait(max(0.0, until - time.monotonic()))

    def forget(self, key: Key) -> None:
        """The next who asks begins anew."""
        with self._lock:
            self._jobs.pop(key, None)


@st.cache_resource
def _jobs() -> Jobs:
    return Jobs()


def leave_all() -> None:
    """At the end of the server."""
    _jobs().leave()


def measured(key: Key, measure: Callable[[], Steps[T]], doing: str) -> T | None:
    """The result of a measurement; None while it is under way, or after it was cancelled or refused.

    `key` has to hold all that the result depends on, and what is measured. `doing` stands beside the bar:
    "Patching every position". What it refuses (GlassformerError) is shown as a sentence; any other fault is
    raised here.
    """
    job = _jobs().of(key, measure)
    if not job.wait(GLANCE):
        st.fragment(_watch, run_every=0.4)(key, job, doing)
        return None
    if job.error is not None:
        _jobs().forget(key)
        if not isinstance(job.error, GlassformerError):
            raise job.error
        st.error(safe(str(job.error)))
        return None
    if job.left:
        st.caption(f":material/info: {doing}: stopped before the end.")
        # Streamlit's own: a button that begins a measurement anew has no value.
        st.button("Measure again", key=f"again_{abs(hash(key))}", on_click=_jobs().forget, args=(key,))
        return None
    result: T = job.result
    return result


def known(key: Key) -> Any:
    """The result of a measurement that has been made; None where it has not. Draws nothing."""
    job = _jobs().made(key)
    return None if job is None else job.result


def begun(key: Key) -> bool:
    """Whether that measurement has been asked for: `measured` then draws where it stands. Draws nothing."""
    return _jobs().begun(key)


def _watch(key: Key, job: Job, doing: str) -> None:
    """The bar, drawn again by itself; when the measurement has ended, so is the page."""
    if job.wait(0):
        st.rerun()
    at = job.progress
    st.progress(at.share, f"{doing} … {at.done:,} of {at.total:,}" if at.total > 1 else f"{doing} …")
    # Streamlit's own: it stops something and has no value.
    st.button("Cancel", key=f"cancel_{abs(hash(key))}", on_click=job.cancel)
