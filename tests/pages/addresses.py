"""What a page reads of its address, and the links to pages that the courses and DOCS give."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from streamlit.runtime.state.query_params import QueryParams

from ui.site import ROOT
from ui.tour.courses import shelf

DOCS = tuple(ROOT / "docs" / name for name in ("teaching.md", "first-course.md"))
Link = tuple[str, tuple[tuple[str, str], ...]]  # the address of a page, and what its query names


@contextmanager
def listening() -> Iterator[set[str]]:
    """The names that are read of an address meanwhile, by whatever code, whether it holds them or not."""
    heard: set[str] = set()
    get, get_all, bind = QueryParams.__getitem__, QueryParams.get_all, QueryParams.bind_widget

    # Streamlit's own: every way of reading st.query_params ends in one of its items, or in all of a name
    def reads(self: QueryParams, name: str) -> str:
        heard.add(name)
        return get(self, name)

    def reads_all(self: QueryParams, name: str) -> list[str]:
        heard.add(name)
        return get_all(self, name)

    # Streamlit's own: a widget with bind="query-params" takes its first value when it is bound
    def binds(self: QueryParams, **about: Any) -> None:
        heard.add(about["param_key"])
        bind(self, **about)

    QueryParams.__getitem__, QueryParams.bind_widget = reads, binds  # type: ignore[method-assign, assignment]
    QueryParams.get_all = reads_all  # type: ignore[method-assign, assignment]
    try:
        yield heard
    finally:
        QueryParams.__getitem__, QueryParams.bind_widget = get, bind  # type: ignore[method-assign]
        QueryParams.get_all = get_all  # type: ignore[method-assign]


def links() -> list[Link]:
    """Each once: of every scene of every course, and of the docs about teaching."""
    scenes = [(scene.page, scene.query) for course in shelf().courses.values() for scene in course.scenes]
    return list(dict.fromkeys([*scenes, *(link for file in DOCS for link in written(file))]))


def written(file: Path) -> list[Link]:
    """The links to pages in a text: `page?name=value`, in ticks or as `at:` of a scene, which may have
    quotation marks.
    """
    found = re.findall(r"(?:`|^ *at: \"?)/?([a-z]*)\?([^`\s\"]+)", file.read_text("utf-8"), re.MULTILINE)
    return [(page, tuple(parse_qsl(query, keep_blank_values=True))) for page, query in found]
