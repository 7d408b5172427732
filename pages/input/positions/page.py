"""Positions: how a Transformer knows the order of its tokens, why it must be told, and six ways to do so."""

from pages.input.positions import biases, extrapolation, learned, rope, sinusoidal, why
from ui.page_frame import Page, show

PAGE = Page(
    "Positions",
    "positions_view",
    (why.VIEW, sinusoidal.VIEW, learned.VIEW, rope.VIEW, biases.VIEW, extrapolation.VIEW),
)

if __name__ == "__main__":
    show(PAGE)
