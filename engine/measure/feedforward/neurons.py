"""The neurons of the feed-forward networks: what excites them, and what they write.

A neuron is one of the `d_ff` entries of `ffn_post`. Its row of W_in decides when it fires, its column of
W_out is what it then adds to the residual stream: a key and a value (Geva et al. 2021, "Transformer
Feed-Forward Layers Are Key-Value Memories").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.data.progress import Progress, Steps
from engine.errors import HeadError, ShapeError
from engine.model import Transformer
from engine.probe import Recorder

QUIET = (
    0.1  # of a layer's root mean square: below it, a neuron of a kind that is never exactly 0 counts as quiet
)


@dataclass(frozen=True)
class Peak:
    """Where a neuron answers most strongly: its largest activation by size, with its sign, at a position of
    the text.
    """

    layer: int
    neuron: int
    value: float
    position: int


def strongest(post: np.ndarray, skip: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """post (layer, query, d_ff) -> the activation of largest size over the text without its first `skip`
    tokens, with its sign, and its position: both (layer, d_ff).
    """
    at = np.abs(post[:, skip:]).argmax(axis=1) + skip
    return np.take_along_axis(post, at[:, None, :], axis=1)[:, 0], at


def most_active(post: np.ndarray, count: int, skip: int = 0) -> list[Peak]:
    """The `count` neurons of post (layer, query, d_ff) that answer most strongly anywhere in the text behind
    its first `skip` tokens, strongest first.
    """
    values, at = strongest(post, skip)
    order = np.argsort(-np.abs(values), axis=None, kind="stable")[:count]
    layers, neurons = np.unravel_index(order, values.shape)
    return [
        Peak(int(i), int(n), float(values[i, n]), int(at[i, n])) for i, n in zip(layers, neurons, strict=True)
    ]


def quiet_share(post: np.ndarray, exact_zeros: bool) -> np.ndarray:
    """Share of the activations of each layer that say nothing, in [0, 1]: post (layer, query, d_ff) ->
    (layer,).

    With kinds that have `exact_zeros` (ReLU and squared ReLU) those that are exactly 0; with the smooth
    kinds, which hardly ever are, those smaller than QUIET times the root mean square of their layer.
    """
    if exact_zeros:
        return (post == 0).mean(axis=(1, 2))
    size = np.sqrt(np.square(post, dtype=np.float64).mean(axis=(1, 2), keepdims=True))
    return (np.abs(post) < QUIET * size).mean(axis=(1, 2))


# What a neuron writes ---------------------------------------------------------------------------


@torch.inference_mode()
def token_scores(model: Transformer, layer: int, neuron: int, *, through_norm: bool = True) -> np.ndarray:
    """How much one unit of a neuron raises each token's logit above the average token's: (vocab,).

    The neuron's column of W_out, (d_model,), times the unembedding, minus the mean over the vocabulary,
    which no softmax sees. `through_norm` sends the column through the linear part of the final norm first:
    centred where that is LayerNorm, and times its gain. Left out either way are the norm's division, which
    depends on the whole stream, and what later layers make of the write. Raises ShapeError when there is no
    such neuron, HeadError where logits are no product with W_U.
    """
    write = output_vector(model, layer, neuron)  # (d_model,)
    if not model.output.linear:
        raise HeadError(
            "this model's output is no product with W_U: a neuron raises no logit by a fixed amount"
        )
    if through_norm:
        write = model.norm_final.linear(write)
    scores = (model.output_matrix @ write).double()  # (vocab, d_model) (d_model,) -> (vocab,)
    return (scores - scores.mean()).float().numpy()


def output_vector(model: Transformer, layer: int, neuron: int) -> Tensor:
    """A neuron's column of W_out: what it adds to the stream for each unit of its activation, (d_model,).
    Raises ShapeError.
    """
    check_neuron(model, layer, neuron)
    ffn: Any = model.blocks[layer].ffn
    found: Tensor = ffn.column(neuron)
    return found


def check_neuron(model: Transformer, layer: int, neuron: int) -> None:
    """Raises ShapeError, saying what there is, for a neuron that the model does not have."""
    c = model.config
    if not model.parts.feedforward(c).present:
        raise ShapeError("this model has no feed-forward networks, so it has no neurons")
    if not (0 <= layer < c.n_layers and 0 <= neuron < c.d_ff):
        there = f"layers 0 to {c.n_layers - 1}, neurons 0 to {c.d_ff - 1}"
        raise ShapeError(f"there is no neuron {neuron} in layer {layer}: the model has {there}")


# What excites the neurons -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scan:
    """The strongest answers of one layer's neurons within the first `done` of `total` tokens; strongest
    first.

    `highest` and `lowest` (d_ff, top) are activations, `*_at` their positions among the ids, -1 where the
    text is too short for so many. `positive` (d_ff,) is the share of tokens at which the neuron is above
    zero. `window` is how many tokens the model saw at once.
    """

    done: int
    total: int
    window: int
    highest: np.ndarray
    highest_at: np.ndarray
    lowest: np.ndarray
    lowest_at: np.ndarray
    positive: np.ndarray


def scan(
    model: Transformer,
    ids: Sequence[int] | np.ndarray,
    layer: int,
    *,
    window: int,
    batch: int = 16,
    top: int = 8,
    apart: int = 16,
) -> Iterator[Scan]:
    """Reads ids (position,) in windows of `window` tokens, `batch` windows at a time, and yields the state
    after each batch.

    Of every stretch of `apart` tokens only the strongest counts, so that the answers are not all from one
    line. Tokens past the last whole window are left out. Raises ShapeError for no ids, or when the model has
    no such layer.
    """
    check_neuron(model, layer, 0)
    tokens = torch.as_tensor(np.asarray(ids, dtype=np.int64))
    window = min(window, len(tokens))
    if window < 1:
        raise ShapeError("there is no text to read: give at least one token")
    rows = tokens[: len(tokens) // window * window].view(-1, window)
    best: tuple[Tensor, Tensor] | None = None
    worst: tuple[Tensor, Tensor] | None = None
    positive = torch.zeros(model.config.d_ff, dtype=torch.int64)
    for start in range(0, len(rows), batch):
        post = _post(model, rows[start : start + batch], layer).flatten(
            0, 1
        )  # (batch, window, d_ff) -> (tokens, d_ff)
        positive += (post > 0).sum(0)
        best = _merge(best, _stretches(post, start * window, apart), top)
        worst = _merge(worst, _stretches(-post, start * window, apart), top)
        done = min(start + batch, len(rows)) * window
        yield _state(done, rows.numel(), window, best, worst, positive, top)


def scanning(
    model: Transformer, ids: Sequence[int] | np.ndarray, layer: int, *, window: int, batch: int
) -> Steps[Scan]:
    """The last state of `scan`, with a progress after each batch."""
    last: Scan | None = None
    for last in scan(model, ids, layer, window=window, batch=batch):
        yield Progress(last.done, last.total)
    assert last is not None  # a scan has at least one batch
    return last


def nearing(
    model: Transformer,
    ids: Sequence[int] | np.ndarray,
    layer: int,
    neuron: int,
    starts: Sequence[int],
    window: int,
) -> Steps[np.ndarray]:
    """As `activations_near`, window by window, with a progress after each."""
    rows = []
    for start in starts:
        rows.append(activations_near(model, ids, layer, neuron, [start], window)[0])
        yield Progress(len(rows), len(starts))
    return np.stack(rows)


def activations_near(
    model: Transformer,
    ids: Sequence[int] | np.ndarray,
    layer: int,
    neuron: int,
    starts: Sequence[int],
    window: int,
) -> np.ndarray:
    """A neuron's activation at each token of the windows that begin at `starts`: (len(starts), window), in
    one batched pass.
    """
    check_neuron(model, layer, neuron)
    tokens = torch.as_tensor(np.asarray(ids, dtype=np.int64))
    rows = torch.stack([tokens[start : start + window] for start in starts])
    return _post(model, rows, layer)[:, :, neuron].numpy()


@torch.inference_mode()
def _post(model: Transformer, rows: Tensor, layer: int) -> Tensor:
    """`ffn_post` of one layer: rows (batch, position) -> (batch, position, d_ff)."""
    name = f"blocks.{layer}.ffn_post"
    recorder = Recorder(only={name})

    def until_there(seen: str, x: Tensor) -> Tensor:
        recorder(seen, x)
        if seen == name:
            raise _Reached
        return x

    with suppress(_Reached):  # the layers above are not needed
        model(rows, until_there)
    return recorder[name].float()


class _Reached(Exception):
    """Ends a forward pass half way."""


def _stretches(values: Tensor, offset: int, apart: int) -> tuple[Tensor, Tensor]:
    """The largest of each `apart` tokens, and where: values (tokens, d_ff) -> two (stretches, d_ff)."""
    missing = -len(values) % apart
    padded = torch.nn.functional.pad(values, (0, 0, 0, missing), value=-torch.inf).view(
        -1, apart, values.shape[1]
    )
    found, at = padded.max(dim=1)
    return found, at + offset + apart * torch.arange(len(padded))[:, None]


def _merge(
    known: tuple[Tensor, Tensor] | None, new: tuple[Tensor, Tensor], top: int
) -> tuple[Tensor, Tensor]:
    """The `top` largest of what is known and what is new, column by column."""
    values, at = new if known is None else (torch.cat((known[0], new[0])), torch.cat((known[1], new[1])))
    largest, which = values.topk(min(top, len(values)), dim=0)
    return largest, at.gather(0, which)


def _state(
    done: int,
    total: int,
    window: int,
    best: tuple[Tensor, Tensor],
    worst: tuple[Tensor, Tensor],
    positive: Tensor,
    top: int,
) -> Scan:
    def whole(values: Tensor, fill: float) -> np.ndarray:
        missing = top - len(values)
        return torch.nn.functional.pad(values, (0, 0, 0, missing), value=fill).T.numpy()

    return Scan(
        done,
        total,
        window,
        whole(best[0], -np.inf),
        whole(best[1], -1),
        -whole(worst[0], -np.inf),
        whole(worst[1], -1),
        (positive / done).numpy(),
    )
