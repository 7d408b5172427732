"""Fine-tuning: adapters against a layer written out, what is read and counted, and what is left alone."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from engine.config import ModelConfig
from engine.data.progress import finish
from engine.errors import ConfigError
from engine.model import build
from studies.after import finetune
from studies.after.finetune import (
    IGNORED,
    MAX_BATCH_TOKENS,
    MAX_TOKENS,
    FinetuneRecipe,
    Lesson,
    adapters,
    batch,
    fine_tune,
    loss_of,
    merged,
    target_count,
    trained_parameters,
    with_weights,
)
from studies.after.new_fact import Question, largest_change, teach
from tests.engine.cases import for_each

CONFIG = ModelConfig(vocab_size=28, d_model=16, n_layers=2, n_heads=2, context=32)
TEXTS = [Lesson("abba cab."), Lesson("a cab."), Lesson("bad cab, abba.")]


class Letters:
    """A tokenizer of single characters."""

    vocab_size = 28

    def encode(self, text: str) -> list[int]:
        return ["abcdefghijklmnopqrstuvwxyz .".find(c) % 28 for c in text]

    def decode(self, ids: list[int]) -> str:
        return "".join("abcdefghijklmnopqrstuvwxyz ."[i] for i in ids)

    def unknown(self, text: str) -> list[str]:
        return []


@pytest.fixture
def model():
    return build(CONFIG, seed=1).requires_grad_(False).eval()


class WithAdapter(nn.Module):
    """W x + B (A x), with W frozen: LoRA as the paper writes it."""

    def __init__(self, linear: nn.Linear, adapter) -> None:
        super().__init__()
        self.linear, self.adapter = linear, adapter

    def forward(self, x):
        return self.linear(x) + (x @ self.adapter.down.t()) @ self.adapter.up.t()


def losses(model, inputs, targets, trained, steps: int, rate: float) -> list[float]:
    optimiser = torch.optim.AdamW(trained, lr=rate, weight_decay=0)
    result = []
    for _ in range(steps + 1):
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
        result.append(float(loss.detach()))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return result


def test_the_steps_of_lora_are_those_of_layers_with_the_product_beside_them(model):
    recipe = FinetuneRecipe(rank=3, steps=4, rate=1e-2)
    other, drawn = copy.deepcopy(model), adapters(model, recipe)
    for i, block in enumerate(other.blocks):
        block.mixer.w_o = WithAdapter(block.mixer.w_o, drawn[f"blocks.{i}.mixer.w_o.weight"])
        # The fused matrix is read by name elsewhere in a mixer: its forward alone is replaced.
        extra = WithAdapter(block.mixer.w_qkv, drawn[f"blocks.{i}.mixer.w_qkv.weight"])
        block.mixer.w_qkv.forward = lambda x, w=block.mixer.w_qkv, a=extra.adapter: (
            F.linear(x, w.weight, w.bias) + (x @ a.down.t()) @ a.up.t()
        )
    inputs, targets = batch(TEXTS, Letters())
    trained = [half for adapter in drawn.values() for half in (adapter.up, adapter.down)]
    expected = losses(other, inputs, targets, trained, 4, 1e-2)
    ours = [look.loss for look in fine_tune(model, Letters(), TEXTS, recipe)]
    assert ours == pytest.approx(expected, rel=1e-5)
    assert ours[-1] < ours[0]


def test_training_all_weights_is_ordinary_training(model):
    inputs, targets = batch(TEXTS, Letters())
    other = copy.deepcopy(model).requires_grad_(True)
    expected = losses(other, inputs, targets, list(other.parameters()), 3, 1e-3)
    ours = [
        look.loss for look in fine_tune(model, Letters(), TEXTS, FinetuneRecipe(rank=0, steps=3, rate=1e-3))
    ]
    assert ours == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("rank", [0, 2])
def test_the_model_itself_is_left_as_it_was(model, rank):
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    for _ in fine_tune(model, Letters(), TEXTS, FinetuneRecipe(rank=rank, steps=2, rate=1e-2)):
        pass
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters())
    assert not any(weight.requires_grad for weight in model.parameters())


def test_lessons_that_are_too_long_or_too_many_with_their_filling_are_refused():
    with pytest.raises(ConfigError, match="it must have 2 to 4"):
        batch([Lesson("abcde")], Letters(), 4)
    long = Lesson("a" * (MAX_TOKENS))
    most = MAX_BATCH_TOKENS // (MAX_TOKENS - 1)
    assert batch([long, *[Lesson("ab")] * (most - 1)], Letters())[0].numel() <= MAX_BATCH_TOKENS
    with pytest.raises(ConfigError, match=f"at most {most} of that length"):
        batch([long, *[Lesson("ab")] * most], Letters())


def test_only_the_answer_is_counted_and_filling_costs_nothing():
    assert target_count(TEXTS, Letters()) == sum(len(lesson.text) - 1 for lesson in TEXTS)
    assert target_count([Lesson("a cab. ", "bad"), Lesson("ab")], Letters()) == 3 + 1
    inputs, targets = batch([Lesson("ab", "cd"), Lesson("abcde")], Letters())
    assert inputs.tolist() == [[0, 1, 2, 0], [0, 1, 2, 3]]
    assert targets.tolist() == [[IGNORED, 2, 3, IGNORED], [1, 2, 3, 4]]


def test_filling_does_not_change_the_loss_of_a_shorter_sentence(model):
    def loss(lessons) -> float:
        inputs, targets = batch(lessons, Letters())
        return float(loss_of(model(inputs), targets))

    alone = [loss([text]) for text in TEXTS]
    counts = [len(text.text) - 1 for text in TEXTS]
    together = loss(TEXTS)
    mean = sum(loss * n for loss, n in zip(alone, counts, strict=True)) / sum(counts)
    assert together == pytest.approx(mean, rel=1e-5)


def test_trained_parameters_are_counted_as_the_adapters_are():
    model = build(CONFIG, seed=1)
    drawn = adapters(model, FinetuneRecipe(rank=4))
    assert trained_parameters(model, 4) == sum(a.up.numel() + a.down.numel() for a in drawn.values())
    assert trained_parameters(model, 0) == sum(p.numel() for p in model.parameters())


def test_a_merged_model_computes_what_the_adapted_one_does(model):
    looks = list(fine_tune(model, Letters(), TEXTS, FinetuneRecipe(rank=2, steps=2, rate=1e-2)))
    inputs, targets = batch(TEXTS, Letters())
    whole = with_weights(model, looks[-1].weights)
    loss = F.cross_entropy(whole(inputs).flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
    assert float(loss) == pytest.approx(looks[-1].loss, rel=1e-5)
    assert whole.embedding.data_ptr() == model.embedding.data_ptr()


def test_an_answer_is_a_product_over_its_tokens_and_a_text_goes_on_with_the_likeliest(model):
    questions = [Question("abba ", "cab"), Question("a", "d")]
    taught = finish(teach(model, Letters(), TEXTS, questions, FinetuneRecipe(rank=2, steps=1)))
    written, expected = Letters().encode("abba "), 1.0
    for i in range(3):
        ids = torch.tensor([Letters().encode("abba " + "cab"[:i])])
        expected *= float(model(ids)[0, -1].softmax(-1)[Letters().encode("cab"[i])[0]])
        written.append(int(model(torch.tensor([written]))[0, -1].argmax()))
    assert taught.looks[0].answers[0] == pytest.approx(expected, rel=1e-4)
    assert [look.step for look in taught.looks] == [0, 1]
    assert taught.before[0] == Letters().decode(written[-3:])


def test_adapters_are_merged_where_somebody_looks_and_once(model, monkeypatch):
    merges = []
    monkeypatch.setattr(finetune, "merged", lambda *given: merges.append(1) or merged(*given))
    for look in fine_tune(model, Letters(), TEXTS, FinetuneRecipe(rank=2, steps=3, rate=1e-2)):
        if look.step == 2:
            assert look.weights is look.weights
            for name, weight in merged(model, look.adapters).items():
                assert torch.equal(look.weights[name], weight)
    assert len(merges) == 1


def test_a_change_of_rank_two_has_two_singular_values(model):
    looks = list(fine_tune(model, Letters(), TEXTS, FinetuneRecipe(rank=2, steps=3, rate=1e-2)))
    moved = largest_change(model, looks[-1].weights)
    assert moved.share > 0 and min(moved.singular[:2]) > 1e-4 > 100 * max(moved.singular[2:])


@for_each("lessons, recipe", [
    ([], FinetuneRecipe()), ([Lesson("a")], FinetuneRecipe()), ([Lesson("a" * 99)], FinetuneRecipe()),
    (TEXTS, FinetuneRecipe(rank=-1)), (TEXTS, FinetuneRecipe(steps=0)), (TEXTS, FinetuneRecipe(rate=0.0)),
])  # fmt: skip
def test_what_does_not_fit_is_refused_at_once(model, lessons, recipe):
    with pytest.raises(ConfigError):
        fine_tune(model, Letters(), lessons, recipe)


def test_what_is_forgotten_is_the_loss_of_the_trained_weights_on_the_text(model):
    recipe, text = FinetuneRecipe(rank=2, steps=2, rate=1e-2), "dab a cab."
    taught = finish(teach(model, Letters(), TEXTS, [Question("a", "b")], recipe, text=text))
    ids = torch.tensor([Letters().encode(text)])
    expected = [
        float(F.cross_entropy(with_weights(model, look.weights)(ids[:, :-1])[0], ids[0, 1:]))
        for look in fine_tune(model, Letters(), TEXTS, recipe)
    ]
    assert [look.plain for look in taught.looks] == pytest.approx(expected, rel=1e-5)
    assert abs(expected[-1] - expected[0]) > 1e-3
