"""The living map: a text on its way through a model, played in the browser. What is drawn of a text is sent
whole and packed, so that block, head, temperature, top-k and depth change there.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.measure.living import TEMPERATURES, Lanes, Outlook, Reading, Said, typical
from ui.figures import theme
from ui.players.component import mounted

KEY = "living_map"
BARS = 14  # tokens that are drawn as bars, at most


def living_map(picture: Mapping[str, Any], rest: Mapping[str, Any], asked: Callable[[], None]) -> None:
    """Draws it. `rest` is what else the browser is told; what it asks for is under `ask` of KEY when `asked`
    is called.
    """
    data = {"picture": picture, "palette": theme.palette(), **rest}
    mounted("livemap", styles=("livemap", "scrubber"))(key=KEY, data=data, on_ask_change=asked)


def packed(
    name: str,
    reading: Reading,
    said: Mapping[int, Said],
    outlook: Outlook | None,
    depths: Sequence[int],
    vocabulary: Sequence[str],
) -> dict[str, Any]:
    """A text as it is sent. `name` tells it from all others; `said` holds what is known of it so far, by
    lane; `outlook` is of the `depths`.

    Whole numbers are uint32, weights uint8 of 255, strips int8 of 127 times what is typical, the rest
    float32.
    """
    lanes = reading.lanes
    shown = reading.ids[lanes.earlier :]
    known = sorted(said)
    heads = 0 if lanes.patterns is None else lanes.patterns.shape[1]
    words: set[int] = {*shown, *(int(i) for one in said.values() for i in one.tokens.ravel())}
    if outlook is not None:
        words |= {int(i) for i in outlook.tokens[:, :BARS].ravel()}
    return {
        "name": name,
        "ids": list(map(int, shown)),
        "earlier": lanes.earlier,
        "layers": lanes.stream.shape[0] - 1,
        "heads": heads,
        "cells": lanes.stream.shape[-1],
        "pooled": list(lanes.pooled),
        **_strips(lanes),
        "patterns": None if lanes.patterns is None else _bytes(lanes.patterns * 255),
        "neurons": None if lanes.neurons is None else _b64(lanes.neurons, np.uint32),
        "active": None if lanes.active is None else _b64(lanes.active, np.float32),
        "known": known,
        "guesses": _b64(_stack(said[i].tokens for i in known), np.uint32),  # (known, depth, guess)
        "chances": _b64(_stack(said[i].chances for i in known), np.float32),
        "outlook": None if outlook is None else _outlook(outlook, depths),
        "words": {str(i): vocabulary[i] for i in sorted(words)},
        "shapes": {
            key: f"({', '.join(axes)}) = ({', '.join(f'{n:,}' for n in sizes)})"
            for key, (axes, sizes) in reading.shapes.items()
        },
    }


def _strips(lanes: Lanes) -> dict[str, Any]:
    """Each depth's in a scale of its own: of what is typical there."""
    found: dict[str, Any] = {}
    for name in ("stream", "middle", "attention", "feedforward"):
        strips = getattr(lanes, name)
        if strips is None:
            found[name] = None
            continue
        scale = np.maximum(typical(strips), 1e-12)
        found[name] = _signed(strips / scale[:, None, None])
    if lanes.active is not None:
        found["loud"] = [float(f"{one:.4g}") for one in typical(lanes.active)]
    return found


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
    found = list(arrays)
    return np.stack(found) if found else np.zeros(0)


def _signed(values: np.ndarray) -> str:
    return _b64(np.rint(np.clip(values, -1, 1) * 127), np.int8)


def _bytes(values: np.ndarray) -> str:
    return _b64(np.rint(np.clip(values, 0, 255)), np.uint8)


def _b64(values: np.ndarray, kind: type) -> str:
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode("ascii")
