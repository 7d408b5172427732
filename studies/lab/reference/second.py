"""The forward pass a second time, as plain functions written from the papers: the engine's reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace

import torch
from torch import Tensor

from engine.config import ResolvedConfig
from engine.errors import ConfigError
from studies.lab.reference.position_schemes import hidden, position_bias, sines, turned

Keep = Callable[[str, Tensor], Tensor]
# Field -> its values that are written down here. Not the registry's: nothing of the engine computes here.
COVERED = {
    "mixer": ("attention", "none", "sinks", "gated", "mla"),
    "wiring": ("pre", "post", "parallel"),
    "norm": ("layernorm", "rmsnorm", "dyt", "none"),
    "position": ("none", "sinusoidal", "learned", "rope", "alibi", "t5"),
    "ffn": ("relu", "relu2", "gelu", "gelu_tanh", "swiglu", "swiglu_clamped", "geglu", "geglu_tanh", "none"),
    "output_head": ("linear", "masked", "none"),
}
# Fields that may have any value. A pooler is none that is written down here: no logit depends on it.
FREE = {
    "vocab_size", "context", "d_model", "n_layers", "n_heads", "n_kv_heads", "d_head", "d_ff",
    "norm_eps", "rope_theta", "rope_fraction", "qk_norm", "qk_gain", "score_scale", "embedding_scale",
    "embedding_norm", "token_types", "pooler", "pooling", "causal", "window", "global_every",
    "output_projection", "d_latent", "d_rotated", "d_query", "tie_embeddings", "attention_bias",
    "output_bias", "ffn_bias", "norm_gain", "norm_bias", "dropout",
    "n_experts", "active_experts", "shared_experts", "router", "router_norm", "router_scale",
    "balance", "balance_rate",
}  # fmt: skip


def gelu(x: Tensor) -> Tensor:
    """Returns x Φ(x), Φ the normal distribution's (Hendrycks & Gimpel 2016)."""
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def gelu_by_tanh(x: Tensor) -> Tensor:
    """Returns their approximation of it, which GPT-2 uses."""
    return x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda x: x.clamp(min=0),
    "relu2": lambda x: x.clamp(min=0) ** 2,  # So et al. 2021
    "gelu": gelu,
    "gelu_tanh": gelu_by_tanh,
    "swiglu": lambda x: x * torch.sigmoid(x),  # on the gate (Shazeer 2020)
    "swiglu_clamped": lambda x: x.clamp(max=7) * torch.sigmoid(1.702 * x.clamp(max=7)),  # OpenAI 2025
    "geglu": gelu,
    "geglu_tanh": gelu_by_tanh,
}


def shared(x: Tensor, group: int) -> Tensor:
    """Repeats (kv_head, key, d_head) -> (head, key, d_head), neighbours sharing (Ainslie et al. 2023)."""
    return x.repeat_interleave(group, dim=0)


@dataclass(frozen=True)
class Choices:
    """The functions that ports get wrong, so that a wrong one can be put in the place of each."""

    eps: Callable[[float], float] = float  # what stands in a norm's square root
    turn: Callable[[Tensor, float], Tensor] = turned
    share: Callable[[Tensor, int], Tensor] = shared
    scale: Callable[[int], float] = lambda d_head: 1 / math.sqrt(d_head)  # Vaswani et al. 2017, 3.2.1
    matrix: Callable[[Tensor], Tensor] = lambda stored: stored.T  # W_O: stored (out, in), used (in, out)
    activations: Mapping[str, Callable[[Tensor], Tensor]] = field(default_factory=lambda: ACTIVATIONS)


RIGHT = Choices()


def forward(
    config: ResolvedConfig, weights: Mapping[str, Tensor], ids: Tensor, choices: Choices = RIGHT
) -> dict[str, Tensor]:
    """Maps ids (position,) to every activation by its name, `logits` (position, vocab) the last, in the order
    in which data meets them. Raises ConfigError naming a field that is not covered.
    """
    refuse(config)
    c, w, states = config, weights, dict[str, Tensor]()

    def keep(name: str, x: Tensor) -> Tensor:
        states[name] = x
        return x

    x, bias = w["embedding"][ids], position_bias(c, w, len(ids))
    if c.embedding_scale:  # Vaswani et al. 2017, 3.4
        x = x * math.sqrt(c.d_model)
    if c.token_types:  # all tokens belong to the first text (Devlin et al. 2018)
        x = x + w["token_types"][0]
    if c.position == "learned":
        x = x + w["positions.weight"][: len(ids)]
    if c.position == "sinusoidal":
        x = x + sines(len(ids), c.d_model)
    if c.embedding_norm:
        x = norm(x, part(w, "norm_embed."), c, choices)
    for i in range(c.n_layers):
        x = block(x, part(w, f"blocks.{i}."), of_layer(c, i), choices, bias, within(keep, f"blocks.{i}."))
    if c.wiring != "post":  # there the last block ended with a norm
        x = norm(x, part(w, "norm_final."), c, choices)
    x = keep("norm_final", x)
    if c.output_head != "none":
        output(x, part(w, "output."), w["embedding" if c.tie_embeddings else "unembedding"], c, choices, keep)
    return states


def of_layer(c: ResolvedConfig, i: int) -> ResolvedConfig:
    """Returns the same without a window where layer i has none (Gemma team 2025, section 2)."""
    return replace(c, window=0) if c.global_every and i % c.global_every == c.global_every - 1 else c


def block(
    x: Tensor, w: Mapping[str, Tensor], c: ResolvedConfig, choices: Choices, bias: Tensor, keep: Keep
) -> Tensor:
    """Applies a block to x (position, d_model). Norms before (Xiong et al. 2020), after (Vaswani et al.
    2017), or before both sublayers at once (GPT-NeoX, Black et al. 2022).
    """

    def attn(x: Tensor) -> Tensor:
        return attention(x, part(w, "mixer."), c, choices, bias, keep) if c.mixer != "none" else 0 * x

    def ffn(x: Tensor) -> Tensor:
        if c.n_experts:
            return mixture(x, part(w, "ffn."), c, choices, keep)
        return feedforward(x, part(w, "ffn."), c, choices, keep) if c.ffn != "none" else 0 * x

    def normed(x: Tensor, name: str, there: bool) -> Tensor:
        return keep(name, norm(x, part(w, f"{name}."), c, choices)) if there else x

    has_attn, has_ffn = c.mixer != "none", c.ffn != "none"
    x = keep("resid_pre", x)
    if c.wiring == "parallel":
        written = attn(normed(x, "norm1", has_attn)) + ffn(normed(x, "norm2", has_ffn))
        return keep("resid_post", x + written)
    if c.wiring == "post":
        x = normed(keep("resid_mid", x + attn(x)), "norm1", has_attn)
        return normed(keep("resid_post", x + ffn(x)), "norm2", has_ffn)
    x = keep("resid_mid", x + attn(normed(x, "norm1", has_attn)))
    return keep("resid_post", x + ffn(normed(x, "norm2", has_ffn)))


def output(
    x: Tensor, w: Mapping[str, Tensor], matrix: Tensor, c: ResolvedConfig, choices: Choices, keep: Keep
) -> Tensor:
    """Returns x W_U; or LayerNorm(GELU(x W + b)) W_U + b, as BERT guesses hidden tokens."""
    if c.output_head == "masked":
        x = choices.activations["gelu"](x @ w["w_in.weight"].T + w["w_in.bias"])
        x = norm(x, part(w, "norm."), replace(c, norm="layernorm"), choices)
    return keep("logits", x @ matrix.T + w.get("bias", 0))


def norm(x: Tensor, w: Mapping[str, Tensor], c: ResolvedConfig, choices: Choices) -> Tensor:
    """Applies LayerNorm (Ba et al. 2016), which subtracts the mean and divides by the spread, or RMSNorm
    (Zhang & Sennrich 2019), which leaves the mean, or DyT (Zhu et al. 2025), which measures nothing.
    """
    if c.norm == "none":
        return x
    if c.norm == "dyt":
        return torch.tanh(w["alpha"] * x) * w.get("gain", 1) + w.get("bias", 0)
    if c.norm == "layernorm":
        x = x - x.mean(-1, keepdim=True)
    x = x / torch.sqrt((x**2).mean(-1, keepdim=True) + choices.eps(c.norm_eps))
    return x * w.get("gain", 1) + w.get("bias", 0)


def attention(
    x: Tensor, w: Mapping[str, Tensor], c: ResolvedConfig, choices: Choices, bias: Tensor, keep: Keep
) -> Tensor:
    """Returns softmax(q k^T / sqrt(d_head) + bias) v, head by head (Vaswani et al. 2017, 3.2)."""
    rows = latent(x, w, c) if c.mixer == "mla" else projected(x, w, c)
    q, k, v = (keep(name, part.transpose(0, 1)) for name, part in zip("qkv", rows, strict=True))
    if c.qk_norm:  # Henry et al. 2020
        q, k = (y / torch.sqrt((y**2).mean(-1, keepdim=True) + choices.eps(c.norm_eps)) for y in (q, k))
        q, k = q * w.get("q_gain", 1), k * w.get("k_gain", 1)
    if c.position == "rope":
        n = c.d_rotary
        q, k = (torch.cat([choices.turn(y[..., :n], c.rope_theta), y[..., n:]], -1) for y in (q, k))
    q, k = keep("q_rot", q), keep("k_rot", k)
    k, v = (choices.share(y, c.n_heads // c.n_kv_heads) for y in (k, v))
    scale = choices.scale(q.shape[-1]) if c.score_scale else 1.0  # T5 divides none
    scores = torch.einsum("hqd,hkd->hqk", q, k) * scale + bias
    scores = keep("scores", scores).masked_fill(hidden(c, len(x)), -math.inf)
    if c.mixer == "sinks":  # a score more for each head, of nothing (OpenAI 2025)
        scores = torch.cat([scores, w["sink"][:, None, None].expand(-1, len(x), 1)], -1)
    pattern = torch.softmax(scores, -1)[..., : len(x)]
    z = torch.einsum("hqk,hkd->hqd", keep("pattern", pattern), v)
    if c.mixer == "gated":  # Qiu et al. 2025
        gate = torch.sigmoid(x @ w["w_gate.weight"].T + w.get("w_gate.bias", 0))
        z = z * gate.unflatten(-1, (c.n_heads, c.d_head)).transpose(0, 1)
    z = keep("z", z)
    out = z.transpose(0, 1).flatten(1)  # (position, head * d_head)
    if c.output_projection:
        out = out @ choices.matrix(w["w_o.weight"]) + w.get("w_o.bias", 0)
    return keep("attn_out", out)


def projected(x: Tensor, w: Mapping[str, Tensor], c: ResolvedConfig) -> tuple[Tensor, ...]:
    """Returns q, k and v, each (position, head, d_head)."""
    counts = (c.n_heads, c.n_kv_heads, c.n_kv_heads)
    rows = (x @ w["w_qkv.weight"].T + w.get("w_qkv.bias", 0)).split([n * c.d_head for n in counts], -1)
    return tuple(part.unflatten(-1, (n, c.d_head)) for part, n in zip(rows, counts, strict=True))


def latent(x: Tensor, w: Mapping[str, Tensor], c: ResolvedConfig) -> tuple[Tensor, ...]:
    """Returns the same of multi-head latent attention (DeepSeek-AI 2024, 2.1.2): q and k (position, head,
    d_rotated + d_head), the part that RoPE turns first.
    """

    def compressed(x: Tensor, gain: Tensor) -> Tensor:
        return x / torch.sqrt((x**2).mean(-1, keepdim=True) + 1e-6) * gain

    down = x @ w["w_dkv.weight"].T + w.get("w_dkv.bias", 0)
    kv = compressed(down[:, : c.d_latent], w["latent_gain"]) @ w["w_ukv.weight"].T
    kv = kv.unflatten(-1, (c.n_heads, 2 * c.d_head))  # (position, head, key and value)
    alike = down[:, None, c.d_latent :].expand(-1, c.n_heads, -1)
    if c.d_query:
        x = compressed(x @ w["w_dq.weight"].T + w.get("w_dq.bias", 0), w["query_gain"])
    q = (x @ w["w_q.weight"].T).unflatten(-1, (c.n_heads, -1))
    return q, torch.cat([alike, kv[..., : c.d_head]], -1), kv[..., c.d_head :]


def mixture(x: Tensor, w: Mapping[str, Tensor], c: ResolvedConfig, choices: Choices, keep: Keep) -> Tensor:
    """Returns the sum of the chosen networks, each times its weight, and of the shared ones (Shazeer et al.
    2017; with sigmoids DeepSeek-AI 2024, 2.1.3).
    """
    logits = x @ w["router.weight"].T + w.get("router.bias", 0)
    scores = logits.softmax(-1) if c.router == "softmax" else logits.sigmoid()
    best = (scores + w.get("preference", 0)).topk(c.active_experts).indices
    gains = torch.zeros_like(scores).scatter(1, best, scores.gather(1, best))
    if c.router_norm:
        gains = gains / gains.sum(1, keepdim=True)
    gains = torch.cat([gains * c.router_scale, torch.ones(len(x), c.shared_experts)], 1)
    networks = {name: each.chunk(gains.shape[1]) for name, each in w.items() if name.startswith("w_")}
    out = torch.zeros_like(x)
    for e, gain in enumerate(gains.T):
        single = {name: each[e] for name, each in networks.items()}
        out = out + gain[:, None] * feedforward(x, single, c, choices, lambda name, y: y)
    return keep("ffn_out", out)


def feedforward(
    x: Tensor, w: Mapping[str, Tensor], c: ResolvedConfig, choices: Choices, keep: Keep
) -> Tensor:
    """Returns W2 act(W1 x), or W2 (act(G x) * W1 x) with a gate (Shazeer 2020)."""
    wide, act = x @ w["w_in.weight"].T + w.get("w_in.bias", 0), choices.activations[c.ffn]
    if c.ffn in ("swiglu", "swiglu_clamped", "geglu", "geglu_tanh"):
        gate, up = wide.chunk(2, dim=-1)
        gate, up = keep("ffn_gate", gate), keep("ffn_pre", up)
        wide = act(gate) * (up.clamp(-7, 7) + 1 if c.ffn == "swiglu_clamped" else up)
    else:
        wide = act(keep("ffn_pre", wide))
    return keep("ffn_out", keep("ffn_post", wide) @ w["w_out.weight"].T + w.get("w_out.bias", 0))


def within(keep: Keep, prefix: str) -> Keep:
    """Returns `keep` for a block, with the block's name before each activation's."""
    return lambda name, x: keep(prefix + name, x)


def part(w: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Returns the tensors below a name, without it."""
    return {name.removeprefix(prefix): x for name, x in w.items() if name.startswith(prefix)}


def refuse(config: ResolvedConfig) -> None:
    """Raises ConfigError for fields that are not covered here, later ones among them."""
    for each in fields(config):
        value = getattr(config, each.name)
        if each.name in COVERED and value not in COVERED[each.name]:
            raise ConfigError(
                each.name, value, f"the second implementation knows {', '.join(COVERED[each.name])}"
            )
        if each.name not in COVERED and each.name not in FREE and value != each.default:
            raise ConfigError(each.name, value, f"the second implementation only knows {each.default!r}")
