"""Parts of attention switched off, and what that does to the prediction.

No weight is touched: the forward pass runs again with some activations edited (`engine.probe.Patcher`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from engine.config import ModelConfig
from engine.data.progress import Progress, Steps
from engine.model import Transformer
from engine.parts.attention import by_heads
from engine.parts.blocks import PassContext
from engine.parts.positions import PositionHooks
from engine.recording import Recording, check_plain_stack, next_token_losses, record

Ablation = Literal["zero", "mean"]
Order = Literal["kept", "shuffled", "reversed"]


@dataclass(frozen=True)
class Switches:
    """The parts of attention left on; `heads_off`: (layer, head); tokens before `order_end` in `order`."""

    mask: bool = True
    scale: bool = True
    position: bool = True
    heads_off: tuple[tuple[int, int], ...] = ()
    ablation: Ablation = "zero"
    order: Order = "kept"
    seed: int = 0
    order_end: int = 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """A model before and after a change. Positions before `start` hold other tokens and are not compared.

    `kl` is KL(before | after) of the prediction in nats, (query,), NaN before `start`. Losses are means in
    nats per token over the same tokens; None where none follows, and for an encoder.
    """

    before: Recording
    after: Recording
    start: int
    kl: np.ndarray
    loss_before: float | None
    loss_after: float | None


def compare(model: Transformer, before: Recording, switches: Switches) -> Comparison:
    """Runs the text of `before` again with the switches set. Raises ShapeError for an unknown head."""
    start = 0 if switches.order == "kept" else switches.order_end
    ids = reordered(before.ids, switches)
    after = record(model, ids, edits=edits_for(model, switches), only={"logits"}, positions=switches.position)
    kl = kl_divergence(before.log_probabilities, after.log_probabilities)
    kl[:start] = np.nan
    losses = [next_token_losses(r)[start:] for r in (before, after)]
    known = model.config.causal and len(losses[0]) > 0
    means = [float(x.mean()) if known else None for x in losses]
    return Comparison(before, after, start, kl, means[0], means[1])


def kl_divergence(log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """Returns sum p (ln p - ln q), nats, of two arrays (..., vocab) of log-probabilities: (...)."""
    return (np.exp(log_p) * (log_p - log_q)).sum(-1)


def reordered(ids: Sequence[int], switches: Switches) -> tuple[int, ...]:
    """Returns the tokens with those before `order_end` shuffled (by the seed) or reversed."""
    head, tail = list(ids[: switches.order_end]), tuple(ids[switches.order_end :])
    if switches.order == "shuffled":
        head = [head[i] for i in np.random.default_rng(switches.seed).permutation(len(head))]
    elif switches.order == "reversed":
        head.reverse()
    return (*head, *tail) if switches.order != "kept" else tuple(ids)


def edits_for(model: Transformer, switches: Switches) -> dict[str, Callable[[Tensor], Tensor]]:
    """Returns the edits, by the activation's full name, that do what the switches say. For one pass; `record`
    switches positions. Raises ConfigError where the mixer has no heads to switch.
    """
    if not model.parts.mixer(model.config).present:
        return {}
    edits: dict[str, Callable[[Tensor], Tensor]] = {}
    for layer, block in enumerate(model.blocks):
        off = sorted({head for at, head in switches.heads_off if at == layer})
        for name, edit in _block_edits(model, block.mixer, switches, off).items():
            edits[f"blocks.{layer}.{name}"] = edit
    return edits


def _block_edits(
    model: Transformer, mixer: object, switches: Switches, off: list[int]
) -> dict[str, Callable[[Tensor], Tensor]]:
    """Returns the edits of one block. `seen` carries tensors from one to the next."""
    seen, edits = dict[str, Tensor](), dict[str, Callable[[Tensor], Tensor]]()
    if switches.scale and switches.mask and not off:
        return edits
    apart = by_heads(mixer)

    def keep(name: str, x: Tensor) -> Tensor:
        seen[name] = x
        return x

    def scores(x: Tensor) -> Tensor:
        """Replaces the scores without the scale: the mixer's bare products, with the same bias."""
        plain = None if switches.scale else apart.raw_scores(seen["q_rot"], seen["k_rot"])
        if plain is not None:
            hooks = model.hooks(x.shape[2], x) if switches.position else PositionHooks()
            x = hooks.bias(plain)
        return keep("scores", x)

    if not switches.scale:
        edits |= {name: partial(keep, name) for name in ("q_rot", "k_rot")} | {"scores": scores}
    if not switches.mask:
        edits |= {"scores": scores, "masked_scores": lambda x: seen["scores"]}
        edits["pattern"] = lambda x: apart.weights(seen["scores"])  # no mask after them either
    if off:
        edits["z"] = ablated(off, switches.ablation)
    return edits


def ablated(heads: Sequence[int], how: Ablation) -> Callable[[Tensor], Tensor]:
    """Returns an edit of `z` (batch, head, query, d_head): these heads write nothing, or their mean."""

    def edit(z: Tensor) -> Tensor:
        z = z.clone()
        z[:, list(heads)] = 0.0 if how == "zero" else z[:, list(heads)].mean(2, keepdim=True)
        return z

    return edit


def each_head_off(
    model: Transformer, before: Recording, how: Ablation = "zero", copies: int = 32
) -> Steps[np.ndarray]:
    """Measures KL(before | after), nats, mean over positions, with one head off at a time: (layer, head).

    The text is read `copies` times at once, each with another head off, from its layer on. A step is a layer.
    """
    check_plain_stack(model.parts)
    layers, heads = model.config.n_layers, model.config.n_heads
    log_p = before.log_probabilities
    p = np.exp(log_p)
    own = np.einsum("qv,qv->q", p, log_p)  # sum p ln p
    result: list[float] = []
    for layer in range(layers):
        for first in range(0, heads, copies):
            off = range(first, min(first + copies, heads))
            for log_q in _some_off(model, before, layer, off, how):
                result.append(float((own - np.einsum("qv,qv->q", p, log_q)).mean()))
        yield Progress(layer + 1, layers)
    return np.array(result).reshape(layers, heads)


@torch.inference_mode()
def _some_off(
    model: Transformer, before: Recording, layer: int, off: Sequence[int], how: Ablation
) -> np.ndarray:
    """Returns log-probabilities (copy, query, vocab); each copy has another of the layer's heads off."""
    like = next(model.parameters())
    stream = torch.tensor(before[f"blocks.{layer}.resid_pre"], dtype=like.dtype, device=like.device)
    x = stream.expand(len(off), *stream.shape)
    length = x.shape[1]
    context = PassContext(model.hooks(length, x), model.mask(length, x))

    def silenced(name: str, z: Tensor) -> Tensor:
        if name != "z":
            return z
        z = z.clone()
        for copy, head in enumerate(off):
            z[copy, head] = 0.0 if how == "zero" else z[copy, head].mean(0, keepdim=True)
        return z

    for index, block in enumerate(model.blocks[layer:]):
        x = block(x, context if index else context._replace(probe=silenced))
    logits = model.logits(x)
    return logits.float().log_softmax(-1).cpu().numpy()


@dataclass(frozen=True, eq=False)
class Consequence:
    """The likeliest tokens at one position, before and after, with both probabilities, all (token,).
    The likeliest before come first. `kl` there and its mean over the compared positions, nats; `change` of
    the loss, nats per token, None where it is not measured.
    """

    tokens: np.ndarray
    before: np.ndarray
    after: np.ndarray
    kl: float
    mean_kl: float
    change: float | None

    @property
    def first_before(self) -> tuple[int, float]:
        """The likeliest token before, and its probability."""
        return _first(self.tokens, self.before)

    @property
    def first_after(self) -> tuple[int, float]:
        """The likeliest token after, and its probability."""
        return _first(self.tokens, self.after)


def _first(tokens: np.ndarray, probabilities: np.ndarray) -> tuple[int, float]:
    best = int(probabilities.argmax())
    return int(tokens[best]), float(probabilities[best])


def consequence(comparison: Comparison, position: int, count: int = 8) -> Consequence:
    """Returns `count` candidates each, before and after; a token that is in both comes once."""
    pair = (comparison.before, comparison.after)
    likeliest = [np.argsort(-r.logits[position], kind="stable")[:count].tolist() for r in pair]
    tokens = np.array([*dict.fromkeys([*likeliest[0], *likeliest[1]])], dtype=np.int64)
    before, after = (np.exp(r.log_probabilities[position][tokens]) for r in pair)
    known = comparison.loss_before is not None and comparison.loss_after is not None
    change = comparison.loss_after - comparison.loss_before if known else None  # type: ignore[operator]
    return Consequence(
        tokens, before, after, float(comparison.kl[position]), float(np.nanmean(comparison.kl)), change
    )


def surest_position(recording: Recording) -> int:
    """Returns the position in the later half with the most certain prediction; of equal ones the first."""
    half = len(recording.ids) // 2
    return half + int(recording.log_probabilities[half:].max(-1).argmax())


def changes_nothing(switches: Switches) -> bool:
    """True if everything is on and every token in its position."""
    free = Switches(order_end=switches.order_end, seed=switches.seed, ablation=switches.ablation)
    return switches == free


def is_silent(config: ModelConfig, switches: Switches) -> bool:
    """True if every head is off and gives zero."""
    every = {(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)}
    return switches.ablation == "zero" and set(switches.heads_off) >= every


def writes_a_bias(model: Transformer) -> bool:
    """True if attention adds an output bias b_O, which belongs to no head."""
    return any(by_heads(block.mixer).constant() is not None for block in model.blocks)


@dataclass(frozen=True)
class MostMissedHead:
    """The head without which the prediction moves most, by `most` nats on average; `least` of any head."""

    layer: int
    head: int
    most: float
    least: float


def missed(values: np.ndarray) -> MostMissedHead:
    """Finds the most missed head in KL with each head off, (layer, head). NaN where nothing is finite."""
    if not np.isfinite(values).any():
        return MostMissedHead(0, 0, float("nan"), float("nan"))
    layer, head = (int(i) for i in np.unravel_index(np.nanargmax(values), values.shape))
    return MostMissedHead(layer, head, float(values[layer, head]), float(np.nanmin(values)))


@dataclass(frozen=True, eq=False)
class UnmaskedReading:
    """A text read without the causal mask. `patterns` (layer, head, query, key). `future` (layer, head): the
    mean weight on later tokens, of the queries that have any. Losses in nats by position, (query - 1,), with
    the mask and without.
    """

    patterns: np.ndarray = field(repr=False)
    future: np.ndarray
    loss_with: np.ndarray
    loss_without: np.ndarray

    @property
    def mean_with(self) -> float:
        """The mean loss with the mask, nats per token."""
        return float(self.loss_with.mean())

    @property
    def mean_without(self) -> float:
        """The mean loss without it, nats per token."""
        return float(self.loss_without.mean())


def without_mask(model: Transformer, before: Recording) -> UnmaskedReading:
    """Runs the text of `before`, of two tokens or more, again without its mask."""
    after = record(
        model, before.ids, edits=edits_for(model, Switches(mask=False)), only={"pattern", "logits"}
    )
    patterns = after.stacked("pattern")
    later = np.triu(np.ones(patterns.shape[-2:], dtype=bool), 1)
    future = np.where(later, patterns, 0).sum(-1, dtype=np.float64)[..., :-1].mean(-1)
    return UnmaskedReading(patterns, future, next_token_losses(before), next_token_losses(after))
