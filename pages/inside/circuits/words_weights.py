"""Sentences of the views of steering and of weights in few bits."""

from engine.measure.circuits.quantisation import BITS, FULL, Losses, RoundingError
from engine.measure.circuits.steering import Cost, Direction, SteeredContinuation
from ui.page_frame import Words

STEERING_QUESTION = "Can we steer what it writes about?"
QUANTISATION_QUESTION = "How many bits per weight are enough?"

STEERING = Words(
    see=(
        "Both prompts are read, and the stream that a block reads of one is taken from what it reads of the"
        " other. A multiple of this difference is added to what that block reads while the model writes on:"
        " *activation addition* (Turner et al. 2023). *The first tokens*, as in the paper: token by token,"
        " the shorter prompt filled up with blanks. *Every token*: the mean over one prompt's tokens less the"
        " mean over the other's. Both texts are drawn with the same random numbers, at temperature 0.8 and"
        " top-p 0.9. Nothing is added to the token that every text begins with. The mood is"
        " measured by the words of the first prompt that the second lacks: their probability"
        " together, mean over all steps. Bars: the next"
        " words that gain most, right after the text."
    ),
    why=(
        "Two short passes, no training, no change of a weight: what the model is talking about lies in"
        " directions of the stream. But the vector pushes everything else as well: the perplexity of a text"
        " that has nothing to do with it says how much."
    ),
    attempt=(
        "Turn the coefficient round: away from the first prompt. Raise it until the text falls apart. Go up"
        " the blocks: low down a difference is one of words, at the top of next words. Take “Love / hate”,"
        " the paper's own: it was shown on GPT-2 XL, with eleven times as many weights."
    ),
)

QUANTISATION = Words(
    see=(
        "Each weight is rounded to the nearest of a few levels that lie evenly: $w \\approx d \\cdot q$ with"
        " a whole number $q$ on both sides of zero, or $w \\approx d \\cdot q + m$ with an offset $m$. A"
        " block of 32 weights has its own $d$ (and $m$), or a whole matrix has one. $d$ and $m$ are kept in"
        " 16 bits. The loss is measured on the text above, by a copy of the model whose matrices are rounded;"
        " the dotted line is the loss of guessing among all tokens."
    ),
    why=(
        "A model writes as fast as its weights can be read, so fewer bits are more speed and less memory."
        " One large weight stretches the levels of all that share its scale: that is why blocks are small"
        " (Dettmers et al. 2022 found such outliers in all large models)."
    ),
    attempt=(
        "Take 4 bits and change from a block to the whole matrix. Round all matrices, then only one. On"
        " SmolLM2 round to 4 bits with an offset: nothing changes, its file has been there before. Look at"
        " one block."
    ),
)


STEERING_BLOCK_HINT = (
    "What block 0 reads is the embedding; what any other reads is the stream after the block below it: where"
    " block 10 reads is after block 9."
)
RARE = 0.001  # a probability below it is said as one in so many


def steered(made: SteeredContinuation, coefficient: float, note: str) -> str:
    """Says whether the mood came, and from where on the text differs."""
    if not coefficient:
        return "With a coefficient of **0** nothing is added: both texts are the same, to the last token."
    plain, with_it = (
        f"{share:.1%}" if share >= RARE else f"one in {draws:,.0f}"
        for share, draws in zip(made.mood, made.draws_needed, strict=True)
    )
    verdict = {
        "came": "The mood **comes**",
        "went": "The mood **goes**",
        "stayed": "The mood **hardly changes**",
    }[made.came]
    return (
        f"{verdict}: the first prompt's own words are **{made.times:.2g} times** as probable at each step"
        f" ({with_it} instead of {plain}); {_changed(made)}.{f' {note}' if note else ''}"
    )


def _changed(made: SteeredContinuation) -> str:
    if made.same == len(made.plain):
        return "the text stays as it was"
    if not made.same:
        return "the text is another from its first token on"
    return f"the text is another after {count(made.same)}"


def count(tokens: int) -> str:
    return "one token" if tokens == 1 else f"{tokens} tokens"


def costs(cost: Cost, coefficient: float, added: Direction) -> str:
    """Says what steering does to a text that has nothing to do with it."""
    return (
        f"A neutral text becomes **{cost.ratio(coefficient):.3g} times** as perplexing:"
        f" {cost.at(0.0):,.1f} → {cost.at(coefficient):,.1f}, over {cost.tokens} tokens. What is added is"
        f" **{added.strength(coefficient):.2f} times** as long as the stream there."
    )


FEW = 20  # tokens: a loss over fewer of them says little
SMALL_LOSS = 0.01  # of the loss: what fewer bits may cost


def few_bits(bits: int, whole: bool, lost: RoundingError, losses: Losses | None) -> str:
    """Says how few bits are enough, and what the chosen ones do to the matrix and to the loss. `whole`: one
    scale for a matrix.
    """
    if bits == FULL:
        does = "With 32 bits nothing is rounded: this is the model as it is."
        if losses is None:
            return does
        return f"{_enough(losses, whole)} {does} Its loss on the text is **{losses.full:.3f}** nats."
    if not lost.largest:
        does = f"In {bits} bits this matrix is **exactly what it was**: error 0."
    else:
        does = f"In {bits} bits the matrix is off by **{lost.relative:.1%}** of its size."
    if losses is None:
        return does
    after = losses.at(bits, whole)
    many = f"With {losses.matrices} rounded matrices" if losses.matrices > 1 else "With this matrix rounded"
    few = (
        f" These are only {losses.tokens} predictions: a longer text says more."
        if losses.tokens < FEW
        else ""
    )
    return (
        f"{_enough(losses, whole)} {does} {many} the loss on the text goes from {losses.full:.3f} to"
        f" **{after:.3f}** nats.{few}"
    )


def _enough(found: Losses, whole: bool) -> str:
    """The question's own answer."""
    bits = found.enough(whole, SMALL_LOSS)
    if bits == FULL:
        return f"Even **{BITS[0]} bits** raise the loss here by more than {SMALL_LOSS:.0%}."
    if bits == BITS[-1]:
        return f"Even **{bits} bits** raise the loss here by at most {SMALL_LOSS:.0%}."
    return f"**{bits} bits** are enough here: fewer raise the loss by more than {SMALL_LOSS:.0%}."


def single_weights(lost: RoundingError) -> str:
    """Says what rounding does to single weights."""
    return (
        f"With its scales a weight takes {lost.bits:.2f} bits. A single one is off by at most"
        f" {lost.largest:.2g}; {lost.zeros:.0%} of them are 0."
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
