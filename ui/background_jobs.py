"""Measurements that take longer than a glance: with a bar and a way out, and done once for all.

    patching = measured(("patching", subject.key, ids), partial(patch, model, ids), "Patching")
    if patching is None:
        return

A measurement goes on while somebody watches it; the next one who asks for the same finds it under way, or
done. A `partial` of a function of `studies` or `engine` goes into another process (runs.measuring). Python
computes in one thread at a time: what stays here gives way between two steps to the pages that are drawn.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from engine.data.progress import Progress, Steps
from engine.errors import GlassformerError
from runs import profiles
from runs.measuring import Measurers
from ui import frames, live, memo, session
from ui.text.markdown import safe
from ui.text.numbers import time_left

T = TypeVar("T")
Key = tuple[Hashable, ...]

GLANCE = 0.7  # seconds in which a result is simply there
SHORT = 0.2  # seconds of work after which a measurement gives way to those that had less; so at 0.4, 0.8 …
TELLING = 2.0  # seconds of work after which the rest is estimated
UNWATCHED = 75.0  # seconds: a browser lets a hidden tab ask once a minute
UNSHOWN = 10.0  # likewise; then it ends as soon as another is asked for, or, a training, lets that go first
DUTY = 1 / 4  # the share of the time that it has at least while pages are drawn without a break
PAGES = "ScriptRunner"  # how the threads are called in which Streamlit draws them
KEPT = 512  # results, the oldest go first; and they do where all together are larger than the profile allows
WAITING, MINE = 32, 4  # measurements under way or waiting for their turn: on a server, for one tab
NEAR = 24  # likewise, for one network address: a hall often has one, and others want some, too
_GIVEN_UP = "measures_given_up"  # keys that this tab has cancelled
_ASKED = "measurements_asked_for"  # in the session: the keys of those that were offered
_AS = "measures_as"  # in the session: the name of this tab
NOBODY = "nobody"  # who measures ahead (ui.operate.warming): no tab, so that it makes way for any
_glancing: set[int] = set()  # threads of pages that wait for a measurement, and compute nothing


class TooMany(GlassformerError):
    """The limit of waiting measurements is reached."""


class Turns:
    """Lets so many measurements compute at once: those of a page that is looked at first, and of them those
    that have worked least. Else a hall waits for whoever asked for the longest.
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: list[Job] = []
        self._changed = threading.Condition()

    def take(self, job: Job, seconds: float) -> bool:
        """Waits up to `seconds` until it is the job's turn; returns True if it is."""
        with self._changed:
            self._waiting.append(job)
            taken = self._changed.wait_for(lambda: self._free > 0 and self._first() is job, seconds)
            self._waiting.remove(job)
            self._free -= taken
            self._changed.notify_all()
            return taken

    def give_back(self) -> None:
        """Lets the next one compute."""
        with self._changed:
            self._free += 1
            self._changed.notify_all()

    def belongs_to_others(self, job: Job) -> bool:
        """True if one that waits goes before the job."""
        with self._changed:
            return any(other.rank < job.rank for other in self._waiting)

    def _first(self) -> Job:
        return min(self._waiting, key=lambda job: (job.rank, job.begun))


class Job:
    """One measurement, in a thread that does it or waits for the process that does. It waits for its turn."""

    def __init__(
        self,
        measure: Callable[[], Steps[Any]],
        turns: Turns,
        who: str = "",
        where: str = "",
        pausable: bool = False,
    ) -> None:
        self.asked_by, self.asked_from, self._pausable = who, where, pausable
        self.progress = Progress(0, 1)
        self._worked = 0.0  # seconds, without waiting, pauses and preparation
        self._served = 0.0  # seconds of its turns
        self.result: Any = None
        self.error: Exception | None = None
        self.bytes = 0  # of the result
        self.left = False  # cancelled, or nobody watched it any more
        self._cancelled = threading.Event()
        self._resumed = threading.Event()  # not while it is paused
        self._resumed.set()
        self._ended = threading.Event()
        self.begun = time.monotonic()
        self._watched = {who: self.begun}
        self._turns = turns
        threading.Thread(target=self._run, args=(measure,), name="measurement", daemon=True).start()

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    @property
    def leaves(self) -> bool:
        """True if it has ended, or is about to, without a result."""
        return self.left or self._cancelled.is_set()

    def wait(self, seconds: float, who: str = "") -> bool:
        """Waits up to `seconds`; returns True if it has ended."""
        if not self.ended:
            self._watched[who] = time.monotonic()
        return self._ended.wait(seconds)

    def cancel(self) -> None:
        """Ends it with its present step."""
        self._cancelled.set()

    @property
    def paused(self) -> bool:
        return not self._resumed.is_set()

    @property
    def seconds_left(self) -> float | None:
        """Estimates the seconds that are left, at the pace so far; None before there is enough to tell."""
        done, total = self.progress.done, self.progress.total
        known = self._worked >= TELLING and 0 < done < total
        return self._worked / done * (total - done) if known else None

    def pause(self) -> None:
        """Rests after its present step, and lets others have their turn meanwhile."""
        self._resumed.clear()

    def resume(self) -> None:
        """Goes on where it was paused, once it is its turn again."""
        self._resumed.set()

    def watches(self, who: str) -> bool:
        """True for who has waited for it and has not left."""
        return who in self._watched

    def leave(self, who: str) -> None:
        """Stops watching, and cancels where nobody else watches."""
        self._watched.pop(who, None)
        if not self._is_watched(UNWATCHED):
            self.cancel()

    @property
    def shown(self) -> bool:
        """True if a tab has asked about it lately: a visible one asks twice a second, a hidden one seldom."""
        tabs = [at for who, at in self._watched.copy().items() if who != NOBODY]
        return time.monotonic() - max(tabs, default=-math.inf) <= UNSHOWN

    @property
    def rank(self) -> tuple[bool, int]:
        """The smaller goes first."""
        return not self.shown, int(self._served / SHORT).bit_length()

    @property
    def ahead(self) -> bool:
        """True if it is measured before anybody has asked for it."""
        return set(self._watched.copy()) == {NOBODY}

    def leave_if_unshown(self) -> None:
        """Ends it where no tab shows it; not a training, which somebody may come back to."""
        if self.ahead or not (self._pausable or self.shown):
            self.cancel()

    def _is_watched(self, within: float) -> bool:
        return time.monotonic() - max(self._watched.copy().values(), default=-math.inf) <= within

    def _unwanted(self) -> bool:
        return self._cancelled.is_set() or not self._is_watched(UNWATCHED)

    def _run(self, measure: Callable[[], Steps[Any]]) -> None:
        steps: Steps[Any] | None = None
        try:
            while self._takes_turn():
                try:
                    steps = steps or measure()
                    if self._reaches_end(steps):
                        return
                    if self._unwanted():
                        steps.close()
                finally:
                    self._turns.give_back()
            self.left = True
            if steps is not None:
                steps.close()
        except Exception as error:  # drawn by who asked
            self.error = error
        finally:
            self._ended.set()

    def _takes_turn(self) -> bool:
        """Waits for its turn, and first for the end of a pause; returns False if nobody wants it any more."""
        while not self._unwanted():
            if self._resumed.wait(0.2) and self._turns.take(self, 0.2):
                return True
        return False

    def _reaches_end(self, steps: Steps[Any]) -> bool:
        """Goes on until the result is there; returns False if it was paused before, is unwanted, or lets
        another one go first.
        """
        while self._resumed.is_set() and not self._unwanted() and not self._turns.belongs_to_others(self):
            began, computed = time.monotonic(), time.thread_time()
            try:
                self.progress = next(steps)
            except StopIteration as end:
                self.result = end.value
                self.bytes = memo.size_of((self.result, self.progress))
                return True
            self._give_way(time.thread_time() - computed)
            took = time.monotonic() - began
            self._served += took
            if not self.progress.preparing:
                self._worked += took
        return False

    def _give_way(self, computed: float) -> None:
        """Waits while pages are drawn, after so many seconds of work."""
        until = time.monotonic() + computed * (1 / DUTY - 1)
        while time.monotonic() < until and _drawing() and not self._cancelled.wait(0.005):
            pass


def _drawing() -> bool:
    """True if a page is being drawn, other than by a thread that waits for a measurement."""
    return any(t.name.startswith(PAGES) and t.ident not in _glancing for t in threading.enumerate())


class Jobs:
    """The measurements of a server by key: those under way, and the last results."""

    def __init__(self, at_once: int = 1, max_results: int = KEPT, measurers: Measurers | None = None) -> None:
        self._turns = Turns(at_once)
        self._measurers = measurers  # None: all is measured in threads
        self._kept = max_results
        self._jobs: OrderedDict[Key, Job] = OrderedDict()
        self._lock = threading.Lock()

    def of(
        self,
        key: Key,
        measure: Callable[[], Steps[Any]],
        who: str = "",
        where: str = "",
        pausable: bool = False,
    ) -> Job:
        """Returns the measurement of that key, begun now if there is none, or if it was left. A visitor with
        more than MINE requests at once leaves the first. `where` is the asker's network address, empty
        where it is not known; a training is `pausable`. Raises TooMany.
        """
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.leaves:
                going = [each for each in self._jobs.values() if not each.ended]
                if len(going) >= WAITING:
                    raise TooMany(f"{len(going)} measurements are waiting here: try again in a minute")
                near = sum(each.asked_from == where for each in going if where)
                if near >= NEAR:
                    raise TooMany(f"{near} measurements from your network are waiting: try again in a minute")
                for first in [each for each in going if each.asked_by == who][: 1 - MINE]:
                    first.leave(who)
                for each in going if who != NOBODY else ():
                    each.leave_if_unshown()
                begin = partial(self._measurers.steps, measure) if self._measurers else measure
                job = self._jobs[key] = Job(begin, self._turns, who, where, pausable)
            self._jobs.move_to_end(key)
            self._forget_oldest(key)
            return job

    def get(self, key: Key) -> Job | None:
        """Returns the measurement of that key, under way, ended or left."""
        with self._lock:
            if key in self._jobs:
                self._jobs.move_to_end(key)
            self._forget_oldest(key)
            return self._jobs.get(key)

    def _forget_oldest(self, asked_for: Key) -> None:
        """Forgets results until the others are few and small enough; never the one that is asked for."""
        most = profiles.current().measured_bytes
        held = sum(job.bytes for job in self._jobs.values())
        for key, job in list(self._jobs.items()):
            if len(self._jobs) <= self._kept and held <= most:
                break
            if job.ended and key != asked_for:
                held -= self._jobs.pop(key).bytes

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
        if self._measurers is not None:
            self._measurers.close()

    def forget_results(self) -> None:
        """Forgets what has been measured."""
        with self._lock:
            for key in [key for key, job in self._jobs.items() if job.ended]:
                del self._jobs[key]

    def pids(self) -> list[int]:
        """Returns the ids of the processes that measure; none where threads do."""
        return self._measurers.pids() if self._measurers else []

    def watched(self, who: str, since: float) -> list[Job]:
        """Returns the measurements that somebody has waited for and that began after a moment."""
        with self._lock:
            return [job for job in self._jobs.values() if job.begun >= since and job.watches(who)]

    def idle(self) -> bool:
        """True if nothing is under way, and a process waits for the next one where there are any."""
        with self._lock:
            going = any(not job.ended for job in self._jobs.values())
        return not going and (self._measurers is None or self._measurers.idle())

    def forget(self, key: Key, job: Job) -> None:
        """Forgets a result, so that the next request begins anew; not where that has begun already."""
        with self._lock:
            if self._jobs.get(key) is job:
                del self._jobs[key]


_server = Jobs()  # not in st.cache_resource, which one message of any browser empties


def measure_apart(processes: int) -> None:
    """Has this server measure in so many processes, from now on. For its start."""
    global _server
    if processes:
        _server = Jobs(processes, measurers=Measurers(processes, profiles.current().apart_bytes))


def measuring_processes() -> list[int]:
    """Returns the ids of the processes that measure for this server."""
    return _server.pids()


def idle() -> bool:
    """True if this server measures nothing, and could begin at once."""
    return _server.idle()


def measure_for_nobody(state: Any) -> None:
    """Has the session with this state measure ahead: what it asks for makes way for what any tab asks for."""
    state[_AS] = NOBODY


def measured_for_nobody(since: float) -> list[Job]:
    """Returns the measurements that began ahead after a moment (of time.monotonic)."""
    return _server.watched(NOBODY, since)


def forget_results() -> None:
    """Forgets what this server has measured: the next who wants it waits for it."""
    _server.forget_results()


def leave_all() -> None:
    """Leaves all measurements at the end of the server, and ends the processes that do them."""
    _server.leave()


def measured(
    key: Key,
    measure: Callable[[], Steps[T]],
    doing: str,
    meanwhile: Callable[[Any], object] | None = None,
    *,
    pausable: bool = False,
    offer: str = "",
) -> T | None:
    """Returns the result of a measurement; None while it is under way, or after it was cancelled or refused.
    With an `offer`, what a button says, it begins only when somebody asks for it.

    `key` has to hold all that the result depends on, and what is measured. `doing` stands beside the bar:
    "Patching every position"; `meanwhile` draws below it what its progress has so far; a training is
    `pausable`. A refusal (GlassformerError) is shown as a sentence; any other fault is raised here.
    """
    who, given_up = _who(), st.session_state.setdefault(_GIVEN_UP, set())
    job = _server.get(key)
    if job is None and offer and key not in st.session_state.get(_ASKED, ()):
        # Streamlit's own: a button that begins a measurement has no value.
        st.button(offer, key=f"begin_{abs(hash(key))}", icon=":material/timer:", on_click=_ask, args=(key,))
        return None
    if job is None or (job.leaves and key not in given_up):  # left by others: whoever comes now wants it
        given_up.discard(key)
        try:
            job = _server.of(key, measure, who, session.address(), pausable)
        except TooMany as error:
            st.error(f"{safe(str(error))}.")
            return None
    if key not in given_up and not _glance(job, who):
        frames.page_needed()
        st.fragment(_watch)(key, job, doing, meanwhile, pausable)
        return None
    if job.error is not None:
        _server.forget(key, job)
        if not isinstance(job.error, GlassformerError):
            raise job.error
        st.error(safe(str(job.error)))
        return None
    if job.left or not job.ended:  # others go on watching it
        st.caption(f":material/info: {doing}: stopped early.")
        # Streamlit's own: a button that begins a measurement anew has no value.
        st.button("Measure again", key=f"again_{abs(hash(key))}", on_click=_again, args=(key, job))
        return None
    result: T = job.result
    return result


def _glance(job: Job, who: str) -> bool:
    """Waits for a quick one; returns True if it has ended."""
    thread = threading.get_ident()
    _glancing.add(thread)
    try:
        return job.wait(GLANCE, who)
    finally:
        _glancing.discard(thread)


def known(key: Key) -> Any:
    """Returns the result of a measurement that has been made; None where it has not. Draws nothing."""
    job = _server.get(key)
    return None if job is None else job.result


def begun(key: Key) -> bool:
    """True if that measurement was requested: `measured` then draws where it stands. Draws nothing."""
    return _server.get(key) is not None


def _watch(key: Key, job: Job, doing: str, meanwhile: Callable[[Any], object] | None, pausable: bool) -> None:
    """The bar, which the browser follows; when the measurement has ended, the page is drawn again."""
    who, name, watched = _who(), abs(hash(key)), weakref.ref(job)
    if key in st.session_state.get(_GIVEN_UP, ()) or job.wait(0, who):
        st.rerun()

    def look() -> live.Sight:
        # who follows it does not hold its result
        if (job := watched()) is None:
            return live.Sight((True, False, 0))
        ended, at = job.wait(0, who), job.progress
        state = "Paused" if job.paused else f"{doing} …"
        text = f"{state} {at.done:,} of {at.total:,}" if at.total > 1 else state
        if (left := job.seconds_left) and not job.paused:
            text += f", {time_left(left)}"
        return live.Sight((ended, job.paused, at.done if meanwhile else 0), at.done, at.share, text)

    at = job.progress
    live.follow(f"job_{name}", look, drawn=(False, job.paused, at.done if meanwhile else 0), every=0.4)
    # Streamlit's own: they stop something and have no value.
    with st.container(horizontal=True):
        if pausable and job.paused:
            st.button("Resume", icon=":material/play_arrow:", key=f"resume_{name}", on_click=job.resume)
        elif pausable:
            st.button("Pause", icon=":material/pause:", key=f"pause_{name}", on_click=job.pause)
        st.button("Cancel", key=f"cancel_{name}", on_click=_give_up, args=(key, job))
    if meanwhile is not None:
        meanwhile(at.so_far)


def _who() -> str:
    """This tab, for as long as it is open."""
    name: str = st.session_state.setdefault(_AS, secrets.token_hex(8))
    return name


def _ask(key: Key) -> None:
    st.session_state.setdefault(_ASKED, set()).add(key)


def _give_up(key: Key, job: Job) -> None:
    st.session_state.setdefault(_GIVEN_UP, set()).add(key)
    job.leave(_who())


def _again(key: Key, job: Job) -> None:
    st.session_state.setdefault(_GIVEN_UP, set()).discard(key)
    if job.leaves:
        _server.forget(key, job)
