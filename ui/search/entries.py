"""The entries of the search: views, terms, exercises, notebooks, courses and their scenes. The browser finds
among them (ui/assets/search_find.js).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlencode

from studies.exercises import notebooks
from studies.exercises.catalogue import SETS
from ui.page_frame import Ask, Words
from ui.text.glossary import terms
from ui.tour.bar import address_of
from ui.tour.courses import shelf
from ui.views import Listed, views
from ui.visited import VIEW

TERM, EXERCISE, NOTEBOOK, COURSE, SCENE = "Term", "Exercise", "Notebook", "Course", "Scene"
MOST = {VIEW: 6, TERM: 3, EXERCISE: 3, NOTEBOOK: 2, COURSE: 1, SCENE: 2}  # results of a kind
# What counts beside a view of the same fit: a view answers, a term explains, an exercise asks.
_WEIGHTS = {VIEW: 1.0, TERM: 0.38, EXERCISE: 0.35, NOTEBOOK: 0.33, COURSE: 0.4, SCENE: 0.25}
# The addresses of what is offered before anything is typed and before any view was visited.
_STARTS = ("?home_view=living", "train", "attention?attention_view=heads", "sampling?sampling_view=stages")

_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Entry:
    """A search result. `kind` groups entries and limits how many of them are shown; `names` are what it is
    called, `about` what else is asked or shown there, `text` what is written about it. `weight` multiplies
    the score; `address` lies below the app's root.
    """

    kind: str
    title: str
    detail: str
    address: str
    names: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    text: str = ""
    weight: float = 1.0


def entries() -> tuple[Entry, ...]:
    """Returns all entries. They are gathered once, at the first search, from every page."""
    with _ONE_AT_A_TIME:
        return _entries()


@cache
def addresses() -> frozenset[str]:
    """Returns the addresses that a search can lead to."""
    return frozenset(entry.address for entry in entries())


@cache
def _entries() -> tuple[Entry, ...]:
    return (*_views(), *_terms(), *_exercises(), *_notebooks(), *_courses())


@cache
def starts() -> tuple[Entry, ...]:
    """Returns the shortest course, and a few views to begin with."""
    course = next((entry for entry in entries() if entry.kind == COURSE), None)
    first = {entry.address: entry for entry in reversed(entries()) if entry.address in _STARTS}
    return (*((course,) if course else ()), *(first[address] for address in _STARTS))


def _views() -> Iterator[Entry]:
    for listed in views():
        names: tuple[str, ...] = (listed.view.title,)
        shown = _terms_of(listed)
        for question in dict.fromkeys(ask.question for ask in listed.asks):
            asks = [ask for ask in listed.asks if ask.question == question]
            about = [question, *(name for ask in asks for name in shown.get(ask, ()))]
            if asks[0] == listed.asks[0]:
                about += listed.view.shows
                if listed.view is listed.page.views[0]:
                    names += (listed.entry.title,)
                    about.append(listed.entry.help)
            text = " ".join(_text(ask.words) for ask in asks if ask.words)
            yield _entry(VIEW, listed.title, question, listed.address(asks[0]), names, tuple(about), text)


def _entry(
    kind: str,
    title: str,
    detail: str,
    address: str,
    names: tuple[str, ...] = (),
    about: tuple[str, ...] = (),
    text: str = "",
) -> Entry:
    return Entry(kind, title, detail, address, names, about, text, _WEIGHTS[kind])


def _terms_of(listed: Listed) -> dict[Ask, list[str]]:
    """The names of the terms that lead to a view, by its question that fits the term's address best."""
    first, names = listed.page.views[0].id, defaultdict[Ask, list[str]](list)
    for term in terms().values():
        if term.page == listed.entry.url and dict(term.query).get(listed.page.key, first) == listed.view.id:
            fits = [ask for ask in listed.asks if set(ask.query) <= set(term.query)]
            names[max(fits, key=lambda ask: len(ask.query), default=listed.asks[0])] += (
                *term.forms,
                *term.synonyms,
            )
    return names


def _text(words: Words) -> str:
    return " ".join((words.see, words.why, words.attempt, words.texts))


def _terms() -> Iterator[Entry]:
    for term in terms().values():
        address = term.page + (f"?{urlencode(term.query)}" if term.query else "")
        names = (*term.forms, *term.synonyms)
        yield _entry(TERM, term.title, term.text, address, names, text=term.text)


def _exercises() -> Iterator[Entry]:
    for set_, group in SETS.items():
        for task, (title, _) in group.tasks.items():
            query = {"exercises_view": "practise", "exercises_on": "screen", "set": set_, "exercise": task}
            yield _entry(
                EXERCISE, title, group.title, f"exercises?{urlencode(query)}", (title,), (group.title,)
            )


def _notebooks() -> Iterator[Entry]:
    for name in notebooks.NAMES:
        query = {"exercises_view": "code", "notebook": name}
        title, task = notebooks.title_of(name), notebooks.task_of(name)
        yield _entry(
            NOTEBOOK, title, "Write it in code", f"exercises?{urlencode(query)}", (title,), text=task
        )


def _courses() -> Iterator[Entry]:
    for course in shelf().courses.values():
        minutes = f"{course.minutes} minute{'s' * (course.minutes != 1)}, for {course.audience}"
        yield _entry(COURSE, course.title, minutes, address_of(course, 0), (course.title,))
        for at, scene in enumerate(course.scenes):
            yield _entry(
                SCENE, scene.title, course.title, address_of(course, at), (scene.title,), text=scene.text
            )
