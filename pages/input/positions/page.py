"""Positions: how a Transformer knows the order of its tokens. Why it must be told, and six ways to tell
it.
"""

import streamlit as st

from engine.measure import extrapolation, schemes
from engine.measure.distance import alibi_effect
from engine.measure.position_table import alike, sinusoidal
from engine.measure.rotary import rotate_interleaved, score_curve, turns
from engine.parts.positions import Alibi, Learned, Rope, T5Bias, alibi_slopes, rotate_half_pairs, t5_bucket
from pages.input.positions import alibi as positions_bias
from pages.input.positions import bench as positions_bench
from pages.input.positions import learned as positions_learned
from pages.input.positions import rope as positions_rope
from pages.input.positions import sinusoidal as positions_sinusoidal
from pages.input.positions import t5 as positions_t5
from pages.input.positions import why as positions_why
from ui import explain
from ui.look import look_inside

# In the order of the page. A view in READS_A_MODEL is called with the subject of the bar above it; the others
# need no model and take nothing. "Why" and "Sinusoidal" have parts of their own, each with its own words and
# code.
VIEWS = {
    "Why": positions_why.draw_why,
    "Sinusoidal": positions_sinusoidal.draw_sinusoidal,
    "Learned": positions_learned.draw_learned,
    "RoPE": positions_rope.draw_rope,
    "ALiBi": positions_bias.draw_alibi,
    "T5": positions_t5.draw_t5,
    "Side by side": positions_bench.draw_bench,
}
READS_A_MODEL = {"Learned", "RoPE", "ALiBi", "T5"}
CODE = {
    "Learned": (Learned, alike, sinusoidal),
    "RoPE": (Rope, rotate_half_pairs, score_curve, turns, rotate_interleaved),
    "ALiBi": (Alibi, alibi_slopes, alibi_effect),
    "T5": (T5Bias, t5_bucket),
    "Side by side": (
        schemes.similarity,
        extrapolation.position_losses,
        extrapolation.curve,
        extrapolation.window_starts,
        extrapolation.stopgap,
    ),
}
WORDS = {
    "Learned": {
        "see": (
            "On the left a table that was trained: one vector for each position, added to the embedding"
            " (GPT-2, BERT). On the right the sinusoidal table of the same size. Below, both as a path"
            " through their first two principal components, and the cosine of every two positions."
        ),
        "why": (
            "A learned table begins as noise: position 4 is no nearer to 5 than to 90. What order it has in"
            " the end, the text has taught it. And it ends with the context: for a position beyond the last"
            " row there is no vector."
        ),
        "attempt": (
            "Train a model with learned positions and drag the step: at which step does the knot become a"
            " path? Compare the diagonals of the two cosine pictures, and the length of position 0 with the"
            " others."
        ),
    },
    "RoPE": {
        "see": (
            "Su et al. 2021: pair $i$ of q and of k is turned by position $\\cdot\\,\\theta_i$, with"
            " $\\theta_i = base^{-2i/d_{head}}$. A product of two arrows depends on the angle between them,"
            " and that on the distance alone: $R(m)q \\cdot R(n)k = q \\cdot R(n - m)\\,k$."
        ),
        "why": (
            "Positions enter where tokens are compared and nowhere else: nothing is added to the stream,"
            " nothing is learned, and a head can ask for 'three back' in the same way everywhere in the text."
        ),
        "attempt": (
            "Play with both moving together, then with the query alone. Make the base 100, then a million,"
            " and look at distances beyond the context. In the layouts, see what the classic bug does to a"
            " trained model."
        ),
    },
    "ALiBi": {
        "see": (
            "Press et al. 2022: each head takes a fixed price for distance off its scores, $-m\\,|i - j|$,"
            " before the softmax. With $n$ heads, a power of two, the slopes are $m = 2^{-8/n}, 2^{-16/n},"
            " \\dots, 2^{-8}$; other numbers of heads fill up from the next power."
        ),
        "why": (
            "The price is the same in every text and at every length, so nothing new is met beyond the"
            " context. Some heads are made short-sighted and some far-sighted before anything is learned."
        ),
        "attempt": (
            "Take 12 heads and look where their slopes come from. Then choose the layer and head that look"
            " farthest, and make the slopes steeper."
        ),
    },
    "T5": {
        "see": (
            "Raffel et al. 2020: distances are sorted into buckets, each head learns one number for each"
            " bucket, and that number is added to its scores. Near distances have a bucket each, farther ones"
            " share, ever more of them."
        ),
        "why": (
            "Which distances matter is learned instead of fixed, at the price of 32 numbers for each head."
            " And a text longer than any in training falls into the last bucket: it has a number, though not"
            " always one that was trained."
        ),
        "attempt": (
            "Switch the mask to both ways and watch each side get half of the buckets. Then train a model"
            " with t5 positions and see which heads prefer the token before."
        ),
    },
    "Side by side": {
        "see": (
            "Six small models that differ in their positions and in nothing else: 4 layers of 4 heads, 64"
            " wide, trained on Tiny Shakespeare at context 64. Each reads texts four times as long, and every"
            " position is scored by $-\\ln p(\\text{next character})$. Windows begin every 64 characters, so"
            " the same characters are met early in one window and late in another."
        ),
        "why": (
            "'Train short, test long' (Press et al. 2022): attention costs $T^2$, so one would like to train"
            " on short texts. Whether that works is decided by the positions: a vector, an angle or a sum"
            " that training never met can mean anything."
        ),
        "attempt": (
            "Fill T5's unmet buckets, a stopgap without any training, and see what was wrong. Give RoPE a"
            " larger base and the learned table more rows. Put one position in a point to see the first few,"
            " which have little to go by."
        ),
    },
}

st.title("Positions")
st.markdown(
    "Attention by itself sees a bag of words. Position schemes tell it which token comes where: added to the"
    " embedding, turned into queries and keys, or put on the scores."
)


@st.fragment
def look() -> None:
    """A view that reads no model."""
    VIEWS[view]()  # type: ignore[operator]
    if view in WORDS:
        explain.reading(**WORDS[view])
        explain.show_code(*CODE[view])


view = explain.choose_view(VIEWS, "positions_view")
if view in READS_A_MODEL:
    look_inside({view: VIEWS[view]}, WORDS, CODE, key=None)
else:
    look()
