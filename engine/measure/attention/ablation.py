"""Switching parts of attention off, and what that does to the prediction.

Nothing is retrained and no weight is touched: the forward pass runs again with some of its activations edited
(`engine.probe.Patcher`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from engine.data.progress import Progress, Steps
from engine.measure.recording import Recording, check_climbs, next_token_losses, record
from engine.model import Transformer
from engine.parts.heads import by_heads
from engine.parts.positions import PositionHooks
from engine.probe import identity

Ablation = Literal["zero", "mean"]
Order = Literal["kept", "shuffled", "reversed"]


@dataclass(frozen=True)
class Switches:
    """What is on. `heads_off` are (layer, head) counted from 0; tokens before `place` are put into `order`,
    those from it on stay.
    """

    mask: bool = True
    scale: bool = True
    position: bool = True
    heads_off: tuple[tuple[int, int], ...] = ()
    ablation: Ablation = "zero"
    order: Order = "kept"
    seed: int = 0
    place: int = 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """The model before and after. Only positions from `start` on are compared: earlier ones hold other tokens
    when the order changed.

    `kl` is KL(before || after) of the prediction in nats, (query,), NaN before `start`. `loss_before` and
    `loss_after` are means in nats per token over the same tokens; None where none follows, and for an
    encoder, which predicts hidden tokens and not the next one.
    """

    before: Recording
    after: Recording
    start: int
    kl: np.ndarray
    loss_before: float | None
    loss_after: float | None


def compare(model: Transformer, before: Recording, switches: Switches) -> Comparison:
    """Runs the text of `before` again with the switches set. Raises ShapeError where a head does not
    exist.
    """
    start = 0 if switches.order == "kept" else switches.place
    ids = reordered(before.ids, switches)
    after = record(model, ids, edits=edits_for(model, switches), only={"logits"}, positions=switches.position)
    kl = kl_divergence(before.log_probabilities, after.log_probabilities)
    kl[:start] = np.nan
    losses = [next_token_losses(r)[start:] for r in (before, after)]
    known = model.config.causal and len(losses[0]) > 0
    means = [float(x.mean()) if known else None for x in losses]
    return Comparison(before, after, start, kl, means[0], means[1])


def kl_divergence(log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """sum p (ln p - ln q), nats: two arrays (..., vocab) of log-probabilities -> (...)."""
    return (np.exp(log_p) * (log_p - log_q)).sum(-1)


def reordered(ids: Sequence[int], switches: Switches) -> tuple[int, ...]:
    """The tokens with those before `place` shuffled (by the seed) or reversed."""
    head, tail = list(ids[: switches.place]), tuple(ids[switches.place :])
    if switches.order == "shuffled":
        head = [head[i] for i in np.random.default_rng(switches.seed).permutation(len(head))]
    elif switches.order == "reversed":
        head.reverse()
    return (*head, *tail) if switches.order != "kept" else tuple(ids)


def edits_for(model: Transformer, switches: Switches) -> dict[str, Callable[[Tensor], Tensor]]:
    """The edits, by the full name of the activation, that do what the switches of attention say. Good for one
    forward pass.

    Positions are switched off elsewhere (`record`): the scheme's seams are left out, whichever it has. Raises
    ConfigError where the mixer has no heads to switch.
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
    """The edits of one block. They follow each other in the forward pass, and `seen` carries tensors from one
    to the next.
    """
    seen, edits = dict[str, Tensor](), dict[str, Callable[[Tensor], Tensor]]()
    if switches.scale and switches.mask and not off:
        return edits
    apart = by_heads(mixer)

    def keep(name: str, x: Tensor) -> Tensor:
        seen[name] = x
        return x

    def scores(x: Tensor) -> Tensor:
        """As the mixer made them, or, without the scale, its products with the same bias on them."""
        plain = None if switches.scale else apart.compared(seen["q_rot"], seen["k_rot"])
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
    """An edit of `z` (batch, head, query, d_head): these heads write nothing, or, at every position, their
    mean over this text.
    """

    def edit(z: Tensor) -> Tensor:
        z = z.clone()
        z[:, list(heads)] = 0.0 if how == "zero" else z[:, list(heads)].mean(2, keepdim=True)
        return z

    return edit


def each_head_off(
    model: Transformer, before: Recording, how: Ablation = "zero", copies: int = 32
) -> Steps[np.ndarray]:
    """KL(before || after), nats, mean over positions, with one head switched off at a time: (layer, head).

    The text is read in up to `copies` copies at once, each with another head of a layer off, from that layer
    on: below it nothing has changed. A step is a layer.
    """
    check_climbs(model.parts)
    layers, heads = model.config.n_layers, model.config.n_heads
    log_p = before.log_probabilities
    p = np.exp(log_p)
    own = np.einsum("qv,qv->q", p, log_p)  # sum p ln p
    found: list[float] = []
    for layer in range(layers):
        for first in range(0, heads, copies):
            off = range(first, min(first + copies, heads))
            for log_q in _some_off(model, before, layer, off, how):
                found.append(float((own - np.einsum("qv,qv->q", p, log_q)).mean()))
        yield Progress(layer + 1, layers)
    return np.array(found).reshape(layers, heads)


@torch.inference_mode()
def _some_off(
    model: Transformer, before: Recording, layer: int, off: Sequence[int], how: Ablation
) -> np.ndarray:
    """Log-probabilities (copy, query, vocab): in each copy another of a layer's heads is off."""
    like = next(model.parameters())
    stream = torch.tensor(before[f"blocks.{layer}.resid_pre"], dtype=like.dtype, device=like.device)
    x = stream.expand(len(off), *stream.shape)
    length = x.shape[1]
    hooks, mask = model.hooks(length, x), model.mask(length, x)

    def silenced(name: str, z: Tensor) -> Tensor:
        if name != "z":
            return z
        z = z.clone()
        for copy, head in enumerate(off):
            z[copy, head] = 0.0 if how == "zero" else z[copy, head].mean(0, keepdim=True)
        return z

    for index, block in enumerate(model.blocks[layer:]):
        x = block(x, hooks, mask, identity if index else silenced)
    logits = model.logits(x)
    found: np.ndarray = logits.float().log_softmax(-1).cpu().numpy()
    return found
