"""The map of an encoder-decoder: two residual streams, and an arrow for the memory, from the encoder's end
to the decoder's cross-attention. Its pieces are those of a single stack's map (pages.start.home.map_drawing).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pages.start.home.map_drawing import (
    PLUS,
    Arrow,
    Box,
    Plan,
    Sheet,
    Sizes,
    added,
    block,
    chip,
    column,
    frame,
    plain,
    plan_of,
)
from pages.start.home.map_parts import Part, describe_pair
from studies.costs.ledger import Ledger

STACKS = ("encoder", "decoder")
CROSS = "cross_attention"
WIDE = Sizes(
    norm_s=124,
    norm_c=(16, 56),
    sub_s=176,
    sub_c=(64, 158),
    stream_norm_s=104,
    stream_norm_c=(-21, 21),
    gap=10,
    back=14,
)
TALL = Sizes(
    norm_s=50,
    norm_c=(24, 112),
    sub_s=106,
    sub_c=(128, 290),
    stream_norm_s=44,
    stream_norm_c=(-18, 112),
    gap=12,
    back=16,
)


def pair_map(
    counted: Ledger, pages: Mapping[str, str], live: Mapping[str, tuple[str, ...]] | None = None
) -> dict[str, Any]:
    """Returns the drawing of a ledger's two stacks for the browser, as `model_map` of one. `pages` maps a
    part to the page about it; `live` gives boxes other lines: what runs through them.
    """
    parts = describe_pair(counted)
    for name, lines in (live or {}).items():
        parts[name] = replace(parts[name], lines=lines)
    for stack in STACKS:
        parts |= _squeezed(parts, stack)
    return {
        "wide": plain(_wide(counted, parts)),
        "tall": plain(_tall(counted, parts)),
        "parts": {
            name: asdict(part) | {"page": pages.get(name.rpartition(".")[2])} for name, part in parts.items()
        },
    }


def _squeezed(parts: Mapping[str, Part], stack: str) -> dict[str, Part]:
    """Shortens the parts that have less room here than on the map of one stack: a place beside the stream has
    one line, and so has attention with a chip in it.
    """
    position, attention = parts.get(f"{stack}.position"), parts[f"{stack}.attention"]
    if position is None:
        return {}
    if not position.inside:
        return {f"{stack}.position": replace(position, lines=position.lines[:1])}
    return {f"{stack}.attention": replace(attention, lines=(" · ".join(attention.lines[:2]),))}


STREAM_Y = {"encoder": 196.0, "decoder": 438.0}  # of the residual streams of the wide map


@dataclass(frozen=True)
class _Stack:
    """One stack of the ledger. `parts` are its own, by their bare names."""

    name: str
    counted: Ledger
    parts: Mapping[str, Part]

    @property
    def title(self) -> str:
        return self.name.capitalize()

    @property
    def sublayers(self) -> Plan:
        """Returns the plan of a block, with cross-attention between the two sublayers of a decoder."""
        config = self.counted.encoder if self.name == "encoder" else self.counted.config
        assert config is not None
        plan = plan_of(config, self.counted.parts)
        if self.name == "encoder":
            return plan
        first, last = plan.sublayers
        cross = (CROSS, "norm_cross" if first[1] else None)
        return replace(plan, sublayers=(first, cross, last))


def _stack(counted: Ledger, parts: Mapping[str, Part], name: str) -> _Stack:
    bare = {key.removeprefix(f"{name}."): part for key, part in parts.items() if key.startswith(f"{name}.")}
    return _Stack(name, counted, bare)


def _wide(counted: Ledger, parts: Mapping[str, Part]) -> Sheet:
    """Draws the encoder above the decoder; both streams run to the right."""
    both, ends = Sheet(True), {}
    for name, foot in STREAM_Y.items():
        stack = _stack(counted, parts, name)
        sheet = Sheet(True, y0=foot)
        ends[name] = _row(sheet, stack)
        _merge(both, sheet, name)
    end, foot = ends["encoder"], STREAM_Y["encoder"]
    both.boxes.append(Box("memory", "box", end, foot - 38, 160, 76))
    both.arrows.append(Arrow("stream", "residual", ((end - 34, foot), (end, foot))))
    reader = next(box for box in both.boxes if box.id == f"decoder.{CROSS}")
    middle, low = reader.x + reader.w / 2, foot + 54
    both.arrows.append(
        Arrow(
            "memory", "attention", ((end + 80, foot + 38), (end + 80, low), (middle, low), (middle, reader.y))
        )
    )
    return both


def _row(sheet: Sheet, stack: _Stack) -> float:
    """Draws one stream from its tokens on; returns the x at which the part after its last norm begins."""
    left, width, foot = 2.0, 149.0, sheet.y0
    stream_x = left + width - 24
    sheet.boxes += [
        Box("tokens", "box", left, foot - 192, width, 66),
        Box("embedding", "box", left, foot - 114, width, 64),
    ]
    middle = left + width / 2
    sheet.arrows.append(Arrow("branch", "residual", ((middle, foot - 126), (middle, foot - 114))))
    if added(stack.parts):
        sheet.boxes += [
            Box("position", "box", left, foot - 42, width - 60, 46),
            Box("sum_position", "plus", stream_x - PLUS, foot - 24 - PLUS, 2 * PLUS, 2 * PLUS),
        ]
        sheet.arrows.append(
            Arrow("branch", "position", ((left + width - 60, foot - 24), (stream_x - PLUS, foot - 24)))
        )
    enter = left + width + 28
    sheet.arrows.append(
        Arrow("stream", "residual", ((stream_x, foot - 50), (stream_x, foot), (enter + 10.5, foot)), False)
    )
    end = block(sheet, WIDE, stack.sublayers, enter + 10)
    part, around = stack.parts["block"], (-30, WIDE.sub_c[1] + 34)
    title = f"{stack.title} {part.title.removeprefix('2  ').lower()}"
    frame(sheet, part, (enter, end), around, title, 16)
    chip(sheet, stack.parts, 26)
    right = end + 22
    if "norm_final" in stack.parts:
        sheet.boxes.append(Box("norm_final", "box", right, foot - 32, 130, 64))
        sheet.arrows.append(Arrow("stream", "residual", ((end - WIDE.gap - 0.5, foot), (right, foot))))
        right += 130
    else:
        sheet.arrows.append(Arrow("stream", "residual", ((end - WIDE.gap - 0.5, foot), (right, foot)), False))
    if stack.name == "decoder":
        _out(sheet, right, foot)
    return right + 34


def _out(sheet: Sheet, right: float, foot: float) -> None:
    """Draws the unembedding and the softmax above the end of the stream."""
    centre = right + 34 + 74.5
    sheet.boxes += [
        Box("unembedding", "box", right + 34, foot - 114, 149, 66),
        Box("softmax", "box", right + 34, foot - 198, 149, 66),
    ]
    sheet.arrows += [
        Arrow("stream", "residual", ((right, foot), (centre, foot), (centre, foot - 48))),
        Arrow("branch", "output", ((centre, foot - 114), (centre, foot - 132))),
    ]


def _tall(counted: Ledger, parts: Mapping[str, Part]) -> Sheet:
    """Draws the map for a phone: the decoder below the encoder, the memory's arrow on the right."""
    both, s = Sheet(False), 0.0
    for name in STACKS:
        stack = _stack(counted, parts, name)
        sheet = Sheet(False, x0=26.0, y0=s)
        s += column(sheet, TALL, stack.sublayers, stack.parts, stack.title)
        _merge(both, sheet, name)
        if name == "encoder":
            both.boxes.append(Box("memory", "box", 2.0, s + 22, 316, 72))
            both.arrows.append(Arrow("stream", "residual", ((26.0, s), (26.0, s + 22))))
            memory, s = s + 58, s + 122
    reader = next(box for box in both.boxes if box.id == f"decoder.{CROSS}")
    middle = reader.y + reader.h / 2
    edge = 334.0
    both.arrows.append(
        Arrow(
            "memory",
            "attention",
            ((318.0, memory), (edge, memory), (edge, middle), (reader.x + reader.w, middle)),
        )
    )
    return both


def _merge(both: Sheet, sheet: Sheet, stack: str) -> None:
    """Adds the boxes of a stack under its name; arrows of cross-attention have the colour of attention."""
    both.boxes += [replace(box, id=f"{stack}.{box.id}") for box in sheet.boxes]
    both.arrows += [
        replace(arrow, part="attention") if arrow.part == CROSS else arrow for arrow in sheet.arrows
    ]
    both.labels += sheet.labels
