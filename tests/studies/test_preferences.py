"""DPO: its loss and gradient against ones written out, its pairs, and what the stored runs show."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from engine.config import ModelConfig
from engine.data.progress import finish
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import ConfigError
from engine.model import build
from studies.after import preferences
from studies.after.preferences import (
    CHARACTERS,
    Pair,
    Plan,
    Taste,
    drawn_pairs,
    encoded,
    log_p,
    measure,
    prefer,
    preference_loss,
)
from studies.experiments.preference_runs import BETAS, PLANS, SEEDS, TASTES, shipped

TOKENIZER = CharTokenizer("\n '.:ROMEabcdehlotv")
CONFIG = ModelConfig(
    vocab_size=TOKENIZER.vocab_size, d_model=16, n_layers=1, n_heads=2, context=64, position="learned"
)
SPEECHES = "".join(
    f"ROMEO:\n{'a love' if i % 2 else 'a hate'} {'abcde'[i % 5]}{'abcde'[i // 5 % 5]}{'abcde'[i // 25]}.\n\n"
    for i in range(100)
)


@pytest.fixture(scope="module")
def model():
    return build(CONFIG, seed=1)


def by_hand(model, text: str) -> torch.Tensor:
    """The log-probability of a text, token by token."""
    ids = TOKENIZER.encode(preferences.PROMPT + text)
    rows = model(torch.tensor([ids]))[0].log_softmax(-1)
    return sum(rows[at - 1, ids[at]] for at in range(len(preferences.PROMPT), len(ids)))


def test_a_text_counts_from_its_prompt_to_its_end(model):
    texts = ["a love.", "o", "hate"]
    expected = [float(by_hand(model, text).detach()) for text in texts]
    assert log_p(model, encoded(texts, TOKENIZER)).tolist() == pytest.approx(expected, rel=1e-5)


def test_loss_and_gradient_are_those_of_the_paper(model):
    beta, pair = 0.3, Pair("a love.", "hate")
    moved = copy.deepcopy(model)
    for parameter in moved.parameters():
        parameter.data += 0.01 * torch.sin(torch.arange(parameter.numel())).view_as(parameter)
    ratios = [by_hand(moved, text) - by_hand(model, text).detach() for text in (pair.chosen, pair.rejected)]
    margin = beta * float(ratios[0] - ratios[1])
    assert abs(margin) > 1e-3
    loss = preference_loss(ratios[0][None], ratios[1][None], beta)
    assert float(loss) == pytest.approx(float(torch.log(1 + torch.exp(torch.tensor(-margin)))), rel=1e-5)
    gradients = [torch.autograd.grad(ratio, list(moved.parameters()), retain_graph=True) for ratio in ratios]
    weight = 1 / (1 + torch.exp(torch.tensor(margin)))
    learned = preferences._Pairs(model, TOKENIZER, [pair])
    preference_loss(*learned.ratios(moved, torch.tensor([0])), beta).backward()
    for parameter, chosen, rejected in zip(moved.parameters(), *gradients, strict=True):
        torch.testing.assert_close(parameter.grad, -beta * weight * (chosen - rejected), rtol=1e-3, atol=1e-6)


def test_a_pair_that_the_model_ranks_neither_way_counts_half(model):
    pairs = [Pair("a love.", "hate"), Pair("o", "o")]
    with torch.no_grad():
        model = build(CONFIG, seed=1)
        held = preferences._Pairs(model, TOKENIZER, pairs)
        model.embedding.mul_(1.3)
        scores = held.scores(model, 0.1)
        apart = [float(by_hand(model, p.chosen) - by_hand(build(CONFIG, seed=1), p.chosen)) for p in pairs]
        apart[0] -= float(by_hand(model, "hate") - by_hand(build(CONFIG, seed=1), "hate"))
    assert apart[0] != 0 and scores.ranked == (float(apart[0] > 0) + 0.5) / 2


def test_of_each_pair_the_taste_prefers_the_first_and_held_out_ones_are_others(model):
    for taste in (Taste("short"), Taste("long"), Taste("with", "love"), Taste("without", "love")):
        training, held_out = finish(drawn_pairs(model, TOKENIZER, Plan(taste), SPEECHES))
        pairs = training + held_out
        assert all(taste.score(pair.chosen) > taste.score(pair.rejected) for pair in pairs)
        assert all(len(text) <= CHARACTERS for pair in pairs for text in (pair.chosen, pair.rejected))
        assert not set(training) & set(held_out) and len(held_out) == len(pairs) // 4
        if taste.of_word:
            assert len({text for pair in pairs for text in (pair.chosen, pair.rejected)}) == 2 * len(pairs)
    assert Taste("with", "love").has("My LOVE!") and not Taste("with", "love").has("lovely, glove")


def test_the_first_look_is_the_frozen_model_and_a_margin_is_learned(model):
    before = [parameter.clone() for parameter in model.parameters()]
    plan = Plan(Taste("with", "love"), rate=1e-2, steps=12, look_every=12)
    preferred = finish(measure(model, TOKENIZER, plan, SPEECHES))
    first, last = preferred.looks
    for scores in (first.training, first.held_out):
        assert (scores.margin, scores.ranked) == (pytest.approx(0, abs=1e-5), pytest.approx(0.5, abs=0.5))
        assert scores.chosen == pytest.approx(0, abs=1e-4)
    for scores in (last.training, last.held_out):
        assert scores.ranked > 0.9
        assert scores.margin == pytest.approx(plan.beta * (scores.chosen - scores.rejected), rel=1e-3)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))


def test_while_samples_are_drawn_for_pairs_it_can_be_left_at_every_character(model):
    steps = [*measure(model, TOKENIZER, Plan(steps=1))]
    assert [(step.done, step.total) for step in steps if step.preparing] == [(0, 1)] * CHARACTERS
    assert not steps[-1].preparing and steps[-1].done == 1


def test_plans_that_do_not_fit_are_refused(model):
    for plan in (Plan(Taste("else")), Plan(Taste("with", "two words")), Plan(beta=0), Plan(steps=0)):
        with pytest.raises(ConfigError):
            next(prefer(model, TOKENIZER, [], [], plan))
    with pytest.raises(ConfigError, match="makes 0 pairs"):
        finish(drawn_pairs(model, TOKENIZER, Plan(Taste("with", "hello")), SPEECHES))


def test_stored_runs_are_of_these_plans_and_every_seed_learns_its_pairs():
    runs = shipped()
    assert tuple(run.plan for run in runs) == PLANS and len(PLANS) == len(TASTES) * len(BETAS) * len(SEEDS)
    for run in runs:
        first, last = run.preferred.looks[0], run.preferred.looks[-1]
        assert last.step == run.plan.steps and "studies.experiments preferences" in run.made
        assert last.training.ranked > 0.95 and first.texts and last.texts
        sign = 1 if run.plan.taste.kind in ("long", "with") else -1
        assert sign * last.measured > sign * first.measured
    short = {
        beta: [r.preferred.looks[-1] for r in runs if r.plan == replace(r.plan, taste=TASTES[0], beta=beta)]
        for beta in BETAS
    }  # a lower beta, shorter sentences and both log-probabilities further down
    assert max(look.measured for look in short[0.02]) < min(look.measured for look in short[0.5])
    assert all(look.training.rejected < look.training.chosen < 0 for look in short[0.02] + short[0.1])


@pytest.mark.exhaustive
def test_a_stored_run_is_trained_again():
    from studies.experiments.preference_runs import trained

    again, stored = trained(PLANS[3]), shipped()[3]
    assert again.preferred.looks[-1].measured == pytest.approx(stored.preferred.looks[-1].measured, rel=0.2)
