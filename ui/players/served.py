"""Files that the browser fetches by itself: the modules and styles of ui/assets and of the views, and
Plotly's library, served from where they lie.

Their addresses hold a hash of their content, so that a new version is another address and a browser may keep
an old one for as long as it likes. All modules share one folder, and so one hash: they import each other as
they lie on the disk. And the page that a link to one of ours opens, which is Streamlit's.
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

ROOT = Path(__file__).parents[2]
SHARED, VIEWS = "ui/assets", "pages"  # what several views share, and what lies beside the one that it is of
ASSETS = ROOT / SHARED
HEADERS = {"Cache-Control": "public, max-age=31536000, immutable"}
TYPES = {".js": "text/javascript", ".css": "text/css"}
# Pages lie one level below the app's root, wherever a host has put that. Untold, Streamlit asks below the
# page first.
ROOT_TOLD = "window.__streamlit = { BACKEND_BASE_URL: new URL('.', location).href }"


@cache
def modules() -> str:
    """Returns the folder of the modules and styles in their addresses, such as assets-0123456789ab."""
    digest = hashlib.sha256()
    for name, path in _assets().items():
        digest.update(f"{name}\n{path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return f"assets-{digest.hexdigest()[:12]}"


def path_of(name: str) -> str:
    """Returns where a module or style lies below the root, without its ending. One beside a view is named
    without its folder.

    >>> path_of("shared/save"), path_of("rope")
    ('ui/assets/shared/save', 'pages/input/positions/rope')
    """
    return _paths()[name]


@cache
def _paths() -> Mapping[str, str]:
    paths = [file.rpartition(".")[0] for file in _assets()]
    return {p.removeprefix(f"{SHARED}/") if p.startswith(SHARED) else p.rpartition("/")[2]: p for p in paths}


@cache
def library() -> str:
    """Returns the name of Plotly's library in its address, such as plotly-0123456789ab.min.js."""
    return f"plotly-{hashlib.sha256(library_path().read_bytes()).hexdigest()[:12]}.min.js"


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
    return {**{f"{modules()}/{name}": path for name, path in _assets().items()}, library(): library_path()}


@cache
def _assets() -> Mapping[str, Path]:
    """Returns the modules and styles by their names below the root."""
    paths = (path for folder in (SHARED, VIEWS) for path in (ROOT / folder).rglob("*"))
    return {path.relative_to(ROOT).as_posix(): path for path in sorted(paths) if path.suffix in TYPES}


def library_path() -> Path:
    """Returns where Plotly's library lies."""
    return Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
