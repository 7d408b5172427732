"""Every room of pages/ and its views, without drawing them."""

from functools import cache
from pathlib import Path

from ui import site
from ui.page_frame import Page, declared
from ui.site import ROOT

ROOMS = sorted((ROOT / "pages").glob("*/*/page.py"))
OWN_FRAME = ("home", "train", "courses", "room")  # drawn otherwise than by the frame of all pages


@cache
def page_of(room: Path) -> Page | None:
    return None if room.parent.name in OWN_FRAME else declared(room)


@cache
def views(url: str) -> tuple[str, tuple[str, ...]]:
    """(the key of a page's views in its address, their ids as they stand there)"""
    page = declared(ROOT / next(entry.path for entry in site.ENTRIES if entry.url == url))
    return (page.key, tuple(view.id for view in page.views)) if page is not None and page.key else ("", ())
