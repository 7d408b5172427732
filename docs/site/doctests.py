"""Fences for the examples in docstrings: griffe loads this extension for mkdocstrings."""

from __future__ import annotations

from typing import Any

from griffe import Docstring, Extension, Object

from docs.site.pages import fenced


class Doctests(Extension):
    """Fences the examples of every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if isinstance(obj.docstring, Docstring):
            obj.docstring.value = fenced(obj.docstring.value)
