"""Temperature and the cuts over logits that are sent once: the browser answers a slider at once, the server
checks and keeps the link.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from engine.config import SampleConfig
from engine.errors import ConfigError
from ui import widgets
from ui.figures import theme
from ui.players.component import mounted

KEY = "sampler"
START = SampleConfig(temperature=0.8, top_p=0.95)  # until a slider moves
NAMES = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "penalty_last",
)  # in the URL as sampling_temperature ...
ROWS = 10  # tokens that are drawn
FEW, NAMED = 1000, 300  # words of a vocabulary that are all sent; words that are sent of a larger one


def settings(seed: int) -> SampleConfig:
    """Returns the sampling settings of the link, where the sliders are kept; a value out of range counts as
    absent, and is taken out.
    """
    config = valid({name: parsed(name, widgets.read_url(f"sampling_{name}")) for name in NAMES}, seed)
    _keep(config)
    return config


def _keep(config: SampleConfig) -> None:
    for name in NAMES:
        widgets.keep_in_url(f"sampling_{name}", _said(name, getattr(config, name)) or None)


def _moved() -> None:
    values = widgets.picked(KEY, "settings")
    if isinstance(values, Mapping):
        _keep(valid(values, 0))


def _said(name: str, value: float | int | bool) -> str:
    """A setting in a link; nothing where it is START's."""
    if value == getattr(START, name):
        return ""
    return str(int(value)) if isinstance(value, bool) else f"{value:g}"


def valid(values: Mapping[str, Any], seed: int) -> SampleConfig:
    """Returns the settings that can be used; each one that cannot falls back to START's.

    >>> valid({"temperature": 0.5, "top_k": -3, "top_p": "x"}, 7) == replace(START, temperature=0.5, seed=7)
    True
    """
    config = replace(START, seed=seed)
    for name in NAMES:
        value = values.get(name)
        kind = type(getattr(START, name))
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if number and kind in (int, float):
            value = kind(value)
        try:
            config = SampleConfig(**{**config.to_dict(), name: value}).validate()
        except ConfigError:
            continue
    return config


def parsed(name: str, text: str | None) -> float | int | bool | None:
    """Returns a setting from a link, or None.

    >>> parsed("top_k", "5"), parsed("penalty_last", "1"), parsed("top_p", "nan"), parsed("top_p", None)
    (5, True, None, None)
    """
    if name == "penalty_last":
        return text == "1"
    if name == "top_k":
        return widgets.number_of(text)
    try:
        number = float(text or "nan")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def sampler(
    logits: np.ndarray,
    labels: Sequence[str],
    previous: Sequence[int],
    config: SampleConfig,
    numbers: np.ndarray,
    *,
    mode: str,
    drawn: Iterable[int] = (),
) -> None:
    """Draws the sliders and, by `mode`, the table of "stages" or the "draws".

    logits (vocab,) float32; labels (vocab,); previous: ids so far; numbers (draw,) float64 in [0, 1): the
    first one draws the token. All logits are sent, so that the browser's arithmetic is exact; of a large
    vocabulary only the words of the likeliest tokens, of `previous` and of `drawn`, what the server drew.
    """
    data = {
        "logits": packed(logits, np.float32),
        "labels": named(labels, logits, (*previous, *drawn)),
        "seen": sorted(set(map(int, previous))),
        "numbers": packed(numbers, np.float64),
        "settings": {name: getattr(config, name) for name in (*NAMES, "seed")},
        "mode": mode,
        "rows": ROWS,
        "palette": theme.palette(),
    }
    mounted("sampler")(key=KEY, data=data, on_settings_change=_moved)


def named(labels: Sequence[str], logits: np.ndarray, others: Iterable[int]) -> list[str] | dict[str, str]:
    """Returns the words that are sent: all of a small vocabulary, of a large one those of its NAMED likeliest
    tokens and of the others, by id.

    >>> named(["a", "b"], np.zeros(2), [1])
    ['a', 'b']
    >>> len(named([str(i) for i in range(5000)], np.arange(5000.0), [0, 1]))
    302
    """
    if len(labels) <= FEW:
        return list(labels)
    ids = {*np.argpartition(-logits, NAMED)[:NAMED].tolist(), *(int(i) for i in others)}
    return {str(i): labels[i] for i in sorted(ids)}


def packed(values: np.ndarray, kind: type) -> str:
    """Returns the values' bytes in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")
