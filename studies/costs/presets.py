"""All presets of one stack by name: small ones that train live, then published ones."""

from __future__ import annotations

from engine.presets import SMALL, Presets
from studies.costs.published_models import PUBLISHED

PRESETS = Presets(SMALL | PUBLISHED)
