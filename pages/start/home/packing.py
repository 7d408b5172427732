"""The living map: a text on its way through a model, played in the browser. The drawing of a text is sent
whole and packed, so that block, head, temperature, top-k and depth change there.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from studies.home.living_map import TEMPERATURES, DepthPredictions, Outlook, Reading, typical
from ui.figures import theme
from ui.players.component import SAVES, mounted

KEY, FURTHER = "living_map", "living_map_further"
BARS = 14  # tokens that are drawn as bars, at most
SIGNED = ("stream", "middle", "attention", "feedforward")
NORMS = ("attention", "feedforward", "final")


def living_map(picture: Mapping[str, Any], rest: Mapping[str, Any], on_ask: Callable[[], None]) -> None:
    """Draws the map. `rest` is what else the browser needs; its request is under `ask` of KEY when `on_ask`
    is called.
    """
    data = {"picture": picture, "palette": theme.palette(), **rest}
    mounted("livemap", styles=(SAVES, "livemap", "scrubber"))(key=KEY, data=data, on_ask_change=on_ask)


def living_map_further(picture: Mapping[str, Any]) -> None:
    """Tells the map that was drawn in the same run what was found since; nothing of it is seen by itself."""
    mounted("livemap_further", styles=("livemap",))(key=FURTHER, data=dict(picture))


def packed(reading: Reading, vocabulary: Sequence[str]) -> dict[str, Any]:
    """Packs the activations of a text for the browser, without its predictions.

    Whole numbers are uint32, weights uint16 of 65,535, strips int8 of 127 times what is typical, the rest
    float32.
    """
    lanes, arrays, patterns = reading.lanes, reading.lanes.arrays, reading.lanes.patterns
    shown = reading.ids[lanes.earlier :]
    return {
        "ids": list(map(int, shown)),
        "earlier": lanes.earlier,
        "asked": reading.predicted_lane,
        "layers": arrays["stream"].shape[0] - 1,
        "heads": 0 if patterns is None else patterns.shape[1],
        "cells": arrays["stream"].shape[-1],
        "pooled": list(lanes.pooled),
        **{name: _strips(arrays.get(name)) for name in SIGNED},
        "loud": [float(f"{scale:.4g}") for scale in typical(arrays["active"])] if "active" in arrays else [],
        "sizes": _floats(arrays["stream_sizes"]),
        "middle_sizes": _floats(arrays.get("middle_sizes")),
        "norms": {name: _strips(arrays.get(f"{name}_norm")) for name in NORMS},
        "norm_sizes": {name: _floats(arrays.get(f"{name}_norm_sizes")) for name in NORMS},
        "entering": _strips(arrays.get("entering")),
        "entering_sizes": _floats(arrays.get("entering_sizes")),
        "turned": _floats(arrays.get("turned")),
        "added": _floats(arrays.get("added")),
        "patterns": None if patterns is None else _weights(patterns),
        "neurons": _b64(arrays["neurons"], np.uint32) if "neurons" in arrays else None,
        "active": _floats(arrays.get("active")),
        "names": {str(i): vocabulary[i] for i in sorted(set(shown))},
        "shapes": {
            key: f"({', '.join(axes)}) = ({', '.join(f'{n:,}' for n in sizes)})"
            for key, (axes, sizes) in reading.shapes.items()
        },
    }


def spoken(
    name: str,
    last: DepthPredictions | None,
    predictions: Mapping[int, DepthPredictions],
    outlook: Outlook | None,
    depths: Sequence[int],
    vocabulary: Sequence[str],
) -> dict[str, Any]:
    """Packs the predictions for the text of a `name`, so far: `last` after each lane at the end,
    `predictions` at every depth by lane, the `outlook` at the `depths`.
    """
    known = sorted(predictions)
    lanes = [*predictions.values(), *([last] if last else [])]
    words = {int(i) for lane in lanes for i in lane.tokens.ravel()}
    if outlook is not None:
        words |= {int(i) for i in outlook.tokens[:, :BARS].ravel()}
    return {
        "name": name,
        "known": known,
        "guesses": _b64(_stack(predictions[i].tokens for i in known), np.uint32),  # (known, depth, guess)
        "chances": _b64(_stack(predictions[i].chances for i in known), np.float32),
        "last_guesses": None if last is None else _b64(last.tokens, np.uint32),  # (lane, guess)
        "last_chances": None if last is None else _b64(last.chances, np.float32),
        "outlook": None if outlook is None else _outlook(outlook, depths),
        "words": {str(i): vocabulary[i] for i in sorted(words)},
    }


def _strips(strips: np.ndarray | None) -> str | None:
    """Each row's in a scale of its own: of what is typical there."""
    if strips is None:
        return None
    scale = np.maximum(typical(strips), 1e-12)
    return _b64(np.rint(np.clip(strips / scale[:, None, None], -1, 1) * 127), np.int8)


def _outlook(outlook: Outlook, depths: Sequence[int]) -> dict[str, Any]:
    return {
        "depths": list(depths),
        "kept": int(outlook.tokens.shape[1]),
        "tokens": _b64(outlook.tokens, np.uint32),  # (depth, kept)
        "logits": _b64(outlook.logits, np.float32),
        "rest": _b64(outlook.rest, np.float32),  # (depth, temperature)
        "temperatures": list(TEMPERATURES),
    }


def _stack(arrays: Iterable[np.ndarray]) -> np.ndarray:
    items = list(arrays)
    return np.stack(items) if items else np.zeros(0)


def _floats(values: np.ndarray | None) -> str | None:
    return None if values is None else _b64(values, np.float32)


def _weights(values: np.ndarray) -> str:
    """Packs shares, 0 to 1, in steps that no percentage with a decimal shows: base64 of uint16 of 65,535."""
    return _b64(np.rint(np.clip(values, 0, 1) * 65535), np.uint16)


def _b64(values: np.ndarray, kind: type) -> str:
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode("ascii")
