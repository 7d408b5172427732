"""Every room of pages/ and its views, without drawing them."""

import re
import runpy
from functools import cache
from pathlib import Path

from ui import page_frame, site
from ui.page_frame import Page
from ui.site import ROOT

ROOMS = sorted((ROOT / "pages").glob("*/*/page.py"))


@cache
def page_of(room: Path) -> Page | None:
    shown: list[Page] = []
    real = page_frame.show
    page_frame.show = shown.append  # type: ignore[assignment]
    try:
        if "show(" in room.read_text("utf-8"):
            runpy.run_path(str(room))
    finally:
        page_frame.show = real
    return shown[0] if shown else None


@cache
def views(url: str) -> tuple[str, tuple[str, ...]]:
    """(the key of a page's views in its address, their ids as they stand there); Home has a frame of its own."""
    room = ROOT / next(entry.path for entry in site.ENTRIES if entry.url == url)
    if (page := page_of(room)) is not None:
        return page.key, tuple(view.id for view in page.views)
    ids = re.findall(r'\bView\(\s*"(\w+)"', room.read_text("utf-8"))
    return "home_view" if ids else "", tuple(ids)
