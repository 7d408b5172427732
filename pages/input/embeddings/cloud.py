"""Tokens in three dimensions, turned in the browser. Drawn as SVG: no WebGL is asked for, which not every
machine has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from pages.input.embeddings.looks import class_look
from pages.input.embeddings.vocabulary import CLOUD, Vocabulary
from ui import widgets
from ui.figures import theme
from ui.players.component import mounted

TURN = "embed_turn"
FIRST = (30, 20)  # degrees: about the vertical axis, and up
MOST_TILT = 90


def cloud(
    scores: np.ndarray,
    known: Vocabulary,
    ids: np.ndarray,
    labelled: np.ndarray,
    *,
    chosen: int,
    near: np.ndarray,
    titles: Sequence[str],
    reach: float,
    frequency: np.ndarray | None,
    data: pd.DataFrame,
    alt: str,
) -> None:
    """Draws scores (vocab, 3). All three axes have one scale, so that distances are true ones of the three
    components. Angles are kept in the URL.
    """
    points = (scores[ids] / reach).astype(np.float64)  # around the mean token, within a ball of radius 1
    index = {int(n): i for i, n in enumerate(ids)}
    present = [i for i in range(len(known.names)) if (known.classes[ids] == i).any()]
    looks = [class_look(known.names[i]) for i in present]
    shade = None
    if frequency is not None:
        shade = np.round(frequency[ids] / max(float(frequency.max()), 1e-6) * 100).astype(int).tolist()
    message = {
        "points": points.round(4).ravel().tolist(),
        "ids": ids.tolist(),
        "words": [known.words[i] for i in ids],
        "named": labelled[ids].tolist(),
        "classes": [present.index(int(c)) for c in known.classes[ids]],
        "chosen": index[chosen],
        "near": [index[int(n)] for n in near],
        "names": [known.names[i] for i in present],
        "looks": looks,
        "titles": list(titles),
        "shade": shade,
        "letters": known.letters,
        "angles": list(_angles()),
        "palette": theme.palette(),
        "alt": alt,
        "csv": data.to_csv(index=False),
        "top": None if frequency is None else round(float(frequency.max()), 2),
    }
    mounted("cloud")(key=CLOUD, data=message, on_turn_change=_turn, on_clicked_change=lambda: None)


def _turn() -> None:
    turned = widgets.picked(CLOUD, "turn")
    angles = _read(turned) if isinstance(turned, str) else None
    if angles is not None:
        widgets.keep_in_url(TURN, None if angles == FIRST else f"{angles[0]},{angles[1]}")


def _angles() -> tuple[int, int]:
    """The angles of the picture: the URL's, else the first ones."""
    return _read(widgets.read_url(TURN)) or FIRST


def _read(text: str) -> tuple[int, int] | None:
    """Two whole numbers of degrees, brought into their range; None for anything else.

    >>> _read("400,-100"), _read("1,x"), _read("30,20")
    ((40, -90), None, (30, 20))
    """
    parts = text.split(",")
    numbers = [widgets.number_of(part.removeprefix("-")) for part in parts]
    if len(parts) != 2 or None in numbers:
        return None
    turn, tilt = (
        -n if part.startswith("-") else n for n, part in zip(numbers, parts, strict=True) if n is not None
    )
    return turn % 360, max(-MOST_TILT, min(MOST_TILT, tilt))
