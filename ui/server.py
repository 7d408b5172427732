"""Tasks of a server: once before the first page, and after the last."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from streamlit import config
from streamlit.runtime.pages_manager import PagesManager

from engine.errors import ConfigError, GlassformerError
from engine.service import profiles, shared
from engine.service.events import note
from engine.service.manager import RunManager
from engine.service.profiles import Profile
from engine.training.numerics import share_memory
from ui import background_jobs, identity, session
from ui.operate import (
    coalesced_clicks,
    duplicate_triggers,
    expire_sessions,
    fast_widget_lookup,
    file_descriptors,
    hide_script_path,
    invalid_widget_values,
    log,
    message_size_limit,
    metrics,
    reject_foreign_origins,
    stale_fragment_reruns,
)


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
    file_descriptors.more_descriptors()
    file_descriptors.say_seldom(asyncio.get_running_loop())
    invalid_widget_values.ignore()
    stale_fragment_reruns.ignore()
    coalesced_clicks.heed()
    duplicate_triggers.heed_once()
    fast_widget_lookup.singly()
    reject_foreign_origins.know_no_address()
    reject_foreign_origins.say_seldom()
    _guard_against_strangers(session.profile())
    config.set_option("server.maxUploadSize", session.profile().max_upload_mb)
    message_size_limit.bound(session.profile().max_message_mb)
    ahead = asyncio.create_task(asyncio.to_thread(_go_ahead))
    await anyio.to_thread.run_sync(session.manager)
    for doubt in doubts(session.profile(), session.manager()):
        logging.getLogger(__name__).warning(doubt)
    _settle()
    unserve = metrics.serve()
    note("server started", profile=session.profile().name)
    try:
        async with expire_sessions.forgetting():
            yield
    finally:
        note("server ends")
        unserve()
        await asyncio.wait([ahead])
        await anyio.to_thread.run_sync(background_jobs.leave_all)
        await anyio.to_thread.run_sync(session.close_manager)


def heed_settings() -> None:
    """Ends the server, which has not begun, where one of its variables means nothing: it would serve without
    what `lifespan` does, and fail for every browser.
    """
    try:
        profiles.current()
        log.wanted()
        metrics.address(os.environ.get(metrics.VARIABLE, ""))
        identity.proxies()
    except ConfigError as error:
        raise SystemExit(str(error)) from error


def doubts(profile: Profile, manager: RunManager) -> list[str]:
    """Returns the sentences for the log about settings that hardly mean what they say."""
    result = [
        f"{name} is set, but the profile is `{profile.name}`, which is for one person at home: set"
        f" {profiles.VARIABLE}"
        for name in (shared.VARIABLE, identity.TRUST)
        if os.environ.get(name) and not profile.public
    ]
    if manager.profile.name != profile.name:
        result.append(
            f"the service that holds the runs has the profile `{manager.profile.name}`, this server"
            f" `{profile.name}`: give both the same {profiles.VARIABLE}"
        )
    return result


def report_error(error: Exception) -> bool:
    """Shows an error that nobody else caught (a callback, the router itself) as a sentence with a number, and
    logs the trace under it. True: Streamlit shows nothing of its own.
    """
    from ui.page_frame import failed

    failed(error)
    return True


def _guard_against_strangers(profile: Profile) -> None:
    """Strangers are not shown where files lie and what the code says; who runs the server has the log. Nor do
    they empty its caches.
    """
    if profile.public:
        invalid_widget_values.keep_caches()
        hide_script_path.hide()
        config.set_option("client.showErrorDetails", "none")


def _go_ahead() -> None:
    """Does ahead what takes Home a second or two on a new server, beside other work: importing pandas, which
    Streamlit needs for the first component, and reading the weights of the published model that is shown
    first.
    """
    import pandas  # noqa: F401

    from engine.weights.pretrained import library
    from ui.models import PRETRAINED, REAL_MODEL

    name = REAL_MODEL.removeprefix(PRETRAINED)
    if name in session.published():
        with suppress(GlassformerError):  # the page that shows it says what is wrong
            library.make_ready(name, session.profile().max_pretrained)


def _settle() -> None:
    """Imports what every page needs and takes it out of garbage collection: 250,000 objects that never go
    away.
    """
    import engine.model  # noqa: F401
    import ui.model_bar  # noqa: F401

    gc.collect()
    gc.freeze()
