"""Another text: what is read and held out, what is forgotten, and that a longer run begins as a shorter one."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from engine.config import ModelConfig
from engine.data.progress import finish
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import ConfigError
from engine.model import build
from studies.after import new_fact
from studies.after.finetune import FinetuneRecipe, with_weights
from studies.after.new_fact import matrix_change
from studies.after.new_text import LEAST, LEAST_HELD_OUT, Texts, split, teach_text
from studies.experiments import finetune_runs
from studies.experiments.command import from_json, to_json

TOKENIZER = CharTokenizer("abcd ")
CONFIG = ModelConfig(vocab_size=5, d_model=16, n_layers=1, n_heads=2, context=16)
OLD, NEW = "abcd " * 200, "dbca " * 200
RECIPE = FinetuneRecipe(rank=0, steps=40, rate=1e-2)


@pytest.fixture(scope="module")
def model():
    """A model that was trained on the old text."""
    first = build(CONFIG, seed=1).requires_grad_(False).eval()
    taught = finish(teach_text(first, TOKENIZER, split(OLD, OLD, TOKENIZER), RECIPE))
    return with_weights(first, taught.weights)


def taught(model, recipe=RECIPE, rehearse=False, prompt=""):
    return finish(teach_text(model, TOKENIZER, split(NEW, OLD, TOKENIZER), recipe, rehearse, prompt))


def test_a_model_learns_the_new_text_and_forgets_the_old_unless_it_is_rehearsed(model):
    alone, rehearsed = taught(model).looks, taught(model, rehearse=True).looks
    assert alone[0].new > 1 > alone[-1].new and rehearsed[0].new > 1 > rehearsed[-1].new
    assert alone[-1].old > 1 > rehearsed[-1].old > 0


def test_the_losses_are_those_of_the_trained_weights_on_what_no_step_reads(model):
    generator = torch.Generator().manual_seed(0)
    new, old, new_held_out, old_held_out = (
        torch.randint(5, (n,), generator=generator) for n in (300, 300, 17, 17)
    )
    texts = Texts(new, new_held_out, old, old_held_out)
    result = finish(teach_text(model, TOKENIZER, texts, FinetuneRecipe(rank=2, steps=3, rate=1e-2)))
    after = with_weights(model, result.changed(model))
    for held_out, before, then in (
        (new_held_out, result.looks[0].new, result.looks[-1].new),
        (old_held_out, result.looks[0].old, result.looks[-1].old),
    ):
        for each, loss in ((model, before), (after, then)):
            expected = F.cross_entropy(each(held_out[None, :-1])[0], held_out[1:])
            assert loss == pytest.approx(float(expected), rel=1e-4)


def test_the_ends_of_both_texts_are_held_out():
    letters = CharTokenizer("".join(map(chr, range(0x100, 0x100 + 2000))))
    short = letters.alphabet[:LEAST]
    texts = split(short, letters.alphabet, letters)
    assert (len(texts.new), len(texts.new_held_out)) == (LEAST - LEAST_HELD_OUT, LEAST_HELD_OUT)
    assert (len(texts.old), len(texts.old_held_out)) == (1800, 200)
    assert torch.cat([texts.new, texts.new_held_out]).tolist() == letters.encode(short)
    assert torch.cat([texts.old, texts.old_held_out]).tolist() == list(range(2000))


def test_a_text_that_is_too_short_is_refused():
    with pytest.raises(ConfigError, match=f"at least {LEAST} are needed"):
        split("a" * (LEAST - 1), OLD, TOKENIZER)


def test_a_longer_run_begins_as_a_shorter_one(model):
    short, long = (taught(model, FinetuneRecipe(2, steps, 1e-2)).looks for steps in (6, 12))
    after = {look.step: look.new for look in long}
    assert [after[look.step] for look in short] == pytest.approx([look.new for look in short], rel=1e-5)


def test_the_seed_draws_windows_and_adapters(model):
    for rank in (0, 2):
        first, again, other = (
            taught(model, FinetuneRecipe(rank, 3, 1e-2, seed)).looks[-1].new for seed in (0, 0, 1)
        )
        assert first == again != other


def test_the_samples_at_both_ends_are_of_the_model_before_and_after(model):
    result = taught(model, prompt="ab")
    assert result.before[0].startswith("cd abcd abcd") and "dbca dbca" in result.after[0]


def test_all_weights_are_held_unless_they_are_too_large(model, monkeypatch):
    result = taught(model, FinetuneRecipe(0, 2, 1e-2))
    assert result.weights.keys() == dict(model.named_parameters()).keys() == result.changed(model).keys()
    moved = matrix_change(model, result.largest.name, result.weights[result.largest.name])
    assert moved == result.largest
    monkeypatch.setattr(new_fact, "MOST_BYTES", 100)
    assert not taught(model, FinetuneRecipe(0, 2, 1e-2)).weights


def test_every_planned_run_is_stored_and_read_as_it_was_written():
    runs = finetune_runs.shipped()
    assert tuple(run.plan for run in runs) == finetune_runs.PLANS
    assert all(from_json(finetune_runs.FinetuneRun, to_json(run)) == run for run in runs)
    assert all(run.steps[-1] == run.plan.recipe.steps and len(run.steps) == len(run.values) for run in runs)
