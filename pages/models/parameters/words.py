"""What the views of Parameters say."""

from ui.look import Words

SENTENCE = (
    "What a model costs, counted from its configuration alone: parameters, floating-point operations, memory."
)

WHERE = Words(
    see=(
        "Every tensor of the model as an area, in the colour of its part. The table below has each one's"
        " shape in letters and in numbers."
    ),
    why=(
        "A configuration of some twenty fields settles the size of a model, to the last parameter."
        " Nothing is built or estimated here. Where weights are published, the totals of the unchanged"
        " models are theirs; GPT-3's are not, and its paper says about 175 billion."
    ),
    attempt=(
        "Choose LLaMA-2 70B and give every query head a key of its own. Then untie GPT-2, and watch the"
        " red area grow."
    ),
)

TWO = Words(
    see="The parts of two models, in shares or in counts, and the fields in which they differ.",
    why=(
        "Names such as 7B hide a lot: a small model with a large vocabulary is mostly a dictionary, "
        "a large one is mostly feed-forward networks."
    ),
    attempt=(
        "Compare GPT-2 medium with Qwen2.5 0.5B: the larger one has less than half the attention. "
        "Change a field, and compare the changed model with its original."
    ),
)

FLOPS = Words(
    see=(
        "What one token costs in the forward pass, both scales logarithmic. Matrices act once on each"
        " token: level lines. What rises is attention's work, since each token looks at T others."
    ),
    why=(
        "A model's price is counted in FLOP. For short texts it is 2 forward and 6 in training for each"
        " parameter that meets a token in a product; for long ones attention decides."
    ),
    attempt=(
        "Move T past the crossing. Then choose a wider model: the crossing moves to the right, as"
        " matrices grow with $d^2$ and scores with $d$."
    ),
)

MEMORY = Words(
    see=(
        "Weights stay; the KV cache grows with every token of every text. Training adds gradients,"
        " AdamW's state and everything that backward needs."
    ),
    why=(
        "Whether a model runs on your device is decided here. Long contexts are a matter of the cache:"
        " that is why keys are shared (GQA)."
    ),
    attempt=(
        "LLaMA-2 7B at 4,096 tokens: 2 GB of cache. Choose Mistral 7B, whose heads share keys four by"
        " four. Then int4: which device is enough?"
    ),
)

BY_HAND = Words(
    see="The counts that are done on the blackboard, made by the same ledger.",
    why=(
        "Three formulas, $4d^2$, $2\\,d\\,d_{ff}$ and $V d$, are nearly the whole of a classic"
        " Transformer. A gated network has $3\\,d\\,d_{ff}$, and shared keys make $4d^2$ smaller."
    ),
    attempt=(
        "Cover the numbers, and count GPT-2's blocks yourself: $12\\,L\\,d^2$. Then find in the first"
        " view what was missing."
    ),
)
