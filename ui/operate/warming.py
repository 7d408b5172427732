"""Warmth before anybody asks: with `GLASSFORMER_WARM=1`, which deploy/start.sh sets, a server draws each view
as its link opens it, and each scene of a course, for nobody, and waits for what that measures: its first
visitor finds the results.

Nobody is a session of Streamlit without a tab, which no limit counts. Its measurements are like everybody's,
in the same turns and within the same bytes, but no tab shows them: any that a visitor asks for ends them and
goes first. The next view is drawn only while the server is calm.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Sequence

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime
from streamlit.runtime.session_manager import SessionClient

from engine.errors import GlassformerError
from runs.events import note
from ui import asgi_limits, background_jobs, session
from ui.tour.bar import address_of
from ui.tour.courses import shelf

log = logging.getLogger(__name__)

VARIABLE = "GLASSFORMER_WARM"
WANTED = ("1", "yes", "true", "on")
CALM_SECONDS = 2.0  # without a word from any tab
AGAIN = 0.5  # seconds between two looks
PATIENCE = 300.0  # seconds for a view with all that it measures
TRIES = 3  # of a view whose measurements made way for a visitor's


class _Nobody(SessionClient):
    """Takes what is sent to a tab, and notes the end of a run of the page."""

    client_context = None

    def __init__(self) -> None:
        self.drawn = asyncio.Event()

    def write_forward_msg(self, message: ForwardMsg) -> None:
        ended = message.WhichOneof("type") == "script_finished"
        if ended and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            self.drawn.set()


class Warming:
    """The warming of a server: `done` is True while every view and scene has been drawn."""

    def __init__(self) -> None:
        self.done = False
        self._cold = asyncio.Event()

    def forgotten(self) -> None:
        """Has it begin anew: results were given back."""
        self.done = False
        self._cold.set()

    async def keep_warm(self) -> None:
        """Warms the server, and again each time that its results were given back."""
        while True:
            self._cold.clear()
            await self.warm(await asyncio.to_thread(addresses))
            await self._cold.wait()

    async def warm(self, left: Sequence[str]) -> None:
        """Draws views by their addresses, and those again that made way for visitors."""
        begun = time.monotonic()
        for _ in range(TRIES):
            left = [address for address in left if not await self._opened(address)]
        self.done = not self._cold.is_set()
        note("server warm", seconds=round(time.monotonic() - begun), left=len(left))

    async def _opened(self, address: str) -> bool:
        """Draws a view once the server is calm; returns False if it made way for a visitor."""
        while not await calm():
            await asyncio.sleep(AGAIN)
        try:
            async with asyncio.timeout(PATIENCE):
                return await draw(address)
        except Exception:  # its visitor will be told
            log.warning("a view could not be drawn ahead: %s", address, exc_info=True)
            return True


def wanted() -> bool:
    """True if $GLASSFORMER_WARM asks for it, and a process beside the server measures: in the one process of
    `small` it would take the memory that its training needs.
    """
    asked = os.environ.get(VARIABLE, "").strip().lower() in WANTED
    return asked and session.profile().measure_workers > 0


def addresses() -> Sequence[str]:
    """Returns the addresses of all views: first as they open, then with their further questions, then as the
    scenes of courses show them: a class goes through one together.
    """
    from ui import views  # of which a server's first page needs one

    listed = views.views()
    first = [view.address() for view in listed]
    asks = [view.address(ask) for view in listed for ask in view.asks]
    scenes = [
        address_of(course, at) for course in shelf().courses.values() for at in range(len(course.scenes))
    ]
    return tuple(dict.fromkeys([*first, *asks, *scenes]))


async def calm() -> bool:
    """True if no visitor waits for anything: no tab said a word lately, nothing is measured or trained."""
    if asgi_limits.quiet_seconds() < CALM_SECONDS or not background_jobs.idle():
        return False
    try:
        standing = await asyncio.to_thread(lambda: session.manager().standing())
    except GlassformerError:  # the service that holds the runs is not there
        return False
    return not {"starting", "running"} & set(standing.statuses)


async def draw(address: str) -> bool:
    """Draws a view for nobody until it measures nothing more. Returns False if a measurement of it made way
    for a visitor's.
    """
    runtime, nobody, begun = Runtime.instance(), _Nobody(), time.monotonic()
    name = runtime.connect_session(nobody, {})
    try:
        tab = runtime.get_app_session(name)
        assert tab is not None
        background_jobs.measure_for_nobody(tab.session_state)
        message = BackMsg()
        message.rerun_script.page_name, _, message.rerun_script.query_string = address.partition("?")
        known = 0
        while True:
            nobody.drawn.clear()
            runtime.handle_backmsg(name, message)
            await nobody.drawn.wait()
            jobs = background_jobs.measured_for_nobody(begun)
            if len(jobs) <= known:
                return True
            known = len(jobs)
            while not all(job.wait(0, background_jobs.NOBODY) for job in jobs):
                await asyncio.sleep(AGAIN)
            if any(job.left for job in jobs):
                return False
    finally:
        runtime.close_session(name)
