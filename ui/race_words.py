"""Sentences (Markdown) around the chart of a race, from values that they are given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from engine.config import ModelConfig
from runs.state import RunView
from studies.experiments.race_table import Along, RunCurves, Standing, name_of
from ui.figures.losses import Curves
from ui.fit_text import show_token
from ui.status import STATUS
from ui.text.markdown import safe
from ui.text.numbers import flop, time_left

AXES: Mapping[Along, str] = {
    "steps": "by steps",
    "tokens": "by tokens",
    "seconds": "by seconds",
    "flops": "by FLOPs",
}
CURVES: Mapping[Curves, str] = {
    "validation": "validation loss",
    "training": "training loss",
    "both": "both losses",
}


FORMS: Mapping[str, str] = {
    "validation loss": "%.3f",
    "training loss": "%.3f",
    "perplexity": "%.2f",
    "bits / character": "%.3f",
    "seconds": "%.1f",
}
MEANT = (
    "Losses are means in nats per token, on held-out text (validation) and on the training text; perplexity"
    " is the exponential of the validation loss. FLOPs count the training: a forward pass, and twice that"
    " for the backward pass."
)
NOTHING = "No race has been run yet."
CANCEL = "Stops every run after its current step; what they have learned is kept."
OTHER = "A race with settings different from those chosen now."
STRANGER = "This race was started in another browser: you can watch it, and start your own."


def before(count: int) -> str:
    """Returns the sentence before anybody has raced."""
    return f"Press **Race** to train these **{count}** side by side."


def stored(models: Sequence[ModelConfig]) -> str:
    """Names the models of stored curves by what they share, and by the range of what they do not.

    >>> stored([ModelConfig(n_layers=layers, d_model=64, context=64) for layers in (1, 8)])
    'Stored curves: 1 to 8 blocks, width 64, context 64'
    """
    blocks, width, context = (
        _range([getattr(model, name) for model in models]) for name in ("n_layers", "d_model", "context")
    )
    return (
        f"Stored curves: {blocks} {'block' if blocks == '1' else 'blocks'}, width {width}, context {context}"
    )


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def made(how: str) -> str:
    """Says where stored curves come from."""
    return f"Stored curves, made by: {safe(how)}. **Race** trains the models here."


def missing(shown: int, chosen: int) -> str:
    """Says that some of the chosen entrants have not been trained."""
    return f"Only {shown} of these {chosen} have been trained; **Race** trains them all."


def trouble(view: RunView) -> str:
    """Says why a run ended or paused."""
    return f"{safe(name_of(view))}: {safe(view.message)}"


def warned(view: RunView, warning: str) -> str:
    """Says what went wrong without ending a run."""
    return f"{safe(name_of(view))}: {safe(warning)}"


def progress(views: Sequence[RunView], left: float) -> str:
    """Says how far the runs of a race are; `left` are the seconds that they have before them, as far as
    known.
    """
    going = [view for view in views if view.active]
    if all(view.status == "queued" for view in going) and going[0].queue_position:
        return f"waiting, position {going[0].queue_position} in the queue"
    if all(view.status == "paused" for view in going):
        return "paused"
    if all(view.status in ("queued", "starting") for view in going):
        return "starting"
    done = f"{len(views) - len(going)} of {len(views)} done · " if len(going) < len(views) else ""
    return f"{done}{time_left(left)}" if left else f"{done}final evaluation"


def run_progress(view: RunView) -> str:
    """Says how far one of the runs is."""
    word = STATUS[view.status][2]
    if view.budget.seconds:
        far = f"{min(view.seconds, view.budget.seconds):.1f} of {view.budget.seconds:g} s, step {view.step:,}"
    else:
        far = f"step {view.step:,} of {view.total_steps:,}"
    return f"**{safe(name_of(view))}** · {word} · {far}"


def alt(curves: Sequence[RunCurves], repeats: int = 0) -> str:
    """Describes the thick curves of a chart; `repeats` are thin lines of other seeds."""
    newest = [(one.name, one.newest[1]) for one in curves if one.newest]
    ends = [f"{name} {loss:.2f}" for name, loss in newest if math.isfinite(loss)]
    thin = f"; {repeats} thin lines: the same settings with other seeds" if repeats else ""
    return f"Losses of a race; latest validation losses: {', '.join(ends) or 'none yet'}{thin}"


def table(lines: Sequence[Standing]) -> dict[str, list[Any]]:
    """Returns the columns of the table."""
    return {
        "run": [line.name for line in lines],
        "seed": [line.seed for line in lines],
        "validation loss": [line.loss for line in lines],
        "training loss": [line.training_loss for line in lines],
        "perplexity": [line.perplexity for line in lines],
        "bits / character": [line.bits for line in lines],
        "parameters": [f"{line.parameters:,}" for line in lines],
        "FLOPs": [flop(line.flops) for line in lines],
        "seconds": [line.seconds for line in lines],
        "steps": [f"{line.step:,}" for line in lines],
        "state": [STATUS[line.status][2] for line in lines],
    }


def wrote(name: str, step: int, prompt: str) -> str:
    """Returns the heading above a text, with what was written before it began."""
    return f"**{safe(name)}** after step {step:,}, prompt “{safe(show_token(prompt))}”"
