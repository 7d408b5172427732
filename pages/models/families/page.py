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
from pages.models.families.three import draw_three
from pages.models.families.unmasked import draw_square
from pages.models.families.why import draw_why
from ui.page_frame import Page, View, show

show(
    Page(
        "Families",
        "families_view",
        (
            View(
                "three",
                "Overview",
                draw_three,
                words_three.THREE,
                (flows, Seq2Seq.forward, Seq2Seq.encode, Seq2Seq.decode),
                False,
                question=words_three.QUESTION,
            ),
            View(
                "live",
                "Live",
                draw_live,
                words_live.LIVE,
                (fill_in, carry_on, translate),
                False,
                question=words_live.QUESTION,
            ),
            View(
                "speaks",
                "Classifier",
                draw_speaks,
                words_speaks.SPEAKS,
                (ablate_words, Classifier.forward),
                False,
                question=words_speaks.QUESTION,
            ),
            View(
                "square",
                "Without the mask",
                draw_square,
                words_unmasked.SQUARE,
                (opened, read, end_loss),
                False,
                question=words_unmasked.QUESTION,
            ),
            View(
                "why",
                "Why decoders",
                draw_why,
                words_why.WHY,
                (lessons, writing, pair_writing),
                False,
                question=words_why.QUESTION,
            ),
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
