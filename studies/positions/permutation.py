"""The order of tokens, through attention with and without positions and a causal mask.

Without both, attention is permutation-equivariant: the same outputs come out in the new order (Vaswani et al.
2017, 3.5).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import torch

from engine.config import ModelConfig, Position
from engine.model import Transformer, build
from engine.recording import next_token_losses, record
from studies.attention.ablation import Switches, edits_for

Move = Literal["reverse", "rotate", "shuffle"]
SCHEMES: tuple[Position, ...] = get_args(Position)


@dataclass(frozen=True)
class Plan:
    """A small fresh attention layer: its position scheme, mask and sizes, and the seed of its weights."""

    scheme: Position = "none"
    causal: bool = False
    d_model: int = 16
    n_heads: int = 2
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """The outputs of attention for a sentence in two orders; arrays are (position, d_model), float32.

    `order[i]` is the original position of the word that now stands at i. `after` is in the new order;
    `matched` are its rows put back beside their words. `largest` is the largest |matched - before|.
    """

    order: np.ndarray
    before: np.ndarray = field(repr=False)
    after: np.ndarray = field(repr=False)
    matched: np.ndarray = field(repr=False)
    largest: float

    @property
    def difference(self) -> np.ndarray:
        return self.matched - self.before

    @property
    def by_word(self) -> np.ndarray:
        """The largest |matched - before| of each word, in the order as written: (position,)."""
        return np.abs(self.difference).max(axis=1)


@dataclass(frozen=True, eq=False)
class Setting:
    """A model with some of its switches set, reading a text in order and out of order. `moved` (position,):
    length of the change of each token's final vector over the root mean square length; `relative` is its root
    mean square. Losses are nats per token, None where the mask is off or nothing follows.
    """

    position: bool
    mask: bool
    moved: np.ndarray = field(repr=False)
    relative: float
    loss_in: float | None
    loss_out: float | None


def new_order(length: int, move: Move, seed: int = 0) -> np.ndarray:
    """Returns which item comes to each position, (length,). A shuffle of more than one item moves something.

    >>> new_order(4, "reverse").tolist(), new_order(4, "rotate").tolist()
    ([3, 2, 1, 0], [1, 2, 3, 0])
    """
    places = np.arange(length)
    if move == "reverse":
        return places[::-1].copy()
    if move == "rotate":
        return np.roll(places, -1)
    random = np.random.default_rng(seed)
    order = random.permutation(length)
    while length > 1 and (order == places).all():
        order = random.permutation(length)
    return order


def word_order(tokens: Sequence[str], move: Move, seed: int = 0) -> np.ndarray:
    """Returns an order of tokens that moves whole words: (token,). A word ends with the blanks behind it.

    >>> tokens = list("to be or")
    >>> "".join(tokens[i] for i in word_order(tokens, "reverse"))
    'orbe to '
    """
    words: list[list[int]] = [[]]
    for i, token in enumerate(tokens):
        blank_before = i > 0 and tokens[i - 1][-1:].isspace()
        if (blank_before and not token[:1].isspace()) or (token[:1].isspace() and token.strip()):
            words.append([])
        words[-1].append(i)
    words = [word for word in words if word]
    return np.array([i for at in new_order(len(words), move, seed) for i in words[at]], dtype=np.int64)


def word_ids(words: Sequence[str]) -> tuple[int, ...]:
    """Returns a number for each different word, in order of appearance.

    >>> word_ids(["the", "cat", "the"])
    (0, 1, 0)
    """
    numbers: dict[str, int] = {}
    return tuple(numbers.setdefault(word, len(numbers)) for word in words)


def fresh(plan: Plan, vocab_size: int, context: int) -> Transformer:
    """Builds one untrained block of the engine. Its matrices have the standard deviation 1/sqrt(inputs) and
    its tables 1, not the 0.02 of training, at which every token looks at all others almost alike.
    """
    config = ModelConfig(
        vocab_size=vocab_size,
        context=context,
        d_model=plan.d_model,
        n_layers=1,
        n_heads=plan.n_heads,
        position=plan.scheme,
        causal=plan.causal,
        ffn="none",
    )
    model = build(config, plan.seed).requires_grad_(False).eval()
    random = torch.Generator().manual_seed(plan.seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 2:
                spread = 1 / math.sqrt(weight.shape[1]) if name.startswith("blocks.") else 1.0
                weight.copy_(torch.empty(weight.shape).normal_(0.0, spread, generator=random))
    return model


def compare(ids: Sequence[int], order: np.ndarray, plan: Plan) -> Comparison:
    """Compares attention's output, `attn_out`, for the words `ids` and for the same words in `order`."""
    model = fresh(plan, max(ids) + 1, len(ids))
    before, after = (
        record(model, x, only={"attn_out"})["blocks.0.attn_out"] for x in (ids, [ids[i] for i in order])
    )
    matched = np.empty_like(after)
    matched[order] = after
    return Comparison(order, before, after, matched, float(np.abs(matched - before).max()))


def in_order_and_out(model: Transformer, ids: Sequence[int], order: np.ndarray) -> tuple[Setting, ...]:
    """Reads a text in both orders with positions on and off, and the mask on and off. Switching off edits the
    forward pass (`studies.attention.ablation`). A model without a mask gives two settings.
    """
    masks = (True, False) if model.config.causal else (False,)
    return tuple(_setting(model, ids, order, position, mask) for mask in masks for position in (True, False))


def _setting(
    model: Transformer, ids: Sequence[int], order: np.ndarray, position: bool, mask: bool
) -> Setting:
    switches = Switches(position=position, mask=mask)
    # The edits carry tensors along: each forward pass gets its own.
    runs = [
        record(model, x, edits=edits_for(model, switches), only={"norm_final", "logits"}, positions=position)
        for x in (ids, [ids[i] for i in order])
    ]
    before, after = (run["norm_final"].astype(np.float64) for run in runs)
    matched = np.empty_like(after)
    matched[order] = after
    size = math.sqrt((before**2).sum(-1).mean())
    moved = np.sqrt(((matched - before) ** 2).sum(-1)) / size if size else np.zeros(len(before))
    losses = [float(next_token_losses(run).mean()) if mask and len(ids) > 1 else None for run in runs]
    return Setting(position, mask, moved, math.sqrt((moved**2).mean()), losses[0], losses[1])


SAME = 1e-5  # differences below this are rounding in float32: the outputs here have sizes of 1 to 3
Verdict = Literal["reads the same", "one bag", "mask leaks", "distances kept", "order counts"]


@dataclass(frozen=True, eq=False)
class OrderEffect:
    """The same words in two orders, by (scheme, causal); `unchanged`: the orders read the same."""

    comparisons: Mapping[tuple[Position, bool], Comparison] = field(repr=False)
    unchanged: bool

    def largest(self, scheme: Position, causal: bool) -> float:
        """Returns the largest |matched - before| of that attention."""
        return self.comparisons[scheme, causal].largest

    def verdict(self, scheme: Position, causal: bool) -> Verdict:
        """Judges that attention. `one bag`: nothing tells the order. `mask leaks`: no scheme, but the mask
        tells some. `distances kept`: ALiBi without a mask, in an order that keeps every distance.
        """
        if self.unchanged:
            return "reads the same"
        if scheme == "none":
            return "mask leaks" if causal else "one bag"
        if scheme == "alibi" and self.largest(scheme, causal) < SAME:
            return "distances kept"
        return "order counts"


def order_effect(ids: Sequence[int], order: np.ndarray) -> OrderEffect:
    """Runs the words `ids` as they are and in `order` through a fresh attention of each scheme."""
    result = {(s, mask): compare(ids, order, Plan(s, mask)) for mask in (False, True) for s in SCHEMES}
    return OrderEffect(result, [ids[i] for i in order] == list(ids))


def moves_nothing(order: np.ndarray) -> bool:
    """True if every item stays at its position.

    >>> moves_nothing(np.array([0, 1])), moves_nothing(np.array([1, 0]))
    (True, False)
    """
    return bool((order == np.arange(len(order))).all())


def setting_of(settings: Sequence[Setting], position: bool, mask: bool) -> Setting | None:
    """Returns the setting with these switches; None where the model has none."""
    return next((s for s in settings if (s.position, s.mask) == (position, mask)), None)
