"""Each mistake is found, at the activation that it reaches first; what changes nothing says why."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from engine.measure.recording import Recording, record
from engine.reference import dice
from engine.reference.compare import compare, held
from engine.reference.mistakes import MISTAKES, other_eps
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

RULES: dict[str, Any] = {  # in which of the families each changes something
    "rope": {"llama", "mistral", "qwen2", "qwen3", "gemma", "neox"},
    "eps": set(dice.KINDS),
    "transposed": set(dice.KINDS) - {"mistral", "qwen3"},
    "gelu": {"gpt2", "gemma", "neox", "bloom", "bert", "t5"},
    "scale": set(dice.KINDS) - {"t5"},
    "groups": {"llama", "mistral", "qwen2", "qwen3", "gemma"},
}
LARGE = {"encoder", "gemma"}  # sine waves of size 1, and embeddings that are scaled up: ε hardly counts


@for_each("mistake", MISTAKES)
@for_each("kind", dice.KINDS)
def test_a_mistake_is_found_where_it_is(kind: str, mistake: str) -> None:
    rolled, wrong = dice.roll(kind, 7), MISTAKES[mistake]
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
    ("scale", {"n_heads": 16}, "√d_head is 1"), ("groups", {"n_kv_heads": 1}, "one key head"),
])  # fmt: skip
def test_why_nothing_changes(mistake: str, fields: dict[str, Any], says: str) -> None:
    model = loud(tiny(**fields))
    why = MISTAKES[mistake].idle(model.config)
    assert why is not None and says in why
    if "refuses" not in why:
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
    first, again, other = (dice.roll("llama", seed) for seed in (3, 3, 4))
    assert first.ids == again.ids and first.model.config == again.model.config
    pairs = zip(first.model.parameters(), again.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert other.model.config != first.model.config


@for_each("kind", dice.KINDS)
def test_every_draw_can_be_built_and_agrees(kind: str) -> None:
    for seed in (*range(12), dice.MOST):
        rolled = dice.roll(kind, seed)
        found = compare(rolled.model, record(rolled.model, rolled.ids))
        assert found.begins is None and 0.05 < found.last.size < 30
