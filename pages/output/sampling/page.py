"""Sampling: one position's logits on their way to a token."""

from pages.output.sampling import perplexity, stage_by_stage, temperature
from ui.page_frame import Page, show

PAGE = Page(
    "Sampling",
    "sampling_view",
    (stage_by_stage.VIEW, temperature.VIEW, perplexity.VIEW),
    text="KING RICHARD II:\n",
)

if __name__ == "__main__":
    show(PAGE)
