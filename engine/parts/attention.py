"""Multi-head attention and its ablations: from vectors to what is added to the stream; and the masks.

Attention is written out (scores, mask, softmax, weighted sum) rather than fused: the app shows every stage,
and at these sizes on a CPU it is also faster than the fused kernel.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.errors import ConfigError, ShapeError
from engine.parts.parameters import InitialValues, StackedLinear

if TYPE_CHECKING:
    from engine.parts.blocks import PassContext
    from engine.probe import Probe


class Mixer(nn.Module):
    """Moves information between positions. HeadMixer is one to begin from."""

    present: ClassVar[bool] = True
    window: int = 0  # of this layer, where another has another; one for all is in the mask
    cacheable: ClassVar[bool] = True  # under the causal mask, later tokens change nothing written before them

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()

    def forward(self, x: Tensor, context: PassContext) -> Tensor | None:
        """Maps x (batch, query, d_model) to what is written to the stream, of the same shape; None: nothing.

        `context.memory` is what is gathered from, x itself where it is None. The keys and values of earlier
        positions come from `context.extend`.
        """
        raise NotImplementedError


class HeadMixer(Mixer):
    """Heads, scores, mask, softmax, weighted sum. Subclasses say where q, k and v come from.

    Keys and values come from `context.memory`, another text's vectors, or from x itself. The methods are also
    called by the interpretability code: nothing is computed a second time elsewhere.
    """

    initial_values: ClassVar[InitialValues] = {"q_gain": 1.0, "k_gain": 1.0, "w_o": "to_stream"}
    w_o: nn.Linear | None

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        self.n_heads, self.n_kv_heads, self.d_head = config.n_heads, config.n_kv_heads, config.d_head
        self.qk_norm, self.eps, self.dropout = config.qk_norm, config.norm_eps, config.dropout
        # Keeps the scores' spread near 1 (Vaswani et al. 2017, 3.2.1); T5 has the factor in its first W_Q.
        self.scale = 1.0 / math.sqrt(self.d_head) if config.score_scale else 1.0
        self.q_gain, self.k_gain = (
            nn.Parameter(torch.empty(self.d_head)) if config.qk_gain else None for _ in "qk"
        )
        self.w_o = None

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Maps x (batch, query, d_model) and memory (batch, key, d_model) to q (batch, query, head, d_head)
        and k, v (batch, key, kv_head, d_head).
        """
        raise NotImplementedError

    def output(self, z: Tensor) -> Tensor:
        """Projects the heads side by side (batch, query, head * d_head) to (batch, query, d_model)."""
        return z if self.w_o is None else self.w_o(z)

    def forward(self, x: Tensor, context: PassContext) -> Tensor:
        probe, hooks, mask = context.probe, context.hooks, context.mask
        q, k, v = self.heads(x, context.memory)
        q = probe("q", q.transpose(1, 2))  # (batch, query, head, d_head) -> (batch, head, query, d_head)
        k = probe("k", k.transpose(1, 2))
        v = probe("v", v.transpose(1, 2))
        q, k = hooks.rotate(self.normed(q, self.q_gain), self.normed(k, self.k_gain))
        q, k = probe("q_rot", q), probe("k_rot", k)
        # with those of earlier positions, computed before
        k, v = self.extended(k, v, x if context.memory is None else context.memory, context)
        scores = probe("scores", hooks.bias(self.scores(q, k)))  # (batch, head, query, key)
        masked = probe("masked_scores", self.masked(scores, mask))
        pattern = probe("pattern", self.weights(masked, mask))
        pattern = F.dropout(pattern, self.dropout, self.training)
        z = self.let_through(self.weighted_sum(pattern, v), x, probe)
        z = probe("z", z)  # (batch, head, query, d_head)
        return probe("attn_out", F.dropout(self.output(self.merged(z)), self.dropout, self.training))

    def extended(self, k: Tensor, v: Tensor, x: Tensor, context: PassContext) -> tuple[Tensor, Tensor]:
        """Returns keys and values (batch, kv_head, key, d_head), which were made of x, with those cached."""
        return context.extend(k, v)

    def normed(self, x: Tensor, gain: Tensor | None = None) -> Tensor:
        """Scales queries or keys (..., d_head) before the rotation: with `qk_norm` to length sqrt(d_head),
        which bounds the scores (Henry et al. 2020), and then by their gain, if any.
        """
        return F.rms_norm(x, (self.d_head,), gain, self.eps) if self.qk_norm else x

    def masked(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """Adds the mask, (query, key) or with padding (batch, 1, query, key), to scores (batch, head, query,
        key): -inf where nothing may be seen.
        """
        return scores if mask is None else scores + self.narrowed(mask, scores)

    def narrowed(self, mask: Tensor, scores: Tensor) -> Tensor:
        """Adds the window of this layer, where others have none, to a mask of scores (..., query, key)."""
        length, keys = scores.shape[-2:]
        if not 0 < self.window < keys:
            return mask
        return mask + window_mask(length, scores, self.window, keys - length)

    def weights(self, masked: Tensor, mask: Tensor | None = None) -> Tensor:
        """Turns masked scores (..., query, key) into attention weights, whose rows sum to 1. `mask` is
        not used here: a subclass may need it.
        """
        return masked.softmax(dim=-1)

    def merged(self, z: Tensor) -> Tensor:
        """Puts each token's heads side by side: (batch, head, query, d_head) -> (batch, query, head *
        d_head).
        """
        batch, _, length, _ = z.shape
        return z.transpose(1, 2).reshape(batch, length, self.n_heads * self.d_head)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Returns q k^T / sqrt(d_head), or q k^T without `score_scale`, (batch, head, query, key). With fewer
        kv_heads, each key head serves a group of query heads (Ainslie et al. 2023).
        """
        batch, _, length, d_head = q.shape
        # The queries of one group are stacked, so that grouping is a reshape and no key is copied.
        q = q.reshape(batch * self.n_kv_heads, -1, d_head)  # (batch * kv_head, group * query, d_head)
        k = k.reshape(batch * self.n_kv_heads, -1, d_head)  # (batch * kv_head, key, d_head)
        # Scales as it writes; `(q @ k^T) * scale` takes 1.1 to 1.5 times as long. beta=0: nothing is added.
        # -> (batch * kv_head, group * query, key)
        scores = torch.baddbmm(q.new_empty(1, 1, 1), q, k.transpose(1, 2), beta=0, alpha=self.scale)
        return scores.view(batch, self.n_heads, length, -1)

    def weighted_sum(self, pattern: Tensor, v: Tensor) -> Tensor:
        """Returns pattern v: (batch, head, query, key) x (batch, kv_head, key, d_head) -> (batch, head,
        query, d_head).
        """
        batch, _, length, keys = pattern.shape
        pattern = pattern.reshape(batch * self.n_kv_heads, -1, keys)  # (batch * kv_head, group * query, key)
        v = v.reshape(batch * self.n_kv_heads, keys, self.d_head)  # (batch * kv_head, key, d_head)
        z = torch.bmm(pattern, v)  # (batch * kv_head, group * query, d_head)
        return z.view(batch, self.n_heads, length, self.d_head)

    def let_through(self, z: Tensor, x: Tensor, probe: Probe) -> Tensor:
        """Returns what the heads give of z (batch, head, query, d_head), all of it where x gates nothing."""
        return z

    # For interpretability ---------------------------------------------------------

    def raw_scores(self, q: Tensor, k: Tensor) -> Tensor | None:
        """Returns q k^T before it is scaled, (batch, head, query, key); None where nothing is compared."""
        k = k.repeat_interleave(self.n_heads // self.n_kv_heads, dim=1)  # (batch, head, key, d_head)
        return q @ k.transpose(-1, -2)  # (batch, head, query, d_head) @ (batch, head, d_head, key)

    def writes(self, z: Tensor) -> Tensor:
        """Returns what each head adds to the stream: z (head, ..., d_head) -> (head, ..., d_model), in z's
        precision, by the head's rows of W_O. Without W_O a head writes its slice of the stream.
        """
        matrix = (  # (head * d_head, d_model)
            torch.eye(self.n_heads * self.d_head, dtype=z.dtype, device=z.device)
            if self.w_o is None
            else self.w_o.weight.to(z.dtype).t()
        )
        own = matrix.unflatten(0, (self.n_heads, self.d_head))  # (head, d_head, d_model)
        return torch.einsum("h...d,hdm->h...m", z, own)  # (head, ..., d_head) -> (head, ..., d_model)

    def writes_at(self, z: Tensor, position: int) -> Tensor:
        """Returns what each head adds at one token of a text: z (head, query, d_head) -> (head, d_model)."""
        return self.writes(z[:, position])

    def constant(self) -> Tensor | None:
        """Returns the bias of W_O (d_model,), which is added to the stream whatever the heads hold; None for
        nothing.
        """
        return None if self.w_o is None else self.w_o.bias


def output_matrix(config: ResolvedConfig, width: int) -> nn.Linear | None:
    if not config.output_projection:
        return None
    return nn.Linear(width, config.d_model, bias=config.attention_bias and config.output_bias)


def by_heads(mixer: object) -> HeadMixer:
    """Returns a mixer that can be taken apart into heads. Raises ConfigError for any other."""
    if not isinstance(mixer, HeadMixer):
        raise ConfigError(
            "mixer",
            type(mixer).__name__,
            "has no heads to be looked at one by one; for that it must be a HeadMixer",
        )
    return mixer


class Attention(HeadMixer):
    """Multi-head self-attention (Vaswani et al. 2017), grouped (GQA) or multi-query (MQA) by n_kv_heads.

    `w_qkv` holds W_Q, W_K and W_V, in that order.
    """

    initial_values: ClassVar[InitialValues] = {**HeadMixer.initial_values, "w_qkv": "matrix"}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        width = self.n_heads * self.d_head
        kv_width = self.n_kv_heads * self.d_head
        self.w_qkv = StackedLinear(config.d_model, (width, kv_width, kv_width), bias=config.attention_bias)
        self.w_o = output_matrix(config, width)

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        if memory is not None:
            return self._across(x, memory)
        qkv = self.w_qkv(x)  # (batch, query, d_model) -> (batch, query, (head + 2 kv_head) * d_head)
        qkv = qkv.unflatten(-1, (-1, self.d_head))
        q, k, v = qkv.split([self.n_heads, self.n_kv_heads, self.n_kv_heads], dim=2)
        return q, k, v

    def _across(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries from x, keys and values from another text (Vaswani et al. 2017, 3.2.3)."""
        rows = (self.n_heads * self.d_head, 2 * self.n_kv_heads * self.d_head)  # of W_Q; of W_K and W_V
        (w_q, w_kv), bias = self.w_qkv.weight.split(rows), self.w_qkv.bias
        b_q, b_kv = (None, None) if bias is None else bias.split(rows)
        q = F.linear(x, w_q, b_q).unflatten(-1, (-1, self.d_head))  # (batch, query, head, d_head)
        if memory.shape[1] == 0:  # its keys and values are cached: no product with nothing
            return q, *2 * (q[:, :0, : self.n_kv_heads],)
        kv = F.linear(memory, w_kv, b_kv).unflatten(-1, (-1, self.d_head))  # (batch, key, 2 kv_head, d_head)
        k, v = kv.split([self.n_kv_heads, self.n_kv_heads], dim=2)
        return q, k, v


class Sinks(Attention):
    """Attention whose softmax has one score more for each head, learned and of no token: the weight that it
    takes is given to nothing, so that a head may rest without attending to the first token (Xiao et al. 2023;
    gpt-oss, OpenAI 2025).
    """

    initial_values: ClassVar[InitialValues] = {**Attention.initial_values, "sink": 0.0}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        self.sink = nn.Parameter(torch.empty(self.n_heads))

    def weights(self, masked: Tensor, mask: Tensor | None = None) -> Tensor:
        """Turns masked scores (batch, head, query, key) into weights whose rows sum to less than 1."""
        sink = self.sink.to(masked.dtype)[:, None, None].expand(*masked.shape[:-1], 1)
        return torch.cat((masked, sink), -1).softmax(-1)[..., :-1]


class Gated(Attention):
    """Attention whose heads' outputs are each multiplied by a gate in (0, 1), sigmoid(W_G x), so that a head
    may give nothing (Qiu et al. 2025; Qwen3-Next).
    """

    initial_values: ClassVar[InitialValues] = {**Attention.initial_values, "w_gate": "matrix"}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        width = self.n_heads * self.d_head
        self.w_gate = nn.Linear(config.d_model, width, bias=config.attention_bias)

    def let_through(self, z: Tensor, x: Tensor, probe: Probe) -> Tensor:
        gate = self.w_gate(x).sigmoid().unflatten(-1, (self.n_heads, self.d_head))
        return z * probe("z_gate", gate.transpose(1, 2))  # -> (batch, head, query, d_head)


class SharedQK(HeadMixer):
    """Attention whose queries and keys are the same vectors: before positions and mask, scores are symmetric
    and favour similar tokens.
    """

    initial_values: ClassVar[InitialValues] = {
        **HeadMixer.initial_values,
        "w_qk": "matrix",
        "w_v": "matrix",
    }

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        width = self.n_heads * self.d_head
        self.w_qk = nn.Linear(config.d_model, width, bias=config.attention_bias)
        self.w_v = nn.Linear(config.d_model, width, bias=config.attention_bias)
        self.w_o = output_matrix(config, width)

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        by_head = (self.n_heads, self.d_head)
        q = k = self.w_qk(x).unflatten(-1, by_head)  # (batch, query, d_model) -> (batch, query, head, d_head)
        if memory is not None:
            k = self.w_qk(memory).unflatten(-1, by_head)
        return q, k, self.w_v(x if memory is None else memory).unflatten(-1, by_head)


class Similarity(HeadMixer):
    """No matrices: tokens score by the raw similarity of their vectors, so each looks mostly at itself."""

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        q = kv = x.unflatten(-1, (self.n_heads, self.d_head))
        if memory is not None:
            kv = memory.unflatten(-1, (self.n_heads, self.d_head))
        return q, kv, kv


class Mean(Similarity):
    """No scores: every token takes the plain average of all it may see. Position schemes that bias scores
    still count.
    """

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return q.new_zeros(q.shape[0], self.n_heads, q.shape[2], k.shape[2])

    def raw_scores(self, q: Tensor, k: Tensor) -> Tensor | None:
        return None


class NoMixer(Mixer):
    """No mixing: each position predicts from its own token alone."""

    present: ClassVar[bool] = False

    def forward(self, x: Tensor, context: PassContext) -> Tensor | None:
        return None


# Masks, added to the scores before the softmax: causal, sliding window, padding ---------------------


def causal_mask(length: int, like: Tensor, start: int = 0) -> Tensor:
    """Returns (query, key): 0 where key <= query, -inf above. Added to the scores *before* the softmax.
    Queries begin at position `start`.
    """
    mask = like.new_full((length, start + length), -math.inf)
    return mask.triu(1 + start)


def window_mask(length: int, like: Tensor, window: int, start: int = 0) -> Tensor:
    """Returns (query, key): 0 for the last `window` keys up to the query itself, -inf for those before
    (sliding window attention: Beltagy et al. 2020, Jiang et al. 2023). The causal mask hides the keys after
    it.
    """
    return torch.full((length, start + length), -math.inf, dtype=like.dtype, device=like.device).tril(
        start - window
    )


def padding_mask(tokens: Tensor, pad: int, like: Tensor) -> Tensor:
    """Returns (batch, 1, 1, source) for tokens (batch, source): 0 where a token is, -inf where only padding
    makes the rows equally long. The same for every head and every query. Raises ShapeError for a row of
    padding alone, since a softmax over nothing has no answer.
    """
    empty = tokens == pad  # (batch, source)
    if bool(empty.all(dim=1).any()):
        raise ShapeError("an empty source cannot be read: give each at least one token that is not padding")
    mask = torch.zeros(tokens.shape, dtype=like.dtype, device=like.device)
    return mask.masked_fill(empty.to(like.device), -math.inf)[:, None, None, :]


def check_causal(mask: Tensor | None, length: int, start: int = 0) -> None:
    """Raises ShapeError for what is no causal mask of `length` queries from `start` on."""
    wanted = (length, start + length)
    if mask is not None and tuple(mask.shape) != wanted:
        raise ShapeError(
            f"the causal mask must be of shape (query, key) = {wanted}, not {tuple(mask.shape)}: every text"
            " has the same one"
        )


def check_padding(mask: Tensor, batch: int, keys: int) -> None:
    """Raises ShapeError for what is no padding mask of `batch` texts of so many keys."""
    wanted = (batch, 1, 1, keys)
    if tuple(mask.shape) != wanted:
        raise ShapeError(
            f"the padding mask must be of shape (batch, 1, 1, key) = {wanted}, not {tuple(mask.shape)}:"
            " every text has its own, for all queries; a mask (query, key) is the causal one"
        )


def decoder_masks(causal: Tensor | None, padding: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Returns the masks of a decoder's self-attention and cross-attention. The causal one (query, key) hides
    tokens not yet written, the padding one (batch, 1, 1, source) positions without a token. A function, so
    that a fault may exchange them (`Parts.decoder_masks`).
    """
    return causal, padding
