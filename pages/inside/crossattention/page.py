"""Cross-attention: how a text that is being written looks at another one."""

from pages.inside.crossattention import alignment, two_masks
from ui.page_frame import Page, show

PAGE = Page("Cross-attention", "cross_view", (alignment.VIEW, two_masks.VIEW))

if __name__ == "__main__":
    show(PAGE)
