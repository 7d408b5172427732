"""Arrays -> figures of examples in a prompt: right answers by number, and every word. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.measure.circuits.examples_in_prompt import COUNTS, EXCHANGED, RIGHT, FewShot
from ui.figures import specs as go
from ui.figures.labels import plain, short
from ui.figures.theme import SEQUENTIAL, colour

SHADES = {RIGHT: "attention", EXCHANGED: "run1"}
NAMES = {RIGHT: "right answers", EXCHANGED: "right answers, examples swapped"}
PLACES = np.arange(len(COUNTS))
LETTERS = 9  # of an answer in its cell; the hover has all of it


def by_examples(few: FewShot, way: int) -> go.Figure:
    """Draws the share of right answers and the probability of the right one by examples in the prompt: means,
    and thin lines for each draw; where the answers are exchanged, the others stay for comparison.
    """
    traces = [
        _line(each, SHADES[way], "one draw", 1.0, legend=draw == 0)
        for draw, each in enumerate(few.accuracy[way])
    ]
    if way == EXCHANGED:
        traces.append(_line(few.mean_accuracy[RIGHT], SHADES[RIGHT], NAMES[RIGHT], 2.0))
    traces.append(_line(few.mean_accuracy[way], SHADES[way], NAMES[way], 5.0))
    traces.append(_line(few.mean_likelihood[way], "output", "probability of the right one", 2.5, "dash"))
    return go.figure(
        traces,
        uirevision="context-by-examples",
        margin={"l": 56, "r": 14, "t": 8, "b": 42},
        xaxis=go.ticks(PLACES, list(map(str, COUNTS)), title="examples in the prompt", range=[-0.15, 5.15]),
        yaxis={"title": {"text": "share of words"}, "range": [-0.02, 1.04], "tickformat": ".0%"},
    )


def answers(few: FewShot, way: int, tokens: Sequence[Sequence[str]]) -> go.Figure:
    """Draws the answer `tokens` (pair, count) of the first draw to every word, right ones bold, over the
    probability of the right answer.
    """
    right, values = few.right[way, 0], few.probability[way, 0]
    cells = [
        [_cell(token, bool(ok)) for token, ok in zip(row, oks, strict=True)]
        for row, oks in zip(tokens, right, strict=True)
    ]
    heat = go.Heatmap(
        z=values.astype(np.float32),
        x=PLACES,
        y=np.arange(len(few.pairs)),
        text=cells,
        texttemplate="%{text}",
        textfont={"size": 12},
        hovertext=[[f"{word} → {answer}"] * len(COUNTS) for word, answer in few.pairs],
        hovertemplate="%{hovertext}: %{z:.1%}<extra></extra>",
        colorscale=SEQUENTIAL,
        zmin=0,
        zmax=1,
        xgap=1,
        ygap=1,
        showscale=False,
    )
    return go.figure(
        [heat],
        uirevision="context-words",
        margin={"l": 74, "r": 8, "t": 44, "b": 6},
        showlegend=False,
        xaxis=go.ticks(PLACES, list(map(str, COUNTS)), title="likeliest token after … examples", side="top"),
        yaxis=go.ticks(
            np.arange(len(few.pairs)), [plain(word) for word, _ in few.pairs], autorange="reversed", ticks=""
        ),
    )


def _cell(token: str, right: bool) -> str:
    text = plain(short(token.removeprefix("␣") or token, LETTERS))
    return f"<b>{text}</b>" if right else text


def _line(
    y: np.ndarray, shade: str, name: str, width: float, dash: str = "solid", *, legend: bool = True
) -> go.Trace:
    return go.Scatter(
        x=PLACES,
        y=np.asarray(y, np.float32),
        name=name,
        mode="lines",
        line={"color": colour(shade, 60 if width < 2 else 100), "width": width, "dash": dash},
        showlegend=legend,
        hovertemplate=f"{name}: %{{y:.0%}}<extra></extra>",
    )
