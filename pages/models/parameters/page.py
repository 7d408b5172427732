"""Where the parameters, the floating-point operations and the memory of a model are."""

from pages.models.parameters import breakdown, flops, memory
from pages.models.parameters.change import chosen_model
from ui.page_frame import Page, show

PAGE = Page(
    "Parameters",
    "parameters_view",
    (breakdown.VIEW, flops.VIEW, memory.VIEW),
    bar=chosen_model,
)

if __name__ == "__main__":
    show(PAGE)
