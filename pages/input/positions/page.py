"""Positions: how a Transformer knows the order of its tokens, why it must be told, and six ways to do so."""

from engine.measure.positions import extrapolation, schemes
from pages.input.positions import biases, learned, rope, sinusoidal, why, words
from pages.input.positions.bench import draw_bench
from ui.page_frame import Page, View, show

show(
    Page(
        "Positions",
        "positions_view",
        (
            why.VIEW,
            sinusoidal.VIEW,
            learned.VIEW,
            rope.VIEW,
            biases.VIEW,
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
