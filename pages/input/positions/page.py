"""Positions: how a Transformer knows the order of its tokens, why it must be told, and six ways to do so."""

from engine.measure.positions import extrapolation, schemes
from engine.measure.positions.alibi import alibi_effect
from engine.parts.positions import Alibi, T5Bias, alibi_slopes, t5_bucket
from pages.input.positions import learned, rope, sinusoidal, why, words
from pages.input.positions.alibi import draw_alibi
from pages.input.positions.bench import draw_bench
from pages.input.positions.t5 import draw_t5
from ui.page_frame import Page, View, show
from ui.view_parts import Part, view_of_parts

BIASES = {
    "alibi": Part("ALiBi", draw_alibi, words.ALIBI, (Alibi, alibi_slopes, alibi_effect), words.ALIBI_ASKED),
    "t5": Part("T5", draw_t5, words.T5, (T5Bias, t5_bucket), words.T5_ASKED),
}

show(
    Page(
        "Positions",
        "positions_view",
        (
            why.VIEW,
            sinusoidal.VIEW,
            learned.VIEW,
            rope.VIEW,
            view_of_parts("biases", "Biases", "bias_scheme", BIASES),
            View(
                "bench",
                "Extrapolation",
                draw_bench,
                words.BENCH,
                (
                    schemes.similarity,
                    extrapolation.position_losses,
                    extrapolation.curve,
                    extrapolation.window_starts,
                    extrapolation.stopgap,
                ),
                needs_model=False,
                question=words.BENCH_ASKED,
            ),
        ),
    )
)
