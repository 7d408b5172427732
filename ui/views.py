"""Every view of every page, undrawn: for search, the list of questions, and the docs."""

from __future__ import annotations

import threading
from functools import cache
from importlib import import_module

from ui import site
from ui.page_frame import Listed as Listed
from ui.page_frame import Page

_ONE_AT_A_TIME = threading.Lock()


def page_of(entry: site.Entry) -> Page:
    """Returns a page, undrawn."""
    page: Page = import_module(entry.path.removesuffix(".py").replace("/", ".")).PAGE
    return page


def views() -> tuple[Listed, ...]:
    """Returns every view, in the order of the menu. The first call of a process imports every page."""
    with _ONE_AT_A_TIME:
        return _views()


@cache
def _views() -> tuple[Listed, ...]:
    return tuple(
        Listed(entry, page, view)
        for entry in site.built()
        for page in [page_of(entry)]
        for view in page.views
    )
