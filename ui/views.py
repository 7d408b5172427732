"""Every view of every page, undrawn: for search, the list of questions, and the docs."""

from __future__ import annotations

import threading
from functools import cache

from ui import site
from ui.page_frame import Listed as Listed
from ui.page_frame import declared

_ONE_AT_A_TIME = threading.Lock()


def views() -> tuple[Listed, ...]:
    """Returns every view, in the order of the menu. The first call of a process imports every page."""
    with _ONE_AT_A_TIME:
        return _views()


@cache
def _views() -> tuple[Listed, ...]:
    pages = ((entry, declared(site.ROOT / entry.path)) for entry in site.built())
    return tuple(Listed(entry, page, view) for entry, page in pages if page for view in page.views)
