"""The answers of Parameters against counts written out here, and the figures of what a model costs."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from engine.ledger.shares import thin
from pages.models.parameters import cost_figures, figures
from pages.models.parameters.choice import plain
from tests.pages.helpers import opened

GB = 2**30

# GPT-2 small, as its paper and its weights have it: every matrix has a bias.
V, T, D, L = 50_257, 1_024, 768, 12
EMBEDDING, POSITIONS = V * D, T * D
ATTENTION = L * 4 * (D * D + D)
NETWORK = L * (D * 4 * D + 4 * D + 4 * D * D + D)
NORMS = L * 2 * 2 * D + 2 * D
GPT2 = EMBEDDING + POSITIONS + ATTENTION + NETWORK + NORMS

# LLaMA-2 7B: no bias anywhere, a gated network, two matrices at the ends.
WIDE, DEEP, LLAMA_V, GATED = 4_096, 32, 32_000, 11_008
LLAMA_PRODUCTS = DEEP * (4 * WIDE**2 + 3 * WIDE * GATED) + 2 * LLAMA_V * WIDE
LLAMA = LLAMA_PRODUCTS + (2 * DEEP + 1) * WIDE

pytestmark = pytest.mark.usefixtures("manager")


def answer(view: str, **query: str) -> str:
    """The answer of a view with all folds closed: the one sentence with a bold number."""
    asked = {f"parameters_{name}": value for name, value in query.items()}
    page = opened("models/parameters", parameters_view=view, **asked)
    assert not page.error
    (said,) = (str(e.value) for e in page.markdown if re.search(r"\*\*\d", str(e.value)))
    return said.replace("\\", "")


def test_where_they_are_is_counted_part_by_part() -> None:
    said = answer("where", model="gpt2")
    rest = POSITIONS + NORMS
    assert f"has **{GPT2:,} parameters**: {NETWORK / GPT2:.1%} in the feed-forward networks" in said
    assert f", {EMBEDDING / GPT2:.1%} in the embedding, {ATTENTION / GPT2:.1%} in attention" in said
    assert said.endswith(f", {rest / GPT2:.1%} elsewhere.")


def test_the_larger_one_is_named_whichever_stands_first() -> None:
    more = f" is **{LLAMA / GPT2:.1f} times as large** as GPT-2 small"
    for model, other in (("llama2-7b", "gpt2"), ("gpt2", "llama2-7b")):
        said = answer("two", model=model, other=other)
        assert said.startswith("LLaMA") and more in said
        assert said.endswith(f"it has {LLAMA - GPT2:,} parameters more.")


@pytest.mark.parametrize("length", [512, 8_192])
def test_work_of_a_token_is_its_products_and_what_it_looks_at(length: int) -> None:
    matrices = 2 * (12 * L * D * D + V * D)  # 2 for each parameter that meets the token
    scores = 2 * 2 * length * D * L
    total = matrices + scores
    crossing = math.ceil(matrices / (4 * D * L))
    unit = f"{total / 1e6:.0f} MFLOP"
    assert answer("flops", model="gpt2", length=str(length)) == (
        f"In a text of {length:,} tokens each one costs **{unit}** forward, {scores / total:.1%} of that for"
        f" looking at the others; from **{crossing:,} tokens** on it is more than half."
    )


@pytest.mark.parametrize(("batch", "length"), [(8, 512), (64, 4_096)])
def test_memory_to_write_is_weights_and_cache_and_to_train_all_that_is_drawn(
    batch: int, length: int, drawn: dict[str, Any]
) -> None:
    said = answer("memory", model="llama2-7b", batch=str(batch), length=str(length), dtype="bfloat16")
    cache = 2 * DEEP * WIDE * length * batch * 2  # keys and values, two bytes each
    needed = (2 * LLAMA + cache) / GB
    written = f"{needed:.3g}"
    assert f"To write {batch} texts of {length:,} tokens in bfloat16, LLaMA" in said
    assert f"needs **{written} GB**" in said
    enough = next((name for size, name in ((8, "phone"), (16, "laptop"), (24, "card")) if needed <= size), "")
    assert (f"a {enough} of" in said) if enough else ("a card of 80 GB" in said or "no device" in said)
    bars = {trace["name"]: trace["x"] for trace in drawn["parameters_memory"].traces}
    trained = sum(values[1] for values in bars.values())
    assert bars["KV cache"][0] == pytest.approx(cache / GB) and bars["KV cache"][1] == 0
    assert bars["weights"] == pytest.approx([2 * LLAMA / GB] * 2)
    assert trained - bars["activations"][1] == pytest.approx(16 * LLAMA / GB)  # 2 + 2 + 4 + 8 bytes each
    shown = f"{trained / 1024:.3g} TB" if trained >= 1000 else f"{trained:.3g} GB"
    assert f"To be trained on as much it needs **{shown}**." in said


def test_by_hand_is_four_products_and_what_they_leave_out() -> None:
    said = answer("byhand", model="llama2-7b")
    assert f"products give **{LLAMA_PRODUCTS:,}** of the {LLAMA:,} parameters of LLaMA" in said
    assert f", or {LLAMA_PRODUCTS / LLAMA:.1%}; biases" in said


def test_what_is_too_thin_for_its_name_is_told_below() -> None:
    found = thin(plain("gpt2").ledger)
    assert found == {"position": POSITIONS, "norm1": L * 2 * D, "norm2": L * 2 * D, "norm_final": 2 * D}
    (trace,) = figures.treemap(plain("gpt2").ledger, "GPT-2").data
    shown = dict(zip(trace["ids"], zip(trace["labels"], trace["text"], strict=True), strict=True))
    unnamed = [name for name, (label, _) in shown.items() if not label]
    assert all(any(part in name for part in found) for name in unnamed)
    assert len(unnamed) == 4 + 7 and not any(shown[name][1] for name in unnamed)  # four parts, seven tensors
    hovered = dict(zip(trace["ids"], trace["customdata"], strict=True))
    assert hovered[" position"] == "positions" and shown[" embedding"][0].startswith("embedding")
    page = opened("models/parameters", parameters_model="gpt2")
    said = " ".join(str(e.value) for e in page.caption)
    assert f"Strips too thin for a name: positions {POSITIONS / GPT2:.1%}, norm 1 <0.1%" in said


def test_bars_of_memory_are_sums_beside_the_devices_that_they_fit_into() -> None:
    uses = {
        "to write": {"weights": 3 * GB, "KV cache": GB},
        "to train": {"weights": 3 * GB, "gradients": 6 * GB},
    }
    figure = cost_figures.memory_bars(uses, {"phone": 8 * GB, "laptop": 16 * GB})
    bars = {trace["name"]: trace["x"].tolist() for trace in figure.traces}
    assert bars == {"weights": [3, 3], "KV cache": [1, 0], "gradients": [0, 6]}
    sums = {
        note["y"]: (note["x"], note["text"]) for note in figure.arrangement["annotations"] if note["y"] != 1
    }
    assert sums == {"to write": (4, "4 GB"), "to train": (9, "9 GB")}
    assert [shape["x0"] for shape in figure.arrangement["shapes"]] == [8]  # 16 lies beyond the bars
    assert cost_figures.ticks(np.array([16, 2**20]))["ticktext"] == ["16", "128", "1K", "8K", "64K", "512K"]
