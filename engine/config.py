"""Configurations of models and trainings: frozen dataclasses of names and numbers. No torch here."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from engine.errors import ConfigError

Norm = Literal["layernorm", "rmsnorm", "dyt", "none"]
Wiring = Literal["pre", "post", "parallel", "none"]
Ffn = Literal["relu", "relu2", "gelu", "gelu_tanh", "swiglu", "swiglu_clamped", "geglu", "geglu_tanh", "none"]
Position = Literal["none", "sinusoidal", "learned", "rope", "alibi", "t5"]
Mixer = Literal["none", "mean", "similarity", "shared_qk", "attention", "sinks", "gated", "mla"]
OutputHead = Literal["linear", "scaled", "masked", "none"]
Pooling = Literal["first", "mean"]
Router = Literal["softmax", "sigmoid"]
Balance = Literal["none", "loss", "bias"]
Precision = Literal["auto", "float32", "bfloat16"]
Init = Literal["scaled", "plain", "fan_in", "normal", "torch"]
OptimizerName = Literal["adamw", "muon", "sgd"]
Schedule = Literal["constant", "linear", "cosine"]
Objective = Literal["next_token", "masked"]

GATED: tuple[Ffn, ...] = ("swiglu", "swiglu_clamped", "geglu", "geglu_tanh")
BIASED: tuple[Norm, ...] = ("layernorm", "dyt")  # norms that may have a bias
GROUPED_MIXERS: tuple[Mixer, ...] = (
    "attention",
    "sinks",
    "gated",
)  # whose heads may share keys
LEARNED_MIXERS: tuple[Mixer, ...] = ("shared_qk", *GROUPED_MIXERS, "mla")
MIN_BPE, MAX_BPE = 257, 65_536  # tokens of a bpe vocabulary: the 256 bytes and at least one merge


def gated_width(plain: int) -> int:
    """Returns d_ff of a gated network with as many parameters as a plain one of width `plain`: two thirds of
    it (Shazeer 2020: three matrices stand for two), up to a multiple of 8.

    >>> gated_width(4 * 512), gated_width(4 * 768)
    (1368, 2048)
    """
    return math.ceil(plain / 12) * 8


Ranges = Mapping[str, tuple[float, float]]  # a field's least and largest value
COUNT, SHARE = (1, math.inf), (0.0, 1.0)
LARGEST_SEED = 2**31 - 1


class _Fields:
    """Checks the type and the range of every dataclass field, and reads and writes dicts."""

    def check_fields(self, ranges: Ranges) -> None:
        """Raises ConfigError for the first field that is not of its declared type, or not in its range."""
        hints = get_type_hints(type(self))
        for each in fields(self):  # type: ignore[arg-type]
            name, value = each.name, getattr(self, each.name)
            _check_type(name, value, hints[name])
            low, high = ranges.get(name, (0, 0))
            if name in ranges and value is not None and not (low <= value <= high):  # also catches NaN
                limits = f"at least {low:g}" if high == math.inf else f"between {low:g} and {high:,.10g}"
                raise ConfigError(name, value, f"must be {limits}")

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, ready for JSON; `from_dict` is its inverse."""
        return asdict(self)  # type: ignore[call-overload]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Builds a configuration from plain values. Raises ConfigError for a name that is not a field.
        Missing names take their defaults.
        """
        known = {each.name for each in fields(cls)}  # type: ignore[arg-type]
        for name, value in values.items():
            if name not in known:
                raise ConfigError(
                    str(name)[:80],
                    value,
                    f"is not a field of {cls.__name__}; its fields are {', '.join(sorted(known))}",
                )
        return cls(**values)


@dataclass(frozen=True)
class ModelConfig(_Fields):
    """The architecture of one Transformer. `None` means 'derived'; `resolved()` fills it in.

    Sizes are counts: `d_*` are widths of vectors, `n_*` numbers of things, `context` positions.
    """

    vocab_size: int = 65
    context: int = 64
    d_model: int = 128
    n_layers: int = 4
    n_heads: int = 4
    n_kv_heads: int | None = None  # None: n_heads (MHA); 1: MQA; between: GQA (Ainslie et al. 2023)
    d_head: int | None = None  # None: d_model / n_heads
    d_ff: int | None = None  # None: 4 * d_model, or gated_width of it when gated
    norm: Norm = "layernorm"
    norm_eps: float = 1e-5
    wiring: Wiring = "pre"
    ffn: Ffn = "gelu"
    n_experts: int = 0  # networks of d_ff that a router chooses from (Shazeer et al. 2017); 0: one network
    active_experts: int = 2  # of them, for each token
    shared_experts: int = 0  # networks beside them that read every token (DeepSeek-V3: 1)
    router: Router = "softmax"  # the experts' scores: all together, or a sigmoid each (DeepSeek-V3)
    # The weights of the chosen are divided by their sum; a single one's is then 1, and its router learns
    # nothing
    router_norm: bool = True
    router_scale: float = 1.0  # ... and multiplied by this (DeepSeek-V3: 2.5)
    balance: Balance = "none"  # loss: Switch's (Fedus et al. 2021); bias: without one (Wang et al. 2024)
    balance_rate: float = 0.01  # the factor of that loss, or the step of those biases
    position: Position = "learned"
    rope_theta: float = 10_000.0
    rope_fraction: float = 1.0  # share of a head's dimensions that RoPE turns; Pythia: the first quarter
    mixer: Mixer = "attention"
    d_latent: int = 0  # of mla: numbers that keys and values are made of (DeepSeek-V3: 512); 0: 4 d_head
    d_rotated: int = 0  # ... dimensions beside d_head that positions turn (64); 0: half of d_head
    d_query: int = 0  # ... numbers that queries are made of (1,536); 0: of x itself
    qk_norm: bool = False
    qk_gain: bool = False  # with qk_norm: a learned gain for each dimension of a head (Qwen3)
    score_scale: bool = True  # scores are divided by sqrt(d_head); T5 divides none
    causal: bool = True
    window: int = 0  # positions that a token looks back over, itself included (Mistral: 4,096); 0: all
    global_every: int = 0  # every such layer has no window (Gemma 3: the 6th, gpt-oss: the 2nd); 0: none
    output_projection: bool = True
    tie_embeddings: bool = True
    attention_bias: bool = False
    output_bias: bool = (
        True  # where there are attention biases: on W_O too; Qwen2.5 has them on Q, K and V only
    )
    ffn_bias: bool = False
    norm_gain: bool = True  # False: the norm has no parameters at all
    norm_bias: bool = False
    embedding_scale: bool = False  # embeddings times sqrt(d_model) (Vaswani et al. 2017, 3.4; Gemma)
    embedding_norm: bool = False  # a norm before the first block (BERT, BLOOM)
    token_types: int = 0  # rows of a table for which text a token belongs to (BERT: 2); 0: no table
    output_head: OutputHead = "linear"  # scaled: over sqrt(d_model) (T5); none: it hands on its vectors
    pooler: bool = False  # one vector for a whole text (BERT)
    pooling: Pooling = "first"  # made of the first token's, with a layer (BERT); or the mean of all
    dropout: float = 0.0

    def resolved(self) -> ResolvedConfig:
        """Returns the same architecture with every derived field filled in."""
        values = self.to_dict()
        if self.n_kv_heads is None:
            values["n_kv_heads"] = self.n_heads
        if self.d_head is None:
            values["d_head"] = self.d_model // max(self.n_heads, 1)
        if self.d_ff is None:
            plain = 4 * self.d_model
            values["d_ff"] = gated_width(plain) if self.ffn in GATED else plain
        if self.mixer == "mla":
            values["d_latent"] = self.d_latent or 4 * values["d_head"]
            values["d_rotated"] = self.d_rotated or max(2, values["d_head"] // 4 * 2)
        return ResolvedConfig(**values)

    def validate(self) -> Self:
        """Returns itself when it can be built; raises ConfigError naming the first field that is wrong."""
        self.check_fields(_MODEL_RANGES)
        if self.d_head is None and self.d_model % self.n_heads:
            raise ConfigError(
                "n_heads",
                self.n_heads,
                f"must divide d_model ({self.d_model}) unless d_head is given: the heads share its dimensions"
                " evenly",
            )
        _check_mixer(self.resolved())
        if self.position == "sinusoidal" and self.d_model % 2:
            raise ConfigError(
                "d_model",
                self.d_model,
                "must be even for sinusoidal positions: sines and cosines come in pairs",
            )
        if self.window and not self.causal:
            raise ConfigError("window", self.window, "needs the causal mask: it is counted backwards")
        _check_norm(self)
        _check_experts(self)
        return self


_MODEL_RANGES: Ranges = {
    **dict.fromkeys(("vocab_size", "context", "d_model", "n_layers", "n_heads"), COUNT),
    **dict.fromkeys(("n_kv_heads", "d_head", "d_ff"), COUNT),
    **dict.fromkeys(("window", "global_every", "token_types", "shared_experts"), (0, math.inf)),
    **dict.fromkeys(("d_latent", "d_rotated", "d_query"), (0, math.inf)),
    "n_experts": (0, 1024),
    "active_experts": COUNT,
    "router_scale": (0.01, 100.0),
    "balance_rate": SHARE,
    "norm_eps": SHARE,
    "dropout": (0.0, 0.95),
    "rope_theta": (1.0, 1e12),
    "rope_fraction": SHARE,
}


@dataclass(frozen=True)
class ResolvedConfig(ModelConfig):
    """A ModelConfig in which nothing is left to be derived: what a model is built from, and carries."""

    n_kv_heads: int = field(kw_only=True)
    d_head: int = field(kw_only=True)
    d_ff: int = field(kw_only=True)

    @property
    def d_hidden(self) -> int:
        """Neurons of a layer, the entries of `ffn_post`: those of all experts, where there are some.

        >>> ModelConfig(d_ff=24).resolved().d_hidden, ModelConfig(d_ff=24, n_experts=4).resolved().d_hidden
        (24, 96)
        """
        return self.d_ff * ((self.n_experts + self.shared_experts) if self.n_experts else 1)

    @property
    def d_rotary(self) -> int:
        """Dimensions of each head that RoPE turns.

        >>> ModelConfig(rope_fraction=0.25).resolved().d_rotary
        8
        """
        return self.d_rotated if self.mixer == "mla" else round(self.rope_fraction * self.d_head)

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        """Tensors that are cached in a layer, their heads, and the numbers of each for a token."""
        return (
            (1, 1, self.d_rotated + self.d_latent)
            if self.mixer == "mla"
            else (2, self.n_kv_heads, self.d_head)
        )

    @property
    def windows(self) -> tuple[int, ...]:
        """The window of each layer; 0 for one that attends to everything before.

        >>> ModelConfig(n_layers=4, window=8, global_every=2).resolved().windows
        (8, 0, 8, 0)
        """
        every = self.global_every or self.n_layers + 1
        return tuple(0 if layer % every == 0 else self.window for layer in range(1, self.n_layers + 1))

    @property
    def widest_window(self) -> int:
        """Positions that the layer which looks back farthest looks back over; 0: all."""
        return 0 if 0 in self.windows else self.window


@dataclass(frozen=True)
class TrainConfig(_Fields):
    """How a model is trained. Losses are nats per token; `seed` fixes initialisation and batches."""

    steps: int = 1000
    batch_size: int = 12
    objective: Objective = "next_token"
    mask_rate: float = 0.15  # share of positions hidden by the masked objective (BERT: 0.15)
    optimizer: OptimizerName = "adamw"
    learning_rate: float = 1e-3  # AdamW's or SGD's peak
    muon_learning_rate: float = 0.02  # Muon's peak, for the blocks' matrices
    muon_momentum: float = 0.9
    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float = 0.1  # on matrices only
    grad_clip: float = 1.0  # 0: no clipping
    schedule: Schedule = "cosine"
    warmup_steps: int = 100
    min_lr_fraction: float = 0.1  # of the peak, reached one step after the last: with 0 no step has rate 0
    precision: Precision = "auto"
    init: Init = "scaled"  # how the first weights are drawn: engine.parts.parameters
    seed: int = 0
    eval_every: int = 100  # 0: only at the end
    eval_tokens: int = 16_384  # how much of the validation split is read while training; 0: all of it
    sample_every: int = 100  # 0: never
    look_early: bool = (
        False  # validate and sample also after 1, 2, 5, 10, 20, 50 ... steps up to their intervals
    )
    sample_length: int = 160
    sample_temperature: float = 0.8
    sample_prompt: str = "\n"
    snapshot_every: int = 0  # 0: only at the end
    snapshot_early: bool = (
        False  # also after 1, 2, 4, 8 ... steps up to snapshot_every: most is learned early
    )
    tokenizer: str = "char"  # char, byte, or bpe:V for byte-pair encoding with V tokens in all
    seconds: float = 0.0  # of computing, after which it ends even before `steps`; 0: steps alone
    repeat: float = 0.0  # share of the training windows that repeat their own beginning to their end

    def validate(self) -> TrainConfig:
        """Returns itself when it can be run; raises ConfigError naming the first field that is wrong."""
        self.check_fields(_TRAIN_RANGES)
        bpe_size(self.tokenizer)
        return self


_TRAIN_RANGES: Ranges = {
    **dict.fromkeys(("steps", "batch_size"), COUNT),
    **dict.fromkeys(("warmup_steps", "eval_every", "eval_tokens", "sample_every"), (0, math.inf)),
    **dict.fromkeys(("sample_length", "snapshot_every"), (0, math.inf)),
    **dict.fromkeys(("learning_rate", "muon_learning_rate", "grad_clip", "seconds"), (0.0, 1e6)),
    **dict.fromkeys(("muon_momentum", "beta1", "beta2"), (0.0, 0.9999)),
    "weight_decay": (0.0, 10.0),
    "sample_temperature": (0.0, 10.0),
    "mask_rate": (0.01, 0.99),
    "min_lr_fraction": SHARE,
    "repeat": SHARE,
    "seed": (0, LARGEST_SEED),
}


def passes(steps: int, batch_size: int, context: int, tokens: int) -> float:
    """Returns how often a training reads each of `tokens` tokens, on average: steps * batch_size * context /
    tokens.

    >>> round(passes(10_000, 64, 128, 1_003_854))
    82
    """
    return steps * batch_size * context / tokens


def bpe_size(tokenizer: str) -> int | None:
    """Returns the V of `bpe:V`; None for `char` and `byte`. Raises ConfigError for anything else.

    >>> bpe_size("bpe:512"), bpe_size("char")
    (512, None)
    """
    if tokenizer in ("char", "byte"):
        return None
    result = re.fullmatch(r"bpe:([1-9][0-9]{0,8})", tokenizer)
    if not result or not MIN_BPE <= int(result[1]) <= MAX_BPE:
        raise ConfigError(
            "tokenizer",
            tokenizer,
            f"must be char, byte or bpe:V with a vocabulary V from {MIN_BPE} to {MAX_BPE:,}",
        )
    return int(result[1])


@dataclass(frozen=True)
class SampleConfig(_Fields):
    """How a token is drawn from logits. The default values of the cuts change nothing."""

    temperature: float = 0.8  # 0: greedy, the likeliest
    top_k: int = 0  # 0: all
    top_p: float = 1.0  # 1: all
    min_p: float = 0.0  # 0: all
    repetition_penalty: float = 1.0  # 1: none; below 1 it rewards repeating
    penalty_last: bool = False  # False: before the cuts, as Hugging Face's `generate` does
    seed: int = 0

    def validate(self) -> SampleConfig:
        """Returns itself when it can be used; raises ConfigError naming the first field that is wrong."""
        self.check_fields(_SAMPLE_RANGES)
        return self


_SAMPLE_RANGES: Ranges = {
    "temperature": (0.0, 100.0),
    "top_k": (0, 2**31),
    "top_p": SHARE,
    "min_p": SHARE,
    "repetition_penalty": (0.01, 100.0),
    "seed": (0, LARGEST_SEED),
}


def _check_mixer(c: ResolvedConfig) -> None:
    if c.n_heads % c.n_kv_heads:
        raise ConfigError(
            "n_kv_heads",
            c.n_kv_heads,
            f"must divide n_heads ({c.n_heads}): every key-value head serves the same number of query heads",
        )
    if c.mixer not in GROUPED_MIXERS and c.n_kv_heads != c.n_heads:
        raise ConfigError(
            "n_kv_heads",
            c.n_kv_heads,
            f"must equal n_heads ({c.n_heads}) for mixer {c.mixer!r}; separate keys to share have only "
            + ", ".join(GROUPED_MIXERS),
        )
    if c.qk_gain and not (c.qk_norm and c.mixer in LEARNED_MIXERS):
        raise ConfigError("qk_gain", True, "needs qk_norm, and a mixer with query and key matrices")
    if (
        (c.mixer in ("mean", "similarity") or not c.output_projection)
        and c.mixer != "none"
        and c.n_heads * c.d_head != c.d_model
    ):
        why = "without an output projection" if c.mixer in LEARNED_MIXERS else f"for mixer {c.mixer!r}"
        wanted = f"{c.d_model / c.n_heads:g}"
        raise ConfigError(
            "d_head",
            c.d_head,
            f"must be d_model / n_heads = {wanted} {why}: the heads' outputs go back into the stream as"
            " they are",
        )
    if c.mixer == "mla" and c.qk_norm:
        raise ConfigError("qk_norm", True, "must be False for mla, which norms what keys are made of")
    if c.mixer == "mla" and c.position == "rope" and c.d_rotated % 2:
        raise ConfigError("d_rotated", c.d_rotated, "must be even for RoPE: it rotates pairs of dimensions")
    if c.position == "rope" and c.mixer not in ("none", "mla") and c.d_head % 2:
        raise ConfigError("d_head", c.d_head, "must be even for RoPE: it rotates pairs of dimensions")
    if c.position == "rope" and c.mixer != "none" and (c.d_rotary < 2 or c.d_rotary % 2):
        what = f"makes RoPE rotate {c.d_rotary} of a head's {c.d_head} dimensions"
        raise ConfigError(
            "rope_fraction",
            c.rope_fraction,
            f"{what}: this must be an even number, at least 2, because RoPE rotates pairs",
        )


def _check_norm(c: ModelConfig) -> None:
    if c.norm == "none" and c.norm_bias:
        raise ConfigError("norm_bias", True, "needs a norm; with norm = 'none' it must be False")
    if c.norm == "none" and c.embedding_norm:
        raise ConfigError("embedding_norm", True, "needs a norm; with norm = 'none' it must be False")
    if c.norm_bias and c.norm not in BIASED:
        raise ConfigError("norm_bias", True, f"must be False for {c.norm}: it has no bias")


def _check_experts(c: ModelConfig) -> None:
    if not c.n_experts:
        return
    if c.ffn == "none":
        raise ConfigError(
            "n_experts", c.n_experts, "needs a feed-forward network; with ffn = 'none' it must be 0"
        )
    if c.active_experts > c.n_experts:
        raise ConfigError(
            "active_experts",
            c.active_experts,
            f"must be at most n_experts ({c.n_experts}): a token meets each once",
        )


def _check_type(name: str, value: Any, hint: Any) -> None:
    if get_origin(hint) is Literal:
        if not isinstance(value, str) or value not in get_args(hint):
            raise ConfigError(name, value, f"must be one of {', '.join(get_args(hint))}")
        return
    kinds = get_args(hint) or (hint,)
    if value is None and type(None) in kinds:
        return
    # True counts as a number in Python, and not here.
    for kind, allowed, reason in (
        (bool, bool, "must be True or False"),
        (int, int, "must be a whole number"),
        (float, int | float, "must be a number"),
        (str, str, "must be text"),
    ):
        if kind in kinds:
            if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
                raise ConfigError(name, value, reason)
            break
    if int in kinds and abs(value) > 2**53:
        raise ConfigError(name, value, "is too large to mean anything")
