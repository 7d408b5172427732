"""The secret that whoever runs a server chose: it signs the keys of browsers, and guards the service that
holds the runs of several servers.
"""

from __future__ import annotations

import os

from engine.errors import GlassformerError

SECRET = "GLASSFORMER_SECRET"
SHORTEST = 16  # characters


class SecretError(GlassformerError):
    """A secret that strangers could guess. No message contains it."""


def chosen() -> str:
    """Returns $GLASSFORMER_SECRET; nothing where it is not set. Raises SecretError for one that
    is too short.
    """
    result = os.environ.get(SECRET, "")
    if result and len(result) < SHORTEST:
        raise SecretError(f"{SECRET} has {len(result)} characters: choose at least {SHORTEST} at random.")
    return result
