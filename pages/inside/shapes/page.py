"""The forward pass, step by step, with every shape; the backward pass; attention by hand; and what wrong
shapes do.
"""

from pages.inside.shapes import backpropagation, forward_pass, shape_errors, two_heads_by_hand
from ui.page_frame import Page, show

PAGE = Page(
    "Shapes",
    "shapes_view",
    (forward_pass.VIEW, backpropagation.VIEW, two_heads_by_hand.VIEW, shape_errors.VIEW),
)

if __name__ == "__main__":
    show(PAGE)
