"""The training-time scrubber: drag it, and every picture shows the model as it was at that step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ui import training_step, widgets
from ui.players.component import mounted


class Mark(NamedTuple):
    """An event at a step: in a word, which stands at the slider where there is room, and in full."""

    step: int
    short: str
    words: str


def scrubber(
    steps: Sequence[int],
    losses: Sequence[float | None],
    shown: int,
    *,
    marks: Sequence[Mark] = (),
    model: str,
    key: str,
    frames: str = "",
) -> None:
    """Draws it. `steps` are the snapshots, `losses` those of the training (nats per token), `shown` the one
    that the page has just drawn, or NEWEST. Its requests go to `ui.training_step`, which owns the step of
    `model`. `frames` names the view for `ui.frames`, where that draws it at other steps.

    It waits for the page to have drawn one step before it asks for another, so that a fast drag never starves
    the pictures.
    """

    def moved() -> None:
        step = widgets.picked(key, "step")
        if isinstance(step, int) and not isinstance(step, bool) and step >= training_step.NEWEST:
            training_step.move(model, step)

    mounted("scrubber", styles=("scrubber",))(
        key=key,
        data={
            "steps": list(steps),
            "losses": list(losses),
            "marks": [mark._asdict() for mark in marks],
            "shown": shown,
            "run": model,
            "frames": frames,
        },
        on_step_change=moved,
    )
