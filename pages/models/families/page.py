"""Families: encoder, decoder, and both; and the few choices that tell models apart."""

from engine.measure.families.three_families import carry_on, fill_in, translate
from engine.measure.families.visibility import flows
from engine.seq2seq import Seq2Seq
from pages.models.families import (
    architectures,
    classifier,
    why_decoders,
    words_live,
    words_three,
)
from pages.models.families.live import draw_live
from pages.models.families.three import draw_architecture, draw_masks
from ui.page_frame import Page, show
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

show(
    Page(
        "Families",
        "families_view",
        (
            view_of_parts("three", "Overview", "families_show", OVERVIEW, label="Show"),
            classifier.VIEW,
            why_decoders.VIEW,
            architectures.VIEW,
        ),
    )
)
