"""The forward pass, step by step, with every shape; attention by hand; and what wrong shapes do."""

from engine.measure.shapes.op_trace import OperationTrace
from engine.measure.shapes.operations import trace
from engine.measure.shapes.shape_mistakes import split_heads, transposed_unembedding, wrong_mask
from pages.inside.shapes import words
from pages.inside.shapes.byhand import ask_by_hand, code_by_hand, draw_by_hand, words_by_hand
from pages.inside.shapes.mistakes import draw_mistakes
from pages.inside.shapes.walk import draw_walk
from ui.page_frame import Page, View, show

show(
    Page(
        "Shapes",
        "shapes_view",
        (
            View(
                "pass",
                "Forward pass",
                draw_walk,
                words.PASS,
                (trace, OperationTrace),
                question=words.ASK_PASS,
                both_halves=True,
            ),
            View(
                "hand",
                "By hand",
                draw_by_hand,
                words_by_hand,
                code_by_hand,
                needs_model=False,
                question=ask_by_hand,
            ),
            View(
                "wrong",
                "Shape errors",
                draw_mistakes,
                words.WRONG,
                (split_heads, transposed_unembedding, wrong_mask),
                needs_model=False,
                question=words.ASK_WRONG,
            ),
        ),
    )
)
