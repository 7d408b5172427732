"""Readiness of a server: for Docker, for a proxy, for upgrades."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from time import monotonic

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.errors import GlassformerError
from engine.service.state import Process
from ui import session

PATH = "/healthz"
LASTS = 60.0  # seconds: who starts a training takes the spare, and the next is warm in some of them


def ready(processes: Sequence[Process], spares: int) -> bool:
    """True if a training would start at once: a warm process waits for it. Where none is kept waiting
    (`spares` is 0: the next is warmed when the last has ended), any warm process counts.
    """
    return any(process.ready and (not spares or not process.runs) for process in processes)


class Health:
    """A server's health report. Once ready it stays so for `LASTS` seconds, and while any process is warm:
    else somebody who starts one training after the other would take it away from everybody.
    """

    def __init__(self) -> None:
        self._last = -inf  # when it was well

    def answer(self, _: Request) -> JSONResponse:
        now = monotonic()
        try:
            processes = session.manager().processes()
        except GlassformerError:  # the service that holds the runs is not there: nothing would start
            return _said(False, False)
        warm = self._last > -inf and any(process.ready for process in processes)
        if warm or ready(processes, session.profile().spares):
            self._last = now
        return _said(now - self._last < LASTS, any(one.ready and not one.runs for one in processes))


def _said(well: bool, spare: bool) -> JSONResponse:
    said = {"ready": well, "spare": spare}
    return JSONResponse(said, 200 if well else 503, {"Cache-Control": "no-store"})


def routes() -> list[Route]:
    """Returns the routes of this server beside Streamlit's own. They run in a thread, since they wait for
    locks.
    """
    return [Route(PATH, Health().answer, methods=["GET"])]
