"""Session, server and URL: what a page may know about who is looking and what is already there."""

from __future__ import annotations

import math
import re
import secrets
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

import streamlit as st
from streamlit import runtime

from engine.errors import CorpusError
from ui import identity, memo
from ui.asgi_limits import ADDRESS

if TYPE_CHECKING:
    from engine.data.corpus import Corpus
    from engine.data.tokenizers.bpe import BpeTokenizer
    from runs.manager import RunManager
    from runs.profiles import Profile
    from runs.quizzes import Quizzes
    from runs.rooms import Rooms

_SLUG = re.compile(r"[A-Za-z0-9_-]{1,64}")


def profile() -> Profile:
    """Returns the limits of this server: `local`, or what $GLASSFORMER_PROFILE names."""
    from runs import profiles

    return profiles.current()


def published() -> list[str]:
    """Returns the models of others that lie here: none where the limits of this server leave no
    room for any.
    """
    from studies.weights.pretrained import sources

    return sources.available() if profile().max_pretrained else []


def manager() -> RunManager:
    """Returns the one run manager of this server process: made by the server's lifespan (ui.server), or when
    it is first asked for where there is none, as in a test of one page.

    It is not kept in st.cache_resource, which one message of any browser empties.
    """
    with _MAKING:
        if not _MADE:
            _MADE.append(_make_manager())
        return _MADE[0]


def rooms() -> Rooms:
    """Returns the rooms, where every server of this address sees them."""
    from runs.shared import open_rooms

    runs = manager()
    with _MAKING:
        if not _ROOMS:
            _ROOMS.append(open_rooms(runs, address))
        return _ROOMS[0]


def quizzes() -> Quizzes:
    """Returns the quizzes, likewise."""
    from runs.shared import open_quizzes

    runs = manager()
    with _MAKING:
        if not _QUIZZES:
            _QUIZZES.append(open_quizzes(runs, address))
        return _QUIZZES[0]


def close_manager() -> None:
    """Ends every training and room, at the end of the server. The next one who asks gets a new manager."""
    with _MAKING:
        _ROOMS.clear()
        _QUIZZES.clear()
        while _MADE:
            _MADE.pop().close()


_MAKING = threading.Lock()
_MADE: list[RunManager] = []  # none or one
_ROOMS: list[Rooms] = []  # likewise, of that manager
_QUIZZES: list[Quizzes] = []


def _make_manager() -> RunManager:
    import threadpoolctl
    import torch

    from runs.shared import open_manager

    # If any thread of this process ran a multi-threaded op, loops in other threads would drop to half speed.
    torch.set_num_threads(1)
    # NumPy's second thread mostly waits, and takes the core from the browser or a training: 0.8 instead of
    # 4.3 ms for the map of 65 tokens.
    threadpoolctl.threadpool_limits(1, user_api="blas")
    return open_manager(profile(), address)


def corpus(name: str, tokenizer: str = "char", cutter: BpeTokenizer | None = None) -> Corpus:
    """Returns a corpus by name, read, cut into tokens and split once per server; a `cutter` spares it
    learning the merges. Raises CorpusError when it cannot be had.
    """
    return _corpus(name, tokenizer, cutter)


@memo.loaded("Reading the text …")
def _corpus(name: str, tokenizer: str, _cutter: BpeTokenizer | None) -> Corpus:
    from engine.data import corpora

    missing = name == "shakespeare" and corpora.shakespeare_path() is None
    if missing and (before := refusals()):
        raise CorpusError(str(before[-1]))
    try:
        return corpora.load(name, tokenizer=tokenizer, cutter=_cutter)
    except CorpusError as error:
        if missing:
            refusals().append(error)
        raise


@st.cache_resource(ttl=120, show_spinner=False)
def refusals() -> list[CorpusError]:
    """Returns why Tiny Shakespeare could not be downloaded, for two minutes: without it each page of a server
    that has no way to the network would wait for it again, ten seconds and more, at every click.
    """
    return []


def owner() -> str:
    """Returns this browser's secret key: whoever holds it controls the runs it started.

    From the cookie that the server gave with the page (ui.asgi_limits), so that a reload is still the same
    person. Where a browser keeps none, as in a frame of another site, it is made here and lasts for the
    session.
    """
    if "owner" not in st.session_state:
        sent = identity.key_in(st.context.cookies.get(identity.COOKIE))
        st.session_state.owner = sent or secrets.token_urlsafe(32)
    key: str = st.session_state.owner
    return key


def address() -> str:
    """Returns the network address of whoever looks at the page; empty where it is not known, at home, and
    where no server runs.
    """
    return str(st.context.headers.get(ADDRESS) or "") if runtime.exists() else ""


def from_url(name: str, allowed: Iterable[str] | None = None) -> str | None:
    """Returns a value from the query string if it is one of `allowed`, or, without those, short and plain
    ([A-Za-z0-9_-]); else None.

    The rest of a URL was written by strangers: nothing else of it reaches the app.
    """
    value = st.query_params.get(name)
    if value is None:
        return None
    if allowed is not None:
        return value if value in set(allowed) else None
    return value if _SLUG.fullmatch(value) else None


TEXTS = re.compile(
    r"(^|_)(text|sentence|prompt|stop|scores|line|title)($|_)"
)  # in the names of what people write themselves


def drop_endless() -> None:
    """Takes numbers without an end (inf, 1e400, nan, 400 digits) out of the URL and starts over: Streamlit
    1.67 fails to make them whole. With them go names that no control can have.
    """
    # A widget that is there already has read its value: only a fresh link can bring such a number.
    dropped = [
        n
        for n in st.query_params
        if not may_name(n)
        or (
            n not in st.session_state
            and not TEXTS.search(n)
            and any(map(is_endless, st.query_params.get_all(n)))
        )
    ]
    for name in dropped:
        del st.query_params[name]
    if dropped:
        st.rerun()


def may_name(name: str) -> bool:
    """True for what the app may look up in the session: Streamlit 1.67 raises for an empty name, and for one
    that begins like those it gives itself.

    >>> may_name("head"), may_name(""), may_name("$$ID-1-None")
    (True, False, False)
    """
    return name != "" and not name.startswith("$$")


def is_endless(text: str) -> bool:
    """
    >>> is_endless("inf"), is_endless("9" * 400), is_endless("12"), is_endless("swiglu")
    (True, True, False, False)
    """
    try:
        return not math.isfinite(float(text))
    except ValueError:
        return False
