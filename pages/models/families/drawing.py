"""A model as boxes on a stream, drawn from its configuration: an encoder, a decoder, or both with the memory
between them. Places are plain numbers, downwards; `figure` makes a picture of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.config import ResolvedConfig
from engine.parts.registry import HEALTHY
from studies.costs.cards.table import card_of
from studies.costs.ledger import Ledger
from ui import content
from ui.figures import specs as go
from ui.figures.theme import SEQUENTIAL, colour

TEXT = content.beside(__file__)
STREAM, CENTRE, HALF = (
    32.0,
    146.0,
    92.0,
)  # from a stack's left edge: its stream, its boxes and their half width
STACK_WIDTH, BETWEEN = 248.0, 20.0  # of one stack, and to the next
NORM, SUB, ENDS, GAP, PLUS = 20.0, 34.0, 28.0, 12.0, 7.0
TIMES = 12.0  # below the last box of a frame: how often the block stands there


@dataclass(frozen=True)
class Box:
    """A part at a place. `part` is one of the colours, `component` one of the ledger's (or none)."""

    part: str
    component: str
    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    stack: str = ""


@dataclass(frozen=True)
class Line:
    """Through points; `kind`: stream, branch, memory or tie."""

    kind: str
    points: tuple[tuple[float, float], ...]


@dataclass
class Drawing:
    boxes: list[Box] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    sums: list[tuple[float, float]] = field(default_factory=list)
    frames: list[tuple[float, float, float, float, str]] = field(default_factory=list)
    width: float = STACK_WIDTH
    height: float = 0.0


def drawing(counted: Ledger) -> Drawing:
    """Returns the stacks of a model: an encoder stands left of the decoder that reads it."""
    sheet = Drawing()
    if counted.encoder is None:
        _draw_stack(sheet, counted.config, 0.0, "")
        return sheet
    end = _draw_stack(sheet, counted.encoder, 0.0, "encoder")
    _draw_stack(sheet, counted.config, STACK_WIDTH + BETWEEN, "decoder", crossing=True)
    sheet.width = 2 * STACK_WIDTH + BETWEEN
    reader = next(box for box in sheet.boxes if box.component == "cross_attention")
    middle, way = (reader.y0 + reader.y1) / 2, STACK_WIDTH + BETWEEN / 2
    sheet.lines.append(Line("memory", ((STREAM, end), (way, end), (way, middle), (reader.x0, middle))))
    return sheet


def _draw_stack(sheet: Drawing, c: ResolvedConfig, x: float, stack: str, crossing: bool = False) -> float:
    """Draws one stack from the left edge `x`; returns where its stream ends."""
    y = _box(sheet, x, 0.0, ENDS, "embedding", "embedding", TEXT["embedding"], stack)
    scheme = HEALTHY.position(c)
    if "embed" in scheme.enters:
        said = TEXT("position", scheme=card_of(scheme).short or card_of(scheme).title)
        y = _box(sheet, x, y + 6, NORM, "position", "position", said, stack)
    if c.embedding_norm:
        y = _box(sheet, x, y + 6, NORM, "norm", "norm_embed", card_of(HEALTHY.norm(c)).title, stack)
    top = y + GAP
    y = _block(sheet, c, x, top + 4, stack, crossing) + TIMES
    sheet.frames.append((x + 4, top, x + STACK_WIDTH - 6, y, TEXT("times", layers=c.n_layers)))
    y += GAP
    if not HEALTHY.wiring(c).ends_normed:
        y = _box(sheet, x, y, NORM, "norm", "norm_final", card_of(HEALTHY.norm(c)).title, stack) + GAP
    if c.output_head != "none":
        bottom = _box(sheet, x, y, ENDS, "output", "unembedding", TEXT["output"], stack)
        if c.tie_embeddings:
            left = x + 12
            ends = (x + CENTRE - HALF, ENDS / 2), (x + CENTRE - HALF, (y + bottom) / 2)
            sheet.lines.append(Line("tie", (ends[0], (left, ends[0][1]), (left, ends[1][1]), ends[1])))
        end = y
    else:
        bottom = end = y
    sheet.lines.insert(0, Line("stream", ((x + STREAM, ENDS), (x + STREAM, end))))
    sheet.height = max(sheet.height, bottom)
    return end


def _box(
    sheet: Drawing, x: float, y: float, high: float, part: str, component: str, text: str, stack: str
) -> float:
    """A box across the stack, from `y` down; returns its lower edge."""
    sheet.boxes.append(Box(part, component, text, x + STREAM - 10, y, x + CENTRE + HALF, y + high, stack))
    return y + high


def _block(sheet: Drawing, c: ResolvedConfig, x: float, y: float, stack: str, crossing: bool) -> float:
    wiring, norm = HEALTHY.wiring(c), card_of(HEALTHY.norm(c)).title
    names = box_lines(c)
    subs = [("attention", "attention", "norm1", names["attention"])]
    if crossing:
        subs.append(("attention", "cross_attention", "norm_cross", TEXT["cross-attention"]))
    subs.append(("feedforward", "feedforward", "norm2", names["feedforward"]))
    if wiring.parallel:
        return _beside(sheet, x, y, subs, norm, stack)
    for part, component, normed, text in subs:
        y = _sublayer(sheet, x, y, (part, component, text), (normed, norm), stack, wiring.ends_normed)
    return y + 4


def _sublayer(
    sheet: Drawing,
    x: float,
    y: float,
    sub: tuple[str, str, str],
    normed: tuple[str, str],
    stack: str,
    on_road: bool,
) -> float:
    """A side road with its sublayer; its norm stands before it, or on the stream after the sum."""
    left, right, middle, stream = x + CENTRE - HALF, x + CENTRE + HALF, x + CENTRE, x + STREAM
    leaves = y + 6
    top = leaves + 6
    if not on_road:
        sheet.boxes.append(Box("norm", normed[0], normed[1], left, top, right, top + NORM, stack))
        top += NORM + 4
    sheet.boxes.append(Box(*sub, left, top, right, top + SUB, stack))
    back = top + SUB + 8
    ways = ((stream, leaves), (middle, leaves), (middle, back), (stream + PLUS, back))
    sheet.lines.insert(0, Line("branch", ways))
    sheet.sums.append((stream, back))
    y = back + PLUS + 2
    if on_road:
        y += 3
        sheet.boxes.append(Box("norm", normed[0], normed[1], stream - 24, y, middle - 4, y + NORM, stack))
        y += NORM + 2
    return y


def _beside(
    sheet: Drawing, x: float, y: float, subs: list[tuple[str, str, str, str]], norm: str, stack: str
) -> float:
    """Both sublayers read at one place and write at one place."""
    stream, leaves, half = x + STREAM, y + 8, HALF - 3
    top = leaves + 8
    back = top + NORM + 4 + SUB + 12
    for i, (part, component, normed, text) in enumerate(subs):
        left = x + CENTRE - HALF + i * (half + 6)
        middle = left + half / 2
        sheet.boxes.append(Box("norm", normed, norm, left, top, left + half, top + NORM, stack))
        low = top + NORM + 4
        sheet.boxes.append(Box(part, component, text, left, low, left + half, low + SUB, stack))
        ways = ((stream, leaves), (middle, leaves), (middle, back), (stream + PLUS, back))
        sheet.lines.insert(0, Line("branch", ways))
    sheet.sums.append((stream, back))
    return back + PLUS + 6


def box_lines(c: ResolvedConfig) -> dict[str, str]:
    """Returns the text of the two large boxes: two short lines each."""
    scheme = HEALTHY.position(c)
    unshared = c.n_kv_heads == c.n_heads
    about = [TEXT("heads" if unshared else "heads that share", heads=c.n_heads, kv=c.n_kv_heads)]
    if scheme.present and "embed" not in scheme.enters:
        about.append(TEXT(f"inside {c.position}"))
    attention = "causal attention" if c.causal else "bidirectional attention"
    return {
        "attention": TEXT(attention, about=", ".join(about)),
        "feedforward": TEXT(
            "feed-forward with biases" if c.ffn_bias else "feed-forward",
            kind=card_of(HEALTHY.feedforward(c)).title,
            width=c.d_ff,
        ),
    }


def part_names(counted: Ledger) -> list[str]:
    """Returns what each box of the drawing is called, in one line."""
    return [box.text.replace("<br>", ", ") for box in drawing(counted).boxes]


def figure(counted: Ledger, height: int, small: bool = False) -> go.Figure:
    """Draws the drawing, `height` pixels high. Boxes say their parameters when pointed at; in a small one
    each has one line.
    """
    sheet = drawing(counted)
    shapes = [_frame(frame) for frame in sheet.frames]
    shapes += [_way(line) for line in sheet.lines]
    shapes += [shape for x, y in sheet.sums for shape in _circle(x, y)]
    shapes += [shape for box in sheet.boxes for shape in _rectangle(box)]
    single = counted.encoder is None  # stack: its boxes are higher
    size = (12 if single else 11) if small else (11 if single else 10)
    written = [box.text.partition("<br>")[0] if small else box.text for box in sheet.boxes]
    middles = [((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2) for box in sheet.boxes]
    notes = [_text(text, *middle, size) for text, middle in zip(written, middles, strict=True)]
    notes += [_text("+", x, y, size) for x, y in sheet.sums]
    notes += [
        _text(f"<b>{words}</b>", x1 - 2, y1, size) | {"xanchor": "right", "yanchor": "bottom"}
        for _, _, x1, y1, words in sheet.frames
    ]
    counts = parameters(counted)
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [x for x, _ in middles],
        "y": [y for _, y in middles],
        "marker": {"size": 26, "opacity": 0},
        "customdata": [
            TEXT("part", part=name, parameters=counts.get((box.stack, box.component), 0))
            for name, box in zip(part_names(counted), sheet.boxes, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    hidden = {"visible": False, "fixedrange": True}
    return go.figure(
        [trace],
        margin={"l": 2, "r": 2, "t": 4, "b": 2},
        showlegend=False,
        shapes=shapes,
        annotations=notes,
        xaxis=hidden | {"range": [-2, sheet.width + 2]},
        yaxis=hidden | {"range": [max(sheet.height + 4, 0 if small else height), -8]},
    )


def parameters(counted: Ledger) -> Mapping[tuple[str, str], int]:
    """Returns (stack, component) -> its parameters in the whole model. Parameters that both stacks share
    count for each; positions without a box of their own count with the attention that they are in.
    """
    result: dict[tuple[str, str], int] = {}
    inside = "embed" not in HEALTHY.position(counted.config).enters
    for row in counted.rows:
        component = "attention" if row.component == "position" and inside else row.component
        for stack in {row.stack} if row.stack or counted.encoder is None else ("encoder", "decoder"):
            result[stack, component] = result.get((stack, component), 0) + row.parameters
    return result


def _rectangle(box: Box) -> tuple[dict[str, object], dict[str, object]]:
    """In the page's own colour first: no line is to be seen through it."""
    corners = {"type": "rect", "x0": box.x0, "x1": box.x1, "y0": box.y0, "y1": box.y1}
    line = {"line": {"color": colour(box.part), "width": 1.5}}
    return corners | line | {"fillcolor": SEQUENTIAL[0][1]}, corners | line | {
        "fillcolor": colour(box.part, 22)
    }


def _frame(frame: tuple[float, float, float, float, str]) -> dict[str, object]:
    x0, y0, x1, y1, _ = frame
    line = {"color": colour("quiet"), "width": 1, "dash": "dot"}
    return {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "line": line}


def _circle(x: float, y: float) -> tuple[dict[str, object], dict[str, object]]:
    """In the page's own colour first, as boxes are; round, however the drawing is stretched."""
    line = {"color": colour("residual"), "width": 1.5}
    around = {"x0": -PLUS, "x1": PLUS, "y0": -PLUS, "y1": PLUS, "xanchor": x, "yanchor": y}
    pixels = {"xsizemode": "pixel", "ysizemode": "pixel"}
    shape = {"type": "circle", **around, **pixels, "line": line}
    return shape | {"fillcolor": SEQUENTIAL[0][1]}, shape | {"fillcolor": colour("residual", 15)}


def _way(line: Line) -> dict[str, object]:
    part, width, dash = {
        "stream": ("residual", 3, "solid"),
        "branch": ("residual", 1.2, "solid"),
        "memory": ("attention", 4, "solid"),
        "tie": ("embedding", 1.2, "dot"),
    }[line.kind]
    path = "M " + " L ".join(f"{x:g},{y:g}" for x, y in line.points)
    return {"type": "path", "path": path, "line": {"color": colour(part), "width": width, "dash": dash}}


def _text(words: str, x: float, y: float, size: int) -> dict[str, object]:
    return go.note(words, x, y, font={"size": size})
