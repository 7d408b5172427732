"""What the tests of pages with the real model share: its name in the bar, and why they are skipped without it."""

from __future__ import annotations

import pytest

from engine.pretrained import sources

REAL = "pretrained-smollm2-135m"
carried = pytest.mark.skipif(
    sources.find("smollm2-135m") is None,
    reason="SmolLM2's carrier (requirements-models.txt) is not installed",
)
