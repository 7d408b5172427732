"""The model's own text, or that of two runs side by side: a strip of steps, and the text of the one chosen.
All of it runs in the browser.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.training.records import Sample
from pages.start.train.run_kinds import kind_of
from runs.history import thin
from runs.state import RunView
from ui import content
from ui.players.component import mounted

TEXT = content.beside(__file__)
MAX_SENT = 60_000  # characters in one update
ROWS = 6  # of the strip


def samples(views: Sequence[RunView], *, key: str, height: int = 240) -> None:
    """Shows the newest samples, or those that the reader went back to: new ones do not take these away.

    A masked model's text already contains its prompt. Very long histories are sent thinned, the first and the
    newest always. Problems of a task are marked right or wrong.
    """
    sent = [{"name": view.name, "samples": _sent(view, MAX_SENT // len(views))} for view in views]
    mounted("samples")(
        key=key,
        data={
            "runs": sent,
            "run": views[0].id,
            "rows": ROWS,
            "height": height,
            "alt": TEXT["alt"],
        },
        height=height,
    )


def _sent(view: RunView, most: int) -> list[dict[str, object]]:
    items: Sequence[Sample] = view.history.samples
    while len(items) > 2 and sum(len(s.prompt) + len(s.text) for s in items) > most:
        items = thin(items)
    kind = kind_of(view.spec)
    written = ((one.step, *kind.written(one)) for one in items)
    return [{"step": step, "prompt": prompt, "text": text} for step, prompt, text in written]
