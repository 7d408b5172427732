"""The ladder: from a bigram model to a Transformer, one idea a rung."""

from pages.lab.ladder import bigrams, race, replication, rungs, scaling_laws
from ui.page_frame import Page, show

PAGE = Page(
    "Ladder",
    "ladder_view",
    (rungs.VIEW, race.VIEW, bigrams.VIEW, replication.VIEW, scaling_laws.VIEW),
)

if __name__ == "__main__":
    show(PAGE)
