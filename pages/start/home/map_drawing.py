"""The map of a Transformer, drawn from its configuration: boxes and arrows as plain data, in two layouts.

The residual stream is a road. `s` runs along it and `c` is the distance from it; each sublayer is a side road
that leaves, passes a norm and the sublayer, and comes back. `wide` lets the road run left to right, `tall`
top to bottom. The browser chooses by the width it has (map.js).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from engine.config import ModelConfig, ResolvedConfig
from engine.parts.registry import HEALTHY, Parts
from pages.start.home.map_parts import Part, describe
from ui import content

TEXT = content.beside(__file__)
Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A part at a place. `kind`: box, plus (a sum), chip (inside another box), frame (around the block)."""

    id: str
    kind: str
    x: float
    y: float
    w: float
    h: float


@dataclass(frozen=True)
class Arrow:
    """A line through points. `kind`: stream (the road), branch (a side road), tie (the same matrix twice)."""

    kind: str
    part: str
    points: tuple[Point, ...]
    head: bool = True


@dataclass(frozen=True)
class Label:
    x: float
    y: float
    text: str
    anchor: str = "start"
    size: float = 14
    strong: bool = False


@dataclass
class Sheet:
    """The drawing so far; `at` turns (s, c) into (x, y)."""

    wide: bool
    x0: float = 0.0
    y0: float = 0.0
    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)

    def at(self, s: float, c: float) -> Point:
        return (self.x0 + s, self.y0 - c) if self.wide else (self.x0 + c, self.y0 + s)

    def box(self, name: str, s: tuple[float, float], c: tuple[float, float], kind: str = "box") -> None:
        (xa, ya), (xb, yb) = self.at(s[0], c[0]), self.at(s[1], c[1])
        self.boxes.append(Box(name, kind, min(xa, xb), min(ya, yb), abs(xb - xa), abs(yb - ya)))

    def plus(self, name: str, s: float) -> None:
        self.box(name, (s - PLUS, s + PLUS), (-PLUS, PLUS), "plus")

    def line(self, kind: str, part: str, *points: Point, head: bool = True) -> None:
        """Adds a line; `points` are (s, c)."""
        self.arrows.append(Arrow(kind, part, tuple(self.at(*p) for p in points), head))


PLUS = 14.0  # radius of a sum


@dataclass(frozen=True)
class Sizes:
    """Sizes of a layout. `*_s` along the stream, `*_c` away from it."""

    norm_s: float
    norm_c: tuple[float, float]
    sub_s: float
    sub_c: tuple[float, float]
    stream_norm_s: float  # a norm that sits on the road (post-norm)
    stream_norm_c: tuple[float, float]
    gap: float
    back: float  # from a sublayer's end to its way back


WIDE = Sizes(
    norm_s=138,
    norm_c=(46, 96),
    sub_s=196,
    sub_c=(126, 262),
    stream_norm_s=112,
    stream_norm_c=(-28, 28),
    gap=14,
    back=18,
)
WIDE_POST = replace(WIDE, sub_s=180, stream_norm_s=112, gap=10, back=14)  # norms on the road take room there
TALL = Sizes(
    norm_s=54,
    norm_c=(24, 112),
    sub_s=134,
    sub_c=(128, 304),
    stream_norm_s=46,
    stream_norm_c=(-18, 112),
    gap=14,
    back=18,
)


def model_map(
    config: ModelConfig, pages: Mapping[str, str] | None = None, made_of: Parts = HEALTHY
) -> dict[str, Any]:
    """Returns everything the browser needs to draw `config`: both layouts, and what is said about each part.

    `pages` maps a part's id to the address of the page that explains it; parts without one lead nowhere.
    Raises ConfigError when the configuration cannot be built.
    """
    c = config.validate().resolved()
    parts, plan = describe(c, made_of), plan_of(c, made_of)
    return {
        "wide": plain(_wide(plan, parts)),
        "tall": plain(_tall(plan, parts)),
        "parts": {name: asdict(part) | {"page": (pages or {}).get(name)} for name, part in parts.items()},
    }


def plain(sheet: Sheet) -> dict[str, Any]:
    right = max(
        [b.x + b.w + (6 if b.kind == "frame" else 0) for b in sheet.boxes]
        + [x for a in sheet.arrows for x, _ in a.points]
    )
    low = max([b.y + b.h for b in sheet.boxes] + [y for a in sheet.arrows for _, y in a.points])
    drawn = {name: [asdict(item) for item in getattr(sheet, name)] for name in ("boxes", "arrows", "labels")}
    return {"width": right + 10, "height": low + 10} | drawn


@dataclass(frozen=True)
class Plan:
    """The facts that the drawing depends on. `sublayers` are (sublayer, its norm); absent ones
    are left out.
    """

    sublayers: tuple[tuple[str, str | None], ...]
    parallel: bool
    replaces: bool  # no stream: an output takes the place of what was read
    on_stream: bool  # norms sit on the stream


def plan_of(c: ResolvedConfig, made_of: Parts) -> Plan:
    wiring, normed = made_of.wiring(c), made_of.norm(c).present
    pairs = [("attention", "norm1")] if made_of.mixer(c).present else []
    pairs += [("feedforward", "norm2")] if made_of.feedforward(c).present else []
    return Plan(
        tuple((sub, norm if normed else None) for sub, norm in pairs),
        wiring.parallel,
        wiring.replaces,
        wiring.ends_normed and normed,
    )


def block(sheet: Sheet, z: Sizes, plan: Plan, start: float) -> float:
    """Draws the block's inside from `start` on the road; returns where it ends."""
    if plan.parallel and len(plan.sublayers) == 2:
        return _parallel(sheet, z, plan.sublayers, start)
    s = clear = start  # how far the road, and the room beside it, are taken
    for sub, norm in plan.sublayers:
        middle = max(clear + z.gap / 2 + z.sub_s / 2, s + z.gap)
        end = middle + z.sub_s / 2 + z.back
        before = None if plan.on_stream else norm
        _branch(sheet, z, sub, before, middle)
        across = sum(z.sub_c) / 2
        if plan.replaces:
            sheet.line(
                "stream", "residual", (s, 0), (middle, 0), (middle, (z.norm_c if before else z.sub_c)[0])
            )
            sheet.line(
                "stream",
                "residual",
                (middle + z.sub_s / 2, across),
                (end, across),
                (end, 0),
                (end + PLUS, 0),
                head=False,
            )
        else:
            sheet.line("branch", sub, (middle, 0), (middle, (z.norm_c if before else z.sub_c)[0]))
            sheet.line("branch", sub, (middle + z.sub_s / 2, across), (end, across), (end, PLUS))
            sheet.line("stream", "residual", (s, 0), (end - PLUS, 0), head=False)
            sheet.plus(f"sum_{sub}", end)
        s = clear = end + PLUS
        if plan.on_stream and norm:
            sheet.line("stream", "residual", (s, 0), (s + z.gap, 0))
            sheet.box(norm, (s + z.gap, s + z.gap + z.stream_norm_s), z.stream_norm_c)
            s += z.gap + z.stream_norm_s
    return s + z.gap


def _branch(sheet: Sheet, z: Sizes, sub: str, norm: str | None, middle: float) -> None:
    if norm:
        sheet.box(norm, (middle - z.norm_s / 2, middle + z.norm_s / 2), z.norm_c)
        sheet.line("branch", sub, (middle, z.norm_c[1]), (middle, z.sub_c[0]))
    sheet.box(sub, (middle - z.sub_s / 2, middle + z.sub_s / 2), z.sub_c)


def _parallel(sheet: Sheet, z: Sizes, subs: tuple[tuple[str, str | None], ...], start: float) -> float:
    """Both sublayers read at one place and write at one place: a rail for reading, a rail beyond them for
    writing.
    """
    read, write = z.norm_c[0] / 2 + 4, z.sub_c[1] + 16
    middles = [start + z.gap + z.sub_s / 2, start + 2 * z.gap + 1.5 * z.sub_s]
    end = middles[1] + z.sub_s / 2 + z.back
    tap = start + z.gap
    for (sub, norm), middle in zip(subs, middles, strict=True):
        _branch(sheet, z, sub, norm, middle)
        sheet.line(
            "branch", sub, (tap, 0), (tap, read), (middle, read), (middle, (z.norm_c if norm else z.sub_c)[0])
        )
    across = sum(z.sub_c) / 2
    sheet.line(
        "branch",
        subs[0][0],
        (middles[0], z.sub_c[1]),
        (middles[0], write),
        (end, write),
        (end, across),
        head=False,
    )
    sheet.line("branch", subs[1][0], (middles[1] + z.sub_s / 2, across), (end, across), (end, PLUS))
    sheet.line("stream", "residual", (start, 0), (end - PLUS, 0), head=False)
    sheet.plus("sum_both", end)
    return end + PLUS + z.gap


def chip(sheet: Sheet, parts: Mapping[str, Part], high: float = 30) -> None:
    """Draws positions that enter inside attention (RoPE, ALiBi, T5) inside its box."""
    home = next((b for b in sheet.boxes if b.id == "attention"), None)
    if home and "position" in parts and parts["position"].inside:
        sheet.boxes.append(Box("position", "chip", home.x + 8, home.y + home.h - high - 8, home.w - 16, high))


def _road_name(plan: Plan, parts: Mapping[str, Part]) -> str:
    return TEXT("passed on" if plan.replaces else "stream", shape=parts["block"].shape)


def frame(
    sheet: Sheet,
    part: Part,
    s: tuple[float, float],
    c: tuple[float, float],
    title: str,
    size: float,
    lower: float = 0.0,
) -> Box:
    """Draws the frame around a block, with its title, and its parameters by so much `lower`. It comes first,
    so that everything else lies on it.
    """
    sheet.box("block", s, c, "frame")
    sheet.boxes.insert(0, sheet.boxes.pop())
    box, each = sheet.boxes[0], part.lines[0]
    indent = 14.0 if sheet.wide else 40.0  # past the road
    each = each if size > 16 else each.replace("parameters", "params")
    sheet.labels += [
        Label(box.x + indent, box.y + 26, title, size=size, strong=True),
        Label(box.x + box.w - 12, box.y + 26 + lower, each, "end", 0.8 * size),
    ]
    return box


def added(parts: Mapping[str, Part]) -> bool:
    return "position" in parts and not parts["position"].inside


def _wide(plan: Plan, parts: Mapping[str, Part]) -> Sheet:
    """A U: input comes down on the left, the road runs right through the block, output goes up on the
    right.
    """
    left, width, gap, top, foot = 2.0, 176.0, 34.0, 32.0, 404.0
    road = left + width - 26  # where the road comes down
    sheet = Sheet(True, y0=foot)
    tokens, table = (top, top + 62), (top + 98, top + 190)
    sheet.boxes += [
        Box("tokens", "box", left, tokens[0], width, 62),
        Box("embedding", "box", left, table[0], width, 92),
    ]
    sheet.arrows.append(
        Arrow("branch", "residual", ((left + width / 2, tokens[1]), (left + width / 2, table[0])))
    )
    enter = left + width + gap
    if added(parts):
        middle = (table[1] + foot) / 2 - (37 if "norm_embed" in parts else 10)
        sheet.boxes.append(Box("position", "box", left, middle - 46, width - 64, 92))
        sheet.boxes.append(Box("sum_position", "plus", road - PLUS, middle - PLUS, 2 * PLUS, 2 * PLUS))
        sheet.arrows.append(Arrow("branch", "position", ((left + width - 64, middle), (road - PLUS, middle))))
    down = table[1]
    if "norm_embed" in parts:
        norm = Box("norm_embed", "box", left + width - 112, foot - 68, 112, 56)
        sheet.boxes.append(norm)
        sheet.arrows.append(Arrow("stream", "residual", ((road, down), (road, norm.y)), False))
        down = norm.y + norm.h
    sheet.arrows.append(
        Arrow("stream", "residual", ((road, down), (road, foot), (enter + 10.5, foot)), False)
    )

    sizes = WIDE_POST if plan.on_stream else WIDE
    end = block(sheet, sizes, plan, enter + 10)
    last, end = (
        end - sizes.gap - 0.5,
        max(end, enter + 330),
    )  # the frame's words need room, however little is in it
    around = (-60, sizes.sub_c[1] + (70 if plan.parallel else 46))
    box = frame(sheet, parts["block"], (enter, end), around, parts["block"].title, 19)
    sheet.labels.append(Label(box.x + 14, box.y + box.h - 14, _road_name(plan, parts), size=16))
    chip(sheet, parts)

    right = end + gap
    centre = right + width / 2
    if "norm_final" in parts:
        sheet.boxes.append(Box("norm_final", "box", right, foot - 36, width, 72))
        sheet.arrows.append(Arrow("stream", "residual", ((last, foot), (right, foot))))
        sheet.arrows.append(Arrow("stream", "residual", ((centre, foot - 36), (centre, table[1]))))
    else:
        sheet.arrows.append(Arrow("stream", "residual", ((last, foot), (centre, foot), (centre, table[1]))))
    sheet.boxes.append(Box("unembedding", "box", right, table[0], width, 92))
    if "softmax" in parts:
        sheet.boxes.append(Box("softmax", "box", right, tokens[0], width, 62))
        sheet.arrows.append(Arrow("branch", "output", ((centre, table[0]), (centre, tokens[1]))))
    if parts["unembedding"].tied:
        a, b, y = left + width, right, table[0] + 20
        sheet.arrows.append(
            Arrow(
                "tie",
                "embedding",
                ((a, y), (a + gap / 2, y), (a + gap / 2, 20), (b - gap / 2, 20), (b - gap / 2, y), (b, y)),
                False,
            )
        )
        sheet.labels.append(Label((a + b) / 2, 40, TEXT["tied"], "middle", 15))
    sheet.labels += [
        Label(left, 19, TEXT["input"], size=17, strong=True),
        Label(right + width, 19, TEXT["output"], "end", 17, True),
    ]
    return sheet


def _tall(plan: Plan, parts: Mapping[str, Part]) -> Sheet:
    """One road from top to bottom, for a phone."""
    sheet = Sheet(False, x0=26.0)
    column(sheet, TALL, plan, parts)
    if parts["unembedding"].tied:
        tables = {b.id: b.y + b.h / 2 for b in sheet.boxes if b.id in ("embedding", "unembedding")}
        edge, top, low = sheet.x0 + 314, tables["embedding"], tables["unembedding"]
        sheet.arrows.append(
            Arrow("tie", "embedding", ((edge, top), (edge + 17, top), (edge + 17, low), (edge, low)), False)
        )
    return sheet


def column(sheet: Sheet, z: Sizes, plan: Plan, parts: Mapping[str, Part], stack: str = "") -> float:
    """Draws a model downwards, or a `stack` of one, which bears its name; returns its length."""
    full, s = ((-24.0, 292.0), 8.0) if stack else ((-24.0, 314.0), 28.0)

    def on_road(name: str, height: float, kind: str = "stream") -> None:
        nonlocal s
        if name not in parts:
            return
        if name != "tokens":
            sheet.line(kind, "output" if name == "softmax" else "residual", (s, 0), (s + 24, 0))
            s += 24
        sheet.box(name, (s, s + height), full)
        s += height

    on_road("tokens", 72 if stack else 58)
    on_road("embedding", 76, "branch")
    start = s + 24
    if added(parts):
        sheet.box("position", (s + 18, s + (74 if stack else 92)), (44, full[1]))
        sheet.line("branch", "position", (s + 46, 44), (s + 46, PLUS))
        start = s + (90 if stack else 110)
    leaves = s
    if "norm_embed" in parts:
        sheet.box("norm_embed", (start, start + z.stream_norm_s), z.stream_norm_c)
        sheet.line("stream", "residual", (s, 0), (start, 0), head=False)
        leaves = start + z.stream_norm_s
        start = leaves + 18
    first = start + (54 if stack else 42)
    sheet.line("stream", "residual", (leaves, 0), (first + 0.5, 0), head=False)
    if added(parts):
        sheet.plus("sum_position", s + 46)
    inside = block(sheet, z, plan, first)
    s = inside + (10 if stack else 26)
    title = parts["block"].title
    title = f"{stack} {title.removeprefix('2  ').lower()}" if stack else title
    box = frame(sheet, parts["block"], (start, s), full, title, 15, 20 if stack else 0)
    sheet.line("stream", "residual", (inside - z.gap - 0.5, 0), (s + 0.5, 0), head=False)
    chip(sheet, parts, 26 if stack else 30)
    if not stack:
        sheet.labels += [
            Label(2, 18, TEXT["input"], size=15, strong=True),
            Label(box.x + 44, box.y + box.h - 14, _road_name(plan, parts), size=14),
            Label(sheet.x0 + full[1], s + 19, TEXT["output"], "end", 15, True),
        ]
    on_road("norm_final", 62)
    on_road("unembedding", 76)
    on_road("softmax", 72 if stack else 58, "branch")
    return s
