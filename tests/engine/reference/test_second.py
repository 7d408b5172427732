"""The second implementation is transformers' and ours, on every combination that it covers; and it is its own."""

from __future__ import annotations

import ast
import itertools
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.measure.recording import record
from engine.pretrained.load import open_model
from engine.reference import second
from engine.reference.compare import compare
from engine.reference.second import forward
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny
from tests.engine.pretrained.odd import KINDS, made, said

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


@for_each("norm", ["layernorm", "rmsnorm"])
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


@for_each("name", ["second", "places"])
def test_it_shares_no_code(name: str) -> None:
    tree = [*ast.walk(ast.parse((ROOT / "engine" / "reference" / f"{name}.py").read_text()))]
    ours = {str(node.module) for node in tree if isinstance(node, ast.ImportFrom)}
    own = {"engine.config", "engine.errors", "engine.reference.places"}
    assert {module for module in ours if module.startswith("engine.")} <= own
    assert not any(isinstance(node, ast.ClassDef) and "Module" in ast.unparse(node) for node in tree)


@for_each(
    "family, seed",
    [(family, seed) for family in KINDS for seed in range(3)],
    fast=[(family, place % 3) for place, family in enumerate(KINDS)],
)
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
