"""Which model is looked into: the box of the bar, what a link names, and what the visitor chose before.

The address holds the model shown as `model`, and as `yours` the visitor's own choice where a view opens with
another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from ui import fetching, models, session, widgets
from ui.models import FIRST_MODEL, RUN
from ui.text.markdown import safe, whole

if TYPE_CHECKING:
    from runs.state import RunView

# In the session: the box, and the visitor's choice. In the address: that choice
SHOWN, CHOICE, YOURS = fetching.CHOSEN, "kept_model", "yours"
# What the box remembers: the view that drew it last, the name that it put into the address, and the views
# that show the visitor's choice though another model shows their point better.
_DRAWN_ON, _WRITTEN, _INSISTED = "subject_model_page", "subject_model_written", "subject_model_insisted"


@dataclass(frozen=True)
class Wishes:
    """Names of models that may be shown on arriving at a view, each None or not here as the case may be."""

    link: (
        str | None
    )  # what the address names; None where the visitor walked here, whose address is the last view's
    chosen: str | None  # the visitor's choice: the model looked at before, or the run in hand
    best: Sequence[str]  # that show the view's point; none where the visitor insists on theirs
    first: str  # the page's

    def first_here(self, here: Sequence[str]) -> str:
        """Returns the first of them among the models that are here: the link's; the best, where the visitor's
        choice is none of them; that choice; the page's, or a shipped one.

        >>> Wishes(None, "modern", ("lapse",), "classic").first_here(["classic", "modern", "lapse"])
        'lapse'
        >>> Wishes(None, "modern", ("lapse", "modern"), "classic").first_here(["classic", "modern", "lapse"])
        'modern'
        """
        best = () if self.chosen in self.best else self.best
        wanted = (self.link, *best, self.chosen, self.first, FIRST_MODEL)
        return next((name for name in wanted if name is not None and name in here), here[0])


def choose_model(
    first: str = FIRST_MODEL,
    inside: Callable[[str], AbstractContextManager[object]] | None = None,
    *,
    best: Sequence[str] = (),
    view: str = "",
    walked: bool = False,
) -> str:
    """Returns the name of the model to look into, as `Wishes` say; the box is drawn `inside` what that makes
    of it. `best` are a `view`'s own, `first` is a page's; a visitor has `walked` here who came from another
    view by a click.
    """
    asked_for = st.query_params.get("model")
    # A path or a model's name may hold more than letters: it counts only if it is among the options.
    named = asked_for if asked_for and models.is_pretrained(asked_for) else session.from_url("model")
    options = models.offered(named)
    fetching.take(SHOWN)
    here = f"{widgets.page_drawn()}/{view}"
    arrived = here != st.session_state.get(_DRAWN_ON)
    linked = not walked and asked_for is not None and asked_for != st.session_state.get(_WRITTEN)
    shown: str = st.session_state.get(SHOWN, "")
    if arrived or linked or shown not in options:
        # The value of a widget of another page is none of this page's: Streamlit would draw the first option.
        carried: str | None = st.session_state.get(CHOICE)
        yours = session.from_url(YOURS, options)
        choices = (carried, *((yours, named) if walked else ()), RUN + str(st.session_state.get("run_id")))
        chosen = next((name for name in choices if name in options), None)
        link = None if walked else named
        wishes = Wishes(link, chosen, () if here in _insisted() else best, first)
        shown = st.session_state[_WRITTEN] = wishes.first_here(options)
        if shown == link:
            chosen = yours
            if best and shown not in best:  # and so it does when the visitor comes back
                _insisted().add(here)
        st.session_state[CHOICE] = chosen if chosen is not None and shown in best else shown
        missing = (None if walked else asked_for) or (carried if arrived else None)
        if missing and missing not in options:
            _say_missing(missing, shown)
    # In each run: a popover mounts its boxes when it first opens, and the browser knows no earlier value.
    st.session_state[SHOWN] = shown
    with inside(shown) if inside else nullcontext():
        name = _box(options)
    if name != st.session_state[_WRITTEN]:  # chosen by hand
        st.session_state[CHOICE] = name
        _insisted().add(here)
    st.session_state[_WRITTEN], st.session_state[_DRAWN_ON] = name, here
    widgets.write_url("model", name)
    widgets.write_url(YOURS, visitors_choice(name, best))
    return name


def _box(options: Sequence[str]) -> str:
    titles = {name: whole(models.title_of(name)) for name in options}
    # Streamlit's own: a link may name somebody else's run, a missing one is said, and the URL always
    # holds the name, also of the first.
    name: str = st.selectbox(
        "Model",
        options,
        key=SHOWN,
        format_func=titles.__getitem__,
        help="A shipped model, a published one, an untrained one, or a run at any of its steps: a shipped"
        " run, or one of yours.",
    )
    return name


def _say_missing(name: str, shown: str) -> None:
    with st.container(key="another_model"):
        why = models.source_of(name).missing(name)
        st.caption(f":material/info: {why}; {safe(models.title_of(shown))} is shown instead.")


def visitors_choice(name: str, best: Sequence[str]) -> str | None:
    """Returns the visitor's choice where a view shows another model, which is one of the `best` for it; None
    where that is the choice itself.
    """
    choice: str | None = st.session_state.get(CHOICE)
    return choice if name in best and choice is not None and choice not in best else None


def chosen_run() -> RunView | None:
    """Returns the training that is looked into on pages with a bar, as the address of one without says, else
    the visitor's choice; None where that is another model. The address then says it.
    """
    name = session.from_url("model") or str(st.session_state.get(CHOICE, ""))
    if (run := models.run_of(name)) is not None:
        widgets.write_url("model", name)
    return run


def choose(name: str) -> None:
    """Looks into another model, from the next run of the script on: as if it were chosen in the bar."""
    st.session_state[SHOWN] = name


def first_of(names: Sequence[str]) -> str:
    """Returns the first of the models that is on this server; FIRST_MODEL where none is."""
    here = models.offered()
    return next((name for name in names if name in here), FIRST_MODEL)


def _insisted() -> set[str]:
    views: set[str] = st.session_state.setdefault(_INSISTED, set())
    return views
