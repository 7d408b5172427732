"""Sampling: one position's logits on their way to a token."""

from pages.output.sampling import constrained, perplexity, stage_by_stage, temperature, you_are_the_model
from ui.page_frame import Page, show

PAGE = Page(
    "Sampling",
    "sampling_view",
    (stage_by_stage.VIEW, temperature.VIEW, perplexity.VIEW, constrained.VIEW, you_are_the_model.VIEW),
    text="KING RICHARD II:\n",
)

if __name__ == "__main__":
    show(PAGE)
