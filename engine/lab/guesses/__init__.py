"""Guess first, then see: which guess holds, worked out from the very model or setting that is shown.

Each function gives a `Truth`, or None where nothing can be asked: where two answers come out alike, or the
model has no such part. Nothing here knows a sentence; the pages do.
"""

from __future__ import annotations

from engine.lab.guesses.truth import Truth

__all__ = ["Truth"]
