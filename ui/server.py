"""Tasks of a server: once before the first page, and after the last."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import math
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from streamlit import __version__ as STREAMLIT_VERSION
from streamlit import config

from engine.errors import ConfigError, GlassformerError
from runs import profiles
from runs.events import note
from runs.manager import RunManager
from runs.memory import bound_products, return_large_blocks, return_memory, share_memory
from runs.profiles import Profile
from runs.transport import resident_bytes
from ui import asgi_limits, background_jobs, identity, memo, session
from ui.operate import file_descriptors, health, log, metrics, patches, warming

# New objects until the youngest are looked through for garbage; such collections until older ones are; and of
# those until all are, if a quarter is new by then: every few minutes in a hall, 0.1 to 0.2 s. With 20 and 50
# it was hours, and what tabs had let go of stayed.
COLLECTED = 20_000, 5, 5
SWITCH_SECONDS = 0.001  # that a thread keeps the GIL while another one waits for it
LOOPBACK = ("localhost", "127.0.0.1", "::1")  # how a browser on this computer calls it
EMPTY_SECONDS = 300.0  # without an open tab, until memory is given back
FREE_SECONDS = 2.0  # between two times that what is free is returned, where the server itself measures
OLDEST = (1, 67)  # Streamlit with `help` of st.Page, and st.grid


@asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """Has the run manager and its warm worker ready before anybody asks, and ends every training when the
    server ends.
    """
    share_memory()
    measures_itself = not session.profile().measure_workers
    if measures_itself:
        return_large_blocks()
    bound_products()
    log.arrange()
    file_descriptors.more_descriptors()
    patches.install()
    _set_limits(session.profile())
    background_jobs.measure_apart(session.profile().measure_workers)
    ahead = asyncio.create_task(asyncio.to_thread(_go_ahead))
    looking = asyncio.create_task(health.look_ahead())
    warm = warming.Warming() if warming.wanted() else None
    sparing = asyncio.create_task(_spare_memory(warm=warm))
    others = [looking, sparing]
    if measures_itself:
        others.append(asyncio.create_task(_return_what_is_free()))
    if warm is not None:
        health.tell_warmth(lambda: warm.done)
        others.append(asyncio.create_task(_keep_warm(warm, [ahead, looking])))
    await anyio.to_thread.run_sync(session.manager)
    for doubt in doubts(session.profile(), session.manager()):
        logging.getLogger(__name__).warning(doubt)
    _settle()
    unserve = metrics.serve()
    note("server started", profile=session.profile().name)
    try:
        yield
    finally:
        note("server ends")
        unserve()
        patches.withdraw()
        for each in others:
            each.cancel()
        await asyncio.wait([ahead, *others])
        await anyio.to_thread.run_sync(background_jobs.leave_all)
        await anyio.to_thread.run_sync(session.close_manager)


async def _keep_warm(warm: warming.Warming, first: list[asyncio.Task[None]]) -> None:
    """Warms the server, after what its first visitor needs first."""
    await asyncio.wait(first)
    await warm.keep_warm()


async def _spare_memory(every: float = EMPTY_SECONDS / 10, warm: warming.Warming | None = None) -> None:
    """Gives memory back each time that no tab has been open for EMPTY_SECONDS. A server that is to be warm is
    warmed again then.
    """
    empty = math.inf  # seconds without a tab; nothing to give back before the first
    while True:
        await asyncio.sleep(every)
        empty = 0.0 if asgi_limits.open_tabs() else empty + every
        if EMPTY_SECONDS <= empty < math.inf:
            await asyncio.to_thread(give_memory_back)
            empty = math.inf
            if warm is not None:
                warm.forgotten()


async def _return_what_is_free(every: float = FREE_SECONDS) -> None:
    """Returns free memory to the system again and again while a tab is open."""
    while True:
        await asyncio.sleep(every)
        if asgi_limits.open_tabs():
            await asyncio.to_thread(return_memory)


def give_memory_back() -> None:
    """Forgets what was measured and read for visitors, returns what is free to the system, and reads what
    Home shows first, as at the start.
    """
    memo.MEASURED.clear()
    memo.LOADED.clear()
    background_jobs.forget_results()
    gc.collect()
    return_memory()
    _go_ahead()
    note("memory given back", bytes=resident_bytes())


def heed_settings() -> None:
    """Ends the server, which has not begun, where Streamlit is too old or one of its variables means nothing:
    it would serve without what `lifespan` does, and fail for every browser. Where others can reach it and no
    profile was chosen, it is `hosted`: `local` opens any file of this computer.
    """
    if old := too_old(STREAMLIT_VERSION):
        raise SystemExit(old)
    if not os.environ.get(profiles.VARIABLE) and reachable(config.get_option("server.address")):
        os.environ[profiles.VARIABLE] = "hosted"
    try:
        profiles.current()
        log.wanted()
        metrics.address(os.environ.get(metrics.VARIABLE, ""))
        identity.proxies()
    except ConfigError as error:
        raise SystemExit(str(error)) from error


def reachable(address: str | None) -> bool:
    """True if other computers can reach a server that listens at an address; None is all addresses.

    >>> [reachable(address) for address in (None, "0.0.0.0", "::", "192.168.1.7", "hall.example")]
    [True, True, True, True, True]
    >>> reachable("localhost"), reachable("127.0.0.1"), reachable("::1")
    (False, False, False)
    """
    try:
        return address != "localhost" and not ipaddress.ip_address(address or "0.0.0.0").is_loopback
    except ValueError:  # a name
        return True


def too_old(streamlit: str) -> str | None:
    """Returns a sentence for a version of Streamlit that no page can be drawn with.

    >>> too_old("1.66.2")
    'Glassformer needs Streamlit 1.67 or later, and this is 1.66.2: pip install -r requirements.txt'
    >>> too_old("1.67.0"), too_old("2.0rc1")
    (None, None)
    """
    numbers = tuple(int(part) for part in re.findall(r"\d+", streamlit)[:2])
    if numbers >= OLDEST:
        return None
    oldest = ".".join(map(str, OLDEST))
    return (
        f"Glassformer needs Streamlit {oldest} or later, and this is {streamlit}: pip install -r"
        " requirements.txt"
    )


def doubts(profile: Profile, manager: RunManager) -> list[str]:
    """Returns the sentences for the log about settings that hardly mean what they say."""
    result = []
    if os.environ.get(identity.TRUST) and not profile.public:
        result.append(
            f"{identity.TRUST} is set, but the profile is `{profile.name}`, which is for one person at home:"
            f" set {profiles.VARIABLE}"
        )
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


def _set_limits(profile: Profile) -> None:
    """Sets Streamlit's own options: the sizes of files and messages; that strangers are not shown what the
    code says, since the log has it; and under which names this computer serves itself.
    """
    config.set_option("server.maxUploadSize", profile.max_upload_mb)
    config.set_option("server.maxWidgetStateSize", profile.max_message_mb)
    if profile.public:
        config.set_option("client.showErrorDetails", "none")
    elif not reachable(config.get_option("server.address")) and not config.get_option("server.allowedHosts"):
        # Else a site whose name comes to mean this computer (DNS rebinding) could open its files.
        config.set_option("server.allowedHosts", [*LOOPBACK])


def _go_ahead() -> None:
    """Does ahead what takes Home a second or two on a new server, beside other work: importing pandas, which
    Streamlit needs for the first component, and reading the published model that is shown first.
    """
    import pandas  # noqa: F401

    from ui import model_bar
    from ui.models import PRETRAINED, REAL_MODEL

    # The bar of a first reading has no page here, of which Streamlit would tell the terminal.
    logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context").setLevel(logging.ERROR)

    if REAL_MODEL.removeprefix(PRETRAINED) in session.published():
        with suppress(GlassformerError):  # the page that shows it says what is wrong
            model_bar.read_ahead(REAL_MODEL)


def _settle() -> None:
    """Imports what every page needs and takes it out of garbage collection: 250,000 objects that never go
    away. Garbage of pages is collected after 20,000 objects instead of 700, 0.4 ms an answer instead of 2.

    A page releases the GIL with each of its messages; beside a thread that computes it has it again after a
    millisecond, not after five: an answer takes 20 to 45 ms there instead of 60 to 200.
    """
    import engine.model  # noqa: F401
    import ui.model_bar  # noqa: F401

    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED)
    sys.setswitchinterval(SWITCH_SECONDS)
