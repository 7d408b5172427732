"""Reading one more token, as fast as a CPU allows: the same arithmetic as `Transformer.forward`, with less
around it.

At batch 1 a small model spends most of its time between the operations, not in them. So there are few of
them: the weights are laid out once for vector-matrix products, a head's query, key and value are views of one
row, and no probe is asked. The wiring is the blocks' own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.errors import ShapeError
from engine.model import Transformer
from engine.parts.attention import Attention, Mean, NoMixer, SharedQK, Similarity
from engine.parts.cache import KVCache
from engine.parts.feedforward import FeedForward, GatedFeedForward, GeGlu, Gelu
from engine.parts.norms import LayerNorm
from engine.parts.positions import Seams
from engine.probe import Probe, identity

Vector = Callable[[Tensor], Tensor]  # (1, in) -> (1, out)
_HALF, _ROOT = (
    torch.tensor(0.5),
    torch.tensor(0.5).sqrt(),
)  # tensors, since a plain number is made into one at every use


class Decoder:
    """A causal model that holds the keys and values of what it has read.

    `read(ids)` takes further tokens and returns the logits after the last one. The model's weights are copied
    where a product is faster that way: a Decoder does not see later changes of them. Use it inside
    `torch.inference_mode()`. Raises ShapeError for a model that is not causal.
    """

    def __init__(self, model: Transformer, capacity: int | None = None) -> None:
        config = model.config
        if not config.causal:
            raise ShapeError(
                "only a causal model can keep keys and values: without the mask every later token changes"
                " them"
            )
        self.model = model
        self.cache = KVCache(config, capacity or config.context, model.embedding)
        self._embedding = model.embedding.detach()
        self._blocks = [_block(block, self.cache, index) for index, block in enumerate(model.blocks)]
        self._norm_final = _norm(model.norm_final)
        self._unembedding = model.output_matrix.detach().t().contiguous()  # (d_model, vocab)
        self._seams: Seams | None = None

    @property
    def length(self) -> int:
        """Positions read so far."""
        return self.cache.length

    def reset(self) -> None:
        """Forgets what was read."""
        self.cache.length = 0

    def read(self, ids: Sequence[int]) -> Tensor:
        """ids, at least one -> logits (vocab,) after the last. Raises ShapeError when they do not fit behind
        those read before.
        """
        if len(ids) == 1 and self.length < self.cache.capacity:
            return self._one(ids[0])
        device = self._embedding.device
        return self.model(torch.tensor([list(ids)], dtype=torch.int64, device=device), cache=self.cache)[
            0, -1
        ]

    def _one(self, token: int) -> Tensor:
        at = self.cache.length
        x = self._embedding.narrow(0, token, 1)  # (1, d_model)
        if self._seams is None:  # the tables of all positions, made once
            self._seams = self.model.positions.prepare(self.cache.capacity, x)
        seams = self._seams.at(at)
        added = seams.embed(x)
        if added is not None:
            x = x + added
        for wire, parts in self._blocks:
            x = wire(parts, x, seams, None, identity, None)
        self.cache.length = at + 1
        return torch.mm(self._norm_final(x), self._unembedding)[0]


def _block(block: Any, cache: KVCache, index: int) -> tuple[Callable[..., Tensor], Any]:
    """The block's own `forward`, and lighter parts for it to wire."""
    parts = SimpleNamespace(
        norm1=_norm(block.norm1),
        norm2=_norm(block.norm2),
        mixer=_mixer(block.mixer, cache, index),
        ffn=_feedforward(block.ffn),
    )
    return type(block).wire, parts


def _norm(norm: Any) -> Vector:
    if not isinstance(norm, LayerNorm):
        return norm.forward
    gain, bias, eps = (
        norm.gain,
        norm.bias,
        norm.eps,
    )  # looked up once: a module searches its parameters for them each time
    return lambda x: torch.layer_norm(x, x.shape[-1:], gain, bias, eps)


class _Linear:
    """x W^T + b for one row, with W laid out input by output: a third faster than `nn.Linear`. Each call
    writes the same `row` (1, out) anew.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.laid, self.bias = weight.detach().t().contiguous(), None if bias is None else bias.detach()
        self.row = self.laid.new_empty(1, len(weight))

    def __call__(self, x: Tensor) -> Tensor:
        return (
            torch.mm(x, self.laid, out=self.row)
            if self.bias is None
            else torch.addmm(self.bias, x, self.laid, out=self.row)
        )


def _feedforward(ffn: Any) -> Callable[[Tensor, Probe], Tensor | None]:
    if not isinstance(ffn, FeedForward | GatedFeedForward):
        return lambda x, probe: None
    w_in, w_out = _Linear(ffn.w_in.weight, ffn.w_in.bias), _Linear(ffn.w_out.weight, ffn.w_out.bias)
    activation = _gelu if type(ffn) in (Gelu, GeGlu) else ffn.activation
    if isinstance(ffn, GatedFeedForward):
        width = ffn.w_out.weight.shape[1]

        def gated(x: Tensor, probe: Probe) -> Tensor:
            gate, pre = w_in(x).split(width, 1)  # each (1, d_ff)
            return w_out(activation(gate) * pre)

        return gated
    return lambda x, probe: w_out(activation(w_in(x)))


def _gelu(x: Tensor) -> Tensor:
    """x Φ(x) = x/2 (1 + erf(x/√2)) (Hendrycks & Gimpel 2016). Written out it takes half the time that
    `F.gelu` needs for a single row.
    """
    half = x * _HALF
    return torch.addcmul(half, half, torch.erf(x * _ROOT))


def _mixer(mixer: Any, cache: KVCache, index: int) -> Callable[..., Tensor | None]:
    if isinstance(mixer, NoMixer):
        return lambda x, seams, mask, probe, layer: None
    return Mixing(mixer, cache, index)


class Mixing:
    """One query against all keys so far: the mixer's arithmetic for a single position.

    The row of `project` holds q, k and v of that position, one head after another; what reads it are views of
    it, made once.
    """

    def __init__(self, mixer: Any, cache: KVCache, index: int) -> None:
        heads, kv_heads, d_head = mixer.n_heads, mixer.n_kv_heads, mixer.d_head
        self.cache, self.held = cache, cache.held[index, :, 0]  # (2, kv_head, capacity, d_head)
        self.keys, self.values = (
            self.held[0].transpose(1, 2),
            self.held[1],
        )  # (kv_head, d_head, capacity), (kv_head, capacity, d_head)
        self.project = _Linear(*_stacked(mixer, cache.held))
        by_head = self.project.row.view(-1, 1, d_head)
        self.q = by_head[:heads].view(
            kv_heads, heads // kv_heads, d_head
        )  # the queries of one group side by side
        self.qk, self.kv = by_head[: heads + kv_heads], by_head[heads:].view(2, kv_heads, d_head)
        self.by_query, self.by_group = (heads, 1, -1), (kv_heads, heads // kv_heads, -1)
        self.mean, self.eps, self.d_head = (
            isinstance(mixer, Mean),
            mixer.eps if mixer.qk_norm else None,
            d_head,
        )
        self.scale = cache.held.new_tensor(mixer.scale)
        w_o = getattr(mixer, "w_o", None)
        self.output: Vector | None = None if w_o is None else _Linear(w_o.weight, w_o.bias)

    def __call__(self, x: Tensor, seams: Seams, mask: None, probe: Probe, layer: None) -> Tensor:
        at = self.cache.length
        self.project(x)
        if self.eps is not None:
            self.qk.copy_(F.rms_norm(self.qk, (self.d_head,), eps=self.eps))
        turned = seams.turn(self.qk)
        if turned is not self.qk:
            self.qk.copy_(turned)
        self.held.select(2, at).copy_(self.kv)
        scores = torch.bmm(self.q.mul_(self.scale), self.keys.narrow(2, 0, at + 1))  # (kv_head, group, key)
        if self.mean:
            scores.zero_()
        scores = seams.bias(scores.view(self.by_query))  # (head, query, key), with one query
        pattern = scores.softmax(-1).view(self.by_group)
        z = torch.bmm(pattern, self.values.narrow(1, 0, at + 1)).view(1, -1)  # (1, head * d_head)
        return z if self.output is None else self.output(z)


def _stacked(mixer: Any, like: Tensor) -> tuple[Tensor, Tensor | None]:
    """W_Q, W_K and W_V above each other, ((head + 2 kv_head) * d_head, d_model), and their biases: q, k and v
    in one product.

    A mixer that shares or lacks matrices gets them here all the same: a few microseconds for having one way
    only.
    """
    if isinstance(mixer, Attention):
        return mixer.w_qkv.weight, mixer.w_qkv.bias
    if isinstance(mixer, SharedQK):
        parts = (mixer.w_qk, mixer.w_qk, mixer.w_v)
        return torch.cat([part.weight for part in parts]), (
            None if mixer.w_v.bias is None else torch.cat([part.bias for part in parts])
        )
    if isinstance(mixer, Similarity):
        return (
            torch.eye(mixer.n_heads * mixer.d_head, dtype=like.dtype, device=like.device).repeat(3, 1),
            None,
        )  # without matrices: q, k and v are x
    raise NotImplementedError(f"no way to read one token is known for {type(mixer).__name__}")
