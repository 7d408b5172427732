"""The training-time scrubber: drag it, and every picture shows the model as it was at that step."""

from __future__ import annotations

from collections.abc import Sequence

from engine.service.history import History, losses_at
from ui import step as training_step
from ui import widgets
from ui.players.component import mounted


def scrubber(steps: Sequence[int], history: History, shown: int, *, model: str, key: str) -> None:
    """Draws it. `steps` are the snapshots, `shown` the one that the page has just drawn, or NEWEST. What it
    asks for goes to `ui.step`, which owns the step of `model`.

    It waits for the page to have drawn one step before it asks for another, so that a fast drag never starves
    the pictures.
    """

    def moved() -> None:
        asked = widgets.picked(key, "step")
        if isinstance(asked, int) and not isinstance(asked, bool) and asked >= training_step.NEWEST:
            training_step.move(model, asked)

    mounted("scrubber")(
        key=key,
        data={"steps": list(steps), "losses": losses_at(steps, history), "shown": shown, "run": model},
        on_step_change=moved,
    )
