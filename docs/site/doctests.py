"""Examples in docstrings, as Markdown shows them: griffe loads it for mkdocstrings."""

from __future__ import annotations

import re
from typing import Any

from griffe import Docstring, Extension, Object

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


def fenced(text: str) -> str:
    """Returns a docstring with each example in a fence.

    >>> fenced("Doubles.\\n\\n>>> double(2)\\n4")
    'Doubles.\\n\\n```pycon\\n>>> double(2)\\n4\\n```'
    """
    return _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)


class Doctests(Extension):
    """Fences the examples of every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if isinstance(obj.docstring, Docstring):
            obj.docstring.value = fenced(obj.docstring.value)
