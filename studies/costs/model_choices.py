"""Eight choices that tell the published models apart, and a model of one's sizes with another's choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.config import GATED, Ffn, ModelConfig, gated_width
from engine.presets import Preset
from studies.costs.cards.norms import NORM_CARDS
from studies.costs.ledger import Ledger, kv_numbers, ledger, ledger_of
from studies.costs.published_models import BY_YEAR
from studies.pairs.config import seq2seq_config

# What may be chosen at each of the eight, the choice of 2017 first.
OFFERED: dict[str, tuple[str, ...]] = {
    "family": ("both", "encoder", "decoder"),
    "wiring": ("post", "pre", "parallel"),
    "norm": tuple(name for name in NORM_CARDS if name != "none"),
    "ffn": ("relu", "gelu", "swiglu", "geglu"),
    "position": ("sinusoidal", "learned", "t5", "rope", "alibi"),
    "heads": ("own", "grouped", "one"),
    "tying": ("tied", "untied"),
    "biases": ("network", "all", "qkv", "none"),
}
Choices = Mapping[str, str]
_KINDS: dict[Ffn, str] = {"gelu_tanh": "gelu", "geglu_tanh": "geglu"}  # another formula of the same bend
TOKENS = 512  # that FLOPs are counted among: as many as every model of the table can read


def choices_of(preset: Preset) -> dict[str, str]:
    """Returns a model's choice for each of the eight switches, in the words of OFFERED."""
    c = preset.model.resolved()
    family = "both" if preset.encoder else "decoder" if c.causal else "encoder"
    heads = "own" if c.n_kv_heads == c.n_heads else "one" if c.n_kv_heads == 1 else "grouped"
    attention = "all" if c.attention_bias and c.output_bias else "qkv" if c.attention_bias else "none"
    return {
        "family": family,
        "wiring": c.wiring,
        "norm": c.norm,
        "ffn": _KINDS.get(c.ffn, c.ffn),
        "position": c.position,
        "heads": heads,
        "tying": "tied" if c.tie_embeddings else "untied",
        "biases": "network" if c.ffn_bias and attention == "none" else attention,
    }


def key_heads(c: ModelConfig, heads: str) -> int:
    """Returns how many key-value heads a model of these sizes has. In groups: its own number where it has
    them already, else the most that leaves groups of at least four (Llama 3 has 8 for 32), or of two where
    no number does; 1 where its heads cannot be grouped.

    >>> [key_heads(ModelConfig(n_heads=n, d_model=n * 8), "grouped") for n in (12, 25, 6, 7)]
    [3, 5, 1, 1]
    """
    if heads != "grouped":
        return c.n_heads if heads == "own" else 1
    own = c.resolved().n_kv_heads
    if 1 < own < c.n_heads:
        return own
    return max(n for n in range(1, c.n_heads // 4 + 1) if c.n_heads % n == 0) if c.n_heads >= 4 else 1


def hidden_width(c: ModelConfig, ffn: Ffn) -> int:
    """Returns d_ff after the activation is changed: with a gate there are three matrices for two, so two
    thirds of the width cost as much (Shazeer 2020); without it, three halves.

    >>> hidden_width(ModelConfig(d_model=768, n_heads=12), "swiglu")
    2048
    """
    width = c.resolved().d_ff
    if (ffn in GATED) == (c.ffn in GATED):
        return width
    return gated_width(width) if ffn in GATED else width * 3 // 2


def morphed(base: Preset, chosen: Choices) -> Preset:
    """Returns a model of `base`'s sizes with these choices; other fields stay where they have a place. Raises
    ConfigError where the choices cannot be built together.
    """
    c, before = base.model, choices_of(base)
    encoder = chosen["family"] == "encoder"
    values: dict[str, object] = {
        "causal": not encoder,
        "wiring": chosen["wiring"],
        "norm": chosen["norm"],
        "position": chosen["position"],
        "tie_embeddings": chosen["tying"] == "tied",
        "attention_bias": chosen["biases"] in ("all", "qkv"),
        "output_bias": chosen["biases"] != "qkv",
        "ffn_bias": chosen["biases"] in ("all", "network"),
        "norm_bias": chosen["biases"] in ("all", "network")
        and "norm_bias" in NORM_CARDS[chosen["norm"]].reads,
        "n_kv_heads": key_heads(c, chosen["heads"]),
        "window": 0 if encoder else c.window,
    }
    if chosen["ffn"] != before["ffn"]:
        ffn: Ffn = chosen["ffn"]  # type: ignore[assignment]
        values |= {"ffn": ffn, "d_ff": hidden_width(c, ffn)}
    if chosen["family"] != before["family"]:
        values |= {"pooler": False, "output_head": "none" if encoder else "linear", "token_types": 0}
    model = replace(c, **values)  # type: ignore[arg-type]
    below = replace(model, causal=False, output_head="none") if chosen["family"] == "both" else None
    made = replace(base, model=model, encoder=below)
    if (pair := seq2seq_config(made)) is not None:
        pair.validate()
    model.validate()
    return made


def named(chosen: Choices) -> tuple[str, ...]:
    """Returns the models of the table that have exactly these choices."""
    return tuple(name for name, choices in _CHOICES.items() if choices == chosen)


def nearest_model(chosen: Choices) -> tuple[str, tuple[str, ...]]:
    """Returns the published model with the most of these choices, and the names of the choices in which it
    differs.
    """
    apart = {
        name: tuple(each for each in OFFERED if choices[each] != chosen[each])
        for name, choices in _CHOICES.items()
    }
    name = min(apart, key=lambda each: len(apart[each]))
    return name, apart[name]


def users(facet: str, value: str) -> tuple[str, ...]:
    """Returns the models of the table that made this choice."""
    return tuple(name for name, choices in _CHOICES.items() if choices[facet] == value)


def unchanged(name: str) -> tuple[str, ...]:
    """Returns those of the eight at which a model of the table does what the first one did."""
    return tuple(each for each in OFFERED if _CHOICES[name][each] == _CHOICES[next(iter(BY_YEAR))][each])


_CHOICES = {name: choices_of(preset) for name, preset in BY_YEAR.items()}


@dataclass(frozen=True)
class Costs:
    """Parameters, forward FLOPs for each token among TOKENS, and cached numbers for each token read."""

    parameters: int
    flops: int
    cache: int


def costs(preset: Preset) -> Costs:
    """Counts a preset's costs from the configuration alone. An encoder keeps no cache: it writes nothing."""
    made = ledger_of(preset)
    return Costs(made.total, made.flops(TOKENS).forward, kv_numbers(made.config, made.encoder))


@dataclass(frozen=True)
class Size:
    """Sizes that all three families can be given."""

    layers: int
    d_model: int
    heads: int


def three(size: Size, vocab: int = 32_000, context: int = TOKENS) -> dict[str, Ledger]:
    """Returns the ledgers of an encoder, a decoder and an encoder-decoder of the same sizes and parts; the
    last has `layers` of each. Tied, with one output matrix where there is an output.
    """
    decoder = ModelConfig(vocab, context, size.d_model, size.layers, size.heads)
    encoder = replace(decoder, causal=False, output_head="none")
    return {"encoder": ledger(encoder), "decoder": ledger(decoder), "both": ledger(decoder, encoder=encoder)}
