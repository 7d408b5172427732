"""The neurons of the feed-forward networks: what excites them, and what they write.

A neuron is one of the `d_ff` entries of `ffn_post`. Its row of W_in decides when it fires, its column of
W_out is what it then adds to the residual stream: a key and a value (Geva et al. 2021, "Transformer
Feed-Forward Layers Are Key-Value Memories").
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from engine.data.progress import Progress, Steps
from engine.errors import HeadError, ShapeError
from engine.model import Transformer
from engine.probe import Recorder

# Of a layer's root mean square: below it, a neuron of a kind that is never exactly 0 counts as quiet.
QUIET = 0.1


@dataclass(frozen=True)
class Peak:
    """A neuron's largest activation by size, with its sign, at a position of the text."""

    layer: int
    neuron: int
    value: float
    position: int


def strongest(post: np.ndarray, skip: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Returns the largest activation by size, with sign, and its position: -> both (layer, d_ff)."""
    at = np.abs(post[:, skip:]).argmax(axis=1) + skip
    return np.take_along_axis(post, at[:, None, :], axis=1)[:, 0], at


def most_active(post: np.ndarray, count: int, skip: int = 0) -> list[Peak]:
    """Returns the `count` strongest neurons of post (layer, query, d_ff) behind `skip` tokens."""
    values, at = strongest(post, skip)
    order = np.argsort(-np.abs(values), axis=None, kind="stable")[:count]
    layers, neurons = np.unravel_index(order, values.shape)
    return [
        Peak(int(i), int(n), float(values[i, n]), int(at[i, n])) for i, n in zip(layers, neurons, strict=True)
    ]


def quiet_share(post: np.ndarray, exact_zeros: bool) -> np.ndarray:
    """Returns the share of quiet activations of each layer, in [0, 1]: post (layer, query, d_ff) -> (layer,).
    With `exact_zeros` (ReLU and squared ReLU) those that are exactly 0; with smooth kinds those smaller than
    QUIET times the root mean square of their layer.
    """
    if exact_zeros:
        return (post == 0).mean(axis=(1, 2))
    size = np.sqrt(np.square(post, dtype=np.float64).mean(axis=(1, 2), keepdims=True))
    return (np.abs(post) < QUIET * size).mean(axis=(1, 2))


# What a neuron writes ---------------------------------------------------------------------------


@torch.inference_mode()
def token_scores(model: Transformer, layer: int, neuron: int, *, through_norm: bool = True) -> np.ndarray:
    """Returns how much one unit of a neuron raises each token's logit above the average token's: (vocab,).

    The neuron's column of W_out times the unembedding, minus the mean over the vocabulary, which no softmax
    sees. `through_norm` applies the linear part of the final norm (centring, gain). The norm's division and
    later layers are left out. Raises ShapeError, or HeadError where logits are no product with W_U.
    """
    write = output_vector(model, layer, neuron)  # (d_model,)
    if not model.output.linear:
        raise HeadError(
            "this model's output is not a product with W_U, so a neuron raises no logit by a fixed amount"
        )
    if through_norm:
        write = model.norm_final.linear_part(write)
    scores = (model.output_matrix @ write).double()  # (vocab, d_model) (d_model,) -> (vocab,)
    return (scores - scores.mean()).float().numpy()


def output_vector(model: Transformer, layer: int, neuron: int) -> Tensor:
    """Returns a neuron's column of W_out, (d_model,): its write per unit of activation. Raises ShapeError."""
    check_neuron(model, layer, neuron)
    ffn: Any = model.blocks[layer].ffn
    return ffn.column(neuron)


def check_neuron(model: Transformer, layer: int, neuron: int) -> None:
    """Raises ShapeError, saying what there is, for a neuron that the model does not have."""
    c = model.config
    if not model.parts.feedforward(c).present:
        raise ShapeError("this model has no feed-forward networks, so it has no neurons")
    if not (0 <= layer < c.n_layers and 0 <= neuron < c.d_hidden):
        there = f"layers 0 to {c.n_layers - 1}, neurons 0 to {c.d_hidden - 1}"
        raise ShapeError(f"there is no neuron {neuron} in layer {layer}: the model has {there}")


# What excites the neurons -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scan:
    """The strongest activations of one layer's neurons among `total` tokens, strongest first.

    `highest` and `lowest` (d_ff, top) are activations, `*_at` their positions among the ids, -1 where the
    text is too short for so many. `positive` (d_ff,) is the share of tokens with an activation above zero.
    `window` is how many tokens the model saw at once.
    """

    total: int
    window: int
    highest: np.ndarray
    highest_at: np.ndarray
    lowest: np.ndarray
    lowest_at: np.ndarray
    positive: np.ndarray


class _Findings:
    """The findings of a scan in one layer, so far."""

    def __init__(self, d_hidden: int, top: int, apart: int) -> None:
        none = torch.empty(0, d_hidden), torch.empty(0, d_hidden, dtype=torch.int64)
        self.best, self.worst, self.positive = none, none, torch.zeros(d_hidden, dtype=torch.int64)
        self.top, self.apart = top, apart

    def read(self, post: Tensor, offset: int) -> None:
        """Takes in activations (tokens, d_hidden), of the tokens from `offset` on."""
        self.positive += (post > 0).sum(0)
        self.best = _merge(self.best, _stretches(post, offset, self.apart), self.top)
        self.worst = _merge(self.worst, _stretches(-post, offset, self.apart), self.top)

    def result(self, total: int, window: int) -> Scan:
        return Scan(
            total,
            window,
            self._whole(self.best[0], -np.inf),
            self._whole(self.best[1], -1),
            -self._whole(self.worst[0], -np.inf),
            self._whole(self.worst[1], -1),
            (self.positive / total).numpy(),
        )

    def _whole(self, values: Tensor, fill: float) -> np.ndarray:
        missing = self.top - len(values)
        return torch.nn.functional.pad(values, (0, 0, 0, missing), value=fill).T.numpy()


def scan(
    model: Transformer,
    ids: Sequence[int] | np.ndarray,
    *,
    window: int,
    batch: int = 16,
    top: int = 8,
    apart: int = 16,
) -> Steps[tuple[Scan, ...]]:
    """Reads ids (position,) in windows of `window` tokens, `batch` windows at a time. Returns a
    Scan of each layer.

    Only the strongest of every stretch of `apart` tokens counts, not all from one line. Tokens past the last
    whole window are left out. Raises ShapeError for no ids, or when the model has no neurons.
    """
    check_neuron(model, 0, 0)
    tokens = torch.as_tensor(np.asarray(ids, dtype=np.int64))
    window = min(window, len(tokens))
    if window < 1:
        raise ShapeError("there is no text to read: give at least one token")
    rows = tokens[: len(tokens) // window * window].view(-1, window)
    layers = range(model.config.n_layers)
    findings = [_Findings(model.config.d_hidden, top, apart) for _ in layers]
    for start in range(0, len(rows), batch):
        for of, post in zip(findings, _posts(model, rows[start : start + batch], layers), strict=True):
            of.read(post.flatten(0, 1), start * window)  # (batch, window, d_ff) -> (tokens, d_ff)
        yield Progress(min(start + batch, len(rows)) * window, rows.numel())
    return tuple(of.result(rows.numel(), window) for of in findings)


def activations_near(
    model: Transformer,
    ids: Sequence[int] | np.ndarray,
    layer: int,
    neuron: int,
    starts: Sequence[int],
    window: int,
    *,
    batch: int = 8,
) -> Steps[np.ndarray]:
    """Returns a neuron's activations in the windows at `starts`: (len(starts), window)."""
    check_neuron(model, layer, neuron)
    tokens = torch.as_tensor(np.asarray(ids, dtype=np.int64))
    near = []
    for first in range(0, len(starts), batch):
        rows = torch.stack([tokens[start : start + window] for start in starts[first : first + batch]])
        near.append(_posts(model, rows, [layer])[0][:, :, neuron].numpy())
        yield Progress(min(first + batch, len(starts)), len(starts))
    return np.concatenate(near)


@torch.inference_mode()
def _posts(model: Transformer, rows: Tensor, layers: Sequence[int]) -> list[Tensor]:
    """Returns `ffn_post` of layers, given from the first up: rows (batch, position) -> each (batch, position,
    d_ff).
    """
    names = [f"blocks.{layer}.ffn_post" for layer in layers]
    recorder = Recorder(only=set(names))

    def until_there(seen: str, x: Tensor) -> Tensor:
        recorder(seen, x)
        if seen == names[-1]:
            raise _Reached
        return x

    with suppress(_Reached):  # the layers above are not needed
        model(rows, until_there)
    return [recorder[name].float() for name in names]


class _Reached(Exception):
    """Ends a forward pass half way."""


def _stretches(values: Tensor, offset: int, apart: int) -> tuple[Tensor, Tensor]:
    """Returns the largest of each `apart` tokens, and where, the first of several: values (tokens, d_ff) ->
    two (stretches, d_ff).
    """
    if missing := -len(values) % apart:
        values = torch.nn.functional.pad(values, (0, 0, 0, missing), value=-torch.inf)
    stretches = values.view(-1, apart, values.shape[1])
    # As `stretches.max(dim=1)`, in a fifth of its time
    largest = stretches.amax(dim=1)
    behind = torch.arange(apart - 1, -1, -1, dtype=torch.int16)[:, None]  # (apart, 1): of the first the most
    largest_here = (stretches == largest[:, None]) | stretches.isnan()
    at = apart - 1 - (largest_here * behind).amax(dim=1).long()
    return largest, at + offset + apart * torch.arange(len(stretches))[:, None]


def _merge(known: tuple[Tensor, Tensor], new: tuple[Tensor, Tensor], top: int) -> tuple[Tensor, Tensor]:
    """Returns the `top` largest of both, column by column."""
    values, at = torch.cat((known[0], new[0])), torch.cat((known[1], new[1]))
    largest, which = values.topk(min(top, len(values)), dim=0)
    return largest, at.gather(0, which)


Side = Literal["strongest", "highest", "lowest"]  # strongest: whichever of the other two is larger
SIDES: tuple[Side, ...] = ("strongest", "highest", "lowest")


def loudest(values: np.ndarray) -> tuple[int, ...]:
    """Returns the indices of the largest activation by size; the first of several."""
    return tuple(int(i) for i in np.unravel_index(np.abs(values).argmax(), values.shape))


def by_size(values: np.ndarray, count: int | None = None) -> np.ndarray:
    """Returns the indices of the `count` largest of values (n,) by size, largest first; with None all, in
    their order.
    """
    return np.arange(len(values)) if count is None else np.argsort(-np.abs(values), kind="stable")[:count]


MASSIVE = 10.0


def first_is_massive(post: np.ndarray) -> bool:
    """True if the first token excites some neuron more than MASSIVE times as much as any other token does
    any: post (layer, query, d_ff) (Sun et al. 2024, "Massive activations in large language models").
    """
    if post.shape[1] < 2:
        return False
    size = np.abs(post).max(axis=(0, 2))  # (query,)
    return bool(size[0] > MASSIVE * size[1:].max())


def scale_end(values: np.ndarray) -> tuple[float, bool]:
    """Returns the end of a colour scale for activations, and whether the largest lie beyond it."""
    size = np.abs(values)
    top = float(size.max(initial=0.0))
    usual = float(np.quantile(size, 0.999)) if size.size else top
    return (usual, True) if 0 < 3 * usual < top else (top, False)


@dataclass(frozen=True, eq=False)
class NeuronProfile:
    """One neuron along a text: `peak` at position `at`, its ends, and sizes (query,) of the peak's."""

    at: int
    peak: float
    low: float
    high: float
    sizes: np.ndarray


def along(values: np.ndarray) -> NeuronProfile:
    """Summarises activations (query,)."""
    size = np.abs(values)
    at = int(size.argmax())
    top = max(float(size[at]), 1e-9)
    return NeuronProfile(at, float(values[at]), float(values.min()), float(values.max()), size / top)


@dataclass(frozen=True, eq=False)
class PromotedTokens:
    """Tokens by how much a write raises their logits, `order` (vocab,), and both of its ends."""

    order: np.ndarray
    raised: np.ndarray
    lowered: np.ndarray

    def ends(self, count: int) -> np.ndarray:
        """Returns `order`; of more than 2 `count` tokens only the first and the last `count`."""
        if len(self.order) <= 2 * count:
            return self.order
        return np.concatenate((self.order[:count], self.order[-count:]))


def promoted(scores: np.ndarray, count: int = 8) -> PromotedTokens:
    """Sorts `token_scores` (vocab,). No token is on both ends."""
    order = np.argsort(-scores, kind="stable")
    count = min(count, len(order) // 2)
    return PromotedTokens(order, order[:count], order[::-1][:count])


# In a corpus ------------------------------------------------------------------------------------


def shows_lowest(scan: Scan, neuron: int, side: Side) -> bool:
    """True if the positions to show are those where the neuron is lowest."""
    if side == "strongest":
        return bool(-scan.lowest[neuron, 0] > scan.highest[neuron, 0])
    return side == "lowest"


def top_activations(scan: Scan, neuron: int, lowest: bool) -> tuple[np.ndarray, np.ndarray]:
    """Returns (positions, activations) of a neuron's strongest activations, strongest first."""
    at = (scan.lowest_at if lowest else scan.highest_at)[neuron]
    at = at[at >= 0]
    return at, (scan.lowest if lowest else scan.highest)[neuron, : len(at)]


def windows(at: np.ndarray, window: int) -> list[int]:
    """Returns the starts of the windows in which those positions were read."""
    return [int(p) // window * window for p in at]


@dataclass(frozen=True)
class FavouriteToken:
    """The token at which `count` of a neuron's strongest `positions` are; `value` is the strongest."""

    token: int
    count: int
    positions: int
    value: float


def liked(at: np.ndarray, values: np.ndarray, ids: np.ndarray) -> FavouriteToken:
    """Finds the commonest token at the positions `at`; of several, the strongest: `ids` (position,)."""
    tokens = np.asarray(ids)[at]
    often = (tokens[:, None] == tokens).sum(1)
    token = int(tokens[int(often.argmax())])
    return FavouriteToken(token, int(often.max()), len(tokens), float(values[0]))


@dataclass(frozen=True, eq=False)
class Excerpt:
    """A position `at` in a corpus, the neuron's `value` there, and the tokens around it from `first` on.
    `strengths` (token,) are shares of the strongest of all excerpts, in about [-1, 1]. `missing` tokens in
    front were not read with it.
    """

    at: int
    value: float
    first: int
    strengths: np.ndarray
    missing: int


def excerpts(
    at: np.ndarray, values: np.ndarray, near: np.ndarray, window: int, before: int, after: int
) -> list[Excerpt]:
    """Cuts excerpts of one window around `at` (position,); `near` (position, window) are activations."""
    scale = max(float(np.abs(values).max(initial=0.0)), 1e-9)
    result = []
    for position, value, row, start in zip(at.tolist(), values, near, windows(at, window), strict=True):
        first, last = max(start, position - before), min(start + window, position + after + 1)
        strengths = row[first - start : last - start] / scale
        result.append(Excerpt(position, float(value), first, strengths, before - (position - first)))
    return result
