"""Where the parameters, the floating-point operations and the memory of a model are."""

from pages.models.parameters import breakdown, flops, memory
from pages.models.parameters.change import chosen_model
from ui.page_frame import Page, show

show(
    Page(
        "Parameters",
        "parameters_view",
        (breakdown.VIEW, flops.VIEW, memory.VIEW),
        bar=chosen_model,
    )
)
