"""Modules of other libraries that add to one of the engine's: imported when that first looks for more.

The engine knows none by itself. A library names its own when it is imported (`studies/__init__.py`).
"""

from __future__ import annotations

from importlib import import_module

ADDING: dict[str, str] = {}  # a module of the engine -> the module that adds to it


def import_additions(module: str) -> None:
    """Imports the module that adds to one of the engine's, if there is one."""
    if name := ADDING.get(module):
        import_module(name)
