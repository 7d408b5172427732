"""Every view of every page, undrawn: for search, the list of questions, and the docs."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlencode

from ui import site
from ui.page_frame import Ask, Page, View, declared

_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Listed:
    """A view with its page."""

    entry: site.Entry
    page: Page
    view: View

    @property
    def id(self) -> str:
        """Returns the page's address and the view's id, such as attention/heads."""
        return f"{self.entry.url}/{self.view.id}"

    @property
    def title(self) -> str:
        """Returns the titles of page and view; of a page with a single view its own."""
        if len(self.page.views) == 1:
            return self.entry.title
        return f"{self.entry.title} > {self.view.title}"

    @property
    def asks(self) -> tuple[Ask, ...]:
        """Returns the view's questions; only one that depends on what is shown has several."""
        view = self.view
        if not isinstance(view.question, str):
            return view.asks
        words = None if callable(view.words) else view.words
        return view.asks or (Ask(view.question or view.title, words),)

    @property
    def question(self) -> str:
        """Returns the question with which the view opens."""
        return self.asks[0].question

    def address(self, ask: Ask | None = None) -> str:
        """Returns the address below the app's root, such as attention?attention_view=heads."""
        query = {self.page.key: self.view.id} if self.page.key else {}
        query |= dict(ask.query) if ask is not None else {}
        return self.entry.url + (f"?{urlencode(query)}" if query else "")


def views() -> tuple[Listed, ...]:
    """Returns every view, in the order of the menu. The first call of a process imports every page."""
    with _ONE_AT_A_TIME:
        return _views()


@cache
def _views() -> tuple[Listed, ...]:
    pages = ((entry, declared(site.ROOT / entry.path)) for entry in site.built())
    return tuple(Listed(entry, page, view) for entry, page in pages if page for view in page.views)
