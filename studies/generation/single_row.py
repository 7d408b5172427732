"""The fast path of generation: one token through a block, with the keys and values of those before it.

At batch 1 a small model spends most of its time between the operations, and a large one in reading its
weights from memory. So there are few operations here: matrices are prepared once
(`studies.generation.row_products`), a head's query, key and value are views of one vector, and no probe is
called. The wiring is the blocks' own.

The arithmetic of the parts stands here a second time, so exactly the classes in SUPPORTED are served. For a
subclass of one of them, or any other part, its users (`engine.sample.decoder`, and `studies.pairs.generate`
for the decoder of an encoder-decoder) take the model's own forward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.errors import ConfigError
from engine.model import BlockStack, Transformer
from engine.parts.attention import Attention, HeadMixer, Mean, NoMixer, SharedQK, Similarity
from engine.parts.blocks import (
    NoResidualBlock,
    ParallelBlock,
    PostNormBlock,
    PostNormDecoderBlock,
    PreNormBlock,
    PreNormDecoderBlock,
)
from engine.parts.cache import KVCache
from engine.parts.feedforward import (
    FeedForward,
    GeGlu,
    GeGluTanh,
    Gelu,
    GeluTanh,
    NoFeedForward,
    Relu,
    SquaredRelu,
    SwiGlu,
)
from engine.parts.norms import LayerNorm
from engine.parts.output import LinearOutput, ScaledOutput
from engine.parts.positions import (
    Alibi,
    DistanceRow,
    Learned,
    NoPosition,
    PositionHooks,
    Rope,
    Scheme,
    Sinusoidal,
    T5Bias,
)
from engine.parts.registry import NORMS
from engine.probe import Probe, identity
from engine.sample.decoder import FAST_PATHS
from studies.generation.row_products import Arithmetic, Product, check_arithmetic, product
from studies.pairs.seq2seq import Memory, Seq2Seq

Vector = Callable[[Tensor], Tensor]  # (in,) -> (out,)
SUPPORTED = frozenset(
    (
        *(*NORMS.values(), nn.Identity),
        *(NoPosition, Sinusoidal, Learned, Rope, Alibi, T5Bias),
        *(NoMixer, Mean, Similarity, SharedQK, Attention),
        *(Relu, SquaredRelu, Gelu, GeluTanh, SwiGlu, GeGlu, GeGluTanh, NoFeedForward),
        *(PreNormBlock, PostNormBlock, ParallelBlock, NoResidualBlock),
        *(PreNormDecoderBlock, PostNormDecoderBlock),
        *(LinearOutput, ScaledOutput),
    )
)
# Tensors, since a plain number is made into one at every use.
_HALF, _ROOT = torch.tensor(0.5), torch.tensor(0.5).sqrt()


@dataclass(frozen=True, eq=False)
class RowParts:
    """The parts of a block as functions of a single vector (d_model,), for the block's own `connect`. Only a
    block that reads a memory has `norm_cross` and `cross`.
    """

    norm1: Vector
    norm2: Vector
    mixer: Callable[..., Tensor | None]
    ffn: Callable[[Tensor, Probe], Tensor | None]
    norm_cross: Vector | None = None
    cross: Callable[..., Tensor | None] | None = None


def tables(positions: Scheme, capacity: int, like: Tensor) -> PositionHooks:
    """Returns a position scheme's hooks; their size grows with the capacity, not with its square."""
    if type(positions) in (Alibi, T5Bias):
        last = positions.prepare(1, like, start=capacity - 1)
        return DistanceRow(last.bias(like.new_zeros(1)))
    return positions.prepare(capacity, like)


def norm_of(norm: Vector) -> Vector:
    if not isinstance(norm, LayerNorm):
        return norm.forward if isinstance(norm, nn.Module) else norm  # without the lookup of module hooks
    # Looked up once: a module searches its parameters for them each time.
    gain, bias, eps = norm.gain, norm.bias, norm.eps
    return lambda x: torch.layer_norm(x, x.shape, gain, bias, eps)


class Products:
    """A model's matrices, prepared in one arithmetic, which may raise ConfigError, for all decoders."""

    def __init__(self, like: Tensor, arithmetic: Arithmetic = "float32") -> None:
        check_arithmetic(arithmetic, like.device)
        self.arithmetic: Arithmetic = arithmetic
        self._prepared: dict[int, tuple[Tensor, Product]] = {}  # by id of the parameter, which is referenced

    def of(self, weight: Tensor, bias: Tensor | None = None) -> Product:
        """Returns the product with a parameter of the model, prepared at the first call."""
        if id(weight) not in self._prepared:
            self._prepared[id(weight)] = weight, product(weight, bias, self.arithmetic)
        return self._prepared[id(weight)][1]


def linear(weight: Tensor, bias: Tensor | None, products: Products) -> Vector:
    """Returns the function x -> W x + b for parameters of the model, x (in,). Each call overwrites the same
    vector (out,).
    """
    return partial(products.of(weight, bias), out=weight.detach().new_empty(len(weight)))


def unembedding(output: object, matrix: Tensor, products: Products) -> Vector:
    """Returns the function that maps a final vector (d_model,) to logits (vocab,)."""
    multiply = linear(matrix, None, products)
    if isinstance(output, ScaledOutput):
        scale = matrix.shape[1] ** -0.5
        return lambda x: multiply(x * scale)
    return multiply


def _feedforward(ffn: FeedForward, products: Products) -> Callable[[Tensor, Probe], Tensor | None]:
    if isinstance(ffn, NoFeedForward):
        return _nothing
    w_in, w_out = (linear(part.weight, part.bias, products) for part in (ffn.w_in, ffn.w_out))
    activation = _gelu if type(ffn) in (Gelu, GeGlu) else ffn.activation
    if ffn.gated:

        def gated(x: Tensor, probe: Probe) -> Tensor:
            gate, pre = w_in(x).chunk(2)  # each (d_ff,)
            return w_out(activation(gate) * pre)

        return gated
    return lambda x, probe: w_out(activation(w_in(x)))


def _gelu(x: Tensor) -> Tensor:
    """Returns x Φ(x) (Hendrycks & Gimpel 2016) in half the time of `F.gelu` for a single vector."""
    half = x * _HALF
    return half.addcmul_(half, (x * _ROOT).erf_())


def _nothing(x: Tensor, other: object) -> None:
    """Adds nothing to the stream, in place of a mixer or a network."""


class TokenContext(NamedTuple):
    """The inputs of a block beside the vector of one token: what `PassContext` is for many of them.

    hooks    the position scheme, ready for this token's position
    entries  of each layer, where its key and value go in the cache, (2, kv_head, d_head)
    keys     of each layer, those of all tokens so far, (kv_head, d_head, key)
    values   likewise, (kv_head, key, d_head)
    """

    hooks: PositionHooks
    entries: Sequence[Tensor]
    keys: Sequence[Tensor]
    values: Sequence[Tensor]
    probe: Probe = identity
    cross: None = None  # a CrossStep has its memory


class AttentionStep:
    """Attention of one query to all keys so far; `q`, `qk` and `kv` are views of what `project` writes."""

    def __init__(
        self, mixer: HeadMixer, positions: Scheme, index: int, like: Tensor, products: Products
    ) -> None:
        heads, kv_heads, d_head = mixer.n_heads, mixer.n_kv_heads, mixer.d_head
        self.index = index
        qkv = like.new_empty((heads + 2 * kv_heads) * d_head)
        self.project = _projection(mixer, qkv, products)
        by_head = qkv.view(-1, 1, d_head)
        # The queries of one group lie side by side.
        self.q = by_head[:heads].view(kv_heads, heads // kv_heads, d_head)
        self.qk, self.kv = by_head[: heads + kv_heads], by_head[heads:].view(2, kv_heads, d_head)
        self.by_query, self.by_group = (heads, 1, -1), (kv_heads, heads // kv_heads, -1)
        self.turns, self.biases = "rotate" in positions.enters, "bias" in positions.enters
        self.mean, self.d_head = type(mixer) is Mean, d_head
        self.eps = mixer.eps if mixer.qk_norm else None
        self.gains: Tensor | None = None  # of q and k, (head + kv_head, 1, d_head)
        if mixer.q_gain is not None and mixer.k_gain is not None:
            gains = [mixer.q_gain.detach()] * heads + [mixer.k_gain.detach()] * kv_heads
            self.gains = torch.stack(gains)[:, None]
        self.scale = like.new_tensor(mixer.scale)
        w_o = mixer.w_o
        self.output: Vector | None = None if w_o is None else linear(w_o.weight, w_o.bias, products)

    def __call__(self, x: Tensor, context: TokenContext) -> Tensor:
        self.project(x)
        if self.eps is not None:
            normed = F.rms_norm(self.qk, (self.d_head,), eps=self.eps)
            self.qk.copy_(normed if self.gains is None else normed * self.gains)
        if self.turns:
            self.qk.copy_(context.hooks.turn(self.qk))
        context.entries[self.index].copy_(self.kv)
        scores = torch.bmm(self.q.mul_(self.scale), context.keys[self.index])  # (kv_head, group, key)
        if self.mean:
            scores.zero_()
        if self.biases:  # of (head, query, key), with one query
            scores = context.hooks.bias(scores.view(self.by_query)).view(self.by_group)
        z = torch.bmm(scores.softmax(-1), context.values[self.index]).view(-1)  # (head * d_head,)
        return z if self.output is None else self.output(z)


class CrossStep:
    """Attention of one query to a memory (1, source, d_model) without padding: its keys and values are
    computed once, here.
    """

    def __init__(self, mixer: Attention, memory: Tensor, products: Products) -> None:
        rows, bias, w_o = mixer.n_heads * mixer.d_head, mixer.w_qkv.bias, mixer.w_o
        # k, v (1, source, kv_head, d_head) -> (kv_head, d_head, source) and (kv_head, source, d_head)
        _, k, v = mixer.heads(memory[:, :1], memory)
        self.keys = mixer.normed(k[0], mixer.k_gain).permute(1, 2, 0).contiguous()
        self.values = v[0].transpose(0, 1).contiguous()
        w_q, b_q = mixer.w_qkv.weight[:rows], None if bias is None else bias[:rows]
        q = memory.new_empty(rows)
        self.project = partial(product(w_q, b_q, products.arithmetic), out=q)
        self.q = q.view(mixer.n_kv_heads, -1, mixer.d_head)  # (kv_head, group, d_head)
        self.normed = partial(mixer.normed, gain=mixer.q_gain) if mixer.qk_norm else None
        self.scale = memory.new_tensor(mixer.scale)
        self.output: Vector | None = None if w_o is None else linear(w_o.weight, w_o.bias, products)

    def __call__(self, x: Tensor, context: object) -> Tensor:
        self.project(x)
        q = self.q if self.normed is None else self.normed(self.q)
        pattern = torch.bmm(q * self.scale, self.keys).softmax(-1)  # (kv_head, group, source)
        z = torch.bmm(pattern, self.values).view(-1)  # (head * d_head,)
        return z if self.output is None else self.output(z)


def _projection(mixer: HeadMixer, qkv: Tensor, products: Products) -> Vector:
    """Returns the function that writes queries, keys and values of a vector to `qkv`,
    ((head + 2 kv_head) * d_head,). A mixer without matrices has x three times; SharedQK's one matrix is
    stacked twice: a few microseconds more, and no second case.
    """
    if isinstance(mixer, Attention):
        multiply = products.of(mixer.w_qkv.weight, mixer.w_qkv.bias)
    elif isinstance(mixer, SharedQK):
        parts = (mixer.w_qk, mixer.w_qk, mixer.w_v)
        bias = None if mixer.w_v.bias is None else torch.cat([part.bias for part in parts])
        multiply = product(torch.cat([part.weight for part in parts]), bias, products.arithmetic)
    else:
        return qkv.view(3, -1).copy_
    return partial(multiply, out=qkv)


def _stack(model: Transformer | Seq2Seq) -> BlockStack:
    """Returns the stack that writes: a decoder-only model itself, or the decoder."""
    return model if isinstance(model, Transformer) else model.decoder


def is_fast(model: Transformer | Seq2Seq) -> bool:
    """True if every part is supported: no dropout, no window, and a memory read by nothing but Attention."""
    stack = _stack(model)
    blocks = [part for b in stack.blocks for part in (b, b.mixer, b.ffn, b.norm1, b.norm2)]
    across = [part for b in stack.blocks if hasattr(b, "cross") for part in (b.cross, b.norm_cross)]
    has_dropout = model.training and stack.config.dropout > 0
    odd = has_dropout or stack.config.window > 0 or not model.parts.is_plain_stack
    odd = odd or any(type(mixer) is not Attention for mixer in across[::2])
    ends = (stack.norm_embed or stack.norm_final, stack.norm_final, model.output)
    return not odd and all(type(part) in SUPPORTED for part in (stack.positions, *ends, *blocks, *across))


@torch.inference_mode()
def ready(model: Transformer, arithmetic: Arithmetic = "float32") -> Products:
    """Prepares a model's matrices for any number of Decoders: 2 bytes a weight of a large matrix in bfloat16,
    one in int8. Raises ConfigError if this machine lacks the arithmetic, or the fast path a part.
    """
    products = Products(model.embedding, arithmetic)
    if not (model.can_cache and is_fast(model)):
        raise ConfigError("arithmetic", arithmetic, "needs a causal model of parts that are all known")
    FastPath(model, KVCache(model.config, 1, model.embedding), products)
    return products


class FastPath:
    """A model whose every part is supported, for one token at a time; an encoder-decoder with the `memory` of
    one source without padding.
    """

    def __init__(
        self, model: Transformer | Seq2Seq, cache: KVCache, products: Products, memory: Memory | None = None
    ) -> None:
        stack = _stack(model)
        self.positions, self.reach = stack.positions, stack.positions.reach(stack.config)
        self.embedding = model.embedding.detach()
        self.embedding_scale = stack.embedding_scale
        types = model.token_types if isinstance(model, Transformer) else None
        self.type = None if types is None else types[0].detach()
        self.norm_embed = None if stack.norm_embed is None else norm_of(stack.norm_embed)
        self.blocks: list[tuple[Callable[..., Tensor], RowParts]] = []
        block: Any
        for i, block in enumerate(stack.blocks):
            mixer = (
                _nothing
                if isinstance(block.mixer, NoMixer)
                else AttentionStep(block.mixer, stack.positions, i, cache.held, products)
            )
            norms = norm_of(block.norm1), norm_of(block.norm2)
            parts = RowParts(*norms, mixer, _feedforward(block.ffn, products))
            if memory is not None:
                cross = CrossStep(block.cross, memory.vectors, products)
                parts = replace(parts, norm_cross=norm_of(block.norm_cross), cross=cross)
            self.blocks.append((type(block).connect, parts))
        self.norm_final = norm_of(stack.norm_final)
        self.unembedding = unembedding(model.output, model.output_matrix, products)
        self.follow(cache)

    def follow(self, cache: KVCache) -> None:
        self.cache = cache
        self.hooks: PositionHooks | None = None  # of all `rows` positions, computed at the first token
        self.rows = cache.capacity if self.reach is None else min(cache.capacity, self.reach)
        self.held = cache.held[:, :, 0]  # (layer, 2, kv_head, capacity, d_head)
        # (layer, kv_head, d_head, capacity) and (layer, kv_head, capacity, d_head)
        self.keys, self.values = self.held[:, 0].transpose(2, 3), self.held[:, 1]

    def read(self, token: int) -> Tensor:
        at = self.cache.length
        x = self.embedding[token]  # (d_model,)
        if self.hooks is None:
            self.hooks = tables(self.positions, self.rows, x[None])
        # The views of all layers at once take half the time of each layer's own.
        context = TokenContext(
            self.hooks.at(at),
            self.held.select(3, at).unbind(),
            self.keys.narrow(3, 0, at + 1).unbind(),
            self.values.narrow(2, 0, at + 1).unbind(),
        )
        x = self._add_positions(x, context.hooks.embed(x))
        for connect, parts in self.blocks:
            x = connect(parts, x, context)
        self.cache.length = at + 1
        return self.unembedding(self.norm_final(x)).clone()

    def _add_positions(self, x: Tensor, added: Tensor | None) -> Tensor:
        """Returns the input of the first block for a vector of the embedding, (d_model,), and what its
        position adds, (1, d_model).
        """
        if self.embedding_scale is not None:
            x = x * self.embedding_scale
        if added is not None:
            x = x + added[0]
        if self.type is not None:
            x = x + self.type
        return x if self.norm_embed is None else self.norm_embed(x)


def _fast_path(model: Transformer, cache: KVCache, products: Products | None) -> FastPath | None:
    """Returns None where it would compute something else than the model's own forward."""
    return FastPath(model, cache, products or Products(model.embedding)) if is_fast(model) else None


FAST_PATHS.append(_fast_path)
