"""Embeddings: where the vectors of tokens lie, whether alike tokens find each other, how a row is looked up,
and arithmetic with rows.
"""

from pages.input.embeddings import analogies, lookup, map
from ui.page_frame import Page, show

PAGE = Page(
    "Embeddings",
    "embed_view",
    (map.VIEW, lookup.VIEW, analogies.VIEW),
    text="To be or not to be",  # letters that come again
)

if __name__ == "__main__":
    show(PAGE)
