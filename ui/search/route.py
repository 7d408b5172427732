"""Routes of search: results and the glossary's terms as JSON, and every question of the app on a page for the
printer.
"""

from __future__ import annotations

import threading
from functools import cache

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from streamlit import config

from ui import glossary_panel, session
from ui.search.index import MOST_QUERY, TERM, Entry

PATH, TERMS, QUESTIONS = "/search", "/terms", "/questions"
_MOST_TERMS = 500
_HEADERS = {"Cache-Control": "no-store"}


def routes() -> list[Route]:
    """Returns the routes. They run in a thread: the first search of a process imports every page."""
    base = str(config.get_option("server.baseUrlPath") or "").strip("/")
    root = f"/{base}" if base else ""
    answers = {PATH: _results, TERMS: _terms, QUESTIONS: _questions}
    return [Route(root + path, answer, methods=["GET"]) for path, answer in answers.items()]


@cache
def build_ahead() -> None:
    """Builds the index in a thread, once, on a server for many. Called after a page was drawn: the first
    page of a server waits for nothing of it, and no search for the index.
    """
    if session.profile().public:
        threading.Thread(target=results, args=("",), name="search index", daemon=True).start()


def results(query: str, kind: str = "") -> list[Entry]:
    """Returns the entries that are shown for a query: without any, what to begin with, or every term."""
    from ui.search.entries import index, starts  # a server's first page does without

    if kind == TERM:
        terms = [entry for entry in index().entries if entry.kind == TERM]
        return index().find(query, _MOST_TERMS, TERM) if query.strip() else terms
    return index().find(query) if query.strip() else list(starts())


def _results(request: Request) -> Response:
    query, kind = request.query_params.get("q", ""), request.query_params.get("kind", "")
    rows = [
        {"kind": entry.kind, "title": entry.title, "detail": entry.detail, "address": entry.address}
        for entry in results(query[:MOST_QUERY], kind)
    ]
    return JSONResponse(rows, headers=_HEADERS)


def _terms(_: Request) -> Response:
    return JSONResponse(glossary_panel.rows(), headers=_HEADERS)


def _questions(request: Request) -> Response:
    from ui.search.question_list import question_list

    url = request.url
    return HTMLResponse(question_list(url.netloc + url.path.removesuffix(QUESTIONS)), headers=_HEADERS)
