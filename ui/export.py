"""A view as one HTML file that needs no server: what the browser that saves it gets for that, past Streamlit.

The browser has what each component was sent, and the words on the screen (ui/assets/saving.js): it puts them
into the file, so no number there is computed again. From here come the explanations, which may be folded on
the page, the modules and styles, and Plotly's library, in a page whose policy lets it fetch nothing.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import secrets
import weakref
import zlib
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from glassformer import __version__
from studies.exercises.sheet import block
from ui import identity, session
from ui.players import bundle, component, served
from ui.text.markdown import plain

PLOT = "plot"  # the component that draws with Plotly's library
STYLES = ("scrubber", "saved")  # of what ui/assets/saved.js draws itself
POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:;"
    " connect-src data:; base-uri 'none'; form-action 'none'"
)
PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="Glassformer {version}">
<title>Glassformer</title>
<style>{styles}</style>
</head>
<body>
<script type="application/json" id="gf-saved">{{}}</script>
<script type="text/plain" id="gf-library" data-address="{address}" data-size="{size}">{library}</script>
<noscript>This page draws its figures with JavaScript, which is switched off here.</noscript>
<script>{script}</script>
</body>
</html>
"""
# Base 85 adds a quarter, base 64 a third. These three of its digits mean something in HTML.
_DIGITS = str.maketrans("<>&", ",.:")
OFFER = "export"  # in the session
_offered: weakref.WeakValueDictionary[str, Offer] = weakref.WeakValueDictionary()


class Offer:
    """Explanations and facts of the view that a tab shows. The tab's session holds it."""

    def __init__(self) -> None:
        self.token, self.owner = secrets.token_urlsafe(18), session.owner()
        # that owner's browser keeps one
        self.by_cookie = identity.key_in(st.context.cookies.get(identity.COOKIE)) == self.owner
        self.words: Mapping[str, str] = {}
        self.facts: Mapping[str, str] = {}


def offer() -> Offer:
    """Returns this tab's."""
    held = st.session_state.get(OFFER)
    if not isinstance(held, Offer):
        held = st.session_state[OFFER] = Offer()
    _offered[held.token] = held
    return held


def note(words: Mapping[str, str], facts: Mapping[str, str]) -> None:
    """Notes the explanations (Markdown, by their titles) and the facts of the view that has been drawn."""
    held = offer()
    held.words, held.facts = words, facts


def answer(request: Request) -> Response:
    """Answers with the file for the `components` of the query, and with what the browser lacks of the view;
    404 for a component that is none, and where no tab shows that view here (as ui.live does).
    """
    held = _offered.get(request.path_params["token"])
    if held is None:
        return Response(status_code=404)
    if held.by_cookie and identity.key_in(request.cookies.get(identity.COOKIE)) != held.owner:
        return Response(status_code=403)
    names = [name for name in request.query_params.get("components", "").split(",") if name]
    if not component.STYLES.keys() >= set(names):
        return Response(status_code=404)
    return JSONResponse(
        {"file": page(names), "saved": saved(held.words, held.facts)}, headers={"Cache-Control": "no-store"}
    )


def saved(words: Mapping[str, str], facts: Mapping[str, str]) -> dict[str, Any]:
    """Returns what is told of a view: explanations as HTML with MathML, facts, the version."""
    told = {title: block(plain(text)) for title, text in words.items() if text}
    return {"words": told, "facts": dict(facts), "version": __version__}


def components(saved: Mapping[str, Any]) -> set[str]:
    """Returns the names of the components that draw what a view has."""
    return {part["module"].rpartition("/")[2] for part in saved["parts"]}


def placed(file: str, saved: Mapping[str, Any]) -> str:
    """Returns a file with what it draws in its place, as saving_state.js puts it there. Nothing in a text
    ends the element that holds it.
    """
    held = json.dumps(saved, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace(
        "<", "\\u003c"
    )
    return file.replace("{}</script>", f"{held}</script>", 1)


def page(names: Iterable[str], library: str = "") -> str:
    """Returns a file that draws these components as soon as the text of its element `gf-saved` is what a view
    has (ui/assets/saved.js says what that is). `library` is the address of Plotly's library for files that
    share it on one site; else it is in the file.
    """
    return _page(tuple(sorted(set(names))), library)


@lru_cache(maxsize=8)
def _page(names: tuple[str, ...], address: str) -> str:
    script, packed, size = bundle.script(names), "", 0
    scripts = [_hash(script)]
    if PLOT in names and address:
        scripts.append("'self'")
    elif PLOT in names:
        packed, size = _packed()
        scripts.append(_hash(served.library_path().read_bytes().decode("utf-8")))
    paths = (path for name in names for path in component.STYLES[name])
    styles = dict.fromkeys([*paths, *map(served.path_of, STYLES)])
    return PAGE.format(
        policy=html.escape(POLICY.format(scripts=" ".join(scripts))),
        version=__version__,
        styles="\n".join((served.ROOT / f"{path}.css").read_text("utf-8") for path in styles),
        address=html.escape(address if PLOT in names else ""),
        size=size,
        library=packed,
        script=script,
    )


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


@cache
def _packed() -> tuple[str, int]:
    """Returns Plotly's library, deflated, in base 85 (1.8 MB for 4.8 MB), and its bytes when deflated."""
    small = zlib.compress(served.library_path().read_bytes(), 9)
    whole = small + bytes(-len(small) % 4)
    return base64.b85encode(whole).decode("ascii").translate(_DIGITS), len(small)
