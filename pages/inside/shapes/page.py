"""The forward pass, step by step, with every shape; attention by hand; and what wrong shapes do."""

import streamlit as st

from engine.measure import byhand as numbers
from engine.measure.shapes import trace
from engine.measure.tape import Tape
from pages.inside.shapes import byhand
from pages.inside.shapes import walk as shapes
from ui import explain
from ui.subject import subject_bar

VIEWS = {"pass": "Forward pass", "hand": "By hand", "wrong": "A wrong shape"}
EXAMPLES = {"heads": "Two heads", "mask": "Masking"}

st.title("Shapes")
st.markdown(
    "From token ids to probabilities, one operation at a time: what goes in, what comes out, what it costs,"
    " and the line of code that did it."
)


@st.fragment
def look() -> None:
    view = shapes.choose("View", VIEWS, "shapes_view")
    if view == "hand":
        example = shapes.choose("Example", EXAMPLES, "shapes_example")
        (byhand.mask_example if example == "mask" else byhand.heads_example)()
        explain.reading(
            see=(
                "Every number between the query and the output. Nothing is left out but the learned matrices,"
                " whose work, q, k and v, is given."
            ),
            why=(
                "Attention is a handful of dot products and one softmax. Who has done it once by hand can"
                " read any implementation."
            ),
            attempt=(
                "Divide q by ten (0.1, 0.2, 0.3, 0.4): the weights come together. Then choose one head"
                " instead of two, and see the scores become a sum."
                if example != "mask"
                else (
                    "Hide a key with a low score, then one with a high score: the wrong way loses more the"
                    " louder the hidden key was."
                )
            ),
        )
        explain.show_code(numbers.masking if example == "mask" else numbers.multi_head, numbers.softmax)
    elif view == "wrong":
        byhand.mistakes()
        explain.reading(
            see=(
                "The message as it comes, and under it what it means: what was expected, what came, how to"
                " mend it."
            ),
            why=(
                "Most bugs in a Transformer are wrong shapes. The kind ones stop the program; the others run,"
                " and learn badly."
            ),
            attempt=(
                "Make the sizes fit. Then look for the two settings where PyTorch says nothing and the result"
                " is wrong all the same."
            ),
        )
        explain.show_code(numbers.split_heads, numbers.transposed_unembedding, numbers.wrong_mask)
    else:
        with subject_bar() as subject:
            key, source = shapes.chosen_source(subject)
            st.markdown(f"{source.note} {shapes.total_sentence(source)}")
            shapes.walk(key, source, subject)
            explain.reading(
                see=(
                    "Each row is one operation that really ran, with the shape of what it made. A colour is a"
                    " part of the model, a chip an axis. Blocks are alike, so all but the first are folded."
                ),
                why=(
                    "The shapes are the architecture. Only attention's scores have two position axes, so"
                    " their cost grows with the square of the text."
                ),
                attempt=(
                    "Click the list and walk with the arrow keys, or press ▶. Then choose LLaMA-2 70B and"
                    " compare `q` with `k`: 64 heads share 8."
                ),
            )
            st.caption(
                "FLOPs: a product of (m, k) and (k, n) counts 2·m·k·n. Elementwise operations count 1 for"
                " each number they write, softmax and norms 5; copies and views count 0. Bytes are float32,"
                " ids 8 bytes each."
            )
            explain.show_code(trace, Tape)


look()
