"""What mixers that work in heads share: from queries, keys and values to what is written to the stream.

Attention is written out (scores, mask, softmax, weighted sum) rather than fused: the app shows every
stage, and at these sizes on a CPU it is also faster than the fused kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.errors import ConfigError
from engine.parts.costs import BatchShape, Product, SavedForBackward, Weight, bias_of
from engine.parts.formula import Formula
from engine.parts.forward_pass import PassContext
from engine.parts.initial import InitialValues


class HeadMixer(nn.Module):
    """What all mixers share: heads, scores, mask, softmax, weighted sum. Subclasses say where q, k, v come
    from.

    x is what asks; what answers is `memory`, another text's vectors, or x itself where it is None.

    Whoever looks inside asks these methods too: what one of them computes is computed nowhere else.
    """

    present: ClassVar[bool] = True
    title: ClassVar[str] = "Mixer"
    sentence: ClassVar[str] = "Tokens gather from each other."
    scored: ClassVar[bool] = True
    learned: ClassVar[bool] = False
    cacheable: ClassVar[bool] = True
    flat: ClassVar[Mapping[str, str]] = {}
    initial_values: ClassVar[InitialValues] = {"q_gain": 1.0, "k_gain": 1.0, "w_o": "to_stream"}
    w_o: nn.Linear | None

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.d_head = config.n_heads, config.n_kv_heads, config.d_head
        self.qk_norm, self.eps, self.dropout = config.qk_norm, config.norm_eps, config.dropout
        # Keeps the scores' spread near 1 (2017, 3.2.1); T5 begins with smaller queries instead.
        self.scale = 1.0 / math.sqrt(self.d_head) if config.score_scale else 1.0
        self.q_gain, self.k_gain = (
            nn.Parameter(torch.empty(self.d_head)) if config.qk_gain else None for _ in "qk"
        )
        self.w_o = None

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """x (batch, query, d_model) and memory (batch, key, d_model) -> q (batch, query, head, d_head) and
        k, v (batch, key, kv_head, d_head).
        """
        raise NotImplementedError

    def output(self, z: Tensor) -> Tensor:
        """The heads side by side (batch, query, head * d_head) -> (batch, query, d_model)."""
        return z if self.w_o is None else self.w_o(z)

    def forward(self, x: Tensor, context: PassContext) -> Tensor:
        probe, hooks, mask = context.probe, context.hooks, context.mask
        q, k, v = self.heads(x, context.memory)
        q = probe("q", q.transpose(1, 2))  # (batch, query, head, d_head) -> (batch, head, query, d_head)
        k = probe("k", k.transpose(1, 2))
        v = probe("v", v.transpose(1, 2))
        q, k = hooks.rotate(self.normed(q, self.q_gain), self.normed(k, self.k_gain))
        q, k = probe("q_rot", q), probe("k_rot", k)
        k, v = context.extend(k, v)  # with those of earlier positions, computed before
        scores = probe("scores", hooks.bias(self.scores(q, k)))  # (batch, head, query, key)
        masked = probe("masked_scores", self.masked(scores, mask))
        pattern = probe("pattern", self.weights(masked, mask))
        pattern = F.dropout(pattern, self.dropout, self.training)
        z = probe("z", self.weighted_sum(pattern, v))  # (batch, head, query, d_head)
        return probe("attn_out", F.dropout(self.output(self.merged(z)), self.dropout, self.training))

    def normed(self, x: Tensor, gain: Tensor | None = None) -> Tensor:
        """Queries or keys (..., d_head) as they meet the rotation: with `qk_norm` of length sqrt(d_head),
        which bounds the scores (Henry et al. 2020), and then times their gain where they have one.
        """
        return F.rms_norm(x, (self.d_head,), gain, self.eps) if self.qk_norm else x

    def masked(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """Scores (..., query, key) with the mask (query, key) added: -inf where nothing may be seen."""
        return scores if mask is None else scores + mask

    def weights(self, masked: Tensor, mask: Tensor | None = None) -> Tensor:
        """Scores (..., query, key) -> how much of each value is taken. Rows sum to 1: attention has no null
        answer. The mask is in the scores already.
        """
        return masked.softmax(dim=-1)

    def merged(self, z: Tensor) -> Tensor:
        """(batch, head, query, d_head) -> (batch, query, head * d_head): each token's heads side by side."""
        batch, _, length, _ = z.shape
        return z.transpose(1, 2).reshape(batch, length, self.n_heads * self.d_head)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """q k^T / sqrt(d_head), or q k^T without `score_scale`. With fewer kv_heads, each key head serves a
        group of query heads (Ainslie et al. 2023).
        """
        batch, _, length, d_head = q.shape
        # The queries of one group are stacked, so that grouping is a reshape and no key is copied.
        q = q.reshape(batch * self.n_kv_heads, -1, d_head)
        k = k.reshape(batch * self.n_kv_heads, -1, d_head)
        scores = torch.baddbmm(q.new_empty(1, 1, 1), q, k.transpose(1, 2), beta=0, alpha=self.scale)
        return scores.view(batch, self.n_heads, length, -1)

    def weighted_sum(self, pattern: Tensor, v: Tensor) -> Tensor:
        """pattern v: (batch, head, query, key) x (batch, kv_head, key, d_head) -> (batch, head, query,
        d_head).
        """
        batch, _, length, keys = pattern.shape
        pattern = pattern.reshape(batch * self.n_kv_heads, -1, keys)
        v = v.reshape(batch * self.n_kv_heads, keys, self.d_head)
        return torch.bmm(pattern, v).view(batch, self.n_heads, length, self.d_head)

    # What looking inside asks beside them ---------------------------------------------------------

    def compared(self, q: Tensor, k: Tensor) -> Tensor | None:
        """q k^T as it is before it is scaled, (batch, head, query, key); None where nothing is compared."""
        return q @ k.repeat_interleave(self.n_heads // self.n_kv_heads, dim=1).transpose(-1, -2)

    def writes(self, z: Tensor) -> Tensor:
        """What each head adds to the stream: z (head, ..., d_head) -> (head, ..., d_model), in z's precision,
        by its own rows of W_O. Without W_O a head writes its own slice of the stream.
        """
        matrix = (  # (head * d_head, d_model)
            torch.eye(self.n_heads * self.d_head, dtype=z.dtype, device=z.device)
            if self.w_o is None
            else self.w_o.weight.to(z.dtype).t()
        )
        own = matrix.unflatten(0, (self.n_heads, self.d_head))  # (head, d_head, d_model)
        return torch.einsum("h...d,hdm->h...m", z, own)

    def writes_at(self, z: Tensor, position: int) -> Tensor:
        """The same at one token of a text: z (head, query, d_head) -> (head, d_model)."""
        return self.writes(z[:, position])

    def constant(self) -> Tensor | None:
        """What is added to the stream whatever the heads hold, (d_model,): the bias of W_O, which no head
        owns. None for nothing.
        """
        return None if self.w_o is None else self.w_o.bias

    # What it costs ---------------------------------------------------------------------------------

    @classmethod
    def read_by(cls, config: ResolvedConfig) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The matrices that read the stream: name, and what they give, by sizes."""
        return ()

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        rows: list[Weight] = []
        for name, width in cls.read_by(config):
            rows += [Weight(name, ("d_model", *width)), *bias_of(name, config.attention_bias, *width)]
        if config.qk_gain:
            rows += [Weight(f"gain of {name}", ("d_head",)) for name in "qk"]
        if cls.learned and config.output_projection:
            given = config.attention_bias and config.output_bias
            rows += [Weight("W_O", (*QUERIES, "d_model")), *bias_of("W_O", given, "d_model")]
        return tuple(rows)

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        rows = [Product(name, ("d_model", *width)) for name, width in cls.read_by(config)]
        if cls.scored:
            rows.append(Product("scores q·k", ("T", *QUERIES)))
        rows.append(Product("weighted sum of v", ("T", *QUERIES)))
        if cls.learned and config.output_projection:
            rows.append(Product("W_O", (*QUERIES, "d_model")))
        return tuple(rows)

    @classmethod
    def kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        width = config.n_heads * config.d_head
        written = width if cls.learned and config.output_projection else 0  # the input of W_O
        pattern = config.n_heads * run.tokens
        read = config.d_model if cls.learned else 0
        if not cls.scored:  # the gradient of v needs the pattern alone, which depends on nothing
            return SavedForBackward(read, pattern + written)
        return SavedForBackward(read, pattern + written) + cls.vectors_kept(config, run)

    @classmethod
    def vectors_kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        """Queries, keys and values. The products read copies of them, with the heads side by side; or, where
        these lie so already, what q, k and v were cut from, whole.
        """
        raise NotImplementedError

    @classmethod
    def cached(cls, config: ResolvedConfig) -> int:
        """Numbers that a cache holds for each token: a key and a value for each key-value head."""
        return 2 * config.n_kv_heads * config.d_head

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        bias, plus = (r" + b", " + b") if config.attention_bias and config.output_bias else ("", "")
        side_by_side = (r"\mathrm{out} = [z_1, \dots, z_H]", "heads laid side by side again")
        projected = (rf"\mathrm{{out}} = z\,W_O{bias}", f"z · W_O{plus}")
        return {
            **{name: _in_front(name) for name in ("q", "k", "v")},
            **{f"{name}_rot": _normed(name, config) for name in ("q", "k")},
            "scores": cls.score(config),
            "pattern": (
                r"A_{ij} = \frac{e^{m_{ij}}}{\sum_{j'} e^{m_{ij'}}}",
                "softmax over key",
            ),
            "z": (r"z = A\,v", "pattern · v, in each head"),
            "z_merged": (r"z = [z_1, \dots, z_H]", "heads laid side by side again"),
            "attn_out": projected if cls.learned and config.output_projection else side_by_side,
        }

    @classmethod
    def score(cls, config: ResolvedConfig) -> Formula:
        """The formula of `scores`, before positions have a say."""
        if not config.score_scale:
            return r"\mathrm{scores} = q\,k^\top", "q · kᵀ" + _shared(config)
        return r"\mathrm{scores} = \frac{q\,k^\top}{\sqrt{d_{head}}}", "q · kᵀ / √d_head" + _shared(config)


QUERIES, KEYS = ("n_heads", "d_head"), ("n_kv_heads", "d_head")


def lies_in_order(config: ResolvedConfig, run: BatchShape) -> bool:
    """Whether keys and values lie as the products want them, so that nothing is copied: with one text, or one
    key head, (batch, kv_head) is one axis already.
    """
    return run.batch == 1 or config.n_kv_heads == 1


def alike_kept(config: ResolvedConfig, run: BatchShape) -> tuple[SavedForBackward, bool]:
    """Of queries and keys that are one tensor: what is kept of each, and whether the tensor itself is."""
    width, spreads = config.n_heads * config.d_head, 2 * config.n_heads
    gained = 2 * width if config.qk_gain else 0  # what the gains multiply
    if config.qk_norm and run.narrow:  # normed in float32, each from a copy
        return SavedForBackward(own=2 * width, full=2 * width + spreads + gained), False
    if config.qk_norm:
        return SavedForBackward(own=2 * width + spreads + gained), True
    if lies_in_order(config, run) and not run.turned:
        return SavedForBackward(), True
    return SavedForBackward(own=2 * width), False


def _shared(config: ResolvedConfig) -> str:
    groups = config.n_heads // config.n_kv_heads
    return f"; {groups} query heads share a key head" if groups > 1 else ""


def _in_front(name: str) -> Formula:
    latex = rf"{name}: (T, H, d_{{head}}) \to (H, T, d_{{head}})"
    return latex, f"{name}, with its heads in front: each works alone"


def _normed(name: str, config: ResolvedConfig) -> Formula:
    if not config.qk_norm:
        return name, name
    gain, by = (r"g \odot ", ", then times its gain g") if config.qk_gain else ("", "")
    return rf"{gain}\frac{{{name}}}{{\mathrm{{rms}}({name})}}", f"{name} scaled to length √d_head{by}"


def output_matrix(config: ResolvedConfig, width: int) -> nn.Linear | None:
    if not config.output_projection:
        return None
    return nn.Linear(width, config.d_model, bias=config.attention_bias and config.output_bias)


def by_heads(mixer: object) -> HeadMixer:
    """A mixer that can be taken apart into heads. Raises ConfigError for any other."""
    if not isinstance(mixer, HeadMixer):
        raise ConfigError(
            "mixer",
            type(mixer).__name__,
            "has no heads to be looked at one by one; for that it must be made as HeadMixer is",
        )
    return mixer
