"""The model's own text, each sample with its step, behind a slider that runs in the browser."""

from __future__ import annotations

from collections.abc import Sequence

from engine.service.history import thin
from engine.training.records import Sample
from ui.players.component import mounted

MAX_SENT = 60_000  # characters in one update


def samples(items: Sequence[Sample], *, run: str, masked: bool, key: str, height: int = 240) -> None:
    """Shows the newest sample, or the one that the reader went back to: a new sample does not take that one
    away.

    A masked model's text already contains its prompt. Very long histories are sent thinned, the first and the
    newest always.
    """
    while len(items) > 2 and sum(len(s.prompt) + len(s.text) for s in items) > MAX_SENT:
        items = thin(items)
    sent = [{"step": s.step, "prompt": "" if masked else s.prompt, "text": s.text} for s in items]
    mounted("samples")(
        key=key,
        data={"samples": sent, "run": run, "height": height, "alt": "The model's own text"},
        height=height,
    )
