"""Sentences of the views of Parameters: below the figures, and in the folds. The answers stand in
answers.py.
"""

from __future__ import annotations

from engine.config import ResolvedConfig
from engine.ledger import TRAINED_IN, Flops, Ledger
from engine.ledger.block import GatePaid
from engine.ledger.budget import TOKENS, Budget
from engine.ledger.growth import BreakEven, Headed
from engine.ledger.shares import Difference, Where
from engine.ledger.sizes import TILE, Fitting
from pages.models.parameters.choice import Choice
from ui.page_frame import Words
from ui.text.numbers import counted, flop, gigabytes, percent, short

WHERE = Words(
    see=(
        "Every tensor of the model as an area, in the colour of its part. *By hand* has each one's shape in"
        " symbols and in numbers."
    ),
    why=(
        "Some twenty configuration fields determine a model's size to the last parameter. The counts are"
        " exact, and no model is built for them. Where weights are published, the totals of unchanged"
        " models match them; GPT-3's are not, and its paper says about 175 billion."
    ),
    attempt=(
        "Choose LLaMA-2 70B and give every query head its own key-value head. Then untie GPT-2's embeddings,"
        " and watch the red area grow. Count GPT-2's blocks yourself, $12\\,L\\,d^2$, and see *By hand* for"
        " what is left out."
    ),
    texts=(
        "A lecture says that the blocks outgrow the embeddings at about 10 layers. Its own formula, $2Vd ="
        " 11Ld^2$, gives $L = 2V/(11d)$: 1.8 layers for $V$ = 100,000 and $d$ = 10,000, and less than one for"
        " the 65 characters of Shakespeare. A lab puts its model at about 1.6 million parameters; the"
        " matrices of 4 layers of width 128, the tables and the norms come to 813,440."
    ),
)

BLOCK = Words(
    see=(
        "The model's own block and three others of the same width. Bars two and three are the same size,"
        " since three matrices at two thirds of the width hold as much as two."
    ),
    why=(
        "Three terms, $4d^2$, $2\\,d\\,d_{ff}$ and $V d$, account for nearly all of a classic Transformer. A"
        " gated network has $3\\,d\\,d_{ff}$, and shared keys make $4d^2$ smaller. When a paper compares"
        " SwiGLU at equal size, its network is only two thirds as wide (Shazeer 2020)."
    ),
    attempt=(
        "Change the width: the shares hardly change, because everything but norms and biases grows with its"
        " square."
    ),
)

TWO = Words(
    see="The parts of two models, as shares or as counts, and the fields in which they differ.",
    why=(
        "Names such as 7B hide a lot: a small model with a large vocabulary is mostly embedding table, a"
        " large one mostly feed-forward networks."
    ),
    attempt=(
        "Compare GPT-2 medium with Qwen2.5 0.5B: the larger one has less than half the attention parameters."
        " Change a field, and compare the changed model with its original."
    ),
)

FLOPS = Words(
    see=(
        "One token's cost in the forward pass, on logarithmic scales. Matrices act once on each token, so"
        " their lines are flat; attention's line rises, since each token attends to T others."
    ),
    why=(
        "Compute is counted in FLOPs. On short texts a token costs 2 in the forward pass and 6 in training"
        " for each parameter that multiplies it; on long texts attention dominates."
    ),
    attempt=(
        "Move T past the crossing. Then choose a wider model: the crossing moves to the right, as matrices"
        " grow with $d^2$ and scores with $d$."
    ),
)

MEMORY = Words(
    see=(
        "The weights take a fixed amount; the KV cache grows with every token of every text. Training adds"
        " gradients, AdamW's state and the activations that the backward pass needs."
    ),
    why=(
        "Memory decides whether a model runs on your device. With a long context the cache dominates, which"
        " is why keys and values are shared (GQA)."
    ),
    attempt=(
        "LLaMA-2 7B at 4,096 tokens: 2 GB of cache. Choose Mistral 7B, whose query heads share keys in groups"
        " of four. Then choose int4: which device is enough?"
    ),
)

# In the folds -----------------------------------------------------------------------------------

LETTERS = (
    "V: vocabulary, T: context, d: width, L: layers, H: heads, H_kv: key-value heads, d_head: head width,"
    " d_ff: feed-forward width."
)
WHAT_COUNTS = (
    "A multiply-add counts as 2 operations. Only matrix products are counted; norms, softmax and adds"
    " would add a few percent. Every score counts, even those that the causal mask hides: the engine computes"
    " them all."
)
ONCE = " {name} acts once per text, on its first token only: {flops:,} FLOP per text, not in the table."
SHARE_BY_WIDTH = "The feed-forward network's share of a block, by its relative width."
EVERY_BLOCK = "One block of every model in the app."
SAME_FIELDS = "All fields are the same."
WHICH_HARDWARE = "What hardware does it fit on?"
MORE_HEADS = "Do more heads cost more?"
WHY_SIZES = "Why are sizes multiples of 64 or 128?"
HOW_MUCH_TEXT = "How much training data does a model of this size call for?"
SIDES = {
    "vocab_size": "Vocabulary",
    "d_model": "Width",
    "d_head": "Head width",
    "d_ff": "Feed-forward width",
}
LAWS = (
    "All three are published fits, not measured here: Kaplan et al. 2020, section 6.1, counted parameters"
    " without the embedding and scaled the model faster than the data; Hoffmann et al. 2022 (“Chinchilla”)"
    " counted all of them and scaled both equally. The second is used for the {size} parameters above."
)


def areas(ledger: Ledger, thin: dict[str, int]) -> str:
    """Says how to walk the picture, and what is in it without a name: name -> parameters."""
    walk = "Click an area to zoom in, and its top line to zoom out."
    if not thin:
        return walk
    named = ", ".join(f"{name} {percent(count, ledger.total)}" for name, count in thin.items())
    return f"{walk} Strips too thin to label: {named}."


def in_and_outside(where: Where, ledger: Ledger) -> str:
    blocks, read = counted(ledger.config.n_layers, "block"), ledger.encoder
    if read is not None:
        alike = read.n_layers == ledger.config.n_layers
        blocks = (
            f"{blocks} of each stack"
            if alike
            else f"{read.n_layers:,} encoder and {blocks.replace('blocks', 'decoder blocks')}"
        )
    return (
        f"**{where.total:,} parameters**: {where.in_blocks:,} in the {blocks}"
        f" ({percent(where.in_blocks, where.total)}), {where.outside:,} before and after them."
    )


def in_the_blocks(choice: Choice, where: Where) -> str:
    """Says how much of the blocks is in the feed-forward networks, and whether that is the usual share."""
    if not where.network or not where.attention:
        missing = "no feed-forward networks" if not where.network else "no attention matrices"
        return f"This model's blocks have {missing}; most have both."
    close = (
        "about two thirds, as $8d^2$ out of $12d^2$ predicts"
        if where.usual
        else "the usual shape, $d_{ff} = 4d$ with full multi-head attention, would give two thirds"
    )
    text = (
        f"**{where.network_share:.1%} of the blocks' parameters are in the feed-forward networks**: {close}."
    )
    if not where.usual:
        text += (
            f" Here $d_{{ff}}$ is {where.d_ff:.3g}·d, the queries are {where.queries:.3g}·d wide and the keys"
            f" {where.keys:.3g}·d."
        )
    if choice.ledger.encoder is not None:
        text += " A decoder's blocks add cross-attention, which reads the encoder's output."
    return text + (
        f" Embedding, positions and output make up {percent(where.outside, where.total)} of the model; with"
        " the same vocabulary, that share shrinks as models grow."
    )


OWN_KEYS, ONE_KEY = "One KV head per query head (MHA)", "One KV head for all (MQA)"
NO_KEYS = "Only the mixer `attention` has separate keys to share."


def tying(c: ResolvedConfig, parameters: Difference, _: Difference) -> tuple[str, str, str]:
    """Returns a card (label, number, arithmetic) of one matrix for embedding and output."""
    return (
        "Tying saves" if c.tie_embeddings else "Tying would save",
        f"{parameters.apart:,}",
        f"$V\\cdot d$ = {c.vocab_size:,} · {c.d_model:,}: one matrix serves as embedding and unembedding."
        f" That is {percent(parameters.apart, parameters.larger)} of the untied model.",
    )


def twice_the_context(c: ResolvedConfig, parameters: Difference, _: Difference) -> tuple[str, str, str]:
    """Returns a card of a context twice as long."""
    return (
        "Twice the context",
        signed(parameters.difference),
        f"{2 * c.context:,} tokens instead of {c.context:,}: attention's matrices act on one token at a time,"
        " so they stay the same." + (" Only the position table grows." if c.position == "learned" else ""),
    )


def shared_keys(c: ResolvedConfig, heads: int, parameters: Difference, cached: Difference) -> tuple[str, str]:
    """Returns (number, arithmetic) of another number of key heads."""
    text = (
        "This model already does that."
        if heads == c.n_kv_heads
        else f"{heads} instead of {c.n_kv_heads}, in each of {counted(c.n_layers, 'layer')}."
    )
    now, then = cached.first, cached.second
    today = f" (now {now:,})." if now != then else "."
    cache = (
        f" A token then takes {then:,} numbers in the KV cache{today}"
        if now
        else " Without a causal mask there is no KV cache."
    )
    return signed(parameters.difference), text + cache


def gate(ratio: float, paid: GatePaid) -> str:
    """Says how a gate is paid for."""
    plain, gated = paid.plain.feedforward, paid.gated.feedforward
    return (
        f"**Two matrices of {ratio:.3g}·d:** $2\\cdot d\\cdot {ratio:.3g}d = {2 * ratio:.3g}\\,d^2$ ="
        f" {plain:,}. **Three of {ratio * 2 / 3:.3g}·d:** $3\\cdot d\\cdot\\tfrac23\\cdot{ratio:.3g}d ="
        f" {2 * ratio:.3g}\\,d^2$ ≈ {gated:,}; {signed(paid.rounding)} from rounding up to a multiple of 8"
        f" neurons. A gate at the full {ratio:.3g}·d would cost half as much again:"
        f" {paid.full.feedforward:,}."
    )


def signed(count: int) -> str:
    """Returns a difference with its sign.

    >>> signed(-512), signed(0)
    ('−512', '±0')
    """
    return f"{'−' if count < 0 else '+' if count else '±'}{abs(count):,}"


def networks(first: float, second: float) -> str:
    return f"Their feed-forward networks hold {first:.1%} and {second:.1%} of the blocks' parameters."


def growing(ledger: Ledger) -> str:
    """Returns the formula (Markdown) of what grows with T: scores and weighted sums, in each layer, of each
    attention.
    """
    products = "2" if ledger.config.mixer == "mean" else "2\\cdot 2"  # a mean has no scores
    formula = f"${products}\\cdot T\\cdot H\\cdot d_{{head}}\\cdot L$"
    return (
        formula
        if ledger.encoder is None
        else f"{formula}, three times (encoder, decoder and cross-attention)"
    )


def six_n(flops: Flops, ledger: Ledger) -> str:
    return (
        f"6 · {ledger.total:,} parameters: {flops.of_training(ledger.total):.0%} of the count. With only the"
        f" {flops.multiplying:,} that multiply a token: {flops.of_training(flops.multiplying):.0%}. Kaplan et"
        " al. 2020 count only those in the blocks"
    )


def numbers_at(flops: Flops, ledger: Ledger) -> tuple[tuple[str, str, str], ...]:
    """Returns four cards (label, number, arithmetic): the work of one token, forward and in training."""
    return (
        ("Forward, one token", flop(flops.forward), f"{flops.forward:,} at T = {flops.tokens:,}"),
        (
            "Share of scores and weighted sums",
            percent(flops.scores, flops.forward),
            f"{growing(ledger)} = {flops.scores:,}; the rest does not depend on T",
        ),
        (
            "Training, one token",
            flop(flops.training),
            "3 · forward: the backward pass has two matrix products for each one in the forward pass",
        ),
        ("6 N, the rule of thumb", flop(flops.six_n), six_n(flops, ledger)),
    )


def whole_text(flops: Flops, ledger: Ledger) -> str:
    tokens = flops.tokens
    what = (
        f"A text of {tokens:,} tokens"
        if ledger.encoder is None
        else f"A text of {tokens:,} tokens to read and one as long to write"
    )
    return f"{what}: {flop(flops.text)} for a forward pass, {flop(flops.text_training)} to train on it once."


def attention_and_length(choice: Choice, flops: Flops, crossing: int | None) -> str:
    """Says which part of attention depends on the length of the text."""
    c = choice.config
    if crossing is None and flops.scores:
        return (
            f"Each token is compared with only the last {c.window:,}, so beyond that its cost stays the same"
            " however long the text. Everything else together stays more expensive: scores and weighted sums"
            f" are {percent(flops.scores, flops.forward)} here."
        )
    if crossing is None:
        return (
            "Without a mixer tokens never attend to each other, so a token costs the same however long the"
            " text."
        )
    table = (
        f" Only the table of {c.context:,} positions limits how long a text can be."
        if c.position == "learned"
        else ""
    )
    where = "beyond" if crossing > c.context else "within"
    has = (
        f"Attention's matrices have {choice.ledger.in_attention:,} parameters"
        if choice.ledger.in_attention
        else "This mixer has no parameters,"
    )
    each = "each layer" if choice.ledger.encoder is None else "each layer and attention"
    does, cost = ("averages T others", 2) if c.mixer == "mean" else ("is compared with T others", 4)
    return (
        f"{has} **whatever T is**.{table} But each token {does}, which costs ${cost}\\,T\\,H\\,d_{{head}}$"
        f" in {each}. Above **T = {crossing:,}**, {where} its context of {c.context:,}, that is more than"
        " everything else together. The rule 6 N ignores T, so it misses this share, here"
        f" {percent(flops.scores, flops.forward)}; and it counts embedding tables, although a token reads"
        " only one row of each."
    )


def heads(rows: tuple[Headed, ...]) -> str:
    first, last = rows[0], rows[-1]
    return (
        f"**No: {last.heads} heads cost {flop(last.flops)} per token, {first.heads}"
        f" head{'s' if first.heads > 1 else ''} {flop(first.flops)}.** They split the same width, so each is"
        " narrower (Vaswani et al. 2017, 3.2.2). What grows is the number of attention weights to store and"
        " to put through a softmax. Here each head has its own keys."
    )


def sizes(vocab: Fitting, more: int) -> str:
    text = (
        f"A GPU multiplies matrices in tiles and reads 128 bytes at once, {TILE} numbers of 16 bits. A"
        " dimension that is not a multiple of that leaves tiles partly empty ([NVIDIA, *Matrix"
        " Multiplication"
        " Background*](https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/),"
        " sections 2.2 and 3.1)."
    )
    if vocab.fits:
        return f"{text} This vocabulary of {vocab.size:,} fits."
    return (
        f"{text} This vocabulary of {vocab.size:,} does not fit: {vocab.padded:,} rows would, at the cost of"
        f" {more:,} parameters that no token ever uses."
    )


def chinchilla(budget: Budget) -> str:
    return (
        f"By the rule of Hoffmann et al. 2022, about {TOKENS} tokens for each parameter,"
        f" **{short(budget.tokens)} tokens**: 6 · N · D = {flop(budget.flops)} of training. Their fit then"
        f" predicts a loss of {budget.loss:.2f} nats per token, on their own text. Widely used models are"
        " trained on far more, since a small model is cheaper to run."
    )


DEVICES = (
    "1 GB is 2³⁰ bytes here, as in memory sizes. A phone with 8 GB and a laptop with 16 GB are assumed, all"
    " of it free; in practice the system needs some. Each line names the most precise format that fits:"
    " float32, bfloat16, int8 or int4."
)


def beyond_the_context(ledger: Ledger) -> str:
    c = ledger.config
    table = " would need a longer table of positions, and" if c.position == "learned" else ""
    return (
        f":material/info: Beyond this model's context of {c.context:,} it{table} would have to be trained for"
        " it."
    )


def no_cache(c: ResolvedConfig) -> str:
    why = (
        "it has no mixer."
        if c.mixer == "none"
        else "it has no causal mask, so every later token changes them."
    )
    return f"This model caches no keys and values: {why}"


def cache(ledger: Ledger, size: int, held: int, tokens: int, batch: int, each: float) -> str:
    """Returns the size of a KV cache in which `held` of `tokens` are kept, in `each` bytes a number."""
    c = ledger.config
    twice = "2 · " if ledger.encoder else ""
    letter = "T" if held == tokens else f"{held:,}"
    both = ", for what the decoder wrote and what the encoder read" if ledger.encoder else ""
    window = (
        ""
        if held == tokens
        else (f" Attention reaches back over only {held:,} positions: no more is cached.")
    )
    return (
        f"**KV cache at T = {tokens:,}: {gigabytes(size)}** = {twice}2 · L · H_kv · d_head · {letter} · batch"
        f" · bytes = {twice}2 · {c.n_layers} · {c.n_kv_heads} · {c.d_head} · {held:,} · {batch:,} ·"
        f" {each:g}{both}.{window}"
    )


def trained_in(dtype: str) -> str:
    if dtype in TRAINED_IN:
        return (
            "AdamW keeps two float32 moments for each weight, and a float32 copy where weights have fewer"
            " bits: 16 bytes per parameter in all, gradients included. Activations are what the backward"
            " pass needs, as this engine computes it: attention patterns stored, no dropout; fused kernels"
            " and recomputation need far less."
        )
    return (
        f"Models are not trained in {dtype}: choose bfloat16 or float32 for that. Keys and values stay in 16"
        " bits; the scales of quantised weights are not counted."
    )


def as_large_as_the_weights(choice: Choice, break_even: BreakEven) -> str:
    """Says from which length on the cache outweighs the weights, and what sharing keys does about it."""
    if not break_even.token:
        return (
            f"In bfloat16 the weights take {gigabytes(break_even.weights)}; training takes eight times that,"
            " not counting activations."
        )
    shared = (
        f"With a key-value head for each of its {choice.config.n_heads} query heads it would be"
        f" {break_even.group} times as large."
        if break_even.group > 1
        else "Grouped keys (GQA) reduce it."
    )
    if break_even.most:
        return (
            f"A token in the cache takes {gigabytes(break_even.token)} in bfloat16. Attention reaches back"
            f" over **{break_even.window:,} positions**, so a text never takes more than"
            f" {gigabytes(break_even.most)}, compared with weights of {gigabytes(break_even.weights)}."
            f" {shared}"
        )
    return (
        f"A token in the cache takes {gigabytes(break_even.token)} in bfloat16, so at"
        f" **{break_even.tokens:,.0f} tokens** (in one text, or many together) the cache is as large as the"
        f" weights, {gigabytes(break_even.weights)}. {shared}"
    )
