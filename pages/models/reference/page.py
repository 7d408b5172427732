"""Two programs on the same weights, models to take along, and what to look up."""

from pages.models.reference import before_2017, cross_check, export, quick_reference
from ui.page_frame import Page, show

PAGE = Page(
    "Reference",
    "reference_view",
    (quick_reference.VIEW, cross_check.VIEW, export.VIEW, before_2017.VIEW),
)

if __name__ == "__main__":
    show(PAGE)
