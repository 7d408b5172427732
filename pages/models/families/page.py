"""Families: encoder, decoder, and both; and the few choices that tell models apart."""

from pages.models.families import architectures, classifier, overview, why_decoders
from ui.page_frame import Page, show

PAGE = Page(
    "Families",
    "families_view",
    (overview.VIEW, classifier.VIEW, why_decoders.VIEW, architectures.VIEW),
)

if __name__ == "__main__":
    show(PAGE)
