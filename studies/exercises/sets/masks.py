"""Masks: which positions may see which, counted."""

from __future__ import annotations

from random import Random

from studies.exercises.exercise import Exercise, mistakes, see
from studies.exercises.forms import Numbers


def causal(rng: Random) -> Exercise:
    length = rng.randint(5, 64)
    allowed = length * (length + 1) // 2
    return Exercise(
        f"A text of $T = {length}$ tokens under the causal mask. How many (query, key) pairs does the mask"
        " allow?",
        Numbers(),
        (allowed,),
        (
            "Token 1 sees 1 token, token 2 sees 2, and so on.",
            f"$1 + 2 + ... + {length} = {length} \\cdot {length + 1} / 2$ = **{allowed:,}**.",
        ),
        mistakes(
            ((allowed - length,), "You left the diagonal out: a token may attend to itself."),
            ((length**2,), "That is the full square, with no mask."),
            ((length**2 // 2,), "Half of the square is close, but the diagonal counts in full."),
        ),
        see("attention", attention_view="mask"),
        {"length": length},
    )


def padding(rng: Random) -> Exercise:
    length = rng.randint(6, 40)
    empty = rng.randint(2, length // 2)
    allowed = length * (length - empty)
    return Exercise(
        f"An encoder reads $T = {length}$ positions; the last {empty} are padding. The padding mask hides"
        f" those **keys**; all {length} queries are computed. How many pairs remain?",
        Numbers(),
        (allowed,),
        (
            f"Each query may attend to {length} − {empty} = {length - empty} keys, in both directions.",
            f"{length} · {length - empty} = **{allowed:,}**.",
        ),
        mistakes(
            ((length**2,), "You forgot the padding: no query may attend to it."),
            (((length - empty) ** 2,), "You removed the queries too. The mask hides keys; rows stay."),
            ((length**2 - empty,), "Each padded key is hidden from *every* query, not just one."),
            (
                ((length - empty) * (length - empty + 1) // 2,),
                "You applied a causal mask. An encoder attends both ways.",
            ),
        ),
        see("crossattention", cross_view="masks"),
        {"length": length, "empty": empty},
    )


def cross(rng: Random) -> Exercise:
    source, target = rng.randint(6, 30), rng.randint(4, 25)
    empty = rng.randint(1, source // 2)
    real = source - empty
    return Exercise(
        f"Translation: the source has {source} positions, {empty} of them padding; the target has {target}"
        " tokens. How many (query, key) pairs does **cross-attention** allow in one head?",
        Numbers(),
        (target * real,),
        (
            f"Queries: the decoder's {target} tokens. Keys: the encoder's {real} real positions.",
            f"Every query may attend to the whole source, so there is no causal mask: {target} · {real} ="
            f" **{target * real:,}**.",
        ),
        mistakes(
            ((target * source,), "You forgot the source's padding."),
            ((source * real,), "The queries are the decoder's tokens, not the encoder's."),
            (
                (target * (target + 1) // 2,),
                "That is the causal mask of the decoder's self-attention. In cross-attention the whole source"
                " is open.",
            ),
            ((target * target,), "The keys come from the encoder's source, not from the target."),
        ),
        see("crossattention", cross_view="masks"),
        {"source": source, "target": target, "empty": empty},
    )


def cone(rng: Random) -> Exercise:
    blocks, length = rng.randint(4, 24), rng.randint(6, 20)
    block, token = rng.randint(1, blocks - 2), rng.randint(2, length - 2)
    later, onward = blocks - block, length - token + 1
    return Exercise(
        f"A decoder of {blocks} blocks reads {length} tokens. You edit the residual stream after block"
        f" {block} at token {token}, in one cell of the grid (block, token). How many **other** cells of the"
        " stream can change (the edit's causal cone)?",
        Numbers(),
        (later * onward,),
        (
            f"In the {later} later blocks the edit stays at its token, and attention carries it to later"
            f" ones: tokens {token} to {length}, {onward} of them.",
            f"{later} · {onward} = **{later * onward:,}**. Beside it in its block nothing changes.",
        ),
        mistakes(
            ((later * (onward - 1),), "You left its own token out: the stream carries the edit upwards."),
            ((later * length,), "The causal mask lets no earlier token see the edit."),
            (
                ((later + 1) * onward - 1,),
                "Other tokens after the same block are computed already: attention carries it on from the"
                " next block.",
            ),
            ((blocks * onward - 1,), "Blocks below have read the stream before the edit."),
        ),
        see("circuits", circuits_view="patching"),
        {"blocks": blocks, "length": length, "block": block, "token": token},
    )


TASKS = (
    ("causal", "Pairs under the causal mask", causal),
    ("cone", "A causal cone", cone),
    ("padding", "Pairs with padding", padding),
    ("cross", "Pairs between two texts", cross),
)
