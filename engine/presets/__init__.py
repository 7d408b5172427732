"""Named configurations: small ones that train live."""

from __future__ import annotations

from engine.presets import small
from engine.presets.preset import Preset, Presets

__all__ = ["SMALL", "Preset", "Presets"]

SMALL = Presets(small.SMALL)
