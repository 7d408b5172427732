"""Positions: how a Transformer knows the order of its tokens, why it must be told, and six ways to do so."""

from engine.measure.positions import extrapolation, schemes
from engine.measure.positions.alibi import alibi_effect
from engine.measure.positions.permutation import (
    compare,
    fresh,
    in_order_and_out,
    new_order,
)
from engine.measure.positions.position_scores import entrances, position_scores
from engine.measure.positions.position_table import alike, sinusoidal
from engine.measure.positions.rope import rotate_interleaved, score_curve, turns
from engine.parts.positions import Alibi, Learned, Rope, T5Bias, alibi_slopes, rotate_half_pairs, t5_bucket
from pages.input.positions import words
from pages.input.positions.alibi import draw_alibi
from pages.input.positions.bench import draw_bench
from pages.input.positions.learned import draw_learned
from pages.input.positions.rope import draw_rope
from pages.input.positions.rope_against import draw_against
from pages.input.positions.sinusoidal import chosen_part, draw_sinusoidal
from pages.input.positions.t5 import draw_t5
from pages.input.positions.why import draw_why
from ui.page_frame import Page, View, show

show(
    Page(
        "Positions",
        "positions_view",
        (
            View(
                "why",
                "Why",
                draw_why,
                words.WHY,
                (compare, fresh, new_order, in_order_and_out),
                needs_model=False,
                question="Why does a Transformer need positions at all?",
            ),
            View(
                "sinusoidal",
                "Sinusoidal",
                draw_sinusoidal,
                lambda: chosen_part().words,
                lambda: chosen_part().code,
                needs_model=False,
                question=lambda: chosen_part().question,
            ),
            View(
                "learned",
                "Learned",
                draw_learned,
                words.LEARNED,
                (Learned, alike, sinusoidal),
                question="Can a model learn where its tokens stand?",
            ),
            View(
                "rope",
                "RoPE",
                draw_rope,
                words.ROPE,
                (Rope, rotate_half_pairs, score_curve, turns, rotate_interleaved),
                question="How does RoPE tell distances?",
            ),
            View(
                "rope-sinusoidal",
                "RoPE against sinusoidal",
                draw_against,
                words.AGAINST,
                (position_scores, entrances),
                needs_model=False,
                question="What does RoPE do that added waves do not?",
            ),
            View(
                "alibi",
                "ALiBi",
                draw_alibi,
                words.ALIBI,
                (Alibi, alibi_slopes, alibi_effect),
                needs_model=False,
                question="What if distance simply costs?",
            ),
            View(
                "t5",
                "T5",
                draw_t5,
                words.T5,
                (T5Bias, t5_bucket),
                needs_model=False,
                question="How exactly must a distance be known?",
            ),
            View(
                "bench",
                "Side by side",
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
                question="Which scheme reaches beyond its training?",
            ),
        ),
    )
)
