"""Families: encoder, decoder, and both; and the few choices that tell models apart."""

from engine.experiments.why_decoders import lessons, pair_writing, writing
from engine.ledger.model_choices import choices_of, morphed
from engine.measure.families.classifier import ablate_words
from engine.measure.families.three_families import carry_on, fill_in, translate
from engine.measure.families.unmasked_attention import end_loss, opened, read
from engine.measure.families.visibility import flows
from engine.seq2seq import Classifier, Seq2Seq
from pages.models.families import (
    words_live,
    words_machine,
    words_speaks,
    words_three,
    words_unmasked,
    words_why,
)
from pages.models.families.live import draw_live
from pages.models.families.machine import draw_machine
from pages.models.families.speaks import draw_speaks
from pages.models.families.three import draw_architecture, draw_masks
from pages.models.families.unmasked import draw_unmasked
from pages.models.families.why import draw_why
from ui.page_frame import Page, View, show
from ui.view_parts import Part, view_of_parts

SEEN = (words_three.THREE, (flows, Seq2Seq.forward, Seq2Seq.encode, Seq2Seq.decode))
OVERVIEW = {
    "drawing": Part("architecture", draw_architecture, *SEEN, words_three.QUESTION),
    "masks": Part("attention masks", draw_masks, *SEEN, words_three.MASKS_QUESTION),
    "live": Part(
        "trained models",
        lambda beside: draw_live(),
        words_live.LIVE,
        (fill_in, carry_on, translate),
        words_live.QUESTION,
    ),
}
WHY = {
    "reasons": Part("reasons", draw_why, words_why.WHY, (lessons, writing, pair_writing), words_why.QUESTION),
    "unmasked": Part(
        "without the mask",
        draw_unmasked,
        words_unmasked.UNMASKED,
        (opened, read, end_loss),
        words_unmasked.QUESTION,
    ),
}

show(
    Page(
        "Families",
        "families_view",
        (
            view_of_parts("three", "Overview", "families_show", OVERVIEW, label="Show"),
            View(
                "speaks",
                "Classifier",
                draw_speaks,
                words_speaks.SPEAKS,
                (ablate_words, Classifier.forward),
                False,
                question=words_speaks.QUESTION,
            ),
            view_of_parts("why", "Why decoders", "families_why", WHY, label="Show"),
            View(
                "machine",
                "Architectures",
                draw_machine,
                words_machine.MACHINE,
                (choices_of, morphed),
                False,
                question=words_machine.QUESTION,
            ),
        ),
    )
)
