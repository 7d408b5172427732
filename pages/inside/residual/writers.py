"""The components that write to the residual stream: their names in full, a bar for each, and whether their
writes sum to what is read at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.config import ResolvedConfig
from engine.parts.registry import Parts
from studies.costs.cards.table import card_of
from ui import content
from ui.figures import specs as go
from ui.figures.axes import rows_axis
from ui.figures.labels import plain
from ui.figures.theme import colour

TEXT = content.beside(__file__)
MANY = 40  # names beside one another that are too many
IN_FULL = ("ffn", "attn", "attn bias", "embed", "norm bias")  # short names that are spelt out


def in_full(label: str) -> str:
    """Spells out a writer's short name in a figure; empty where it needs none.

    >>> in_full("ffn 3"), in_full("embed"), in_full("head 3.2"), in_full("position")
    ('the feed-forward network of block 3', 'the token embedding', '', '')
    """
    name, _, block = label.rpartition(" ")
    known = next((each for each in (label, name) if each in IN_FULL), None)
    return TEXT(f"full {known}", block=block) if known else ""


def part_name(part: str) -> str:
    """Returns the name of a part of the model, as a legend has it."""
    return TEXT(f"part {part}")


def not_a_sum(config: ResolvedConfig, parts: Parts) -> str:
    """Returns why the final stream, or a logit, cannot be taken apart into writes."""
    if parts.wiring(config).replaces:
        return TEXT["no residual stream"]
    if parts.sums(config):
        card = card_of(parts.norm(config))
        return TEXT("norm by number", title=card.title, source=card.source, nonlinearity=card.nonlinearity)
    return TEXT["post-norm"]


def part_bars(
    labels: Sequence[str],
    parts: Sequence[str],
    values: np.ndarray,
    *,
    title: str,
    marks: np.ndarray | None = None,
    marks_name: str = "",
) -> go.Figure:
    """Draws a bar for each of `labels`, in the colour of its part; `marks` are diamonds over them."""
    at = np.arange(len(labels))
    traces: list[go.Trace] = []
    kinds = np.asarray(parts)
    texts = [plain(label) for label in labels]
    for part in dict.fromkeys(parts):
        members = kinds == part
        traces.append(
            go.Bar(
                x=at[members],
                y=values[members],
                name=part_name(part),
                marker={"color": colour("quiet" if part == "others" else part)},
                customdata=[texts[i] for i in at[members]],
                hovertemplate="%{customdata}: %{y:+.3f}<extra></extra>",
            )
        )
    if marks is not None:
        traces.append(
            go.Scatter(
                x=at,
                y=marks,
                mode="markers",
                name=marks_name,
                marker={"symbol": "diamond-open", "size": 8, "color": colour("quiet"), "line": {"width": 2}},
                hovertemplate="%{y:+.3f}",
            )
        )
    angle = -45 if 6 < len(labels) <= 14 or len(labels) > MANY else 0 if len(labels) <= 6 else -90
    return go.figure(
        traces,
        margin={"l": 64, "r": 8, "t": 30, "b": 8},
        bargap=0.15,
        xaxis=rows_axis(texts, tickangle=angle, tickfont={"size": 12}, range=[-0.6, len(labels) - 0.4])
        | by_block(labels),
        yaxis=go.axis(title, showgrid=True, zeroline=True, zerolinecolor=colour("quiet"), zerolinewidth=1),
    )


def by_block(labels: Sequence[str]) -> dict[str, Any]:
    """Returns ticks of an axis that has too many rows to name each: every fifth block, where it begins."""
    if len(labels) <= MANY:
        return {}
    at: dict[str, int] = {}
    for i, label in enumerate(labels):
        block = label.rpartition(" ")[2]
        if block.isdecimal() and int(block) % 5 == 0:
            at.setdefault(TEXT("block", block=block), i)
    return {"tickvals": np.array(list(at.values())), "ticktext": list(at)}
