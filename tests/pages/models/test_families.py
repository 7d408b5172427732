"""Families: what its views say and draw, held against the engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.ledger import ledger_of
from engine.ledger.morph import Size, choices_of, costs, morphed, three
from engine.presets.variations import MODELS
from engine.training.reasons import lessons, writing
from tests.pages import helpers
from tests.pages.helpers import said

CHECKPOINTS = Path(__file__).parents[3] / "checkpoints"

pytestmark = pytest.mark.usefixtures("manager")


def opened(view: str, **query: str) -> AppTest:
    return helpers.opened("models/families", families_view=view, **query)


def query_of(name: str) -> dict[str, str]:
    return {f"families_{facet}": value for facet, value in choices_of(MODELS[name]).items()}


def test_counts_of_the_three():
    """12 layers, 768 wide, a vocabulary of 32,000 and 512 places: blocks of 12 d², and 4 d² across."""
    block, ends, table = 12 * 768**2 + 2 * 768, 32_000 * 768 + 768, 512 * 768
    one = 12 * block + ends + table
    both = one + 12 * (block + 4 * 768**2 + 768) + table + 768
    page = opened("three")
    assert f"**the same machine**, {one:,} parameters" in said(page)
    assert f"and cross-attention: **{both:,}**" in said(page)
    (table_,) = page.table
    assert list(table_.value.loc["parameters"]) == [f"{one:,}", f"{one:,}", f"{both:,}"]


def test_who_sees_whom_at_a_step(drawn):
    """4 words given, 4 written: at step 3 the decoder's sixth row has 6 keys, the third's has 3, and 4 across."""
    told = said(opened("three", families_show="masks", families_step="3"))
    assert "adds a row of **6 pairs**" in told
    assert "adds **3** to what it wrote and **4** to the source" in told
    states = drawn["families_masks_decoder"].table["state"]
    assert states.count("now") == 6 and states.count("done") == 15 and states.count("never") == 21
    assert drawn["families_masks_encoder"].table["state"] == ["done"] * 16
    cross = drawn["families_masks_both"].table
    rows = [state for name, state in zip(cross["matrix"], cross["state"], strict=True) if name == "cross"]
    assert rows == ["done"] * 8 + ["now"] * 4 + ["later"] * 4


def test_reasons_are_those_that_were_counted():
    page = opened("why", why_tokens="32", why_hidden="25")
    found, work = lessons(32, 0.25), writing(three(Size(12, 768, 12))["decoder"], 32, 32)
    told = said(page)
    assert f"draws **32 lessons**, an encoder with 25% hidden {found.encoder:.1f}" in told
    assert f"**{found.times:.1f} times** as many" in told and f"**{work.times:.0f} times** the work" in told
    (table,) = page.table
    rows = table.value
    assert list(rows.loc["A lesson at every token"])[1:] == [f"{found.encoder:.1f}", "32", "16, the target's"]
    assert rows.loc["What was read is kept", "Decoder"] == f"{work.kept / 1e9:,.0f} GFLOP"
    kept = json.loads((CHECKPOINTS / "cast.json").read_text())["tasks"]
    alone = sorted(one["right"] for one in kept.values())
    paired = sorted(
        json.loads((CHECKPOINTS / "paired" / name / "metrics.json").read_text())["exact"] for name in kept
    )
    ask = rows.loc["One way to ask"]
    assert ask["Decoder"] == (
        f"9 as continuations, each at least 99.1%; of {len(kept)} tasks of pairs"
        f" {100 * alone[0]:.1f}% to {100 * alone[-1]:.1f}%"
    )
    assert told.count(f"{100 * alone[0]:.1f}% to {100 * alone[-1]:.1f}% right, as pairs") == 1
    assert f"as pairs {100 * paired[0]:.1f}% to {100 * paired[-1]:.1f}%." in told
    assert ask["Encoder-decoder"] == (
        f"{len(kept)} tasks of pairs: {100 * paired[0]:.1f}% to {100 * paired[-1]:.1f}%"
    )
    assert rows.loc["All of it works", "Encoder-decoder"] == "62%"


def test_each_task_stands_in_the_fold_in_both_forms():
    told = said(opened("why", hand="true"))
    for name, one in json.loads((CHECKPOINTS / "cast.json").read_text())["tasks"].items():
        exact = json.loads((CHECKPOINTS / "paired" / name / "metrics.json").read_text())["exact"]
        assert (
            f"{name} {100 * one['right']:.1f}% ({100 * exact:.1f}%), {one['parameters']:,} parameters" in told
        )


def test_a_button_makes_it_another_model(drawn):
    page = opened("machine")
    page.button(key="families_make_llama2-7b").click().run()
    made = costs(morphed(MODELS["gpt2"], choices_of(MODELS["llama2-7b"])))
    assert (
        "At GPT-2 small's sizes these are **the 8 choices of LLaMA-2 7B**."
        f" **{made.parameters:,} parameters** (GPT-2 small: 124.4 M)" in said(page)
    )
    parts = drawn["families_machine"].table["part"]
    assert "SwiGLU, 2,048 wide" in parts and "attention, back only, 12 heads, RoPE" in parts
    page.selectbox(key="families_size").set_value("llama2-7b").run()
    assert "**This is LLaMA-2 7B**. **6,738,415,616 parameters**" in said(page)


@pytest.mark.parametrize("name", ["t5-base", "bert-base", "pythia-70m"])
def test_the_drawing_has_every_parameter(drawn, name):
    """Each tensor stands in a box; what both towers share is in the boxes of both."""
    opened("machine", families_size=name, **query_of(name))
    table, preset = drawn["families_machine"].table, MODELS[name]
    total = sum(table["parameters"])
    if preset.encoder:  # one embedding, drawn twice
        total -= preset.model.vocab_size * preset.model.d_model
    pooler = 768 * 768 + 768 if preset.model.pooler else 0  # no box: it is beside the stream
    assert total == ledger_of(preset).total - pooler


def test_who_else_chose_so():
    told = said(opened("machine", families_position="alibi", families_norm="rmsnorm"))
    assert "none here; BLOOM and MPT" in told and "8 of 13, as T5 and SmolLM2" in told
    assert "No model of the table; nearest is **GPT-2**, which differs in 1: positions" in said(
        opened("machine", families_position="alibi")
    )
