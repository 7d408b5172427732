"""Families: encoder, decoder, and both; and the few choices that tell models apart."""

from engine.ledger.morph import choices_of, morphed
from pages.models.families import words_machine
from pages.models.families.machine import draw_machine
from ui.look import Page, View, show

show(
    Page(
        "Families",
        "families_view",
        (
            View(
                "machine",
                "Variations",
                draw_machine,
                words_machine.MACHINE,
                (choices_of, morphed),
                False,
                question=words_machine.QUESTION,
            ),
        ),
    )
)
