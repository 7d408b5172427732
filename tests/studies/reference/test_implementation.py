"""The second implementation is transformers' and ours; each mistake is found at the activation that it reaches first."""

from __future__ import annotations

import ast
import itertools
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.recording import Recording, record
from studies.lab.reference import random_configs, second
from studies.lab.reference.compare import compare, held
from studies.lab.reference.mistakes import MISTAKES, other_eps
from studies.lab.reference.second import forward
from studies.weights.pretrained.load import open_model
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny
from tests.studies.pretrained.odd import KINDS, made, said

ROOT = Path(__file__).resolve().parents[3]
BODIES = list(itertools.product(*(second.COVERED[name] for name in ("wiring", "norm", "position"))))
VARIANTS: list[dict[str, Any]] = [
    {}, {"causal": False, "norm_gain": False}, {"mixer": "none"},
    {
        "n_heads": 6, "n_kv_heads": 2, "d_head": 4, "window": 3, "qk_norm": True, "attention_bias": True,
        "ffn_bias": True, "tie_embeddings": False, "rope_fraction": 0.5,
    },
    {"qk_norm": True, "qk_gain": True, "score_scale": False, "embedding_scale": True},
    {"output_projection": False, "attention_bias": True, "output_bias": False, "n_heads": 3, "d_model": 18},
    {"n_experts": 5, "active_experts": 2, "shared_experts": 1, "router": "sigmoid", "balance": "bias"},
    {"mixer": "gated", "n_kv_heads": 1, "attention_bias": True},
    {"mixer": "mla", "d_query": 7, "attention_bias": True},
    {"mixer": "sinks", "n_kv_heads": 2, "window": 4, "global_every": 2},
]  # fmt: skip


def apart(length: int, **changes: Any) -> Any:
    """The two implementations' differences on a small model."""
    model = loud(tiny(context=length, **changes), factor=3.0)
    return compare(model, record(model, some_tokens(model.config, 1, length)[0].tolist()))


@for_each("body", BODIES, ids="-".join, fast=20)
def test_it_is_ours_whatever_the_parts(body: tuple[str, str, str]) -> None:
    """Every activation, not the logits alone; each network once, and each variant."""
    parts = dict(zip(("wiring", "norm", "position"), body, strict=True))
    for ffn, variant in zip(second.COVERED["ffn"], itertools.cycle(VARIANTS), strict=False):
        found = apart(20, ffn=ffn, **parts, **variant)
        assert found.begins is None, (variant, ffn, found.begins)
        assert found.last.name == "logits" and found.last.size > 0.01


@for_each("norm", ["layernorm", "rmsnorm", "dyt"])
@for_each("head", second.COVERED["output_head"])
def test_both_ends(head: str, norm: str) -> None:
    """A norm and token types before the blocks, and every output head after them."""
    ends = {"embedding_norm": True, "token_types": 2, "output_head": head, "norm": norm, "causal": False}
    found = apart(6, **ends, tie_embeddings=head != "masked")
    assert found.begins is None and found.rows[-1].bare == ("norm_final" if head == "none" else "logits")


@for_each("changes", [
    {"position": "t5", "causal": False}, {"position": "t5"}, {"position": "alibi", "n_heads": 7, "d_model": 28},
    {"position": "alibi", "n_heads": 8},
])  # fmt: skip
def test_far_tokens_too(changes: dict[str, Any]) -> None:
    """T5's buckets beyond their last, both ways, and many heads of ALiBi that are no power of two."""
    assert apart(300, **changes).begins is None


def test_what_it_does_not_cover_is_refused() -> None:
    for values, says in (({"wiring": "none"}, "pre, post, parallel"), ({"mixer": "mean"}, "attention, none")):
        model = loud(tiny(**values))
        with pytest.raises(ConfigError, match=says):
            forward(model.config, model.state_dict(), torch.tensor([1, 2]))


def test_every_field_has_been_thought_of() -> None:
    """A field that comes later is refused until it is written down, unless it has its default."""
    assert {each.name for each in fields(ModelConfig)} >= {*second.COVERED, *second.FREE}


@for_each("name", ["second", "position_schemes"])
def test_it_shares_no_code(name: str) -> None:
    tree = [*ast.walk(ast.parse((ROOT / "studies" / "lab" / "reference" / f"{name}.py").read_text()))]
    ours = {str(node.module) for node in tree if isinstance(node, ast.ImportFrom)}
    own = {"engine.config", "engine.errors", "studies.lab.reference.position_schemes"}
    assert {module for module in ours if module.partition(".")[0] in ("engine", "studies", "runs")} <= own
    assert not any(isinstance(node, ast.ClassDef) and "Module" in ast.unparse(node) for node in tree)


@for_each("family, seed", itertools.product(KINDS, range(3)), fast=[(k, i % 3) for i, k in enumerate(KINDS)])
@torch.no_grad()
def test_it_is_transformers_own(family: str, seed: int, tmp_path: Path) -> None:
    """Odd sizes drawn by chance, random weights, gains and biases too, saved by transformers and read here."""
    theirs = made(family, seed + 20, tmp_path)
    opened = open_model(tmp_path)
    ids = some_tokens(opened.config, 1, 33, seed)
    expected = said(theirs, ids)[0]
    found = forward(opened.config.resolved(), opened.weights(), ids[0])
    last = next(reversed(found))
    assert last == ("norm_final" if opened.config.output_head == "none" else "logits")
    assert expected.std() > 0.05
    assert (found[last] - expected).abs().max() < 1e-4 * max(1.0, float(expected.abs().max()))


RULES: dict[str, Any] = {  # in which of the families each changes something
    "rope": {"llama", "mistral", "qwen2", "qwen3", "gemma", "neox"},
    "eps": set(random_configs.KINDS),
    "transposed": set(random_configs.KINDS) - {"mistral", "qwen3"},
    "gelu": {"gpt2", "gemma", "neox", "bloom", "bert", "t5"},
    "scale": set(random_configs.KINDS) - {"t5"},
    "groups": {"llama", "mistral", "qwen2", "qwen3", "gemma"},
}
LARGE = {"encoder", "gemma"}  # sine waves of size 1, and embeddings that are scaled up: ε hardly counts


@for_each("mistake", MISTAKES)
@for_each("kind", random_configs.KINDS)
def test_a_mistake_is_found_where_it_is(kind: str, mistake: str) -> None:
    rolled, wrong = random_configs.roll(kind, 7), MISTAKES[mistake]
    ours = record(rolled.model, rolled.ids)
    right = compare(rolled.model, ours)
    assert right.begins is None and right.worst.relative < 1e-5
    why = wrong.idle(rolled.model.config)
    assert (why is None) == (kind in RULES[mistake]), why
    if mistake == "transposed" and kind in ("mistral", "qwen3"):
        with pytest.raises(RuntimeError):  # as the sentence says
            compare(rolled.model, ours, wrong.choices)
        return
    found = compare(rolled.model, ours, wrong.choices)
    if why is not None:
        assert found == right
    elif mistake == "eps" and kind in LARGE:
        assert found.worst.relative > 5 * right.worst.relative
    else:
        assert found.begins is not None
        normed = mistake == "eps" and rolled.model.config.embedding_norm
        assert (found.begins.block, found.begins.bare) == (0, "resid_pre" if normed else wrong.shows_at)
        assert not found.worst.close


@for_each("mistake, fields, says", [
    ("rope", {"position": "rope", "n_heads": 8, "d_head": 2}, "one pair"),
    ("eps", {"norm": "none"}, "no norms"), ("transposed", {"output_projection": False}, "no W_O"),
    ("transposed", {"d_head": 6}, "16 × 24"), ("scale", {"mixer": "none"}, "no scores"),
    ("scale", {"n_heads": 16}, "√d_head is 1"), ("groups", {"n_kv_heads": 1}, "one key-value head"),
])  # fmt: skip
def test_why_nothing_changes(mistake: str, fields: dict[str, Any], says: str) -> None:
    model = loud(tiny(**fields))
    why = MISTAKES[mistake].idle(model.config)
    assert why is not None and says in why
    if "would raise an error" not in why:
        ours = record(model, [1, 2, 3, 4])
        assert compare(model, ours, MISTAKES[mistake].choices) == compare(model, ours)


def test_the_other_epsilon() -> None:
    """A GGUF file holds 1e-5 in float32, which is a little less."""
    assert [other_eps(x) for x in (1e-5, float(np.float32(1e-5)), 1e-6, 1e-12)] == [1e-6, 1e-6, 1e-5, 1e-5]


def test_differences_by_hand() -> None:
    names = ["blocks.0.resid_pre", "blocks.1.norm1", "blocks.1.z", "logits"]
    rows = [[1.0, -2.0], [3.0, 0.5], [0.5, 0.25], [50.0, 4.0]]
    others = [[1.0, -2.0], [3.0, 0.6], [0.5, 0.30], [50.004, 4.0]]
    ours = Recording(tiny().resolved(), (1, 2), {n: np.array([x]) for n, x in zip(names, rows, strict=True)})
    theirs = {n: torch.tensor([x], dtype=torch.float64) for n, x in zip(names, others, strict=True)}
    found = held(ours, theirs | {"not ours": torch.zeros(1)})
    assert [row.name for row in found.rows] == names
    assert [row.largest for row in found.rows] == pytest.approx([0.0, 0.1, 0.05, 0.004])
    assert [row.relative for row in found.rows] == pytest.approx([0.0, 0.1 / 3, 0.05, 0.004 / 50])
    assert found.begins is found.rows[1] and found.rows[1].block == 1 and found.rows[1].bare == "norm1"
    assert [row.name for row in found.states] == ["blocks.0.resid_pre", "logits"]
    assert found.worst is found.last and found.last.close
    ours = Recording(tiny().resolved(), (1,), {"logits": np.array([[math.nan, 1.0]])})
    last = held(ours, {"logits": torch.ones(1, 2)}).last
    assert last.largest == math.inf and not last.close, "a number that is none is far"


def test_the_same_seed_is_the_same_model() -> None:
    first, again, other = (random_configs.roll("llama", seed) for seed in (3, 3, 4))
    assert first.ids == again.ids and first.model.config == again.model.config
    pairs = zip(first.model.parameters(), again.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert other.model.config != first.model.config


@for_each("kind", random_configs.KINDS)
def test_every_draw_can_be_built_and_agrees(kind: str) -> None:
    for seed in (*range(6), random_configs.MOST):
        rolled = random_configs.roll(kind, seed)
        found = compare(rolled.model, record(rolled.model, rolled.ids))
        assert found.begins is None and 0.05 < found.last.size < 30
