"""Named configurations: our own small ones first, then published ones."""

from __future__ import annotations

from engine.presets.own import OWN
from engine.presets.paired import PAIRED, SPEAKERS
from engine.presets.preset import Preset
from engine.presets.published import ENCODER_DECODERS, PUBLISHED
from engine.presets.taught import TAUGHT

__all__ = ["ENCODER_DECODERS", "PAIRED", "PRESETS", "SPEAKERS", "TAUGHT", "Preset"]

PRESETS: dict[str, Preset] = {**OWN, **PUBLISHED}
