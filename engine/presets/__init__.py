"""Named configurations: our own small ones first, then published ones."""

from __future__ import annotations

from engine.presets.encoders import ENCODERS
from engine.presets.own import OWN
from engine.presets.pairs import PAIRED
from engine.presets.preset import Preset
from engine.presets.published import ENCODER_DECODERS, PUBLISHED
from engine.presets.taught import TAUGHT

__all__ = ["ENCODERS", "ENCODER_DECODERS", "PAIRED", "PRESETS", "TAUGHT", "Preset"]

PRESETS: dict[str, Preset] = {**OWN, **PUBLISHED}
