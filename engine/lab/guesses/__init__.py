"""Guesses before a figure is seen: the right one, computed from the very model or setting that is shown."""

from __future__ import annotations

from engine.lab.guesses.truth import Truth

__all__ = ["Truth"]
