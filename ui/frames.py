"""The figures of a view at another step of the training, past Streamlit: a route of ours draws the view again
as it stands, at that step, and answers with what its components get, and with the view's answer. Nothing else
of the page is sent.

    name = frames.offer(draw, shown)  # draw(step) draws the view of this tab, which is at `shown` now

The view's function is the page's: it runs outside of the tab's session, on a copy of its state, and what it
says to Streamlit is dropped. A view for which that is allowed says so (`View.figures_only`).
"""

from __future__ import annotations

import contextvars
import copy
import dataclasses
import logging
import secrets
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.fragment import MemoryFragmentStorage
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState
from streamlit.runtime.scriptrunner_utils.script_run_context_attr import SCRIPT_RUN_CONTEXT_ATTR_NAME
from streamlit.runtime.scriptrunner_utils.shared_run_state import SharedRunState
from streamlit.runtime.state import SafeSessionState

from studies.exercises.sheet import block
from ui import identity, session, training_step
from ui.operate import patches
from ui.text.markdown import plain

log = logging.getLogger(__name__)

LONGEST = 12  # characters of a step
FRAME = "frame"  # in the session


class _Drawn(NamedTuple):
    parts: dict[str, Any]  # what the components get, by their keys
    answers: list[str]  # as HTML
    rest: list[bytes]  # what else is on the screen, as Streamlit would send it


class _Rest(NamedTuple):
    """A page but for its figures and answer: at which step, with what in the tab's session."""

    page: str
    step: int
    held: dict[str, int]  # in the session, marks of it
    rest: list[Any]


_taken: contextvars.ContextVar[_Drawn | None] = contextvars.ContextVar("taken", default=None)
_offered: weakref.WeakValueDictionary[str, Frame] = weakref.WeakValueDictionary()


class PageNeededError(BaseException):
    """The view cannot be drawn without its page: something is measured that takes long, say."""


def drawing() -> bool:
    """True while a view is drawn past Streamlit."""
    return _taken.get() is not None


def take(key: str, data: Any) -> bool:
    """Takes what a component gets; returns False where the page is drawn, and Streamlit has to send it."""
    drawn = _taken.get()
    if drawn is None:
        return False
    drawn.parts[key] = data.decode() if isinstance(data, bytes) else data
    return True


def take_answer(markdown: str) -> bool:
    """Takes the sentence that answers the view's question; returns False where the page is drawn."""
    if drawn := _taken.get():
        drawn.answers.append(block(plain(markdown)))
    return drawn is not None


def page_needed() -> None:
    """Gives up where a view is drawn past Streamlit."""
    if drawing():
        raise PageNeededError


class Frame:
    """A view that a tab shows, and may show at other steps. The tab's session holds it."""

    def __init__(
        self, token: str, draw: Callable[[int], object], shown: int, earlier: Frame | None = None
    ) -> None:
        context = get_script_run_ctx()
        assert context is not None
        self.token, self.owner = token, session.owner()
        # that owner's browser keeps one
        self.by_cookie = identity.key_in(st.context.cookies.get(identity.COOKIE)) == self.owner
        self._draw, self._shown = draw, shown
        self._context, self._thread_state = context, dataclasses.asdict(ThreadState.get())
        # What is the page's at the step that is shown, once it was asked for; and at the step drawn last, to
        # which the page may have followed when it offers its next frame
        self._there: list[Any] | None = None
        self.last: _Rest | None = None
        self._earlier = earlier.last if earlier else None
        self._lock = threading.Lock()  # one at a time: no tab holds more of the server's threads

    def at(self, step: int) -> dict[str, Any]:
        """Returns what the components get at a step, by their keys, as `parts`, and the `answer` as HTML;
        `whole` is True if nothing else differs from what is shown. Raises PageNeededError.
        """
        if not self._lock.acquire(blocking=False):
            raise PageNeededError
        try:
            with self._context.session_state._lock:
                state = _copied(self._context.session_state._state)  # a run that begins meanwhile changes it
            here, drawn = self._here(state), self._draws(step, state)
            rest = _rest(drawn)
            if self._there is None:
                there = self._earlier and self._earlier._replace(rest=[])
                followed = self._earlier is not None and there == here and self._earlier.rest == rest
                self._there = rest if followed else _rest(self._draws(self._shown, state))
            self.last = here._replace(step=step, rest=rest)
        finally:
            self._lock.release()
        return {
            "whole": rest == self._there,
            "parts": drawn.parts,
            "answer": "".join(drawn.answers),
        }

    def _draws(self, step: int, state: Any) -> _Drawn:
        return contextvars.copy_context().run(self._drawn, step, _copied(state))

    def _here(self, state: Any) -> _Rest:
        """Returns the page as it stands, without what is drawn on it."""
        held = dict(state.filtered_state)
        others = {key: _mark(value) for key, value in held.items() if key not in (FRAME, training_step.HELD)}
        return _Rest(self._context.page_script_hash, self._shown, others, [])

    def _drawn(self, step: int, state: Any) -> _Drawn:
        """Draws the view in a context of its own, for which it takes the present one's variables."""
        drawn = _Drawn({}, [], [])

        def send(message: ForwardMsg) -> None:
            # a spinner comes and goes
            if message.WhichOneof("type") == "delta" and not message.delta.HasField("new_transient"):
                drawn.rest.append(message.SerializeToString())

        context = dataclasses.replace(
            self._context,
            _enqueue=send,
            session_state=SafeSessionState(state, lambda: None),
            fragment_storage=MemoryFragmentStorage(),
            shared=SharedRunState(),
            cursors={},
            script_requests=None,
            fragment_ids_this_run=None,  # else what stands outside of the fragment could not be written to
        )
        _taken.set(drawn)
        ThreadState.initialize(**self._thread_state)
        thread = threading.current_thread()
        setattr(thread, SCRIPT_RUN_CONTEXT_ATTR_NAME, context)
        try:
            self._draw(step)
        finally:
            delattr(thread, SCRIPT_RUN_CONTEXT_ATTR_NAME)
        return drawn


def _rest(drawn: _Drawn) -> list[Any]:
    """Returns all else that is on the screen, and the components' keys."""
    return [*drawn.rest, sorted(drawn.parts)]


def _mark(value: Any) -> int:
    """Returns a number by which a value is known again without being held."""
    if isinstance(value, bool | int | float | tuple | list | dict):  # hash(-1) is that of -2
        return hash(repr(value))
    try:
        return hash(value)
    except TypeError:
        return id(value)


def _copied(state: Any) -> Any:
    """Returns a session's state with tables of its own, which hold the same."""
    twin = copy.copy(state)
    for field in dataclasses.fields(state):
        value = getattr(state, field.name)
        if dataclasses.is_dataclass(value):
            setattr(twin, field.name, _copied(value))
        elif isinstance(value, dict | set | list):
            setattr(twin, field.name, value.copy())
    return twin


def offer(draw: Callable[[int], object], shown: int) -> str:
    """Offers the view that this tab shows at other steps; returns its name for the route, none where this
    version of Streamlit is another than the one that was read.
    """
    if not patches.holds(patches.FRAMES):
        return ""
    held = st.session_state.get(FRAME)
    earlier = held if isinstance(held, Frame) else None
    token = earlier.token if earlier else secrets.token_urlsafe(18)
    st.session_state[FRAME] = _offered[token] = Frame(token, draw, shown, earlier)
    return token


def answer(request: Request) -> Response:
    """Answers with the figures at the `step` of the query; 204 where the page has to be drawn for it, 404
    where no tab shows that view any more.
    """
    frame = _offered.get(request.path_params["token"])
    step = request.query_params.get("step", "")
    if frame is None or not step.removeprefix("-").isdecimal() or len(step) > LONGEST:
        return Response(status_code=404)
    if frame.by_cookie and identity.key_in(request.cookies.get(identity.COOKIE)) != frame.owner:
        return Response(status_code=403)
    try:
        return JSONResponse(frame.at(int(step)), headers={"Cache-Control": "no-store"})
    except BaseException as why:
        if isinstance(why, Exception):
            log.exception("a view could not be drawn past Streamlit")
        return Response(status_code=204)  # the page, drawn at that step, says what is wrong
