"""A text as a row of tokens that can be pointed at and chosen from."""

from __future__ import annotations

from collections.abc import Sequence

from ui import widgets
from ui.figures import theme
from ui.players.component import mounted


def token_strip(
    labels: Sequence[str],
    *,
    key: str,
    chosen: int,
    label: str,
    values: Sequence[float] | None = None,
    hints: Sequence[str] | None = None,
    lines: int | None = None,
) -> int:
    """Draws the tokens, `chosen` marked, and returns the index that is chosen now: clicked, or reached by the
    arrow keys.

    `chosen` is what holds until somebody chooses; a value outside the text counts as its last token. `values`
    in [0, 1] shade the tokens, `hints` are shown on hover, a longer text than `lines` scrolls. The choice is
    kept in the URL under `key`; on another text it stays while it fits, and what nobody chose is chosen anew.
    """
    count = len(labels)

    def choose() -> None:
        index = widgets.picked(key, "index")
        if isinstance(index, int) and not isinstance(index, bool) and index >= 0:
            widgets.put_index(key, index)

    named = widgets.url_index(key, count, nearest=True)
    index = min(chosen, count - 1) if named is None else named
    widgets.put_index(key, named)
    data = {
        "tokens": list(labels),
        "index": index,
        "label": label,
        "hints": list(hints) if hints else None,
        "values": [round(float(v), 3) for v in values] if values is not None else None,
        "lines": lines,
        "palette": theme.palette(),
    }
    mounted("tokens")(key=key, data=data, on_index_change=choose)
    return index
