"""Attention: who looks at whom, and what for."""

from pages.inside.attention import ablation, fixed_memory, gqa, heads, mask, scores, steps
from ui.fit_text import ENGLISH
from ui.page_frame import Page, show

PAGE = Page(
    "Attention",
    "attention_view",
    (heads.VIEW, steps.VIEW, ablation.VIEW, mask.VIEW, scores.VIEW, gqa.VIEW, fixed_memory.VIEW),
    words=ENGLISH["A story"],
)

if __name__ == "__main__":
    show(PAGE)
