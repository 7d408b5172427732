"""Two programs on the same weights, models to take along, and what to look up."""

from engine.ledger.shares import quick_reference
from engine.measure.families.influence_by_distance import layer_influence
from engine.presets.variations import variation
from pages.models.reference import words, words_before
from pages.models.reference.before import draw_before
from pages.models.reference.dice import draw_dice
from pages.models.reference.export import draw_export
from pages.models.reference.model import draw_model
from pages.models.reference.quick import draw_quick
from pages.models.reference.variations import draw_variations
from ui.page_frame import Page, View, show

show(
    Page(
        "Reference",
        "reference_view",
        (
            View("dice", "Two programs", draw_dice, words.DICE, words.CODE, False, question=words.ASK_DICE),
            View("model", "A real model", draw_model, words.MODEL, words.CODE, question=words.ASK_MODEL),
            View(
                "export",
                "Take along",
                draw_export,
                words.EXPORT,
                words.EXPORT_CODE,
                question=words.ASK_EXPORT,
                whole=True,
            ),
            View(
                "variations",
                "Variations",
                draw_variations,
                words.VARIATIONS,
                (variation,),
                False,
                question=words.ASK_VARIATIONS,
            ),
            View(
                "quick",
                "Quick reference",
                draw_quick,
                words.QUICK,
                (quick_reference,),
                False,
                question=words.ASK_QUICK,
            ),
            View(
                "before",
                "Before 2017",
                draw_before,
                words_before.BEFORE,
                (layer_influence,),
                False,
                question=words_before.ASK,
            ),
        ),
    )
)
