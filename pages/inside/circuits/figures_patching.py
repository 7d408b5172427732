"""The map of patching: a pure function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ui.figures import specs as go
from ui.figures.axes import MONO
from ui.figures.labels import LETTER, MOST_LETTERS, plain, short


def both(clean: Sequence[str], corrupted: Sequence[str]) -> list[str]:
    """Returns the tokens of two prompts; where they differ, one above the other."""
    return [
        plain(short(a, MOST_LETTERS))
        if a == b
        else f"<b>{plain(short(a, MOST_LETTERS))}</b><br>{plain(short(b, MOST_LETTERS))}"
        for a, b in zip(clean, corrupted, strict=True)
    ]


def patch_map(
    restored: np.ndarray,
    ticks: Sequence[str],
    names: Sequence[str],
    *,
    upright: int,
    title: str,
    hover: str,
    depths: Sequence[str] | None = None,
) -> go.Figure:
    """Draws restored (layer, place): orange brings the answer back, blue pushes it further off. The scale
    ends at 1, the whole answer; what lies beyond is in the hover. `names` are said there, `ticks` stand
    below, turned where they are `upright`: that many letters high. `depths` (layer,) are where a patch of
    the stream stands, bottom up; else rows are blocks.
    """
    layers, columns = restored.shape
    heat = go.signed(
        restored,
        1,
        xgap=1,
        ygap=int(layers <= 12),
        customdata=np.broadcast_to(np.asarray([plain(n) for n in names]), restored.shape).tolist(),
        hovertext=None if depths is None else [[depth] * columns for depth in depths],
        hovertemplate=f"{'block %{y}' if depths is None else '%{hovertext}'}, {hover}: %{{z:+.3f}} restored"
        "<extra></extra>",
        colorbar=dict(
            title={"text": "restored", "side": "top"}, thickness=10, tickvals=[-1, -0.5, 0, 0.5, 1]
        ),
    )
    at = np.arange(layers)[:: max(1, round(layers / 10))]
    return go.figure(
        [heat],
        margin={"l": 8, "r": 8, "t": 8, "b": 36 + (LETTER * upright or 16)},
        showlegend=False,
        xaxis=go.ticks(
            np.arange(columns),
            list(ticks),
            title=title,
            tickangle=-90 if upright else 0,
            tickfont=MONO,
            range=[-0.5, columns - 0.5],
        ),
        yaxis=go.ticks(
            at,
            at if depths is None else ["E" if i == 0 else str(i - 1) for i in at.tolist()],
            title="block" if depths is None else "after block (E: the embedding)",
        ),
        uirevision=f"patching-{layers}-{columns}",
    )
