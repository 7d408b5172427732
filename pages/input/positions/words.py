"""What the views of Positions say."""

from ui.look import Words

SENTENCE = (
    "Attention by itself sees a bag of words. Position schemes tell it which token comes where: added to the"
    " embedding, turned into queries and keys, or put on the scores."
)

FRESH = Words(
    see=(
        "The same words in two orders, through the same attention. The second picture has its rows"
        " matched by word; the third is what a word's vector is in the second order minus what it is in"
        " the first. The dots show the largest such difference for all six schemes."
    ),
    why=(
        "Attention is a sum over *all* tokens, weighted by what they hold, and a sum does not care about"
        " order (Vaswani et al. 2017, section 3.5). So order must be put in: into the embedding, into"
        " queries and keys, or into the scores."
    ),
    attempt=(
        "Switch the scheme from none to any other, then the causal mask on. Show the rows as they stand:"
        " without positions they are the same rows, in another order. Type a sentence that uses a word"
        " twice."
    ),
)

TRAINED = Words(
    see=(
        "One text in two orders, through a whole model. A token is compared with itself, wherever it"
        " went. The last row of the table has neither positions nor mask: what is left there is rounding,"
        " in every model, trained or not."
    ),
    why=(
        "Attention, feed-forward and norms treat all tokens alike, so a stack of them does too. The order"
        " of a text reaches a Transformer through its position scheme and its mask, and by no other way."
    ),
    attempt=(
        "Let tokens change places instead of words and see the loss out of order. Compare the classic"
        " model (learned positions) with the modern one (RoPE), and an untrained one with both."
    ),
)

TABLE = Words(
    see=(
        "Each position (a row) gets a vector of sines and cosines: $PE(p, 2i) = \\sin(p\\,\\theta_i)$ and"
        " $PE(p, 2i+1) = \\cos(p\\,\\theta_i)$ with $\\theta_i = base^{-2i/d}$ (Vaswani et al. 2017,"
        " section 3.5, where the base is 10,000). Beside it: how many positions each wave is long."
    ),
    why=(
        "It is added to the embeddings before the first block, so that the same word is another vector in"
        " another place. Wavelengths that grow by a constant factor give every scale of distance its own"
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
        "The cosine of every two position vectors as a map, and, since only the distance counts, as a"
        " curve. Along each parallel of the diagonal the map has one value."
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
        "On top one pair: the hand at $p$, the hand at $p + k$, and the 2 × 2 matrix that turns the one"
        " into the other. Below the whole $R(k)$: one such block for each pair, and zeros."
    ),
    why=(
        "Vaswani et al. (2017, section 3.5) chose sines for this reason: $PE(p + k)$ is a linear function"
        " of $PE(p)$, the same for all $p$, so relative positions can be learned."
    ),
    attempt=(
        "Move $p$: the hands move, the matrix does not. Move $k$: the first blocks spin, the last ones"
        " hardly leave the identity. Compare the residuals at T = 512 with those at 64."
    ),
)

LEARNED = Words(
    see=(
        "On the left a table that was trained: one vector for each position, added to the embedding"
        " (GPT-2, BERT). On the right the sinusoidal table of the same size. Below, both as a path"
        " through their first two principal components, and the cosine of every two positions."
    ),
    why=(
        "A learned table begins as noise: position 4 is no nearer to 5 than to 90. What order it has in"
        " the end, the text has taught it. And it ends with the context: for a position beyond the last"
        " row there is no vector."
    ),
    attempt=(
        "Train a model with learned positions and drag the step: at which step does the knot become a"
        " path? Compare the diagonals of the two cosine pictures, and the length of position 0 with the"
        " others."
    ),
)

ROPE = Words(
    see=(
        "Su et al. 2021: pair $i$ of q and of k is turned by position $\\cdot\\,\\theta_i$, with"
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

ALIBI = Words(
    see=(
        "Press et al. 2022: each head takes a fixed price for distance off its scores, $-m\\,|i - j|$,"
        " before the softmax. With $n$ heads, a power of two, the slopes are $m = 2^{-8/n}, 2^{-16/n},"
        " \\dots, 2^{-8}$; other numbers of heads fill up from the next power."
    ),
    why=(
        "The price is the same in every text and at every length, so nothing new is met beyond the"
        " context. Some heads are made short-sighted and some far-sighted before anything is learned."
    ),
    attempt=(
        "Take 12 heads and look where their slopes come from. Then choose the layer and head that look"
        " farthest, and make the slopes steeper."
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
        "Switch the mask to both ways and watch each side get half of the buckets. Then train a model"
        " with t5 positions and see which heads prefer the token before."
    ),
)

BENCH = Words(
    see=(
        "Six small models that differ in their positions and in nothing else: 4 layers of 4 heads, 64"
        " wide, trained on Tiny Shakespeare at context 64. Each reads texts four times as long, and every"
        " position is scored by $-\\ln p(\\text{next character})$. Windows begin every 64 characters, so"
        " the same characters are met early in one window and late in another."
    ),
    why=(
        "'Train short, test long' (Press et al. 2022): attention costs $T^2$, so one would like to train"
        " on short texts. Whether that works is decided by the positions: a vector, an angle or a sum"
        " that training never met can mean anything."
    ),
    attempt=(
        "Fill T5's unmet buckets, a stopgap without any training, and see what was wrong. Give RoPE a"
        " larger base and the learned table more rows. Put one position in a point to see the first few,"
        " which have little to go by."
    ),
)
