"""Two programs on the same weights, and models to take along."""

from pages.models.reference import words
from pages.models.reference.dice import draw_dice
from pages.models.reference.export import draw_export
from pages.models.reference.model import draw_model
from ui.look import Page, View, show

show(
    Page(
        "The same weights, the same logits",
        "reference_view",
        (
            View("dice", "Do two programs agree?", draw_dice, words.DICE, words.CODE, False),
            View("model", "On a real model, too?", draw_model, words.MODEL, words.CODE),
            View("export", "How do I take a model along?", draw_export, words.EXPORT, words.EXPORT_CODE),
        ),
    )
)
