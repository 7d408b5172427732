"""Names that a scene may use on a page: its views, and the keys of its controls and figures, read from the
sources of the page and of what all pages share. Nothing is imported or drawn for it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ui import site

SHARED = "ui"  # what every page may draw
_VIEW = re.compile(r"^VIEW = View\(\s*\"([\w-]+)\"", re.MULTILINE)
_LISTED = re.compile(r"\b(\w+)\.VIEW\b")  # the view of a module beside the page's
_PAGE = re.compile(r"\"(\w+_view)\"")
_LITERAL = re.compile(r"(?<!\w)f?\"((?:[\w-]|\{[^{}\"]*\}){1,120})\"")
_KEY = re.compile(r"[a-z][a-z0-9]*(?:-[a-z]+)*_\S*[^_]|gf-\S+")  # with an underscore, as most keys are
_GIVEN = re.compile(r"\bkey=f?(\"[^\"]*\")|^[A-Z][A-Z_, ]* = (\".*\")$", re.MULTILINE)  # those without
_FIELD = re.compile(r"\{[^{}]*\}")
_MADE = "[A-Za-z0-9_-]+"
_LEAST = 4  # characters beside the fields of a key: fewer name nothing


def fault(entry: site.Entry, query: Sequence[tuple[str, str]], point: str) -> str:
    """Returns what is wrong with the names that a scene of a page has; empty where all are there."""
    views, key = views_of(entry)
    for name, value in query:
        if name.endswith("_view") and name != key:
            known = f"the one of {entry.title} is `{key}`" if key else f"{entry.title} has one view"
            return f"there is no `{name}` on the page {entry.title}; {known}."
        if name == key and value not in views:
            return f"{entry.title} has no view “{value[:40]}”. Its views are {', '.join(views)}."
        if "_" in name and not has(entry, name):
            return f"nothing on the page {entry.title} is called `{name[:40]}`{_like(name, keys_of(entry))}."
    if len([name for name, _ in query if name == key]) > 1:
        return f"`{key}` is given twice in the link."
    if not has(entry, point):
        return f"nothing on the page {entry.title} is called “{point}”{_like(point, keys_of(entry))}."
    return ""


def views_of(entry: site.Entry) -> tuple[tuple[str, ...], str]:
    """Returns (the ids of a page's views, the name that says the view in its address)."""
    path = site.ROOT / entry.path
    source = path.read_text("utf-8")
    modules = (path.with_name(f"{name}.py").read_text("utf-8") for name in _LISTED.findall(source))
    key = _PAGE.search(source)
    return tuple(name for text in modules for name in _VIEW.findall(text)), key[1] if key else ""


def has(entry: site.Entry, point: str) -> bool:
    """True if a page's sources write this key of a control or figure out, or make such ones."""
    keys = keys_of(entry)
    return point in keys or any(
        re.fullmatch(_MADE.join(map(re.escape, _FIELD.split(one))), point)
        for one in keys
        if "{" in one and len(_FIELD.sub("", one)) >= _LEAST
    )


def keys_of(entry: site.Entry) -> frozenset[str]:
    """Returns what a page's sources may call a control or figure, with {fields} where they make the name."""
    return _literals((site.ROOT / entry.path).parent) | _literals(site.ROOT / SHARED)


@lru_cache(maxsize=64)  # a folder for each page
def _literals(folder: Path) -> frozenset[str]:
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        text = path.read_text("utf-8")
        found.update(one for one in _LITERAL.findall(text) if _KEY.fullmatch(one))
        given = " ".join(key or constants for key, constants in _GIVEN.findall(text))
        found.update(one for one in _LITERAL.findall(given) if one == one.lower())
    return frozenset(found)


def _like(point: str, keys: frozenset[str]) -> str:
    close = difflib.get_close_matches(point, keys, 1)
    return f"; the nearest is {close[0]}" if close else ""
