"""Embeddings: where the vectors of tokens lie, whether alike tokens find each other, how a row is looked up,
and arithmetic with rows.
"""

from engine.measure.embeddings.analogies import analogy
from engine.measure.embeddings.separation import separation
from engine.measure.embeddings.table import (
    lookup,
    neighbours,
    preserved_neighbours,
    principal,
    project,
)
from pages.input.embeddings import words
from pages.input.embeddings.analogies import draw_analogies
from pages.input.embeddings.lookup import draw_lookup
from pages.input.embeddings.map import draw_map
from ui.model_needs import SUMS
from ui.models import REAL_MODEL
from ui.page_frame import Page, View, show

KEY = "embed_view"

show(
    Page(
        "Embeddings",
        KEY,
        (
            View(
                "map",
                "Map",
                draw_map,
                words.MAP,
                (principal, project, neighbours, preserved_neighbours, separation),
                brings_text=True,
                question=words.MAP_ASKED,
            ),
            View("lookup", "Lookup", draw_lookup, words.LOOKUP, (lookup,), question=words.LOOKUP_ASKED),
            View(
                "analogies",
                "Analogies",
                draw_analogies,
                words.ANALOGIES,
                (analogy,),
                brings_text=True,
                question=words.ANALOGIES_ASKED,
                takes=(SUMS,),
                best=(REAL_MODEL,),
            ),
        ),
        text=words.FIRST_TEXT,
    )
)
