"""The facts of every view: `python -m docs.site.views` writes them to .site/views.json.

Each view is drawn without a browser. Question, answer and words are those with which it opens; scenes,
exercises and terms are those whose links open it.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch
from urllib.parse import urlencode

from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from docs.site import live
from docs.site.facts import FACTS, ROOT, WORK, Facts, Link, write
from studies.exercises.catalogue import SETS, make
from tests.pages.stage import StageManager
from ui import explain, models, page_frame, session, view_file
from ui.text.glossary import ANCHOR, linked, terms
from ui.tour.courses import shelf
from ui.views import Listed, views

PATIENCE = 300  # seconds for a view, however busy the machine


class Watch:
    """What a view hands to `ui.explain` while it is drawn."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.words: tuple[str, ...] = ()
        self.code: tuple[Any, ...] = ()

    def answer(self, sentence: str) -> None:
        self.answers.append(sentence)

    def reading(self, *words: str) -> None:
        self.words = words

    def show_code(self, *objects: Any) -> None:
        self.code = objects


def _before(first: Callable[..., object], then: Callable[..., Any]) -> Callable[..., Any]:
    def both(*arguments: Any, **named: Any) -> Any:
        first(*arguments, **named)
        return then(*arguments, **named)

    return both


def _raise(error: Exception) -> None:
    raise error


@contextmanager
def watched() -> Iterator[Watch]:
    """Opens a watch over the page that is run meanwhile. What it cannot draw is raised."""
    watch = Watch()
    with ExitStack() as stack:
        for name in ("answer", "reading", "show_code"):
            both = _before(getattr(watch, name), getattr(explain, name))
            stack.enter_context(patch.object(explain, name, both))
        stack.enter_context(patch.object(page_frame, "failed", _raise))
        yield watch


def drawn(listed: Listed) -> tuple[AppTest, Watch]:
    """Draws a view by its address. Raises RuntimeError with what it could not do."""
    page = AppTest.from_file(str(ROOT / listed.entry.path), default_timeout=PATIENCE)
    page.session_state["owner"] = "docs"
    if listed.page.key:
        page.query_params[listed.page.key] = listed.view.id
    with watched() as watch:
        page.run()
    if page.exception:
        raise RuntimeError(f"{listed.id}: {page.exception[0].value}")
    return page, watch


def facts_of(listed: Listed, page: AppTest, watch: Watch) -> Facts:
    """Returns the facts of a view that has been drawn."""
    words = {name: text for name, text in zip(explain.TITLES, watch.words, strict=False) if text}
    answer = watch.answers[0] if watch.answers else ""
    model = page.query_params.get("model", "")
    mentioned = re.findall(rf"\({ANCHOR}([\w-]+)\)", linked("\n\n".join([answer, *words.values()])))
    shown = [term.id for term in terms().values() if opens(listed, term.page, dict(term.query))]
    return Facts(
        section=listed.entry.section,
        page=listed.entry.title,
        url=listed.entry.url,
        id=listed.view.id,
        title=listed.view.title,
        address=listed.address(),
        question=page.header[0].value,
        answer=answer,
        model=models.title_of(str(model)) if model else "",
        words=words,
        code={_full_name(item): _documented(item) for item in watch.code},
        scenes=tuple(link for link, page, query in scenes() if opens(listed, page, query)),
        exercises=tuple(link for link, page, query in exercises() if opens(listed, page, query)),
        terms=tuple(dict.fromkeys([*shown, *mentioned])),
    )


def opens(listed: Listed, url: str, query: Mapping[str, str]) -> bool:
    """True if a link opens this view; where it names none, it opens the first of the page."""
    first = listed.page.views[0].id
    return url == listed.entry.url and query.get(listed.page.key, first) == listed.view.id


@cache
def scenes() -> list[tuple[Link, str, Mapping[str, str]]]:
    """Returns (link, page, query) of each scene of each course."""
    return [
        (Link(scene.title, course.title, _address(scene.page, query)), scene.page, query)
        for course in shelf().courses.values()
        for number, scene in enumerate(course.scenes, 1)
        for query in [dict(scene.query) | {"course": course.id, "scene": str(number)}]
    ]


@cache
def exercises() -> list[tuple[Link, str, Mapping[str, str]]]:
    """Returns (link, page, query) of each exercise; page and query are of the view that shows its subject."""
    return [
        (Link(title, sort.title, _address("exercises", {"set": name, "exercise": task})), see.page, see.query)
        for name, sort in SETS.items()
        for task, (title, _) in sort.tasks.items()
        for see in [make(task).see]
    ]


def _address(url: str, query: Mapping[str, str]) -> str:
    return f"{url}?{urlencode(query)}"


def _full_name(item: Any) -> str:
    module = inspect.getmodule(item)
    assert module is not None
    return f"{module.__name__}.{item.__qualname__}"


def _documented(item: Any) -> str:
    """Returns the name under which the site documents an object: its own, else its class's, else nothing."""
    name = _full_name(item)
    if item.__doc__ or "." not in item.__qualname__:
        return name if item.__doc__ else ""
    return name.rpartition(".")[0]


def main() -> None:
    """Writes the facts of all views, and the figures that work without a server."""
    view_file.begin()
    app = os.environ.get("GLASSFORMER_APP", view_file.APP)
    shutil.rmtree(WORK / live.LIVE, ignore_errors=True)
    scan = cache(manifest_scanner.scan_component_manifests)
    with (
        patch.object(session, "manager", cache(StageManager)),  # no run is started
        # Streamlit reads the metadata of every installed package for each AppTest.
        patch.object(manifest_scanner, "scan_component_manifests", scan),
    ):
        facts, alive = [], 0
        for listed in views():
            page, watch = drawn(listed)
            facts.append(facts_of(listed, page, watch))
            alive += live.save(facts[-1], listed, page, app)
    write(facts)
    sys.stdout.write(
        f"{len(facts)} views are in {FACTS.relative_to(ROOT)}; {alive} have a figure that works there.\n"
    )


if __name__ == "__main__":
    main()
