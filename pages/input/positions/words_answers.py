"""The sentences that say what the figures of Positions show; Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping

from engine.config import Position
from engine.measure.positions.alibi import slope_rule
from engine.measure.positions.extrapolation import (
    HELD,
    TIMES,
    Curve,
    Reach,
    far_buckets,
    least,
    reach_of,
)
from engine.measure.positions.permutation import SCHEMES as ALL
from engine.measure.positions.permutation import (
    OrderEffect,
    Setting,
    setting_of,
)
from engine.measure.positions.position_scores import DistanceScores
from engine.measure.positions.position_table import PositionTable
from engine.measure.positions.rope import Decay, LayoutLoss, Layouts, Score, Turns
from engine.measure.positions.schemes import SCHEMES
from engine.measure.positions.sinusoids import Similarity, TurnedPair, Waves
from engine.measure.positions.t5_buckets import Buckets, LearnedBias
from engine.model import Transformer
from engine.weights.checkpoints import Checkpoint
from pages.input.positions.bench_choice import Variant, name_of
from pages.input.positions.shared import signed
from ui.text.numbers import minus, number, scientific

TITLES: dict[Position, str] = {name: SCHEMES[name].title for name in ALL}  # as they are written everywhere


NAMES = TITLES | {"none": "no positions"}  # as they stand in a sentence


def order_sentence(before: str, after: str, scheme: Position, causal: bool, effect: OrderEffect) -> str:
    """Says from the measured effect whether the order of the words counts. `before` and `after`: both orders,
    as Markdown.
    """
    largest = number(effect.largest(scheme, causal))
    bare = number(effect.largest("none", False))
    return {
        "reads the same": (
            f"In this order “{after}” reads the same: the difference of **{largest}** says nothing."
            " Choose another order."
        ),
        "one bag": (
            f"Without positions, “{before}” and “{after}” are one and the same bag of words: no word's row"
            f" changes by more than **{largest}**, which is rounding. So the order has to be told."
        ),
        "mask leaks": (
            f"No positions, and yet rows change by up to **{largest}**: the causal mask by itself leaks some"
            " order, since an early word attends to fewer words than a late one. Without the mask it is"
            f" {bare}."
        ),
        "distances kept": (
            f"ALiBi is on, and still no row changes by more than **{largest}**: it knows how far apart two"
            " words are and not which comes first. This order keeps every distance; shuffle, or switch the"
            " mask on."
        ),
        "order counts": (
            f"With {TITLES[scheme]} positions the same words come out different, by up to **{largest}**: now"
            f" the order counts. Without positions and mask it was {bare}."
        ),
    }[effect.verdict(scheme, causal)]


def waves_sentence(waves: Waves) -> str:
    fast, slow = waves.wavelength[0], waves.wavelength[-1]
    return (
        f"Every position gets a row of its own. The fastest wave comes round every **{fast:.2f}** positions"
        " and"
        f" tells neighbours apart; the slowest needs **{slow:,.1f}** and tells early from late."
        f" {waves.complete} of {len(waves.theta)} waves go round within these {waves.length:,} positions."
    )


def clock_sentence(waves: Waves) -> str:
    fast, slow, count = waves.wavelength[0], waves.wavelength[-1], len(waves.theta)
    if count == 1:
        return (
            f"A position is read off **one hand** that goes round in {fast:.2f} positions: after that it"
            " points"
            " almost where it was."
        )
    return (
        f"A position is read off **{count} hands** at once: the fastest needs {fast:.2f} positions for a"
        " round, the"
        f" slowest {slow:,.1f}."
    )


def similarity_sentence(similarity: Similarity, length: int) -> str:
    curve, far = similarity.cosine_by_distance, length - 1
    ten = min(10, far)
    again = similarity.most_alike
    if again > 1:
        return (
            f"Similarity comes back: the cosine is {curve[1]:.3f} at distance 1, and **{curve[again]:.3f}**"
            " at"
            f" distance {again}. With few hands, or only fast ones, positions repeat."
        )
    return (
        f"Near positions are alike and far ones less: cosine **{curve[1]:.3f}** at distance 1,"
        f" {curve[ten]:.3f}"
        f" at {ten}, {curve[far]:.3f} at {far}, wherever the two stand."
    )


def rotation_sentence(turned: TurnedPair, p: int, k: int) -> str:
    (x, y), (u, v) = turned.start, turned.end
    return (
        f"A step of {minus(str(k))} turns this hand by **{minus(f'{turned.angle:.4g}')}** radians, wherever"
        f" it starts: from ({signed(x)}, {signed(y)}) at {p} to ({signed(u)}, {signed(v)}) at {p + k}. So one"
        " linear map finds “k positions back” everywhere. RoPE makes this its whole idea."
    )


def learned_sentence(picture: str, learned: PositionTable, waves: PositionTable) -> str:
    """Says what training has taught the table, for one of the pictures."""
    length, width = learned.table.shape
    near, half = learned.alike.by_distance[1], learned.alike.by_distance[length // 2]
    if picture == "table":
        return (
            f"{length} × {width} = **{length * width:,}** learned numbers, where waves need none; and no row"
            f" for position {length}, so a longer text cannot be read. Position 0 is"
            f" {learned.first_to_median:.1f} times as long as the median position."
        )
    if picture == "path":
        return (
            f"Two directions keep **{learned.shown_variance:.0%}** of what differs between the learned"
            f" positions, and {waves.shown_variance:.0%} between the sinusoidal ones. Joined in order,"
            " positions"
            " that have learned to be near make a path, the others a knot."
        )
    if learned.knows_near:
        return (
            "Near positions have found each other, though nobody told the table that 4 comes after 3:"
            " neighbours"
            f" have a cosine of **{signed(near, 2)}** on average, positions {length // 2} apart"
            f" {signed(half, 2)}."
        )
    return (
        "Near positions are hardly more alike than far ones: neighbours have a cosine of"
        f" **{signed(near, 2)}**"
        f" on average, positions {length // 2} apart {signed(half, 2)}. This table has not learned what"
        " near is,"
        " or not yet."
    )


def arrows_sentence(score: Score, at: tuple[int, int, int]) -> str:
    return (
        f"Query at {at[0]}, key at {at[1]}: the score before its scaling is **{signed(score.total)}**. Move"
        " both together and every arrow turns, while the score stays: only the distance counts."
    )


def pair_sentence(score: Score) -> str:
    """Says which pair decides the score."""
    side = "less" if score.near else "more"
    return (
        f"Pair {score.pair} says most: {signed(score.term)}; its arrows lie {side} than a quarter turn apart."
    )


def distance_sentence(decay: Decay, base: float) -> str:
    (low, low_at), (high, high_at) = decay.lowest, decay.highest
    ends = (
        f"Base {base:,}: at distance 0 the score is **{signed(decay.start)}**, at {decay.reach:,}"
        f" **{signed(decay.last)}**; lowest {signed(low)} at {low_at:,}, highest {signed(high)} at"
        f" {high_at:,}."
    )
    if not decay.falls:
        return f"{ends} Near is not always best: what q and k hold decides at which distance they agree."
    if decay.below_half is None:
        return f"{ends} It stays above half."
    if decay.stays:
        return (
            f"{ends} It first falls below half at distance **{decay.below_half:,}**. Up to {decay.reach:,} it"
            " stays there."
        )
    return (
        f"{ends} It first falls below half at distance **{decay.below_half:,}**. It does not stay there:"
        " cosines swing."
    )


def turns_sentence(turns: Turns, context: int) -> str:
    speeds = (
        f"**{turns.never} of {len(turns.count)} pairs never complete a turn** within {context:,} positions."
        f" The fastest turns {turns.count[0]:,.1f} times, the slowest {turns.count[-1]:.3g}: it needs"
        f" {turns.positions[-1]:,.0f} positions for one."
    )
    if not turns.never:
        return f"{speeds} Every pair has seen its whole circle in training."
    return f"{speeds} Beyond the context, slow pairs come to angles that training never met."


def layouts_sentence(layouts: Layouts, loss: LayoutLoss | None) -> str:
    same = (
        "The two layouts are the same up to the order of the dimensions: largest difference"
        f" **{scientific(layouts.difference('permuted'))}**. Mixed up, without reordering, scores change by"
        f" up to **{layouts.difference('wrong'):.2f}**"
    )
    if loss is None:
        return f"{same}, and no shape is wrong and no error is raised."
    return (
        f"{same} and the loss on this text goes from **{loss.right:.3f}** to **{loss.wrong:.3f}** nats per"
        " token. No shape is wrong and no error is raised."
    )


def against_sentence(
    added: DistanceScores, turned: DistanceScores, letters: tuple[str, str], distance: int
) -> str:
    """Compares an added position with a rotated one. `letters` (query, key) as Markdown."""
    back = "1 position" if distance == 1 else f"{distance} positions"
    return (
        f"**With RoPE only the distance counts:** “{letters[0]}” scores “{letters[1]}” {back} back with"
        f" **{signed(turned.mean, 2)}** everywhere. Added waves make it anything from"
        f" **{signed(added.lowest, 2)}** to **{signed(added.highest, 2)}**, by where the two stand."
    )


def alibi_sentence(heads: int, distance: int, least: float, most: float) -> str:
    """Says what ALiBi leaves of a weight at the distance: `least` by the steepest head, `most` by the
    flattest.
    """
    if heads == 1:
        return (
            f"{distance} tokens back, the one head leaves **{least:.2%}** of a weight: farther costs more, in"
            " every text, and nothing of it is learned."
        )
    return (
        f"{distance} tokens back, the steepest of {heads} heads leaves **{least:.2%}** of a weight, the"
        f" flattest **{most:.2%}**: some heads read the last few tokens, others the whole text, and nothing"
        " of it is learned."
    )


def buckets_sentence(bucket_map: Buckets, buckets: int, both: bool) -> str:
    sides = " on either side" if both else ""
    shares = (
        f"Near distances are told exactly: 0 to {bucket_map.exact - 1} have a bucket each{sides}. The next"
        f" {bucket_map.exact} buckets share what is farther, wider and wider, and the last takes everything"
        f" from **{bucket_map.open_from}**."
    )
    if not bucket_map.unused:
        return shares
    return (
        f"{shares} **{len(bucket_map.ranges)} of {buckets}** buckets are ever used: bucket {buckets // 2},"
        " for 'later at distance 0', is never reached."
    )


def reach_sentence(
    reach: Reach[Position], context: int, times: int, ends: bool, best: tuple[Position, float]
) -> str:
    """Says which schemes hold beyond their training and which do not. `ends`: the learned table is among
    them. `best`: the scheme of least validation loss, in nats.
    """
    held, lost = (_listed(some) for some in (reach.held, reach.lost))
    within = f"Within {context}, {TITLES[best[0]]} is best (**{best[1]:.2f}** nats per character)."
    far = f"{times * context} characters after training on {context}"
    last = "; a learned table has no row to offer" if ends else ""
    if held:
        verb = "extrapolates" if len(reach.held) == 1 else "extrapolate"
        only = "Only " if lost and len(reach.held) == 1 else ""
        rest = f"; the others lose, in nats: {lost}" if lost else ""
        return f"{only}**{held}** {verb} to {far}{rest}{last}. {within}"
    if lost:
        return f"None of these extrapolates to {far}: they lose, in nats, {lost}{last}. {within}"
    return f"A learned table cannot extrapolate: beyond {context} it has no row. {within}"


def _listed(some: Mapping[Position, float]) -> str:
    return ", ".join(f"{NAMES[name]} ({signed_plus(far)})" for name, far in some.items())


def signed_plus(value: float) -> str:
    """Returns a number with its sign, a plus too.

    >>> signed_plus(0.5), signed_plus(-0.25)
    ('+0.50', '−0.25')
    """
    return minus(f"{value:+.2f}")


def lesson(settings: tuple[Setting, ...], scheme: str) -> str:
    """Sums up the numbers of a model with that position scheme."""
    bare, placed = (setting_of(settings, position, False) for position in (False, True))
    leak, both = (setting_of(settings, position, True) for position in (False, True))
    assert bare is not None and placed is not None
    words = (
        "Without positions and without a mask the order makes no difference:"
        f" {number(bare.relative)}, rounding in float32. "
    )
    if leak is None or both is None:
        return words + f"With its positions on it makes {number(placed.relative)}."
    if scheme == TITLES["none"]:
        return words + f"This model has no positions, but its mask leaks some: {number(leak.relative)}."
    words += (
        f"The mask alone makes it {number(leak.relative)}, mask and positions ({scheme})"
        f" {number(both.relative)}. "
    )
    if both.loss_in is None or both.loss_out is None or leak.loss_in is None:
        return words
    return (
        words
        + f"The loss of this text is {both.loss_in:.2f} nats per token in order and {both.loss_out:.2f} out"
        f" of order; with the positions taken away it is {leak.loss_in:.2f} even in order."
    )


def setting_name(setting: Setting) -> str:
    return f"{'positions' if setting.position else 'no positions'}, {'mask' if setting.mask else 'no mask'}"


def unmet_buckets(model: Transformer) -> str:
    """Why T5's far buckets matter, in this model's numbers."""
    found = far_buckets(model)
    if found is None:
        return "All of T5's buckets were met in training."
    return (
        f"T5's distances of up to {model.config.context - 1} fall into buckets 0 to {found.last}; training"
        f" never met buckets {found.last + 1} to {found.end}. They still hold their random start, at most"
        f" {found.unmet:.2f} in size, where bucket {found.last} has learned {found.met:+.2f} (mean over"
        f" heads). Beside that, a bias near 0 gives what is too far e^{-found.met:.2f} ≈ {found.factor:.0f}"
        " times the weight."
    )


def bench_summary(models: dict[Position, Checkpoint], curves: dict[Variant, Curve], context: int) -> str:
    """Which hold, which break, and what the mask alone is worth: from the numbers."""
    found = reach_of(curves)
    held, lost = (
        ", ".join(f"{name_of(v)} ({far:+.2f})" for v, far in some.items())
        for some in (found.held, found.lost)
    )
    words = (
        f"**Read at {TIMES * context} instead of {context}, the same characters cost at most {HELD} nats"
        f" more: {held or 'none of these'}.** "
    )
    words += f"They cost more with {lost}. " if lost else ""
    words += f"A learned table has no answer beyond {context}. " if ("learned", None) in curves else ""
    trained = {name: checkpoint.metrics["validation_loss"] for name, checkpoint in models.items()}
    if "none" in trained and len(trained) > 1:
        best = least(trained)
        words += (
            f"Within {context}, {SCHEMES[best].title} is best, at {trained[best]:.3f} nats; with no positions"
            f" it is {trained['none']:.3f}. It has only the causal mask to tell the order by: “Why” measures"
            " how much that leaks."
        )
    return words


def slope_power(slope: float) -> str:
    """A slope as a fraction, where it is a whole power of two, else as a power.

    >>> slope_power(0.25), slope_power(2**-0.5), slope_power(2.0)
    ('1/4', '2^(−0.5)', '2')
    """
    exponent = math.log2(slope)
    if exponent != round(exponent):
        return minus(f"2^({exponent:.4g})")
    return f"1/{2 ** -round(exponent)}" if exponent < 0 else f"{2 ** round(exponent)}"


def slope_rule_words(heads: int) -> str:
    split = slope_rule(heads)
    power = split.power
    rule = f"The paper's rule for {power} heads: slopes 2^(−8/{power}), 2^(−16/{power}), …, 2^(−8)."
    if not split.rest:
        return f"{rule} For 8 heads these are 1/2, 1/4, …, 1/256."
    return (
        f"{heads} is not a power of two. {rule} The other {split.rest} come from the rule for"
        f" {2 * power} heads: every second of its slopes, steepest first."
    )


MOST_TOLD = 8  # heads in the sentence


def t5_lesson(learned_bias: LearnedBias) -> str:
    """Which heads look near and which far, read off the trained part of the bias."""
    text = "; ".join(
        f"head {h}: distance {learned_bias.favours[h]}, {signed_slope(learned_bias.alibi_slope[h])}"
        for h in range(min(len(learned_bias.favours), MOST_TOLD))
    )
    words = (
        f"Between distance 0 and {learned_bias.last}, head {learned_bias.loudest} varies the most: its bias"
        f" spans **{learned_bias.spread[learned_bias.loudest]:.2f}**, which is a factor of about"
        f" {float(f'{learned_bias.factor:.2g}'):,.0f} between weights. The distance each"
        f" head favours, and the mean fall of its bias per token (ALiBi would call it its slope): {text}."
    )
    if learned_bias.unmet is None:
        return words
    new = learned_bias.unmet
    return (
        words
        + f" The {new.buckets} buckets from distance {new.distance} on are never used within the context:"
        f" they average {signed(new.mean)}, where distance {learned_bias.last} has {signed(new.met_mean)}."
        " So a text longer than the context meets numbers that nobody taught."
    )


def signed_slope(value: float) -> str:
    """Returns a slope with its sign, a plus too.

    >>> signed_slope(0.5), signed_slope(-0.25)
    ('+0.500', '−0.250')
    """
    return f"+{signed(value)}" if value >= 0 else signed(value)
