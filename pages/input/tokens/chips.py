"""One text as several tokenizers cut it, in coloured tokens that can be pointed at: id and bytes on hover and
by the arrow keys.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.tokens.vocabulary import Cut
from ui.figures import theme
from ui.players.component import mounted
from ui.text.tokens import parts

LONGEST = 48  # characters of a token that are shown
CHIPS = 2500  # of one row: more do not help


@dataclass(frozen=True, eq=False)
class Row:
    """A tokenizer and its cut of the text. `note` is a sentence below its tokens."""

    name: str
    facts: str
    cut: Cut
    note: str = ""


def token_chips(text: str, rows: Sequence[Row], *, key: str, label: str, ids: bool = False) -> None:
    """Draws the shown tokens of each row over the same text, with `ids` each above its id; a token that is
    pointed at lights up what the others make of its place.
    """
    mounted("chips")(key=key, data=payload(text, rows, label, ids))


def payload(text: str, rows: Sequence[Row], label: str, ids: bool = False) -> dict[str, Any]:
    """Returns the tokens as the browser needs them. A token's label is a string, or, where it holds part of a
    character, [[piece, is bytes], ...].
    """
    reach = max(
        (int(row.cut.starts[-1] + row.cut.lengths[-1]) for row in rows if len(row.cut.starts)), default=0
    )
    data = text[: reach + 1].encode("utf-8")[:reach]  # a character has at least one byte
    drawn = []
    for row in rows:
        starts, lengths, named = row.cut.starts[:CHIPS], row.cut.lengths[:CHIPS], row.cut.ids[:CHIPS]
        labels: list[Any] = []
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            pieces = parts(data[start : start + length])
            labels.append(
                pieces
                if any(is_bytes for _, is_bytes in pieces)
                else shorter("".join(piece for piece, _ in pieces))
            )
        drawn.append(
            {
                "name": row.name,
                "facts": row.facts,
                "note": row.note,
                "tokens": row.cut.tokens,
                "labels": labels,
                "ids": _packed(named),
                "starts": _packed(starts),
                "lengths": _packed(lengths),
            }
        )
    return {
        "rows": drawn,
        "text": base64.b64encode(data).decode("ascii"),
        "label": label,
        "with_ids": ids,
        "palette": theme.palette(),
    }


def _packed(array: np.ndarray) -> str:
    return base64.b64encode(array.astype("<i4").tobytes()).decode("ascii")


def shorter(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 13]} … {text[-10:]}"
