"""The forward pass, step by step, with every shape; the backward pass; attention by hand; and what wrong
shapes do.
"""

from engine.measure.recording import softmax
from engine.measure.shapes.attention_by_hand import masking, multi_head
from engine.measure.shapes.backward import backward, finite_difference, nudges, trainable_twin
from engine.measure.shapes.op_trace import OperationTrace
from engine.measure.shapes.operations import trace
from engine.measure.shapes.optimiser_step import single_step, update_of
from engine.measure.shapes.shape_mistakes import split_heads, transposed_unembedding, wrong_mask
from engine.training.optim import orthogonalise
from pages.inside.shapes import words, words_backward
from pages.inside.shapes.backward import LOOK, draw_pass, draw_step, draw_weight
from pages.inside.shapes.masking import draw_mask
from pages.inside.shapes.mistakes import draw_mistakes
from pages.inside.shapes.two_heads import draw_heads
from pages.inside.shapes.walk import draw_walk
from ui.model_needs import CAUSAL, SAYS
from ui.page_frame import Page, View, show
from ui.view_parts import Part, view_of_parts

BACKWARD = {
    "pass": Part(
        "Backward pass",
        draw_pass,
        words_backward.PASS,
        (backward, trainable_twin),
        words_backward.ASK["pass"],
    ),
    "weight": Part(
        "One weight",
        draw_weight,
        words_backward.WEIGHT,
        (nudges, finite_difference),
        words_backward.ASK["weight"],
    ),
    "step": Part(
        "One step",
        draw_step,
        words_backward.STEP,
        (single_step, update_of, orthogonalise),
        words_backward.ASK["step"],
    ),
}
HAND = {
    "heads": Part("Two heads", draw_heads, words.HEADS, (multi_head, softmax), words.ASK_HAND["heads"]),
    "mask": Part("Masking", draw_mask, words.MASK, (masking, softmax), words.ASK_HAND["mask"]),
}

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
            view_of_parts(
                "backward", "Backpropagation", LOOK, BACKWARD, takes=(SAYS, CAUSAL), label=words_backward.SHOW
            ),
            view_of_parts("hand", "Two heads by hand", "shapes_example", HAND, label=words.EXAMPLE),
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
