"""The answers of Reference, held against both programs run here, and against what PyTorch counts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from engine.checkpoints import load
from engine.model import Transformer
from engine.presets import PRESETS
from engine.probe import Recorder
from engine.reference import dice
from engine.reference.mistakes import MISTAKES
from engine.reference.second import RIGHT, Choices, forward
from tests.pages.helpers import opened
from ui.site import ROOT
from ui.text.numbers import number

pytestmark = pytest.mark.usefixtures("manager")


def said(view: str, **query: str) -> str:
    """All that is said while the folds are closed."""
    page = opened("models/reference", reference_view=view, **query)
    return " | ".join(str(one.value) for one in page.markdown)


@torch.no_grad()
def both(model: Transformer, ids: tuple[int, ...], choices: Choices = RIGHT) -> list[Mapping[str, Tensor]]:
    """Every activation in the engine and in the second program, run here."""
    recorder = Recorder()
    model(torch.tensor([ids]), recorder)
    weights = dict(model.named_parameters())
    return [
        {name: x[0] for name, x in recorder.tensors.items()},
        forward(model.config, weights, torch.tensor(ids), choices),
    ]


def apart(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> float:
    """The largest difference at a place of the stream, as a share of the largest number there if above 1."""
    found = 0.0
    for name, mine in ours.items():
        if name.endswith(("resid_mid", "resid_post", "norm_final", "logits")) or name == "blocks.0.resid_pre":
            found = max(found, float((mine - theirs[name]).abs().max() / mine.abs().max().clamp(min=1.0)))
    return found


@pytest.mark.parametrize(("family", "seed"), [("llama", 0), ("gpt2", 5)])
def test_two_programs_are_as_far_apart_as_is_said(family, seed):
    rolled = dice.roll(family, seed)
    far = apart(*both(rolled.model, rolled.ids))
    assert 0 < far < 1e-5
    told = said("dice", reference_family=family, reference_seed=str(seed))
    assert f"The largest difference along the stream is **{number(far)}**" in told


def test_a_mistake_is_as_large_as_is_said():
    rolled = dice.roll("gpt2", 0)
    ours, theirs = both(rolled.model, rolled.ids, MISTAKES["scale"].choices)
    told = said("dice", reference_family="gpt2", reference_mistake="scale")
    off, size = (ours["logits"] - theirs["logits"]).abs().max(), ours["logits"].abs().max()
    assert f"and grows to **{number(apart(ours, theirs))}** along the stream" in told
    assert (
        f"the logits are off by up to {number(float(off))}, where the largest is {float(size):.3g}." in told
    )
    assert "in block **0**, at `scores`" in told


def test_a_trained_model_is_held_against_the_text_of_the_bar():
    found = load(ROOT / "checkpoints" / "shakespeare-modern")
    text = "First Citizen: hear me"
    far = apart(*both(found.model, tuple(found.tokenizer.encode(text))))
    told = said("model", model="shakespeare-modern", text=text)
    assert f"The largest difference along the stream is **{number(far)}**" in told


@pytest.mark.parametrize(("dtype", "bytes_each"), [("float32", 4), ("bfloat16", 2)])
def test_a_file_is_as_large_as_its_numbers(dtype, bytes_each):
    found = load(ROOT / "checkpoints" / "shakespeare-modern")
    size = sum(p.numel() for p in found.model.parameters()) * bytes_each / 1e6
    told = said("export", model="shakespeare-modern", reference_dtype=dtype)
    assert f"This model **is a LLaMA**: in {size:.1f} MB of {dtype}" in told


def test_the_largest_part_is_what_pytorch_counts():
    with torch.device("meta"):
        model = Transformer(PRESETS["llama2-7b"].model.resolved())
    sizes = {name: p.numel() for name, p in model.named_parameters()}
    total = sum(sizes.values())
    networks = sum(n for name, n in sizes.items() if ".ffn." in name)
    told = said("quick", reference_sizes="llama2-7b")
    assert f"Seven rows are all of LLaMA-2 7B's {total:,} parameters" in told
    assert f"the largest is feed-forward with **{networks / total:.1%}**" in told


def test_what_each_model_kept_of_the_original():
    bert = said("variations", reference_other="bert-base")
    assert "BERT base keeps **4 of the 6 choices** of the original (•)" in bert
    assert bert.partition("(•): ")[2].startswith(
        "norm, where the norm stands, keys and values, embedding and output."
    )
    assert "Gemma 2B keeps **1 of the 6 choices** of the original (•): embedding and output." in said(
        "variations", reference_other="gemma-2b"
    )
