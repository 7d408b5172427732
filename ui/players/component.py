"""Components that run in the browser. An inline script cannot import: what they share, save.js and save.css,
is put in front of each one's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

ASSETS = Path(__file__).parents[1] / "assets"


@cache
def mounted(name: str, *scripts: str) -> Callable[..., Any]:
    """The component `glassformer_{name}` of {name}.css and {name}.js, or of `scripts` instead, joined to one
    module.
    """
    css, js = (_joined(kind, names) for kind, names in (("css", (name,)), ("js", scripts or (name,))))
    return st.components.v2.component(f"glassformer_{name}", css=css, js=js, isolate_styles=False)


def _joined(kind: str, names: tuple[str, ...]) -> str:
    return "\n".join((ASSETS / f"{each}.{kind}").read_text("utf-8") for each in ("save", *names))
