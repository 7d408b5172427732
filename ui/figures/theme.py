"""The one place where colours are chosen. One colour for one part of the model, everywhere.

Figures are made on the server, which does not know whether the reader has a light or a dark page. So they
hold *names* of colours, `var(--gf-attention)`, and `ui/players/plot.py` puts the light or the dark value in,
in the browser.
"""

from __future__ import annotations

from typing import Any

# part -> (on a light page, on a dark page). Held apart for readers with protanopia, deuteranopia and
# tritanopia as well (tests/pages/test_theme.py measures it).
PART_COLOURS: dict[str, tuple[str, str]] = {
    "embedding": ("#2746C8", "#6C74FF"),
    "position": ("#C574AD", "#F48FE6"),
    "attention": ("#D97706", "#FFC22E"),
    "feedforward": ("#0B7A52", "#1FC983"),
    "norm": ("#2B93DD", "#BDEFFF"),
    "residual": ("#4A5060", "#9094A0"),
    "output": ("#8F1414", "#F2503C"),
}

# Curves of a training; no part of the model. `quiet` is for reference lines, `run0` ... for runs laid over
# another.
CURVE_COLOURS: dict[str, tuple[str, str]] = {
    "validation": ("#1F66A8", "#6CB2F2"),
    "training": ("#B45309", "#F5A351"),
    "quiet": ("#667080", "#98A2B0"),
    "run0": ("#15795A", "#4CC79D"),
    "run1": ("#A43A80", "#E38CC6"),
    "run2": ("#6B4FA8", "#B39DEB"),
    "run3": ("#7A5C10", "#D3B04A"),
    "run4": ("#A62F3D", "#F08A94"),
    "run5": ("#3F6B7D", "#8FC3D8"),
}

# Weights in [0, 1]: the page's own colour means 0. Even steps of lightness.
_SEQUENTIAL: tuple[tuple[str, str], ...] = (
    ("#FBFCFE", "#14181F"),
    ("#D9E4F2", "#1D2F4A"),
    ("#A9C3E3", "#27497A"),
    ("#6F9BD0", "#3A6DB0"),
    ("#3D71B5", "#6B9BDC"),
    ("#1F4A8C", "#A9C8F2"),
    ("#10294F", "#EAF2FD"),
)
# Signed values around zero: blue below, orange above, the page's own colour at 0.
_DIVERGING: tuple[tuple[str, str], ...] = (
    ("#123F7A", "#9CC7FF"),
    ("#3B78BE", "#4C8FDD"),
    ("#A8C8E8", "#26466E"),
    ("#FAFAFA", "#14181F"),
    ("#F3C48F", "#6B4214"),
    ("#CF7A14", "#D98A2B"),
    ("#7A3E00", "#FFD199"),
)


def _names(prefix: str, count: int) -> list[list[Any]]:
    return [[i / (count - 1), f"var(--gf-{prefix}{i})"] for i in range(count)]


SEQUENTIAL: list[list[Any]] = _names("seq", len(_SEQUENTIAL))
DIVERGING: list[list[Any]] = _names("div", len(_DIVERGING))


def palette() -> dict[str, tuple[str, str]]:
    """Returns every colour name with its light and its dark value: what the browser needs to resolve them."""
    scales = {f"seq{i}": pair for i, pair in enumerate(_SEQUENTIAL)} | {
        f"div{i}": pair for i, pair in enumerate(_DIVERGING)
    }
    return PART_COLOURS | CURVE_COLOURS | scales


def colour(part: str, opacity: int = 100) -> str:
    """Returns the name of a part's or a curve's colour, for any Plotly colour field; `opacity` in percent.
    Raises KeyError for another.

    >>> colour("attention"), colour("attention", 30)
    ('var(--gf-attention)', 'var(--gf-attention-30)')
    """
    (PART_COLOURS | CURVE_COLOURS)[part]
    return f"var(--gf-{part})" if opacity >= 100 else f"var(--gf-{part}-{opacity})"


def base_layout(**changes: Any) -> dict[str, Any]:
    """Returns the Plotly layout that every figure starts from: no frame, room for labels, one hover box. Text
    and grid colours follow the page by themselves. `changes` are layered on top; a `legend` changes only what
    it names.
    """
    layout: dict[str, Any] = {
        "template": None,
        "margin": {"l": 56, "r": 16, "t": 28, "b": 44},
        "hovermode": "closest",
        "showlegend": True,
    }
    # Plotly turns the order of stacked bars round.
    legend = {"orientation": "h", "x": 0, "y": 1.0, "xanchor": "left", "yanchor": "bottom"}
    legend |= {"traceorder": "normal"}
    return layout | changes | {"legend": legend | changes.get("legend", {})}
