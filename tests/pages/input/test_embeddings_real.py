"""Embeddings of a model of words: what is typed, who is near, and analogies as they come out."""

from __future__ import annotations

import pytest

from engine.pretrained import sources

REAL = "pretrained-smollm2-135m"
pytestmark = pytest.mark.skipif(
    sources.find("smollm2-135m") is None, reason="SmolLM2's carrier is not installed"
)
