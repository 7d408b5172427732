"""The residual stream: what each layer writes, and which one settles the answer."""

from pages.inside.residual import attribution, logit_lens, norms, residuals_on_off
from ui.page_frame import Page, show

PAGE = Page(
    "Residual stream",
    "residual_view",
    (logit_lens.VIEW, attribution.VIEW, norms.VIEW, residuals_on_off.VIEW),
)

if __name__ == "__main__":
    show(PAGE)
