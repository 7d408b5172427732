"""What happens once per server, before the first page and after the last."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from streamlit import config
from streamlit.runtime.pages_manager import PagesManager

from engine.errors import GlassformerError
from engine.numerics import share_memory
from engine.service.events import note
from engine.service.profiles import Profile
from ui import slow, state
from ui.operate import forged, left, log, metrics


@asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """Has the run manager and its warm worker ready before anybody asks, and ends every training when the
    server ends.
    """
    # A folder called `pages` makes Streamlit 1.67 believe in its old kind of multipage app until
    # `st.navigation` has run once: it answers the first deep link (`/train`) with "Page not found". No option
    # says otherwise; this is what it reads.
    PagesManager.uses_pages_directory = False
    share_memory()
    log.arrange()
    forged.ignore()
    _hide_traces(state.profile())
    config.set_option("server.maxUploadSize", state.profile().max_upload_mb)
    ahead = asyncio.create_task(asyncio.to_thread(_go_ahead))
    await anyio.to_thread.run_sync(state.manager)
    _settle()
    unserve = metrics.serve()
    note("server started", profile=state.profile().name)
    try:
        async with left.forgetting():
            yield
    finally:
        note("server ends")
        unserve()
        await asyncio.wait([ahead])
        await anyio.to_thread.run_sync(slow.leave_all)
        await anyio.to_thread.run_sync(state.close_manager)


def told(error: Exception) -> bool:
    """What nobody else caught (a callback, the router itself): a sentence with a number, and the trace in the
    log under that number. True: Streamlit shows nothing of its own.
    """
    from ui.look import failed

    failed(error)
    return True


def _hide_traces(profile: Profile) -> None:
    """Strangers are not shown where files lie and what the code says; who runs the server has the log."""
    if profile.public:
        config.set_option("client.showErrorDetails", "none")


def _go_ahead() -> None:
    """What Home takes a second or two for on a new server, beside whatever else is under way: pandas, which
    Streamlit imports for the first component, and the weights of the published model that is shown first.
    """
    import pandas  # noqa: F401

    from engine.pretrained import library
    from ui.models import PRETRAINED, REAL_MODEL

    name = REAL_MODEL.removeprefix(PRETRAINED)
    if name in state.published():
        with suppress(GlassformerError):  # the page that shows it says what is wrong
            library.make_ready(name, state.profile().max_pretrained)


def _settle() -> None:
    """Imports what every page needs and takes it out of garbage collection: 250,000 objects that never go
    away.
    """
    import engine.model  # noqa: F401
    import ui.subject  # noqa: F401

    gc.collect()
    gc.freeze()
