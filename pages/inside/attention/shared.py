"""The two components that draw patterns in the browser, for the views of Attention."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import partial

import numpy as np

from engine.measure.attention.head_patterns import Habit, habit_of_each
from engine.measure.attention.heads import HeadNumbers
from pages.inside.attention import words
from pages.inside.attention.figures import HEAD_COLOURS
from pages.inside.attention.habits import hints, legend, names, scores
from ui import memo, widgets
from ui.figures import theme
from ui.model_bar import Subject
from ui.players.component import mounted

MAX_PIXELS = 300_000  # of all small pictures together; beyond that they are drawn coarser
TOPIC = "attention"  # of the head that is looked at, in all views: see `widgets.head`
GRID = "attention_grid"


def take_head(there: tuple[int, int]) -> None:
    """Takes over the head that was clicked in the grid, of (layers, heads): the choosers follow."""
    where = widgets.indexes_of(widgets.picked(GRID, "chosen"), there, ",")
    if where is not None:
        for key, index in zip((f"{TOPIC}_layer", f"{TOPIC}_head"), where, strict=True):
            widgets.put(key, index)


def head_grid(
    subject: Subject,
    patterns: np.ndarray,
    numbers: HeadNumbers,
    chosen: tuple[int, int],
    *,
    order: Sequence[int] | None,
    by: Habit | None,
) -> None:
    """Patterns (layer, head, query, key) as small pictures: of all heads, a row for each layer, or of those
    in `order` (layer * heads + head), each with its score of the habit `by`, or of its own; beside them one
    large, which follows the pointer. A click goes to `take_head`.
    """
    layers, heads = patterns.shape[:2]
    pixels, size, triangle = _pixels(subject.key, subject.ids, patterns)
    layer, head = chosen
    data = {
        "layers": layers,
        "heads": heads,
        "size": size,
        "pixels": pixels,
        "step": -(-patterns.shape[-1] // size),
        "triangle": triangle,
        "masked": subject.config.causal,
        "full": _weights(subject.key, subject.ids, layer, patterns[layer], head),
        "tokens": subject.labels,
        "hints": hints(numbers),
        "chosen": [int(c) for c in chosen],
        "order": None if order is None else list(order),
        "scores": scores(numbers, by),
        "names": names(numbers, by),
        "habits": [None if habit is None else habit[0] for habit in habit_of_each(numbers)],
        "legend": legend(numbers),
        "palette": theme.palette(),
        "alt": words.grid_alt(layers, heads, None if order is None else len(order)),
    }
    mounted("headgrid")(key=GRID, data=data, on_chosen_change=partial(take_head, (layers, heads)))


def arcs(subject: Subject, patterns: np.ndarray, layer: int, head: int) -> None:
    """Draws two columns of tokens with lines between them, for the heads of one layer: patterns (head, query,
    key).
    """
    colours = theme.palette()
    data = {
        "weights": _weights(subject.key, subject.ids, layer, patterns),
        "tokens": subject.labels,
        "heads": len(patterns),
        "layer": layer,
        "head": head,
        "colours": [colours[name] for name in HEAD_COLOURS],
        "alt": words.ARCS_ALT.format(layer=layer),
        "hint": words.ARCS_HINT,
    }
    mounted("arcs")(key="attention_arcs", data=data)


@memo.measured()
def _pixels(key: tuple[str, int], ids: tuple[int, ...], _patterns: np.ndarray) -> tuple[str, int, bool]:
    """(base64 of uint8 (layer, head, row, column), rows, whether only the lower triangles). Large ones shrink
    by taking the largest of neighbouring weights.
    """
    size = _patterns.shape[-1]
    step = 1
    while _patterns.shape[0] * _patterns.shape[1] * (size / step) ** 2 > MAX_PIXELS and size // step > 24:
        step += 1
    rows = -(-size // step)
    padded = np.zeros((*_patterns.shape[:2], rows * step, rows * step), dtype=np.float32)
    padded[..., :size, :size] = np.nan_to_num(_patterns)
    small = np.rint(padded.reshape(*_patterns.shape[:2], rows, step, rows, step).max((3, 5)) * 255)
    triangle = not np.triu(small, 1).any()
    sent = (small[(..., *np.tril_indices(rows))] if triangle else small).astype(np.uint8)
    return base64.b64encode(sent.tobytes()).decode("ascii"), rows, triangle


@memo.measured()
def _weights(
    key: tuple[str, int],
    ids: tuple[int, ...],
    layer: int,
    _patterns: np.ndarray,
    head: int | None = None,
) -> str:
    """base64 of uint16 (head, query, key), or of one head: a weight in steps of 1/65535."""
    if head is not None:
        _patterns = _patterns[head]
    return base64.b64encode(np.rint(np.nan_to_num(_patterns) * 65535).astype("<u2").tobytes()).decode("ascii")
