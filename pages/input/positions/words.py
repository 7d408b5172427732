"""Sentences around the figures of Positions."""

from ui.page_frame import Words

WHY_ASKED = "Why does a Transformer need positions at all?"
TABLE_ASKED = "How do waves encode a position?"
CLOCK_ASKED = "How are waves like a clock?"
SIMILARITY_ASKED = "Do nearby positions get similar vectors?"
ROTATION_ASKED = "Why sines and cosines?"
LEARNED_ASKED = "Can positions be learned?"
ROPE_ASKED = "How does RoPE encode distance?"
AGAINST_ASKED = "What does rotating add over adding?"
ALIBI_ASKED = "What if distance is simply penalised?"
T5_ASKED = "How finely must distance be resolved?"
BENCH_ASKED = "Which scheme extrapolates past the training length?"

WHY = Words(
    see=(
        "The same words in two orders, through one layer of attention with random weights. A row is what"
        " attention makes of a word; a line joins the two rows of the same word and says how much they"
        " differ."
    ),
    why=(
        "Attention is a sum over *all* words, weighted by what they hold, and a sum does not care about"
        " order (Vaswani et al. 2017, section 3.5). So the order must be put in: into the embedding, into"
        " queries and keys, or into the scores."
    ),
    attempt=(
        "Switch positions from None to any other, then the causal mask on. Type a sentence that uses a word"
        " twice. Under “Measure it” a trained model reads a text of yours out of order."
    ),
)

TABLE = Words(
    see=(
        "Each position (a row) gets a vector of sines and cosines: $PE(p, 2i) = \\sin(p\\,\\theta_i)$ and"
        " $PE(p, 2i+1) = \\cos(p\\,\\theta_i)$ with $\\theta_i = base^{-2i/d}$ (Vaswani et al. 2017,"
        " section 3.5, where the base is 10,000)."
    ),
    why=(
        "It is added to the embeddings before the first block, so that the same word is another vector in"
        " another position. Wavelengths that grow by a constant factor give every scale of distance its own"
        " pair of dimensions."
    ),
    attempt=(
        "Make the base 2 or 5 and see all waves become fast: soon positions look alike again. Make the"
        " base a million: most of the width then hardly changes within the text."
    ),
)

CLOCK = Words(
    see=(
        "A hand for each frequency $\\theta_i$. It starts upright at position 0 and turns by $\\theta_i$"
        " radians a position. Its tip is $(\\sin p\\theta_i, \\cos p\\theta_i)$: exactly the two numbers"
        " of pair $i$ in $PE(p)$. The longest hand is the fastest."
    ),
    why=(
        "Digits jump: from 7 to 8 all of 0111 turns into 1000, although the two are neighbours. Hands"
        " move smoothly, so that neighbours get similar vectors, and all hands together still tell every"
        " position from every other."
    ),
    attempt=(
        "Step by one and see which hands you can see move. Play, and compare the first dials with the"
        " last digits. Make the width 2: one hand is left, and after 6.28 positions it points almost"
        " where it was."
    ),
)

SIMILARITY = Words(
    see=(
        "The cosine of two position vectors by their distance: 1 means the same direction. Under “Measure"
        " it” every two positions as a map, which has one value along each parallel of the diagonal."
    ),
    why=(
        "Attention compares by dot products. These vectors offer it 'how far apart' for nothing. But not"
        " in which direction: $k$ ahead and $k$ back look equally alike, until learned matrices turn"
        " queries and keys apart."
    ),
    attempt=(
        "Widen d: the curve gets smoother. Make the base small: the curve comes back up. Make it very"
        " large: everything looks alike, since most hands stand still."
    ),
)

ROTATION = Words(
    see=(
        "One pair as a clock's hand at $p$ and at $p + k$. Under “By hand” the 2 × 2 matrix that rotates the"
        " one into the other, under “Measure it” the whole $R(k)$: one such block for each pair, and zeros."
    ),
    why=(
        "Vaswani et al. (2017, section 3.5) chose sines for this reason: $PE(p + k)$ is a linear function"
        " of $PE(p)$, the same for all $p$, so relative positions can be learned."
    ),
    attempt=(
        "Move $p$: the hands move, the angle between them does not. Move $k$: it grows. Choose a slow pair:"
        " it hardly leaves its place."
    ),
)

LEARNED = Words(
    see=(
        "On the left a table that was trained: one vector for each position, added to the embedding"
        " (GPT-2, BERT). On the right the sinusoidal table of the same size. Similarity is the cosine of"
        " every"
        " two positions, a path joins them on their first two principal components."
    ),
    why=(
        "A learned table begins as noise: position 4 is no nearer to 5 than to 90. What order it has in"
        " the end, the text has taught it. And it ends with the context: for a position beyond the last"
        " row there is no vector."
    ),
    attempt=(
        "Train a model with learned positions and drag the step: at which step does the knot become a"
        " path? Compare the two diagonals, and the length of position 0 with the others."
    ),
)

ROPE = Words(
    see=(
        "Su et al. 2021: pair $i$ of q and of k is rotated by position $\\cdot\\,\\theta_i$, with"
        " $\\theta_i = base^{-2i/d_{head}}$. A product of two arrows depends on the angle between them,"
        " and that on the distance alone: $R(m)q \\cdot R(n)k = q \\cdot R(n - m)\\,k$."
    ),
    why=(
        "Positions enter where tokens are compared and nowhere else: nothing is added to the stream,"
        " nothing is learned, and a head can ask for 'three back' in the same way everywhere in the text."
    ),
    attempt=(
        "Play with both moving together, then with the query alone. Make the base 100, then a million,"
        " and look at distances beyond the context. In the layouts, see what the classic bug does to a"
        " trained model."
    ),
)

AGAINST = Words(
    see=(
        "Two small models that differ in their positions and in nothing else, trained on the same text. One"
        " token looks back at another, always equally far, while both move from the beginning of the text to"
        " its end: each point is the score, in a head of the first block. On top: where positions enter."
    ),
    why=(
        "Added to the embedding (Vaswani et al. 2017), a position is mixed into everything that the token is,"
        " and $(e + p_m)W_Q \\cdot (e' + p_n)W_K$ has terms in $m$ and in $n$ alone. Turned (Su et al."
        " 2021), only $m - n$ is left: what a head learns at one position holds at every other."
    ),
    attempt=(
        "Change the distance: RoPE's line moves up and down and stays flat. Choose another head and other"
        " characters. “Measure it” has the scores of every two positions: stripes along the diagonal are"
        " RoPE's."
    ),
)

ALIBI = Words(
    see=(
        "Press et al. 2022: each head takes a fixed price for distance off its scores, $-m\\,|i - j|$,"
        " before the softmax. A line says what is left of a weight at each distance. With $n$ heads, a power"
        " of two, the slopes are $m = 2^{-8/n}, 2^{-16/n}, \\dots, 2^{-8}$."
    ),
    why=(
        "The price is the same in every text and at every length, so nothing new is met beyond the"
        " context. Some heads are made short-sighted and some far-sighted before anything is learned."
    ),
    attempt=(
        "Take 12 heads and look, under “Measure it”, where their slopes come from. Then choose the layer and"
        " head that look farthest, and make the slopes steeper."
    ),
)

T5 = Words(
    see=(
        "Raffel et al. 2020: distances are sorted into buckets, each head learns one number for each"
        " bucket, and that number is added to its scores. Near distances have a bucket each, farther ones"
        " share, ever more of them."
    ),
    why=(
        "Which distances matter is learned instead of fixed, at the price of 32 numbers for each head."
        " And a text longer than any in training falls into the last bucket: it has a number, though not"
        " always one that was trained."
    ),
    attempt=(
        "Switch the mask to both ways and watch each side get half of the buckets. Under “Measure it” see"
        " what a model has learned for each bucket."
    ),
)

BENCH = Words(
    see=(
        "Six small models that differ in their positions and in nothing else: 4 layers of 4 heads, 64"
        " wide, trained on Tiny Shakespeare at context 64. Each reads texts four times as long, and every"
        " position is scored by $-\\ln p(\\text{next character})$."
    ),
    why=(
        "'Train short, test long' (Press et al. 2022): attention costs $T^2$, so one would like to train"
        " on short texts. RoPE depends on distances alone and still does not reach farther by itself: its"
        " slow pairs come to angles that training never met. Long-context models stretch the angles and train"
        " on (Chen et al. 2023)."
    ),
    attempt=(
        "Leave one scheme alone on the chart. Under “Measure it”, measure anew on this machine: fill T5's"
        " unmet buckets, give RoPE a larger base and the learned table more rows."
    ),
)
