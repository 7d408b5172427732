"""Error messages for strangers: without paths of the server's files."""

from __future__ import annotations

import re

_PATH = re.compile(r"(?<![\w/\\])(?:[A-Za-z]:)?[/\\](?:[^\s/\\'\":,;()]+[/\\])+([^\s/\\'\":,;()]*)")


def without_paths(text: str) -> str:
    """Returns a sentence with names in place of absolute paths.

    >>> without_paths("No such file: '/home/anna/run 1/step.safetensors' (and/or 3/4 of it)")
    "No such file: '…/run 1/step.safetensors' (and/or 3/4 of it)"
    >>> without_paths("/usr/lib/python3/site-packages/torch/nn.py:12: out of memory")
    '…/nn.py:12: out of memory'
    """
    return _PATH.sub(r"…/\1", text)
