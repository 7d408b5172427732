"""Files that the browser fetches by itself: the modules and styles of ui/assets and Plotly's library, served
from where they lie.

Their addresses hold a hash of their content, so that a new version is another address and a browser may keep
an old one for as long as it likes. All modules share one folder, and so one hash: they import each other by
name. And the page that a link to one of ours opens, which is Streamlit's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import plotly
import streamlit
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from streamlit import config

from ui import site

ASSETS = Path(__file__).parents[1] / "assets"
HEADERS = {"Cache-Control": "public, max-age=31536000, immutable"}
TYPES = {".js": "text/javascript", ".css": "text/css"}
# Pages lie one level below the app's root, wherever a host has put that. Untold, Streamlit asks below the
# page first.
ROOT_TOLD = "window.__streamlit = { BACKEND_BASE_URL: new URL('.', location).href }"


@cache
def modules() -> str:
    """Returns the folder of the modules and styles in their addresses, such as assets-0123456789ab."""
    digest = hashlib.sha256()
    for path in _assets():
        digest.update(f"{path.relative_to(ASSETS).as_posix()}\n{path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return f"assets-{digest.hexdigest()[:12]}"


@cache
def library() -> str:
    """Returns the name of Plotly's library in its address, such as plotly-0123456789ab.min.js."""
    return f"plotly-{hashlib.sha256(_plotly().read_bytes()).hexdigest()[:12]}.min.js"


def routes() -> list[Route]:
    """Returns the routes of our files, below app/static/, where Streamlit compresses nothing anew at each
    request, and those of our pages.
    """
    base = str(config.get_option("server.baseUrlPath") or "").strip("/")
    root = f"/{base}" if base else ""
    pages = [Route(f"{root}/{entry.url}", _page, methods=["GET"]) for entry in site.ENTRIES if entry.url]
    return [Route(f"{root}/app/static/{{name:path}}", _answer, methods=["GET"]), *pages]


async def _page(request: Request) -> Response:
    """Answers with Streamlit's page, which is told where its server is."""
    return HTMLResponse(_told(), headers={"Cache-Control": "no-cache"})


@cache
def _told() -> str:
    """Returns Streamlit's page with ROOT_TOLD before its own script."""
    text = (Path(streamlit.__file__).parent / "static" / "index.html").read_text("utf-8")
    return text.replace("<head>", f"<head><script>{ROOT_TOLD}</script>", 1)


async def _answer(request: Request) -> Response:
    """Answers with one of our files, or 404: no other name reaches the disk."""
    path = _files().get(request.path_params["name"])
    if path is None:
        return PlainTextResponse("Not found", 404)
    return FileResponse(path, media_type=TYPES[path.suffix], headers=HEADERS)


@cache
def _files() -> Mapping[str, Path]:
    """Returns the file of each name below app/static/."""
    sources = {f"{modules()}/{path.relative_to(ASSETS).as_posix()}": path for path in _assets()}
    return {**sources, library(): _plotly()}


def _assets() -> list[Path]:
    return sorted(path for path in ASSETS.rglob("*") if path.suffix in TYPES)


def _plotly() -> Path:
    return Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
