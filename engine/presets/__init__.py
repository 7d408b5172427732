"""Named configurations: small ones that train live, then published ones."""

from __future__ import annotations

from engine.errors import UnknownNameError
from engine.presets.preset import Preset
from engine.presets.small import SMALL
from studies.costs.lecture_models import LECTURE_MODELS
from studies.costs.published_models import ENCODER_DECODERS, PUBLISHED
from studies.pairs.encoders import ENCODERS
from studies.pairs.presets import PAIRED

__all__ = ["ENCODERS", "ENCODER_DECODERS", "LECTURE_MODELS", "PAIRED", "PRESETS", "Preset"]


class Presets(dict[str, Preset]):
    """Presets by name. Raises UnknownNameError, with the nearest names, for another one."""

    def __missing__(self, name: str) -> Preset:
        raise UnknownNameError("preset", name, self)


PRESETS = Presets(SMALL | PUBLISHED)
