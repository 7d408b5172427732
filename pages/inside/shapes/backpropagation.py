"""The view "Backpropagation": the gradient of one mistake through the model, one weight that is changed by
it, and an optimiser's step.
"""

from __future__ import annotations

from pages.inside.shapes import backward_pass, single_step, single_weight
from ui import content
from ui.model_needs import CAUSAL, SAYS
from ui.page_frame import Parts, View

TEXT = content.beside(__file__)

VIEW = View(
    "backward",
    TEXT,
    parts=Parts(
        "shapes_back", (backward_pass.PART, single_weight.PART, single_step.PART), label=TEXT["show"]
    ),
    takes=(SAYS, CAUSAL),
    figures_only=True,
)
