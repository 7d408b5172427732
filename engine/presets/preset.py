"""Presets: named configurations, each with its differences from another."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from engine.config import ModelConfig, TrainConfig
from engine.errors import UnknownNameError


@dataclass(frozen=True)
class Preset:
    """A model, and for the small ones its training. `why` gives reasons by field name; `source` is where
    published sizes come from.

    `published` is the number of parameters as its makers give it, in words. `encoder` is what `model`, then a
    decoder, reads by cross-attention.
    """

    title: str
    summary: str
    model: ModelConfig
    train: TrainConfig | None = None
    why: dict[str, str] = field(default_factory=dict)
    source: str | None = None
    published: str = ""
    encoder: ModelConfig | None = None

    @property
    def trainable(self) -> bool:
        """True if the model is small enough to be trained live."""
        return self.train is not None


class Presets(dict[str, Preset]):
    """Presets by name. Raises UnknownNameError, with the nearest names, for another one."""

    def __missing__(self, name: str) -> Preset:
        raise UnknownNameError("preset", name, self)


def derived(
    base: Preset,
    title: str,
    summary: str,
    model: dict[str, Any],
    train: dict[str, Any] | None = None,
    **rest: Any,
) -> Preset:
    """Returns a preset that differs from `base` in the given fields only."""
    settings = replace(base.train, **(train or {})) if base.train else None
    return Preset(title, summary, replace(base.model, **model), settings, **rest)
