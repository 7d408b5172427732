"""Named configurations: small ones that train live, then published ones."""

from __future__ import annotations

from engine.errors import UnknownNameError
from engine.presets.encoders import ENCODERS
from engine.presets.lecture_models import LECTURE_MODELS
from engine.presets.pairs import PAIRED
from engine.presets.preset import Preset
from engine.presets.published import ENCODER_DECODERS, PUBLISHED
from engine.presets.small import SMALL

__all__ = ["ENCODERS", "ENCODER_DECODERS", "LECTURE_MODELS", "PAIRED", "PRESETS", "Preset"]


class Presets(dict[str, Preset]):
    """Presets by name. Raises UnknownNameError, with the nearest names, for another one."""

    def __missing__(self, name: str) -> Preset:
        raise UnknownNameError("preset", name, self)


PRESETS = Presets(SMALL | PUBLISHED)
