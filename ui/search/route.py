"""Routes of search: all that can be found and the glossary's terms as JSON, and every question of the app on
a page for the printer.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import asdict
from functools import cache

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from streamlit import config

from ui import glossary_panel, session

PATH, TERMS, QUESTIONS = "/search", "/terms", "/questions"
_HEADERS = {"Cache-Control": "no-store"}


def routes() -> list[Route]:
    """Returns the routes. They run in a thread: the first search of a process imports every page."""
    base = str(config.get_option("server.baseUrlPath") or "").strip("/")
    root = f"/{base}" if base else ""
    answers = {PATH: _shelf, TERMS: _terms, QUESTIONS: _questions}
    return [Route(root + path, answer, methods=["GET"]) for path, answer in answers.items()]


@cache
def build_ahead() -> None:
    """Gathers what can be found in a thread, once, on a server for many. Called after a page was drawn: the
    first page of a server waits for nothing of it, and no search for the entries.
    """
    if session.profile().public:
        threading.Thread(target=shelf, name="search", daemon=True).start()


@cache
def shelf() -> bytes:
    """Returns as JSON all entries, where among them those are that one begins with, and how many of a kind
    are shown.
    """
    from ui.search import entries  # a server's first page does without

    there = entries.entries()
    first = [there.index(entry) for entry in entries.starts()]
    told = {"entries": [asdict(entry) for entry in there], "starts": first, "most": entries.MOST}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()


def _shelf(request: Request) -> Response:
    """Answers with the entries, once for a browser: as long as they are the same, it keeps them."""
    tag = f'"{hashlib.sha256(shelf()).hexdigest()[:16]}"'
    headers = {"Cache-Control": "no-cache", "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(shelf(), media_type="application/json", headers=headers)


def _terms(_: Request) -> Response:
    return JSONResponse(glossary_panel.rows(), headers=_HEADERS)


def _questions(request: Request) -> Response:
    from ui.search.question_list import question_list

    url = request.url
    return HTMLResponse(question_list(url.netloc + url.path.removesuffix(QUESTIONS)), headers=_HEADERS)
