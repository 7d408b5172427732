"""Readiness of a server: for Docker, for a proxy, for upgrades."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from math import inf
from time import monotonic

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from streamlit.runtime import Runtime

from engine.errors import GlassformerError
from runs.state import Process
from ui import session
from ui.operate import patches

PATH = "/healthz"
LASTS = 60.0  # seconds: who starts a training takes the spare, and the next is warm in some of them
AGAIN = 5.0  # seconds from a page that could not be drawn to the next try
AHEAD = 1.0  # seconds between two looks at a server that has just started
PATIENCE = 1.0  # seconds that an answer waits for a page


def ready(processes: Sequence[Process], spares: int) -> bool:
    """True if a training would start at once: a warm process waits for it. Where none is kept waiting
    (`spares` is 0: the next is warmed when the last has ended), any warm process counts.
    """
    return any(process.ready and (not spares or not process.runs) for process in processes)


async def draw_home() -> bool:
    """Draws Home for nobody. True if nothing was raised that its frame did not show as a sentence."""
    drawn, _ = await Runtime.instance().does_script_run_without_error()
    return drawn


class Health:
    """A server's health report. Once ready it stays so for `LASTS` seconds, and while any process is warm:
    else somebody who starts one training after the other would take it away from everybody. A page is drawn
    as often as that, when somebody asks.
    """

    def __init__(self) -> None:
        self._last = -inf  # when it was well
        self._page = False  # whether a page could be drawn, when that was last tried
        self._drawing: asyncio.Task[bool] | None = None
        self._drawn = -inf  # when it was tried

    async def answer(self, _: Request) -> JSONResponse:
        return _response(*await self.look())

    async def look(self) -> tuple[bool, bool, bool]:
        """(whether a training would start, whether a warm process waits for one, whether a page is drawn)"""
        page = await self._draws()
        try:
            processes = await asyncio.to_thread(lambda: session.manager().processes())
        except GlassformerError:  # the service that holds the runs is not there: nothing would start
            return False, False, page
        now = monotonic()
        warm = self._last > -inf and any(process.ready for process in processes)
        if warm or ready(processes, session.profile().spares):
            self._last = now
        spare = any(process.ready and not process.runs for process in processes)
        return now - self._last < LASTS, spare, page

    async def _draws(self) -> bool:
        """Tries to draw a page where that is due, and does not wait for it for long."""
        if self._drawing is None and monotonic() - self._drawn >= (LASTS if self._page else AGAIN):
            self._drawing = asyncio.create_task(draw_home())
        if self._drawing is not None:
            await asyncio.wait({self._drawing}, timeout=PATIENCE)
            if self._drawing is not None and self._drawing.done():
                self._page = not self._drawing.exception() and self._drawing.result()
                self._drawing, self._drawn = None, monotonic()
        return self._page


_SERVED: list[Health] = []  # of this process, the last is in use
_WARMTH: list[Callable[[], bool]] = []  # where the server is warmed, what says whether it is warm


def _response(warm: bool, spare: bool, page: bool) -> JSONResponse:
    report: dict[str, object] = {"ready": warm and page, "spare": spare, "page": page}
    if _WARMTH:
        report["warm"] = _WARMTH[-1]()
    if missing := patches.missing_controls():
        report["unprotected"] = missing
    return JSONResponse(report, 200 if warm and page else 503, {"Cache-Control": "no-store"})


def routes() -> list[Route]:
    """Returns the routes of this server beside Streamlit's own."""
    _SERVED.append(Health())
    return [Route(PATH, _SERVED[-1].answer, methods=["GET"])]


def tell_warmth(warmth: Callable[[], bool]) -> None:
    """Has reports say whether every view has been drawn ahead."""
    _WARMTH.append(warmth)


async def look_ahead() -> None:
    """Looks at the server until it is ready: the first who asks, however late, is then not told that no page
    was drawn yet, and that no process was seen warm.
    """
    ready = False
    while not ready:
        await asyncio.sleep(AHEAD)
        warm, _, page = await _SERVED[-1].look()
        ready = warm and page
