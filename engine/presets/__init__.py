"""Named configurations: our own small ones first, then published ones."""

from __future__ import annotations

from engine.presets.own import OWN
from engine.presets.preset import Preset
from engine.presets.published import ENCODER_DECODERS, PUBLISHED

__all__ = ["ENCODER_DECODERS", "PRESETS", "Preset"]

PRESETS: dict[str, Preset] = {**OWN, **PUBLISHED}
