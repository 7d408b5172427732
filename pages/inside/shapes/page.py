"""The forward pass, step by step, with every shape; the backward pass; attention by hand; and what wrong
shapes do.
"""

from engine.measure.shapes.op_trace import OperationTrace
from engine.measure.shapes.operations import trace
from engine.measure.shapes.shape_mistakes import split_heads, transposed_unembedding, wrong_mask
from pages.inside.shapes import words, words_backward
from pages.inside.shapes.backward import code_backward, draw_backward, tell_backward
from pages.inside.shapes.byhand import ASKS, ask_by_hand, code_by_hand, draw_by_hand, words_by_hand
from pages.inside.shapes.mistakes import draw_mistakes
from pages.inside.shapes.walk import draw_walk
from ui.model_needs import CAUSAL, SAYS
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
                "backward",
                "Backpropagation",
                draw_backward,
                tell_backward,
                code_backward,
                question=words_backward.ASK,
                takes=(SAYS, CAUSAL),
            ),
            View(
                "hand",
                "Two heads by hand",
                draw_by_hand,
                words_by_hand,
                code_by_hand,
                needs_model=False,
                question=ask_by_hand,
                asks=ASKS,
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
