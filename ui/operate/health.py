"""Whether a server is ready for people: asked by Docker, by a proxy, by whoever upgrades it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.errors import GlassformerError
from engine.service.state import Process
from ui import state

PATH = "/healthz"


def ready(processes: Sequence[Process], spares: int) -> bool:
    """Whether a training would start at once: a warm process waits for it. Where none is kept waiting
    (`spares` is 0: the next is warmed when the last has ended), one that is warm, whatever it does.
    """
    return any(process.ready and (not spares or not process.runs) for process in processes)


def _answer(_: Request) -> JSONResponse:
    processes: Sequence[Process] = ()
    with suppress(GlassformerError):  # the service that holds the runs is not there: nothing would start
        processes = state.manager().processes()
    said = {
        "ready": ready(processes, state.profile().spares),
        "spare": any(process.ready and not process.runs for process in processes),
    }
    return JSONResponse(said, 200 if said["ready"] else 503, {"Cache-Control": "no-store"})


def routes() -> list[Route]:
    """What this server answers beside Streamlit's own addresses. In a thread: it waits for locks."""
    return [Route(PATH, _answer, methods=["GET"])]
