"""The view "Backpropagation": the gradient of one mistake through the model, one weight that is changed by
it, and an optimiser's step.
"""

from __future__ import annotations

from pages.inside.shapes import backward_pass, single_step, single_weight
from ui import content
from ui.model_needs import CAUSAL, SAYS
from ui.view_parts import view_of_parts

TEXT = content.beside(__file__)

VIEW = view_of_parts(
    "backward",
    TEXT.title,
    "shapes_back",
    {"pass": backward_pass.PART, "weight": single_weight.PART, "step": single_step.PART},
    takes=(SAYS, CAUSAL),
    label=TEXT["show"],
)
