"""Embeddings: a vector for each token, where the vectors lie, and whether alike tokens find each other."""

from engine.measure.analogies import analogy
from engine.measure.embeddings import cosines, kept_neighbours, lookup, neighbours, principal, project
from engine.measure.separation import separation
from pages.input.embeddings import words
from pages.input.embeddings.analogies import draw_analogies
from pages.input.embeddings.classes import draw_classes
from pages.input.embeddings.lookup import draw_lookup
from pages.input.embeddings.map import draw_map
from ui.look import Page, View, show

show(
    Page(
        "Embeddings",
        "embed_view",
        (
            View("lookup", "The lookup", draw_lookup, words.LOOKUP, (lookup,)),
            View("map", "The map", draw_map, words.MAP, (principal, project, neighbours, kept_neighbours)),
            View(
                "classes",
                "Do alike tokens find each other?",
                draw_classes,
                words.CLASSES,
                (separation, cosines),
            ),
            View("analogies", "King − man + woman?", draw_analogies, words.ANALOGIES, (analogy,)),
        ),
    )
)
