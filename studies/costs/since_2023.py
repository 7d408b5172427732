"""Models since 2023, described layer by layer from their published configurations: parameters, the part of
them that a token meets, cache, FLOPs. Nothing is built.

A mixture of experts is larger than what a token meets, a window bounds what is cached, a state does not grow:
`studies.costs.ledger` counts models whose layers are all alike, this those whose layers differ. Modules that
predict several tokens ahead, and encoders of images, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

BYTES = 2  # of a number in bfloat16, in which all of them are served or were trained


@dataclass(frozen=True)
class Tensor:
    """`copies` tensors of one shape, of which a token meets `met`. `looked_up`: a token reads one row."""

    name: str
    shape: tuple[int, ...]
    copies: int = 1
    met: int = 1
    looked_up: bool = False

    @property
    def numbers(self) -> int:
        return prod(self.shape) * self.copies

    @property
    def active(self) -> int:
        return prod(self.shape[1:] if self.looked_up else self.shape) * self.met

    @property
    def products(self) -> int:
        """Multiplications for each token: none by a vector, such as a bias or a gain, or by a table."""
        return 0 if self.looked_up or len(self.shape) == 1 else prod(self.shape) * self.met


@dataclass(frozen=True)
class Attention:
    """How the tokens of one layer exchange information.

    compared   multiplications for each token that is looked at: scores and weighted sum, all heads
    cached     numbers that are cached for each token read
    window     tokens that are looked back over, 0 for all
    state      numbers that are kept instead of a cache, however long the text
    """

    kind: str
    heads: int
    tensors: tuple[Tensor, ...]
    compared: int = 0
    cached: int = 0
    window: int = 0
    state: int = 0

    def seen(self, tokens: int) -> int:
        """Returns how many of `tokens` a token is compared with, and how many are cached."""
        return min(tokens, self.window) if self.window else tokens

    def products(self, tokens: int) -> int:
        """Multiplications for a token among `tokens`. A state is read, written to, and read again."""
        return sum(t.products for t in self.tensors) + self.compared * self.seen(tokens) + 3 * self.state


@dataclass(frozen=True)
class Layers:
    """`count` layers that are alike."""

    count: int
    attention: Attention
    network: tuple[Tensor, ...]
    norms: int = 2


@dataclass(frozen=True)
class Card:
    """A published model. `published` is what its makers say of its size, `source` where sizes were read."""

    title: str
    d_model: int
    vocab_size: int
    context: int
    stack: tuple[Layers, ...]
    experts: str  # in words: chosen of all, and shared ones
    published: str
    source: str
    tied: bool = False

    def rows(self) -> Iterable[tuple[str, int, Tensor]]:
        """Yields component, number of layers and tensor, as data meets them."""
        table = (self.vocab_size, self.d_model)
        yield "embedding", 1, Tensor("E", table, looked_up=not self.tied)
        for layers in self.stack:
            for tensor in layers.attention.tensors:
                yield "attention", layers.count, tensor
            for tensor in layers.network:
                yield "feedforward", layers.count, tensor
            yield "norm", layers.count * layers.norms, Tensor("gain", (self.d_model,))
        yield "norm", 1, Tensor("gain", (self.d_model,))
        if not self.tied:
            yield "unembedding", 1, Tensor("W_U", table)

    @property
    def total(self) -> int:
        return sum(count * tensor.numbers for _, count, tensor in self.rows())

    @property
    def active(self) -> int:
        """Parameters that a token meets: of the experts those that are chosen and the shared ones, of an
        embedding table that is not the output's one row.
        """
        return sum(count * tensor.active for _, count, tensor in self.rows())

    @property
    def share(self) -> float:
        return self.active / self.total

    def flops(self, tokens: int) -> int:
        """Forward FLOPs of a token among `tokens`, two for each multiplication with its addition.
        Compressed keys count as expanded, and a causal mask saves nothing.
        """
        inside = sum(
            layers.count * (layers.attention.products(tokens) + sum(t.products for t in layers.network))
            for layers in self.stack
        )
        return 2 * (inside + self.vocab_size * self.d_model)

    def cache(self, tokens: int) -> int:
        """Bytes of the KV cache of a text of `tokens`, without states."""
        numbers = sum(s.count * s.attention.cached * s.attention.seen(tokens) for s in self.stack)
        return BYTES * numbers

    @property
    def state(self) -> int:
        """Bytes of states, however long the text."""
        return BYTES * sum(layers.count * layers.attention.state for layers in self.stack)

    @property
    def windows(self) -> tuple[int, int, int]:
        """Returns how many layers have a window, how many layers there are, and the window."""
        windowed = [layers for layers in self.stack if layers.attention.window]
        window = max((layers.attention.window for layers in windowed), default=0)
        return sum(s.count for s in windowed), sum(s.count for s in self.stack), window

    @property
    def kinds(self) -> dict[str, int]:
        """Layers of each kind of attention."""
        result: dict[str, int] = {}
        for layers in self.stack:
            result[layers.attention.kind] = result.get(layers.attention.kind, 0) + layers.count
        return result


# Layers -------------------------------------------------------------------------------------------


def _grouped(
    d: int, heads: int, kv: int, d_head: int, *, window: int = 0, biases: str = "", normed: bool = False,
    gated: bool = False, sinks: bool = False,
) -> Attention:  # fmt: skip
    """Grouped-query attention (Ainslie et al. 2023). `biases`: of which of W_Q, W_K, W_V, W_O. `gated`: W_Q
    also makes a gate for what the heads give. `sinks`: a learned score for each head, for no token.
    """
    width = {"Q": (1 + gated) * heads * d_head, "K": kv * d_head, "V": kv * d_head}
    tensors = [Tensor(f"W_{name}", (d, size)) for name, size in width.items()]
    tensors.append(Tensor("W_O", (heads * d_head, d)))
    tensors += [Tensor(f"b_{name}", ((width | {"O": d})[name],)) for name in biases]
    if normed:
        tensors += [Tensor(f"gain of {name}", (d_head,)) for name in "qk"]
    if sinks:
        tensors.append(Tensor("sinks", (heads,)))
    kind = "GQA, gated" if gated else "GQA" if kv > 1 else "MQA"
    return Attention(kind, heads, tuple(tensors), 2 * heads * d_head, 2 * kv * d_head, window)


def _latent(
    d: int, heads: int, *, queries: int = 1536, latent: int = 512, plain: int = 128, rotated: int = 64
) -> Attention:
    """Multi-head latent attention (DeepSeek-AI 2024): keys and values are made of `latent` numbers, which are
    cached with one rotated key for all heads.
    """
    tensors = (
        Tensor("W_DQ", (d, queries)),
        Tensor("gain of q", (queries,)),
        Tensor("W_UQ", (queries, heads * (plain + rotated))),
        Tensor("W_DKV", (d, latent + rotated)),
        Tensor("gain of kv", (latent,)),
        Tensor("W_UKV", (latent, heads * 2 * plain)),
        Tensor("W_O", (heads * plain, d)),
    )
    return Attention("MLA", heads, tensors, heads * (plain + rotated + plain), latent + rotated)


def _delta(d: int, *, keys: int = 16, values: int = 32, d_head: int = 128, kernel: int = 4) -> Attention:
    """Gated DeltaNet (Yang et al. 2024): a state for each value head, written to by the delta rule."""
    read, written = keys * d_head, values * d_head
    tensors = (
        Tensor("W_QKVZ", (d, 2 * read + 2 * written)),
        Tensor("W_BA", (d, 2 * values)),
        Tensor("convolution", (2 * read + written, kernel)),
        Tensor("decay A", (values,)),
        Tensor("decay dt", (values,)),
        Tensor("gain", (d_head,)),
        Tensor("W_O", (written, d)),
    )
    return Attention("Gated DeltaNet", values, tensors, state=values * d_head * d_head)


def _dense(d: int, width: int, copies: int = 1, met: int = 1, name: str = "") -> tuple[Tensor, ...]:
    """A gated network: three matrices (Shazeer 2020). With `copies`, as many experts."""
    shapes = (("W_gate", (d, width)), ("W_1", (d, width)), ("W_2", (width, d)))
    return tuple(Tensor(name + matrix, shape, copies, met) for matrix, shape in shapes)


def _experts(
    d: int, width: int, count: int, chosen: int, *, shared: bool = False, corrected: bool = False,
    biased: bool = False, gate: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """A router, and `count` experts of which it chooses `chosen`. `shared`: an expert that every token meets,
    weighed by a `gate`. `corrected`: a bias for balance is added to scores when experts are chosen. `biased`:
    the router and the experts have biases.
    """
    tensors = (Tensor("router", (d, count)), *_dense(d, width, count, chosen, "expert "))
    if corrected:
        tensors += (Tensor("balance", (count,)),)
    if biased:
        inside = (
            Tensor("expert b_1", (2 * width,), count, chosen),
            Tensor("expert b_2", (d,), count, chosen),
        )
        tensors += (Tensor("b of router", (count,)), *inside)
    if shared:
        tensors += _dense(d, width, name="shared ")
    return (*tensors, Tensor("gate of the shared", (d, 1))) if gate else tensors


def _deepseek(heads: int, dense: int, count: int) -> tuple[Layers, ...]:
    attention = _latent(7168, heads)
    experts = _experts(7168, 2048, count, 8, shared=True, corrected=True)
    return Layers(dense, attention, _dense(7168, 18_432)), Layers(61 - dense, attention, experts)


def _gpt_oss(layers: int, count: int) -> tuple[Layers, ...]:
    experts = _experts(2880, 2880, count, 4, biased=True)
    return tuple(
        Layers(
            layers // 2,
            _grouped(2880, 64, 8, 64, window=window, biases="QKVO", sinks=True),
            experts,
        )
        for window in (128, 0)
    )


def _gemma(
    d: int, heads: int, kv: int, d_head: int, width: int, layers: int, window: int
) -> tuple[Layers, ...]:
    """Five layers with a window, then one without; norms before and after each sublayer."""
    whole = layers // 6
    counts = ((layers - whole, window), (whole, 0))
    return tuple(
        Layers(count, _grouped(d, heads, kv, d_head, window=reach, normed=True), _dense(d, width), norms=4)
        for count, reach in counts
    )


def _qwen_next() -> tuple[Layers, ...]:
    experts = _experts(2048, 512, 512, 10, shared=True, gate=True)
    gated = _grouped(2048, 16, 2, 256, normed=True, gated=True)
    return Layers(36, _delta(2048), experts), Layers(12, gated, experts)


def _glm() -> tuple[Layers, ...]:
    attention = _grouped(5120, 96, 8, 128, biases="QKV", normed=True)
    experts = _experts(5120, 1536, 160, 8, shared=True, corrected=True)
    return Layers(3, attention, _dense(5120, 12_288)), Layers(89, attention, experts)


CARDS: dict[str, Card] = {
    "deepseek-v3": Card(
        "DeepSeek-V3", 7168, 129_280, 163_840, _deepseek(128, 3, 256), "8 of 256 and 1",
        "671B, 36.7B active",
        "DeepSeek-AI 2024; deepseek-ai/DeepSeek-V3, inference/configs/config_671B.json",
    ),
    "gemma3-1b": Card(
        "Gemma 3 1B", 1152, 262_144, 32_768, _gemma(1152, 4, 1, 256, 6912, 26, 512), "",
        "1B", "Gemma team 2025; google/gemma_pytorch, gemma/config.py", tied=True,
    ),
    "gemma3-27b": Card(
        "Gemma 3 27B", 5376, 262_144, 131_072, _gemma(5376, 32, 16, 128, 21_504, 62, 1024), "",
        "27B", "Gemma team 2025; google/gemma_pytorch, gemma/config.py", tied=True,
    ),
    "qwen3-30b-a3b": Card(
        "Qwen3 30B-A3B", 2048, 151_936, 40_960,
        (Layers(48, _grouped(2048, 32, 4, 128, normed=True), _experts(2048, 768, 128, 8)),), "8 of 128",
        "30B, 3B active", "Qwen team 2025; config.json in alibaba/InferSim, hf_configs",
    ),
    "kimi-k2": Card(
        "Kimi K2", 7168, 163_840, 131_072, _deepseek(64, 1, 384), "8 of 384 and 1",
        "1T, 32B active", "Moonshot AI 2025; MoonshotAI/Kimi-K2, README, and THUDM/slime, kimi-k2.sh",
    ),
    "glm-4.5": Card(
        "GLM-4.5", 5120, 151_552, 131_072, _glm(), "8 of 160 and 1",
        "355B, 32B active", "GLM team 2025; zai-org/GLM-4.5, README, and THUDM/slime, glm4.5-355B-A32B.sh",
    ),
    "gpt-oss-20b": Card(
        "gpt-oss-20b", 2880, 201_088, 131_072, _gpt_oss(24, 32), "4 of 32",
        "21B, 3.6B active", "OpenAI 2025; openai/gpt-oss, README; a copy of its config.json (EchoCog)",
    ),
    "gpt-oss-120b": Card(
        "gpt-oss-120b", 2880, 201_088, 131_072, _gpt_oss(36, 128), "4 of 128",
        "117B, 5.1B active", "OpenAI 2025; openai/gpt-oss, README and gpt_oss/torch/model.py",
    ),
    "qwen3-next-80b-a3b": Card(
        "Qwen3-Next 80B-A3B", 2048, 151_936, 262_144, _qwen_next(), "10 of 512 and 1",
        "80B, 3B active", "Qwen team 2025; config.json in alibaba/InferSim, hf_configs",
    ),
}  # fmt: skip
