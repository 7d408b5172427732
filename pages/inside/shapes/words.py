"""What the views of Shapes say."""

from __future__ import annotations

from ui.look import Words

SENTENCE = (
    "From token ids to probabilities, one operation at a time: what goes in, what comes out, what it costs,"
    " and the line of code that did it."
)
FLOPS = (
    "FLOPs: a product of (m, k) and (k, n) counts 2·m·k·n. Elementwise operations count 1 for each number"
    " they write, softmax and norms 5; copies and views count 0. Bytes are float32, ids 8 bytes each."
)

PASS = Words(
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


def by_hand(attempt: str) -> Words:
    return Words(
        see=(
            "Every number between the query and the output. Nothing is left out but the learned matrices,"
            " whose work, q, k and v, is given."
        ),
        why=(
            "Attention is a handful of dot products and one softmax. Who has done it once by hand can read"
            " any implementation."
        ),
        attempt=attempt,
    )


HEADS = by_hand(
    "Divide q by ten (0.1, 0.2, 0.3, 0.4): the weights come together. Then choose one head instead of two,"
    " and see the scores become a sum."
)
MASK = by_hand(
    "Hide a key with a low score, then one with a high score: the wrong way loses more the louder the hidden"
    " key was."
)

WRONG = Words(
    see=(
        "The message as it comes, and under it what it means: what was expected, what came, how to mend it."
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
