"""Work that goes on while a page stands: a browser follows it by a route of ours, draws its bar and its
figures, and has the page drawn again only where its state is another.

    live.follow("run", lambda: Sight(state=view().status, version=view().version, share=view().share))
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from streamlit import config

from ui import export, frames, identity, session
from ui.players.component import mounted

log = logging.getLogger(__name__)

PATH = "/live/"
MOST = 2_000  # that are followed at a time; the one that was asked about longest ago goes first
UNASKED = 150.0  # seconds until it is forgotten: a browser lets a hidden tab ask once a minute
_TOKENS = "live_tokens"


def _none() -> Mapping[str, bytes]:
    return {}


class Sight(NamedTuple):
    """A look at a moment. Where `state` is another, the page is drawn again; where `version` is, the
    browser draws the rest: a bar (`share`, 0 to 1; None for none), and `figures`, messages of
    `ui.players.plot.payload` by key.
    """

    state: object
    version: object = None
    share: float | None = None
    text: str = ""
    figures: Callable[[], Mapping[str, bytes]] = _none


Look = Callable[[], Sight]


class _Followed(NamedTuple):
    look: Look
    owner: str
    by_cookie: bool  # that owner's browser keeps one
    asked: float


_followed: OrderedDict[str, _Followed] = OrderedDict()
_lock = threading.Lock()


def follow(key: str, look: Look, *, drawn: object = None, every: float = 0.5, whole: bool = False) -> None:
    """Draws the bar of what goes on, and lets the browser ask for it `every` so many seconds.

    `look` is called by the route, outside any session: it holds all that it needs. `drawn` is the state that
    the page shows, where that may be older than the first look. The part of the page that this stands in is
    drawn again when the state is another, or, where it stands `whole`, the page.
    """
    frames.page_needed()
    sight = look()
    data = _told(sight, drawn) | {"token": _token(key, look), "every": every}
    _mount(key, data | {"whole": whole}, whole)


def _mount(key: str, data: dict[str, Any], whole: bool) -> None:
    def draw() -> None:
        result = mounted("follow", styles=("follow",))(
            key=f"live_{key}", data=data, on_changed_change=lambda: None
        )
        if whole and getattr(result, "changed", None) is not None:
            st.rerun()

    if whole:
        st.fragment(draw)()
    else:
        draw()


def _told(sight: Sight, drawn: object = None) -> dict[str, Any]:
    state = sight.state if drawn is None else drawn
    version = (
        state,
        sight.version,
        sight.share,
        sight.text,
    )  # of an older state: the first answer is another
    return {
        "state": _digest(state),
        "version": _digest(version),
        "share": sight.share,
        "text": sight.text,
    }


def _digest(value: object) -> str:
    return hashlib.blake2b(repr(value).encode("utf-8", "replace"), digest_size=9).hexdigest()


def _token(key: str, look: Look) -> str:
    """The name of what this tab follows under that key: who has it, and the cookie, may ask."""
    tokens: dict[str, str] = st.session_state.setdefault(_TOKENS, {})
    token = tokens.setdefault(key, secrets.token_urlsafe(18))
    by_cookie = identity.key_in(st.context.cookies.get(identity.COOKIE)) == session.owner()
    now = time.monotonic()
    with _lock:
        _followed[token] = _Followed(look, session.owner(), by_cookie, now)
        _followed.move_to_end(token)
        while len(_followed) > MOST or next(iter(_followed.values())).asked < now - UNASKED:
            _followed.popitem(last=False)
    return token


def _answer(request: Request) -> Response:
    """Answers with what is seen now; 204 where nothing has changed, 404 where nobody follows that
    here: nginx then asks the next server, where a tab is whose own was lost.
    """
    token = request.path_params["token"]
    with _lock:
        followed = _followed.get(token)
        if followed is not None:
            _followed[token] = followed._replace(asked=time.monotonic())
            _followed.move_to_end(token)
    if followed is None:
        return Response(status_code=404)
    if followed.by_cookie and identity.key_in(request.cookies.get(identity.COOKIE)) != followed.owner:
        return Response(status_code=403)
    try:
        sight = followed.look()
        answer = _told(sight)
        if answer["version"] == request.query_params.get("since"):
            return Response(status_code=204)
        figures = {key: message.decode() for key, message in sight.figures().items()}
    except Exception:
        log.exception("what a page follows could not be looked at")
        return Response(status_code=404)  # the page, drawn again, says what is wrong
    return JSONResponse(answer | {"figures": figures}, headers={"Cache-Control": "no-store"})


def routes() -> list[Route]:
    """Returns the routes of all that is followed, of views at other steps and of those that are saved. They
    run in threads: they wait for locks, and draw.
    """
    base = str(config.get_option("server.baseUrlPath") or "").strip("/")
    path = f"{'/' if base else ''}{base}{PATH}"
    return [
        Route(f"{path}{{token}}", _answer, methods=["GET"]),
        Route(f"{path}frame/{{token}}", frames.answer, methods=["GET"]),
        Route(f"{path}saved/{{token}}", export.answer, methods=["GET"]),
    ]
