"""Arrays -> the figure of one token's guesses, climbing through the blocks. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.measure.residual.lens import DepthTable
from ui.figures import specs as go
from ui.figures.axes import MONO
from ui.figures.labels import plain, short
from ui.figures.theme import SEQUENTIAL, colour

ON_PALE, ON_DARK = SEQUENTIAL[-1][1], SEQUENTIAL[0][1]  # letters on a pale bar, and on one of full colour
ROOM = 0.012  # of the whole width: what a letter needs inside a bar
SHADES = (60, 40, 26, 16)  # percent of the colour of a guess by its rank


def guess_bars(lens: DepthTable, vocabulary: Sequence[str], names: Sequence[str], final: int) -> go.Figure:
    """Draws a row for each depth, the embedding at the bottom: the likeliest tokens side by side, as long as
    they are likely. The token that wins in the end has a colour of its own wherever it is.
    """
    rows = np.arange(len(lens.depths))
    bars = [_rank(lens, rank, vocabulary, rows, final) for rank in range(lens.tokens.shape[1])]
    return go.figure(
        bars,
        barmode="stack",
        margin={"l": 8, "r": 12, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.22,
        xaxis=go.axis("probability of each guess", range=[0, 1], tickformat=".0%", zeroline=False),
        yaxis=go.ticks(
            rows,
            [plain(names[depth]) for depth in lens.depths],
            tickfont={"size": 14},
            range=[-0.6, len(rows) - 0.4],
            automargin=True,
        ),
    )


def _rank(
    depth_table: DepthTable, rank: int, vocabulary: Sequence[str], rows: np.ndarray, final: int
) -> go.Trace:
    """The guesses of one rank, in all rows."""
    words = [vocabulary[int(token)] for token in depth_table.tokens[:, rank]]
    shares = depth_table.shares[:, rank]
    wins = [int(token) == final for token in depth_table.tokens[:, rank]]
    shade = SHADES[min(rank, len(SHADES) - 1)]
    return go.Bar(
        y=rows,
        x=shares,
        orientation="h",
        text=[_written(word, share) for word, share in zip(words, shares.tolist(), strict=True)],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="none",
        textfont={**MONO, "size": 17, "color": [ON_DARK if win else ON_PALE for win in wins]},
        customdata=[plain(word) for word in words],
        hovertemplate="“%{customdata}”: %{x:.3f}<extra></extra>",
        marker={
            "color": [colour("output") if win else colour("residual", shade // 2) for win in wins],
            "line": {"width": 1, "color": colour("quiet")},
        },
    )


def _written(word: str, share: float) -> str:
    """A guess in its bar, where it fits in."""
    text = short(word, 12)
    return plain(text) if share > ROOM * (len(text) + 1) else ""
