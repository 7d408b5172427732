"""What the views of the residual stream say."""

from ui.look import Words

SENTENCE = (
    "Every token carries one vector from the input to the output. Each sublayer reads it and adds to it: $x"
    " \\leftarrow x + \\text{write}(x)$."
)

LENS = Words(
    see=(
        "What the model would answer if it stopped here: the final norm and the unembedding applied to"
        " the stream after each block. The idea is nostalgebraist's (2020). KL is $\\sum_v"
        " p_{final}(v)\\,\\ln\\frac{p_{final}(v)}{p_{here}(v)}$, in nats."
    ),
    why=(
        "All layers write in one common language, so a half-finished thought can be read. Easy tokens are"
        " settled early; the others use all layers."
    ),
    attempt=(
        "Colour by KL, then slide a run of yours through its training. With tied embeddings, look at the"
        " bottom row: the embedding alone says the very token that it is."
    ),
)

PUSH = Words(
    see=(
        "The logit is $u \\cdot norm(x)$, and $x$ is a sum of writes. With the norm's divisor frozen, it"
        " is the sum of one number for each writer: $z_h W_{O,h} \\cdot d$ for a head, $w \\cdot d$ for"
        " the others, with $d$ the target's unembedding seen through the norm."
    ),
    why=(
        "It says who is responsible for an answer, head by head. Only direct pushes count: help given to"
        " another head shows up under that head."
    ),
    attempt=(
        "Compare with the mean of all tokens: what lifts every logit alike drops out. Then choose a token"
        " that the model finds unlikely."
    ),
)

NORMS = Words(
    see=(
        "The Euclidean norm of the stream after each write, the norm of each write, the cosine with what"
        " it is added to, and each writer's share of the final stream."
    ),
    why=(
        "Before a sublayer reads, the norm brings the stream to a standard size. So a write counts by its"
        " size *relative* to the stream: where the stream has grown long, a late layer must write more to"
        " turn it."
    ),
    attempt=(
        "Compare an untrained model with a trained one: at the start no write stands out, since the"
        " matrices that write begin alike, scaled by $1/\\sqrt{2L}$. Training makes some writers louder"
        " than others."
    ),
)

HIGHWAY = Words(
    see=(
        "Fresh, untrained models of the engine's own, wired in three ways. For each: how much the loss"
        " would change if the stream were nudged at the output of a block (the norm of $\\partial"
        " loss/\\partial x$), and how long the stream is there. Block 0 is nearest to the input."
    ),
    why=(
        "Learning reaches a block only as far as its gradient does. Adding instead of replacing gives the"
        " gradient a path that nothing multiplies: $x_{out} = x + f(x)$ has the slope $1 + f'$."
    ),
    attempt=(
        "Take the norm away: without a residual stream nothing arrives. Then start from"
        " $1/\\sqrt{inputs}$: with no norm, the gradient explodes where there is a residual stream and"
        " vanishes where there is none. Compare the scaled writes of GPT-2 with unscaled ones."
    ),
)
