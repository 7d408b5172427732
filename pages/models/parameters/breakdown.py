"""The view "Breakdown": where the parameters of a model are, of one of its blocks, of two models, and of
models since 2023.
"""

from __future__ import annotations

from pages.models.parameters import beside_another, since_2023, single_block, whole_model
from ui import content
from ui.page_frame import Parts, View

TEXT = content.beside(__file__)

VIEW = View(
    "where",
    TEXT,
    needs_model=False,
    parts=Parts(
        "parameters_scope", (whole_model.PART, single_block.PART, beside_another.PART, since_2023.PART)
    ),
    shows=("GPT-2 has 124M, untied 163M",),
)
