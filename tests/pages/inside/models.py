"""Models of every kind for the pages that look inside one, and the bar that offers a single one."""

import itertools
from functools import cache
from typing import Any

import pytest

from engine import checkpoints
from engine.checkpoints import Checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.data.tokenizers.char import CharTokenizer
from engine.model import Transformer
from engine.parts.registry import FEEDFORWARDS, MIXERS, NORMS, POSITIONS, WIRINGS
from runs.state import RunSpec
from tests.engine.helpers import loud
from tests.pages.stage import StageManager, view_of
from ui import families, models
from ui.site import ROOT

ALPHABET = "abcdefghij "
SMALL, MODERN = "shakespeare-classic", "shakespeare-modern"
_RUNS = itertools.count()
# Each of these differs from the default in several parts; every part of ALONE is in one of them, or close to one
TOGETHER: list[dict[str, Any]] = [
    {"mixer": "none", "ffn": "none", "norm": "none", "position": "none"},
    {"wiring": "post", "position": "t5", "tie_embeddings": False, "ffn": "swiglu"},
    {"wiring": "none", "mixer": "mean", "position": "alibi"},
    {"causal": False, "attention_bias": True, "norm_bias": True, "position": "sinusoidal"},
    {"wiring": "parallel", "norm": "rmsnorm", "qk_norm": True, "position": "rope", "n_kv_heads": 1},
    {"n_layers": 1, "mixer": "shared_qk", "output_projection": False, "ffn": "relu2", "norm": "dyt"},
    {"n_experts": 3, "shared_experts": 1, "ffn": "swiglu", "balance": "bias", "d_ff": 8},
]
REGISTRIES = {"wiring": WIRINGS, "norm": NORMS, "mixer": MIXERS, "ffn": FEEDFORWARDS, "position": POSITIONS}
ALONE: list[dict[str, Any]] = [
    *(
        {kind: name}
        for kind, registry in REGISTRIES.items()
        for name in registry
        if name != getattr(ModelConfig(), kind)
    ),
    {"wiring": "post", "norm": "none"},
    {"norm": "rmsnorm", "norm_gain": False},
    {"mixer": "mean", "position": "alibi"},
    {"mixer": "none", "ffn": "none", "wiring": "none"},
    {"attention_bias": True, "ffn_bias": True, "norm_bias": True},
    {"output_projection": False},
    {"tie_embeddings": False},
    {"n_kv_heads": 1},
    {"n_kv_heads": 2, "attention_bias": True},
    {"causal": False},
    {"qk_norm": True, "position": "rope"},
    {"n_layers": 1, "n_heads": 1, "d_ff": 1},
]
KINDS = [*TOGETHER, *(pytest.param(fields, marks=pytest.mark.exhaustive) for fields in ALONE)]


@cache
def shipped(name: str = SMALL) -> Checkpoint:
    return checkpoints.load(ROOT / "checkpoints" / name)


def tiny_of(fields: dict[str, Any]) -> Transformer:
    """An untrained model of that kind, of two narrow blocks, for the letters of `abcd<`."""
    sizes = {"context": 6, "d_model": 8, "n_layers": 2, "n_heads": 2}
    vocabulary = {"vocab_size": 5 + (fields.get("causal") is False)}
    return loud(ModelConfig(**vocabulary | sizes | fields)).requires_grad_(False)


def of_letters(model: Transformer, alphabet: str = ALPHABET) -> Checkpoint:
    return Checkpoint(model, model.config, CharTokenizer(alphabet), {})


class Given(models.Untrained):
    """Models that a test made, as if they were presets."""

    def __init__(self, found: dict[str, Checkpoint]) -> None:
        self.found = {f"{self.begins}{name}": checkpoint for name, checkpoint in found.items()}

    def offers(self, named: str | None) -> list[str]:
        return list(self.found)

    def title(self, name: str) -> str:
        return name

    def load(self, name: str, step: int) -> Checkpoint:
        return families.as_read(self.found[name])


def only_this(monkeypatch: pytest.MonkeyPatch, found: Checkpoint, name: str, **others: Checkpoint) -> None:
    """The bar offers one model, under that name, and perhaps others: pages keep what they computed by name."""
    monkeypatch.setattr(models, "SOURCES", (Given({name: found, **others}),))


def run_of(manager: StageManager, corpus: str = "shakespeare", **fields: Any) -> str:
    """The name in the bar of a finished run with an untrained model of that kind, and 28 tokens. No two have one
    name: a server keeps the models of its runs.
    """
    values = {"vocab_size": 28, "d_model": 16, "n_layers": 2, "n_heads": 2, "context": 32} | fields
    spec = RunSpec(ModelConfig(**values), TrainConfig(steps=40), corpus, "abc " * 20)
    name = f"kind{next(_RUNS)}"
    manager.views[name] = view_of(spec, name, "finished", 40)
    return f"run-{name}"
