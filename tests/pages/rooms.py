"""Every room of pages/ and its views, without drawing them."""

import runpy
from functools import cache
from pathlib import Path

from ui import look
from ui.look import Page
from ui.site import ROOT

ROOMS = sorted((ROOT / "pages").glob("*/*/page.py"))


@cache
def page_of(room: Path) -> Page | None:
    shown: list[Page] = []
    real = look.show
    look.show = shown.append  # type: ignore[assignment]
    try:
        if "show(" in room.read_text("utf-8"):
            runpy.run_path(str(room))
    finally:
        look.show = real
    return shown[0] if shown else None
