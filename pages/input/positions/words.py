"""Sentences around the figures of Positions."""

from ui.page_frame import Words

BENCH_ASKED = "Which scheme extrapolates past the training length?"


CLOCK = Words(
    see=(
        "A hand for each frequency $\\theta_i$. It starts upright at position 0 and rotates by $\\theta_i$"
        " radians per position. Its tip is $(\\sin p\\theta_i, \\cos p\\theta_i)$: exactly the two numbers of"
        " pair $i$ in $PE(p)$. The longest hand is the fastest."
    ),
    why=(
        "Binary digits jump: from 7 to 8 every bit of 0111 flips to give 1000, although the two are"
        " neighbours. Hands move smoothly, so neighbours get similar vectors, and all hands together still"
        " distinguish every position."
    ),
    attempt=(
        "Step by one: which hands visibly move? Play, and compare the first dials with the last digits. Set"
        " the width to 2: one hand is left, and after 6.28 positions it is almost back where it began."
    ),
)


T5 = Words(
    see=(
        "Raffel et al. 2020: distances are sorted into buckets, each head learns one number for each bucket,"
        " and that number is added to its scores. Short distances have a bucket each; longer ones share wider"
        " and wider buckets."
    ),
    why=(
        "Which distances matter is learned rather than fixed, at a cost of 32 numbers per head. Distances"
        " longer than any in training fall into the last buckets: these have a bias, though not always a"
        " trained one. Shaw et al. (2018) and Transformer-XL (Dai et al. 2019) had already used learned"
        " scores for"
        " distances."
    ),
    attempt=(
        "Set the mask to both ways: each side gets half of the buckets. Under “Measure it”, see what a model"
        " has learned for each bucket."
    ),
)

BENCH = Words(
    see=(
        "Six small models that differ only in how they encode positions: 4 blocks of 4 heads, width 64,"
        " trained on Tiny Shakespeare at context 64. Each reads texts four times as long, and every position"
        " is scored by $-\\ln p(\\text{next character})$."
    ),
    why=(
        "'Train short, test long' (Press et al. 2022): attention costs $T^2$, so short training texts are"
        " cheaper. RoPE depends only on distance and still does not extrapolate: its slow pairs reach angles"
        " beyond those of its training. Long-context models rescale the angles and train further (Chen et al."
        " 2023)."
    ),
    attempt=(
        "Show one scheme at a time. Under “Measure it”, measure again on this machine: fill T5's untrained"
        " buckets, give RoPE a larger base and the learned table more rows."
    ),
    texts=(
        "A textbook and a lecture say that RoPE and sinusoids extrapolate past the training length. Here,"
        " unscaled, they do not: their lines rise where ALiBi's stays flat. The lecture calls learned"
        " positions the safer choice; they have no row beyond the training length. It also lists BERT under"
        " sinusoidal and OPT-175B under ALiBi: both have learned positions (Devlin et al. 2018; Zhang et al."
        " 2022)."
    ),
)
