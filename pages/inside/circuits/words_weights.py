"""Sentences of the views of steering and of weights in few bits."""

from collections.abc import Sequence

from engine.measure.circuits.quantisation import BITS, BLOCK, FULL, Losses, RoundingError, Scope
from engine.measure.circuits.steering import Cost, Direction, SteeredContinuation, Where
from engine.weights.pretrained.blocks import QuantisedBlock
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import counted, minus
from ui.text.tokens import show_characters

STEERING_QUESTION = "Can we steer what it writes about?"
QUANTISATION_QUESTION = "How many bits per weight are enough?"

STEERING = Words(
    see=(
        "*Activation addition* (Turner et al. 2023): the difference between the residual streams of two"
        " prompts, as one block reads them, is a *steering vector*. A multiple of it is added to that"
        " block's input while the model continues the text. *The first tokens*, as in the paper: token by"
        " token, the shorter prompt padded with spaces. *Every token*: the mean over one prompt's tokens"
        " minus the mean over the other's. Both texts are sampled with the same seed, at temperature 0.8 and"
        " top-p 0.9. Nothing is added to the beginning-of-sequence (BOS) token. The effect is measured on the"
        " words found only in the first prompt: their total probability, averaged over all steps. Bars: the"
        " tokens that gain most right after the text."
    ),
    why=(
        "It takes two forward passes and no training, and no weight changes: a topic can be a direction in"
        " the stream. But the vector also disturbs everything else; the perplexity of an unrelated text shows"
        " by how much."
    ),
    attempt=(
        "Reverse the sign of the coefficient to steer away from the first prompt. Raise it until the text"
        " falls apart. Change the block: in early blocks the difference is about the words just read, in"
        " late ones about the next word. Try the paper's own “Love / hate”, which the authors ran on GPT-2"
        " XL, with eleven times as many parameters."
    ),
)

QUANTISATION = Words(
    see=(
        "Each weight is rounded to the nearest of a few evenly spaced levels: $w \\approx d \\cdot q$ with a"
        " signed integer $q$ (symmetric), or $w \\approx d \\cdot q + m$ with an offset $m$ (asymmetric)."
        " Each block of 32 weights has its own scale $d$ (and $m$), or the whole matrix shares one. $d$ and"
        " $m$ take 16 bits. The loss is measured on the text above, by a copy of the model whose matrices are"
        " rounded; the dotted line is the loss of a uniform guess."
    ),
    why=(
        "Generation is limited by how fast the weights can be read, so fewer bits mean more speed and less"
        " memory. One outlier stretches the levels of all weights that share its scale, so blocks are small"
        " (Dettmers et al. 2022 found outlier features in large models)."
    ),
    attempt=(
        "Choose 4 bits and switch from one scale per block to one for the whole matrix. Round all matrices,"
        " then only one. On SmolLM2, round to 4 bits with an offset: nothing changes, because its file"
        " already stores them that way. Then look at one block."
    ),
)


LOOK, LOOKS = "Show", {"matrix": "A matrix", "block": "One block"}
MATRIX, BLOCK_OF, SCOPE = "Matrix", "Block", "Rounded"
KINDS = {
    "mixer.w_qkv.weight": "queries, keys, values",
    "mixer.w_qk.weight": "shared queries and keys",
    "mixer.w_v.weight": "values",
    "mixer.w_o.weight": "attention output",
    "ffn.w_in.weight": "feed-forward, in",
    "ffn.w_out.weight": "feed-forward, out",
    "embedding": "embedding",
    "unembedding": "unembedding",
}
SCOPES: dict[Scope, str] = {"matrix": "only this one", "kind": "all of this kind", "all": "all matrices"}
SCOPE_HINT = "The loss is measured with only this matrix rounded, or with more of them."
MANY: dict[Scope, str] = {"matrix": "one matrix", "kind": "one kind of matrix", "all": "all matrices"}
SHARE, SHARE_HINT = "One scale for", "Weights that share a scale share the same levels."
SHARES = {BLOCK: f"{BLOCK} weights", 0: "the whole matrix"}
SCALES = (f"one scale for {SHARES[BLOCK]}", f"for {SHARES[0]}")
BITS_OF, OFFSET = "Bits per weight", "With an offset"
OFFSET_HINT = (
    "d · q + m, as in Q4_1: the levels run from the smallest to the largest weight. Without an offset they"
    " are symmetric about zero."
)
NO_MATRICES = "This model has no matrices to quantise."
ONE_TOKEN = "A loss needs at least two tokens."
NOT_CAUSAL = (
    "This model fills in masked tokens rather than predicting the next one, so there is no loss to measure on"
    " plain text."
)
BLOCK_TITLE = "block {block}"
IN_BITS = "in {bits} bits"
HISTOGRAM_ALT = "Histogram of the weights of {name}, original and in {bits} bits."


def reading_rounded(scope: Scope) -> str:
    return f"Reading the text with {MANY[scope]} rounded"


def bits_alt(scope: Scope) -> str:
    return f"Loss on the text with {MANY[scope]} in 32, 8, 4, 3 and 2 bits; dotted: uniform guess."


def stored(formats: Sequence[str], again: RoundingError | None) -> str:
    """Says how the model's file has a matrix; `again` is the error of rounding to Q4_1 what is in Q4_1."""
    held = f":material/info: The model's file stores this matrix as {' and '.join(formats)}"
    if again is None:
        return f"{held}; here its decoded values are rounded."
    does = f"each weight by at most {again.largest:.2g}" if again.largest else "nothing"
    return f"{held}: 4 bits, blocks of 32, with an offset. Rounding it that way again changes **{does}**."


# One block of 32 weights ------------------------------------------------------------------------

ROW, INDEX, NUMBER = "Row", "Block in the row", "Index in the block"
COMPUTED = "Computed here as Q4_1 would store it: this model's weights take 32 bits each."
OTHER_FORMAT = (
    "The file stores this matrix in another format, which is not decoded here. The block shows its values as"
    " Q4_1 stores them."
)


def block_alt(block: QuantisedBlock) -> str:
    return f"The {len(block.q)} weights of the block, each on one of its {len(block.levels)} levels."


def read_from_file(block: QuantisedBlock) -> str:
    return (
        f"Read from the model's file: row {block.row} of `{block.name}`, {len(block.raw)} bytes. The original"
        " weights are lost."
    )


def block_answer(block: QuantisedBlock, number: int) -> str:
    """Says what the block is, and works out one of its numbers (Markdown)."""
    low, scale, least = minus(str(block.low)), f"{block.scale:.5g}", minus(f"{block.minimum:.5g}")
    offset, plus = (f", minimum m = {least}", f" + ({least})") if block.minimum else ("", "")
    error = (
        f" The largest error in the block is {block.largest_error:.2g}."
        if block.largest_error is not None
        else " The model computes with exactly these numbers."
    )
    q, value = minus(str(block.q[number])), minus(f"{block.numbers[number]:.5f}")
    return (
        f"**{block.kind}**: {len(block.q)} integers q from {low} to {block.high}, one scale d ="
        f" {scale}{offset}: **{block.bits:.1f} bits** for each weight. Weight {number}: {scale} · {q}{plus}"
        f" = **{value}**.{error}"
    )


STEERING_BLOCK_HINT = (
    "Block 0 reads the embedding; every other block reads the stream after the block below it: block 10 reads"
    " what block 9 left."
)
DIRECTION, YOUR_OWN, ADDED_TO = "Direction", "Your own", "Added to"
WHERE: dict[Where, str] = {"every": "every token", "front": "the first tokens"}
INPUT_OF_BLOCK, COEFFICIENT = "Input of block", "Coefficient"
TOWARDS, AWAY, TEXT = "Towards", "Away from", "Text to continue"
SEED, SEED_HINT = "Seed", "Both texts are sampled with this seed."
WITHOUT, WITH = "Without", "With"
WRITING, READING_OTHER = "Writing both texts", "Reading an unrelated text"
NONE_GAINED = "Nothing was added, so no token gained."
LIFTED_ALT = "Probabilities of the next tokens that gained most right after the text, without and with."
RARE = 0.001  # below this probability, print "one in N" instead of a percentage
COST_ALT = "Perplexity of {tokens} tokens of an unrelated text, by the steering coefficient."


def added(plus: str, less: str) -> str:
    first, second = (safe(show_characters(text)) for text in (plus, less))
    return f"Added: the stream for “{first}” minus that for “{second}”."


def coefficient(value: float) -> str:
    """
    >>> coefficient(-2.0), coefficient(0.5), coefficient(0.0)
    ('−2', '+0.5', '0')
    """
    return minus(f"{value:+g}") if value else "0"


def steered(result: SteeredContinuation, coefficient: float, note: str) -> str:
    """Says whether the mood came, and from where on the text differs."""
    if not coefficient:
        return "A coefficient of **0** adds nothing: both texts are identical."
    plain, with_it = (
        f"{share:.1%}" if share >= RARE else f"one in {draws:,.0f}"
        for share, draws in zip(result.mood, result.draws_needed, strict=True)
    )
    verdict = {
        "came": "Steering **works**",
        "went": "It **steers away**",
        "stayed": "Steering **does little**",
    }[result.came]
    return (
        f"{verdict}: the first prompt's own words are **{result.times:.2g} times** as probable at each step"
        f" ({with_it} instead of {plain}); {_changed(result)}.{f' {note}' if note else ''}"
    )


def _changed(result: SteeredContinuation) -> str:
    if result.same == len(result.plain):
        return "the text stays the same"
    if not result.same:
        return "the text differs from its first token"
    return f"the text differs after {count(result.same)}"


def count(tokens: int) -> str:
    return "one token" if tokens == 1 else f"{tokens} tokens"


def costs(cost: Cost, coefficient: float, added: Direction) -> str:
    """Says what steering does to a text that has nothing to do with it."""
    return (
        f"The perplexity of an unrelated text changes by a factor of **{cost.ratio(coefficient):.3g}**:"
        f" {cost.at(0.0):,.1f} → {cost.at(coefficient):,.1f}, over {counted(cost.tokens, 'token')}. The"
        " added vector has"
        f" **{added.strength(coefficient):.2f} times** the norm of the stream there."
    )


FEW = 20  # tokens: a loss over fewer of them says little
SMALL_LOSS = 0.01  # of the loss: what fewer bits may cost


def few_bits(bits: int, whole: bool, lost: RoundingError, losses: Losses | None) -> str:
    """Says how few bits are enough, and what the chosen ones do to the matrix and to the loss. `whole`: one
    scale for a matrix.
    """
    if bits == FULL:
        does = "With 32 bits nothing is rounded: this is the original model."
        if losses is None:
            return does
        return f"{_enough(losses, whole)} {does} Its loss on the text is **{losses.full:.3f}** nats."
    if not lost.largest:
        does = f"At {bits} bits this matrix is **unchanged**."
    else:
        does = f"At {bits} bits the matrix has a relative error of **{lost.relative:.1%}**."
    if losses is None:
        return does
    after = losses.at(bits, whole)
    many = f"With {losses.matrices} rounded matrices" if losses.matrices > 1 else "With this matrix rounded"
    few = (
        f" That is over only {losses.tokens} predictions: a longer text is more reliable."
        if losses.tokens < FEW
        else ""
    )
    return (
        f"{_enough(losses, whole)} {does} {many} the loss on the text goes from {losses.full:.3f} to"
        f" **{after:.3f}** nats.{few}"
    )


def _enough(losses: Losses, whole: bool) -> str:
    """The question's own answer."""
    bits = losses.enough(whole, SMALL_LOSS)
    if bits == FULL:
        return f"Even **{BITS[0]} bits** raise the loss here by more than {SMALL_LOSS:.0%}."
    if bits == BITS[-1]:
        return f"Even **{bits} bits** raise the loss here by at most {SMALL_LOSS:.0%}."
    return f"**{bits} bits** are enough here: fewer raise the loss by more than {SMALL_LOSS:.0%}."


def single_weights(lost: RoundingError) -> str:
    """Says what rounding does to single weights."""
    return (
        f"Including the scales, a weight takes {lost.bits:.2f} bits. The largest error of a single weight is"
        f" {lost.largest:.2g}; {lost.zeros:.0%} of the weights become 0."
    )


# Nothing in it is to be expected from the prompts: what steering costs is measured on it. Our own words.
NEUTRAL = (
    "A bicycle has two wheels of the same size, one behind the other, held by a frame of steel or aluminium."
    " The rider sits on a saddle and turns two pedals with the feet. A chain carries this movement to the"
    " rear wheel, and a set of gears decides how far the wheel turns for each turn of the pedals. On a flat"
    " road a high gear is used; on a hill a lower one makes the work easier, although the bicycle then moves"
    " more slowly. The front wheel is turned with the handlebar, which also holds the two brakes. Most brakes"
    " press a block of rubber against the rim of the wheel. Older bicycles had no gears at all and only one"
    " brake. In many towns there are now lanes along the road that are kept for bicycles, and places near the"
    " station where they can be left for the day. A bridge over a river can be built in several ways. The"
    " simplest is a beam that lies on two supports, one on each bank. When the river is wide, more supports"
    " are put into the water, and each part of the bridge is then carried by the two next to it. An arch"
    " carries its load to both sides and needs strong ground there. A hanging bridge is held by cables that"
    " run over two towers, and it can cross a much wider river than any other kind."
)
