"""Two programs on the same weights, models to take along, and what to look up."""

from engine.ledger.shares import quick_reference
from engine.measure.families.influence_by_distance import layer_influence
from pages.models.reference import words, words_before
from pages.models.reference.before import draw_before
from pages.models.reference.export import draw_export
from pages.models.reference.quick import draw_quick
from pages.models.reference.two import draw_two
from ui.page_frame import Page, View, show

show(
    Page(
        "Reference",
        "reference_view",
        (
            View(
                "quick",
                "Quick reference",
                draw_quick,
                words.QUICK,
                (quick_reference,),
                False,
                question=words.ASK_QUICK,
            ),
            View("dice", "Cross-check", draw_two, words.TWO, words.CODE, question=words.ASK_TWO),
            View(
                "export",
                "Export",
                draw_export,
                words.EXPORT,
                words.EXPORT_CODE,
                question=words.ASK_EXPORT,
                whole=True,
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
