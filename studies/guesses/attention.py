"""Guesses about attention: the width of a head, the mask, a part or a head that is switched off."""

from __future__ import annotations

import numpy as np

from engine.data.progress import finish
from engine.model import Transformer
from engine.recording import Recording
from studies.attention.ablation import Switches, UnmaskedReading, compare
from studies.attention.fixed_memory import Pairs, given_back, last_key_again
from studies.attention.scaling import sample_query
from studies.circuits.induction import Repeat
from studies.circuits.knockout import Head, losses_without, under
from studies.costs.cards.table import card_of
from studies.guesses import Truth

NARROW, WIDE = 4, 128  # widths of a head, each far from where the other begins
MOVED = 0.05  # of all weight: what an eye sees of a bar
NEAR = 0.1  # of a loss: about the same
OFF = {"mask": Switches(mask=False), "scale": Switches(scale=False), "position": Switches(position=False)}
HEARD = 0.2  # cosine of what a memory gives back with a value that one would say it knows
LEAST = 0.02  # nats by which the worst of several must be worse than the next to be asked for


def written_twice(pairs: Pairs) -> Truth | None:
    """Compares what the first key gives back of a sum, once it is the last one's as well, with both values:
    "both" is right. None where one of them is lost among the others.
    """
    twice = last_key_again(pairs)
    read = given_back(twice, "adding")[0]
    old, new = (float(read @ value) / float(np.linalg.norm(read)) for value in twice.values[[0, -1]])
    return Truth("both", ("both", "new", "old"), {"old": old, "new": new}) if min(old, new) > HEARD else None


def other_width(width: int) -> int:
    """Returns the width that is guessed about: far from this one.

    >>> other_width(64), other_width(4)
    (4, 128)
    """
    return NARROW if width >= WIDE // 4 else WIDE


def width(now: int, seed: int) -> Truth:
    """Compares the largest weight of one query at `other_width` with this width's, scores undivided."""
    before, after = sample_query(now, seed), sample_query(other_width(now), seed)
    change = after.most_plain - before.most_plain
    right = "sharper" if change > MOVED else "flatter" if change < -MOVED else "same"
    numbers = {
        "before": before.most_plain,
        "after": after.most_plain,
        "divided_before": before.most_scaled,
        "divided_after": after.most_scaled,
    }
    return Truth(right, ("sharper", "flatter", "same"), numbers)


def unmasked(measured: UnmaskedReading) -> Truth | None:
    """Classifies the loss without the mask: a quarter or less, about the same, higher, or None."""
    before, after = measured.mean_with, measured.mean_without
    if after > (1 + NEAR) * before:
        right = "higher"
    elif after >= (1 - NEAR) * before:
        right = "same"
    elif after <= before / 4:
        right = "nothing"
    else:
        return None
    return Truth(right, ("nothing", "same", "higher"), {"before": before, "after": after})


def dearest_part(model: Transformer, before: Recording) -> Truth | None:
    """Returns the part of attention without which the text's loss rises most, of those it has."""
    config = model.config
    there = {
        "mask": config.causal,
        "scale": config.score_scale and card_of(model.parts.mixer(config)).scored,
        "position": model.parts.position(config).present,
    }
    losses = {}
    for part in (name for name, has in there.items() if has):
        after = compare(model, before, OFF[part])
        if after.loss_before is None or after.loss_after is None:
            return None
        losses[part] = after.loss_after
        whole = after.loss_before
    return _worst(losses, {"whole": whole}) if losses else None


def candidates(repeat: Repeat) -> dict[str, Head]:
    """Returns heads to choose among by their roles: "copies" is the best induction head, "before" the one
    below it that reads the previous token, "idle" the one that does neither. Missing ones are left out.
    """
    if not repeat.strong:
        return {}
    copies = repeat.strong[0]
    result = {"copies": (copies.layer, copies.head)}
    if below := under(repeat):
        result["before"] = (below[0].layer, below[0].head)
    both = repeat.scores + repeat.previous
    layer, head = divmod(int(both.argmin()), both.shape[1])
    if (layer, head) not in result.values():
        result["idle"] = (layer, head)
    return result


def missed_head(model: Transformer, repeat: Repeat) -> Truth | None:
    """Returns the candidate whose ablation costs the second reading most."""
    heads = candidates(repeat)
    if len(heads) < 2:
        return None
    alone = [(head,) for head in heads.values()]
    result = finish(losses_without(model, (*repeat.once, *repeat.once), alone, len(repeat.once) + 1))
    losses = {name: float(loss) for name, loss in zip(heads, result.mean(1), strict=True)}
    return _worst(losses, {"whole": repeat.second_loss})


def _worst(losses: dict[str, float], rest: dict[str, float]) -> Truth | None:
    """The name with the highest loss; None where no other is clearly below it."""
    order = sorted(losses, key=lambda name: -losses[name])
    if len(order) < 2 or losses[order[0]] - losses[order[1]] < LEAST:
        return None
    return Truth(order[0], tuple(losses), losses | rest)
