"""Heads switched off, best first, against random ones of the same layers: which does copying need?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.data.progress import Progress, Steps
from engine.errors import ShapeError
from engine.model import Transformer
from engine.parts.attention import by_heads
from engine.parts.blocks import PassContext
from engine.probe import Probe, Recorder, identity
from engine.recording import check_plain_stack
from studies.attention.head_patterns import STRONG
from studies.attention.heads import HeadValue, ranked_heads
from studies.circuits.induction import Repeat

Head = tuple[int, int]  # (layer, head), counted from 0
ROWS = 8  # copies of the text that a block reads at once: more of them leave the processor's cache
BELOW = 4  # heads under the best one, at most
WEAK = 0.1  # of its weight: a head that looks there less is drawn among the others
LOGITS = 64 << 20  # bytes of logits held at once


@dataclass(frozen=True, eq=False)
class Knockout:
    """The mean loss of the second reading, nats per token, with 0, 1, ... heads off (they write nothing).

    `without` (1 + heads,): the best ones, `heads` in that order. `others` (draw, 1 + heads): in each one's
    stead a random head of the same layer. `below` are heads under the best one that read the token before,
    each with the loss when it is off, the most missed first.
    """

    heads: tuple[Head, ...]
    without: np.ndarray = field(repr=False)
    others: np.ndarray = field(repr=False)
    below: tuple[HeadValue, ...]

    @property
    def others_mean(self) -> np.ndarray:
        """The mean over the draws, (1 + heads,)."""
        return self.others.mean(0)


def knock_out(
    model: Transformer, repeat: Repeat, most: int = 8, draws: int = 4, seed: int = 0
) -> Steps[Knockout]:
    """Switches off up to `most` heads, best first, and `draws` times as many random ones; at most half of
    all. Raises ShapeError for a model with a single head.
    """
    most = min(most, repeat.scores.size // 2)
    if most < 1:
        raise ShapeError("this model has only one head, so there is no other to compare it with")
    heads = tuple((head.layer, head.head) for head in repeat.best[:most])
    rng = np.random.default_rng(seed)
    orders = [heads, *(matched(repeat, heads, rng) for _ in range(draws))]
    alone = [((head.layer, head.head),) for head in under(repeat)]
    sets = [order[:count] for order in orders for count in range(1, most + 1)]
    losses = yield from losses_without(
        model, (*repeat.once, *repeat.once), [*sets, *alone], len(repeat.once) + 1
    )
    means = losses.mean(1)
    curves = means[: len(sets)].reshape(len(orders), most)
    curves = np.concatenate((np.full((len(orders), 1), repeat.second_loss), curves), axis=1)
    pairs = zip(means[len(sets) :], alone, strict=True)
    below = tuple(
        HeadValue(layer, head, float(loss)) for loss, ((layer, head),) in sorted(pairs, reverse=True)
    )
    return Knockout(heads, curves[0], curves[1:], below)


def matched(repeat: Repeat, heads: Sequence[Head], rng: np.random.Generator) -> tuple[Head, ...]:
    """Draws another head for each, in its layer or the nearest, of a score below WEAK if possible."""
    left = {(head.layer, head.head): head.value for head in repeat.best}
    for head in heads:
        del left[head]
    result: list[Head] = []
    for layer, _ in heads:
        pool = [head for head, value in left.items() if value < WEAK] or list(left)
        near = min(abs(at - layer) for at, _ in pool)
        pool = [head for head in pool if abs(head[0] - layer) == near]
        result.append(pool[int(rng.integers(len(pool)))])
        del left[result[-1]]
    return tuple(result)


def under(repeat: Repeat) -> tuple[HeadValue, ...]:
    """Returns heads below the best induction head that read the token before (Elhage et al. 2021)."""
    result = ranked_heads(repeat.previous[: repeat.best[0].layer])
    return tuple(head for head in result if head.value >= STRONG)[:BELOW]


@torch.inference_mode()
def losses_without(
    model: Transformer, ids: Sequence[int], sets: Sequence[Sequence[Head]], start: int
) -> Steps[np.ndarray]:
    """Measures the loss of each token from `start` on with each set of heads off: (set, token), nats.

    Each copy of the text joins at the block of its lowest head that is off, with the whole model's stream. A
    piece of work is a copy through one block, or through the unembedding. Raises ConfigError for a mixer
    without heads, ShapeError for a head that is not there.
    """
    check_plain_stack(model.parts)
    c = model.config
    if not all(0 <= layer < c.n_layers and 0 <= head < c.n_heads for off in sets for layer, head in off):
        raise ShapeError(f"heads lie between 0.0 and {c.n_layers - 1}.{c.n_heads - 1}")
    recorder = Recorder({"resid_pre", "norm_final"})
    tokens = torch.tensor([list(ids)], device=model.embedding.device)
    model(tokens, recorder)
    order = sorted(range(len(sets)), key=lambda i: _lowest(sets[i], c.n_layers))
    x = recorder["norm_final"].new_empty((0, len(ids), c.d_model))
    context = PassContext(model.hooks(len(ids), x), model.mask(len(ids), x))
    done, total = 0, len(sets) + sum(c.n_layers - _lowest(off, c.n_layers) for off in sets)
    for layer, block in enumerate(model.blocks):
        inside = [sets[i] for i in order if _lowest(sets[i], c.n_layers) <= layer]
        whole = recorder[f"blocks.{layer}.resid_pre"]
        x = torch.cat((x, whole.expand(len(inside) - len(x), -1, -1)))
        by_heads(block.mixer)
        some = range(0, len(inside), ROWS)
        parts = [
            block(x[i : i + ROWS], context._replace(probe=_off(inside[i : i + ROWS], layer))) for i in some
        ]
        x = torch.cat(parts) if parts else x
        done += len(x)
        yield Progress(done, total)
    read = torch.cat((model.norm_final(x), recorder["norm_final"].expand(len(sets) - len(x), -1, -1)))
    result: list[np.ndarray] = []
    for losses in _losses(model, read[:, start - 1 : -1], tokens[0, start:]):
        result.append(losses)
        done += len(losses)
        yield Progress(done, total)
    return np.concatenate(result)[np.argsort(order)]


def _lowest(off: Sequence[Head], otherwise: int) -> int:
    return min((layer for layer, _ in off), default=otherwise)


def _off(rows: Sequence[Sequence[Head]], layer: int) -> Probe:
    """Returns a probe of one block: in row i its heads of rows[i] write nothing."""
    places = [(row, head) for row, off in enumerate(rows) for at, head in off if at == layer]

    def probe(name: str, x: Tensor) -> Tensor:
        if not places or name != "z":
            return x
        x = x.clone()  # (batch, head, query, d_head)
        x[[row for row, _ in places], [head for _, head in places]] = 0.0
        return x

    return probe


def _losses(model: Transformer, read: Tensor, targets: Tensor) -> Iterator[np.ndarray]:
    """Yields the losses of normed streams (row, query, d_model): (rows, query) at a time, nats."""
    rows = max(1, LOGITS // (4 * model.config.vocab_size * len(targets)))
    for some in read.split(rows):
        logits = model.output(some, model.output_matrix, identity).float()  # (row, query, vocab)
        following = targets.expand(len(some), -1)
        losses = F.cross_entropy(logits.flatten(0, 1), following.flatten(), reduction="none")
        yield losses.view(following.shape).cpu().numpy()
