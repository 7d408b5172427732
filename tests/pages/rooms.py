"""Every room of pages/ and its views, without drawing them."""

from functools import cache
from pathlib import Path

from ui import site
from ui import views as listing
from ui.page_frame import Page
from ui.site import ROOT

ROOMS = sorted((ROOT / "pages").glob("*/*/page.py"))
OWN_FRAME = ("home", "train", "courses", "room")  # which look into no model in the frame's own bar


@cache
def page_of(room: Path) -> Page | None:
    if room.parent.name in OWN_FRAME:
        return None
    return listing.page_of(next(entry for entry in site.ENTRIES if ROOT / entry.path == room))


@cache
def views(url: str) -> tuple[str, tuple[str, ...]]:
    """(the key of a page's views in its address, their ids as they stand there)"""
    page = listing.page_of(next(entry for entry in site.ENTRIES if entry.url == url))
    return (page.key, tuple(view.id for view in page.views)) if page.key else ("", ())


def parts(url: str) -> list[str]:
    """Returns the addresses of the parts of a page's views, but for the first of each, which opens with its view."""
    page = listing.page_of(next(entry for entry in site.ENTRIES if entry.url == url))
    return [
        f"{url}?{page.key}={view.id}&{view.parts.key}={part.id}"
        for view in page.views
        if page.key and view.parts
        for part in view.parts.views[1:]
    ]
