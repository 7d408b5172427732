"""Predict, then see: a reader may guess before a figure tells. A small button beside a view's question, and,
once it is pressed, one line at the bottom of the window.

Which guess holds is worked out in `studies.guesses` from what is shown, and only when somebody wants to
guess. The browser keeps whether a reader wants guesses (ui/assets/guess.js); `guess=off` in the address is a
lecturer's way, and lasts for the session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from studies.guesses import Truth
from ui import returns, session, widgets
from ui.content import Texts
from ui.players.component import mounted
from ui.tour import courses

KEY, URL, ON, OFF = "guess", "guess", "on", "off"
_OPEN, _SEEN = "open/", "seen/"  # what the browser says, before the name of a guess
_OFF, _SETS = "guess_off", "guess_sets"  # in the session


@dataclass(frozen=True)
class Choice:
    """An answer to choose. `reply` follows the choice: to a wrong one it names the thought behind it."""

    text: str
    reply: str


@dataclass(frozen=True)
class Guess:
    """A question about what is not on the screen yet. `right` is the index of the right choice. `outcome` are
    the numbers, shown whatever was chosen, and where they are seen. `sets` are controls, by their keys,
    and their new values: once a choice is made they are set, and the figure answers. All is plain text.
    """

    question: str
    choices: tuple[Choice, ...]
    right: int
    outcome: str
    sets: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        text: Texts,
        truth: Truth,
        question: str,
        outcome: str,
        sets: Mapping[str, Any] | None = None,
        choices: Mapping[str, str] | None = None,
    ) -> Guess:
        """Reads the choices that `truth` offers from a view's text: `choice NAME` with `reply NAME`, to the
        right one `right NAME` or `right` where they are there. `choices` are other words for them, in order.
        """
        numbers, right = truth.numbers, truth.right
        names = [name for name in choices or truth.offered if name in truth.offered]
        words = choices or {name: text(f"choice {name}", **numbers) for name in names}
        replies = {name: f"reply {name}" for name in names}
        replies[right] = next(each for each in (f"right {right}", "right", f"reply {right}") if each in text)
        options = tuple(Choice(words[name], text(replies[name], **numbers)) for name in names)
        return cls(question, options, names.index(right), outcome, sets or {})


def ask(name: str, make: Callable[..., Guess | None], *about: Any) -> None:
    """Offers a guess on a view. `make(*about)` works it out when somebody wants to guess; None where what is
    shown leaves nothing to be guessed. At most once on a page.
    """
    if _declined() or _scene_asks():
        return
    wanted = widgets.picked(KEY, "did") == f"{_OPEN}{name}"
    guess = make(*about) if wanted else None
    st.session_state[_SETS] = {} if guess is None else dict(guess.sets)
    mounted("guess", styles=("guess",))(key=KEY, data=payload(name, wanted, guess), on_did_change=_did)


def payload(name: str, wanted: bool, guess: Guess | None) -> dict[str, Any]:
    """Returns what the browser needs: until somebody wants to guess, only that one can."""
    if not wanted:
        return {"id": name}
    if guess is None:
        return {"id": name, "none": True}
    return {
        "id": name,
        "asked": guess.question,
        "choices": _told(guess.choices),
        "right": guess.right,
        "found": guess.outcome,
    } | returns.after_wrong(name)


def _told(choices: Sequence[Choice]) -> list[dict[str, str]]:
    return [{"text": choice.text, "said": choice.reply} for choice in choices]


def _did() -> None:
    """A choice was made: the controls that the guess was about are set, before the view is drawn again."""
    did = widgets.picked(KEY, "did")
    wanted = st.session_state.pop(_SETS, {})
    if isinstance(did, str) and did.startswith(_SEEN):
        st.session_state.update(wanted)


def _declined() -> bool:
    """True if the address declined guesses; it keeps saying so from page to page."""
    text = session.from_url(URL, (ON, OFF))
    if text is not None:
        st.session_state[_OFF] = text == OFF
    elif st.session_state.get(_OFF) and not widgets.read_url(URL):
        widgets.write_url(URL, OFF)
    return bool(st.session_state.get(_OFF))


def _scene_asks() -> bool:
    """True if the scene of a course that is shown has a question of its own."""
    course = courses.shelf().courses.get(widgets.read_url("course"))
    if course is None:
        return False
    number = widgets.number_of(widgets.read_url("scene"))
    at = widgets.clamped(number, 1, len(course.scenes), 1) - 1
    return course.scenes[at].question is not None
