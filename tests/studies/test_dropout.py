"""Dropout measured on a model, and the trainings with it that are stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.data import corpora
from engine.data.progress import Progress, finish
from engine.errors import ConfigError
from engine.model import Transformer
from engine.parts.registry import HEALTHY
from engine.recording import record
from studies.experiments import dropout_runs
from studies.experiments.command import from_json, to_json
from studies.experiments.dropout_runs import LITTLE, PLANS, SEEDS, SHARES, WHOLE, DropoutRun, Plan
from studies.feedforward import dropout
from studies.feedforward.dropout import Dropper, PassSpread, drop_sum, logit_terms, passes
from studies.guesses import training
from studies.residual.attribution import attribute
from tests.engine.cases import for_each
from tests.engine.helpers import loud, stepped, tiny

IDS = (3, 1, 4, 1, 5, 9, 2, 6)


@for_each("share", (0.1, 0.5))
def test_division_keeps_the_mean_of_a_sum_and_its_variance_is_that_of_independent_terms(share):
    terms = np.linspace(-1, 3, 50)
    found = drop_sum(terms, share, masks=20_000)
    deviation = np.sqrt(share / (1 - share) * (terms**2).sum())
    assert found.scaled.mean() == pytest.approx(terms.sum(), abs=5 * deviation / np.sqrt(20_000))
    assert found.scaled.std() == pytest.approx(deviation, rel=0.03)
    assert found.plain.mean() == pytest.approx((1 - share) * terms.sum(), rel=0.01)


def test_a_sum_without_dropout_is_itself_under_every_mask():
    found = drop_sum(np.array([0.5, -2.0, 4.0]), 0.0, masks=7)
    assert found.total == 2.5 and found.scaled.tolist() == found.plain.tolist() == [2.5] * 7


@for_each("wiring", ("pre", "post", "parallel"))
def test_the_probe_drops_where_training_does(wiring, monkeypatch):
    """A dropout of training has the name of the activation that it gives, or else of the one that it reads."""
    trained, probed, seen = [], [], []
    real = F.dropout

    def counting(x: torch.Tensor, p: float = 0.5, training: bool = True) -> torch.Tensor:
        trained.append((x, real(x, p, training)))
        return trained[-1][1]

    def named(tensor: torch.Tensor) -> str | None:
        return next((name for name, x in seen if x is tensor), None)

    def watching(name: str, x: torch.Tensor) -> torch.Tensor:
        seen.append((name, x))
        return x

    class Counting(Dropper):
        def __call__(self, name: str, x: torch.Tensor) -> torch.Tensor:
            dropped = super().__call__(name, x)
            if dropped is not x:
                probed.append(name)
            return dropped

    model = loud(tiny(wiring=wiring, dropout=0.3, n_layers=2))
    tokens = torch.tensor(IDS)[None]
    with torch.no_grad():
        model(tokens, Counting(0.3, 0))
        HEALTHY.mode(model, True)
        monkeypatch.setattr(F, "dropout", counting)
        model(tokens, watching)
    assert probed == [named(after) or named(before) for before, after in trained]
    assert len(probed) == 1 + 3 * 2


@for_each("fields", [
    {}, {"norm": "rmsnorm", "ffn": "swiglu"}, {"norm_bias": True, "ffn_bias": True}, {"norm": "none"},
    {"wiring": "parallel", "tie_embeddings": False},
])  # fmt: skip
def test_the_terms_sum_to_what_attribution_gives_the_last_network(fields):
    model = loud(tiny(**fields))
    recording = record(model, IDS)
    terms = logit_terms(model, recording, 4, 7)
    assert terms.shape == (16,)
    assert terms.sum() == pytest.approx(attribute(model, recording, 4, 7).feedforward[-1], rel=1e-6)


@for_each("fields", [{"wiring": "post", "norm_bias": True}, {"wiring": "none"}, {"output_head": "scaled"}])
def test_without_the_terms_the_logit_is_that_of_the_stream_without_the_write(fields):
    """The divisor is held: the logit of the stream less the write is worked out here."""
    model = loud(tiny(**fields, norm="layernorm"))
    recording = record(model, IDS)
    x = recording["blocks.1.resid_post"][4].astype(float)
    norm = model.blocks[1].norm2 if fields.get("wiring") == "post" else model.norm_final
    left = x - recording["blocks.1.ffn_out"][4]
    y = norm.gain.detach().numpy() * (left - left.mean()) / np.sqrt(x.var() + norm.eps)
    y = y if norm.bias is None else y + norm.bias.detach().numpy()
    scale = 16**-0.5 if "output_head" in fields else 1.0
    without = scale * float(y @ model.output_matrix[7].detach().numpy())
    total = logit_terms(model, recording, 4, 7).sum()
    assert total == pytest.approx(recording.logits[4, 7] - without, abs=1e-4)


@for_each("fields", [{"norm": "dyt"}, {"output_head": "masked"}])
def test_no_terms_where_the_way_to_the_logit_is_not_linear(fields):
    model = loud(tiny(**fields))
    with pytest.raises(ConfigError, match=next(iter(fields))):
        logit_terms(model, record(model, IDS), 4, 7)


def spread_of(model: Transformer, share: float, count: int, seed: int = 0) -> PassSpread:
    return finish(passes(model, record(model, IDS), 4, share, 3, count, seed))


@for_each("causal", (True, False))
def test_passes_without_dropout_are_the_models_own_prediction(causal):
    model = loud(tiny(causal=causal))
    with torch.no_grad():
        own = torch.softmax(model(torch.tensor(IDS)[None])[0, 4].double(), -1)
    found = spread_of(model, 0.0, 2)
    top = own.topk(3)
    assert found.tokens == tuple(top.indices.tolist()) and found.passes.shape == (2, 3)
    for probabilities in (found.exact, *found.passes):
        assert probabilities == pytest.approx(top.values.numpy(), abs=1e-6)


def test_each_pass_has_masks_of_its_own_and_the_seed_decides_them():
    model = loud(tiny())
    some, again, other = (spread_of(model, 0.3, 3, seed).passes for seed in (0, 0, 1))
    assert np.array_equal(some, again) and not np.allclose(some, other)
    assert not np.allclose(some[0], some[1])


def test_few_passes_run_at_once_and_unembed_a_single_position(monkeypatch):
    """Of 5 tokens read, 12 at once are two passes."""
    monkeypatch.setattr(dropout, "TOKENS_AT_ONCE", 12)
    model, shapes = loud(tiny()), []
    recording = record(model, IDS)
    model.output.register_forward_hook(lambda module, inputs, logits: shapes.append(tuple(logits.shape)))
    seen, found = stepped(passes(model, recording, 4, 0.3, 3, count=5))
    assert shapes == [(2, 1, 11), (2, 1, 11), (1, 1, 11)] and found.passes.shape == (5, 3)
    assert seen == [Progress(done, 5) for done in (0, 2, 4)]


def test_little_text_leaves_the_held_out_text_as_it_is():
    corpus = corpora.from_text("To be, or not to be, that is the question.\n" * 40)
    little = dropout_runs.shortened(corpus, 50)
    assert len(little.train) == 50 and torch.equal(little.validation, corpus.validation)
    assert dropout_runs.shortened(corpus, WHOLE) is corpus


def test_a_run_goes_through_its_file_unchanged():
    corpus = corpora.from_text("To be, or not to be, that is the question.\n" * 200)
    config = replace(dropout_runs.TRAINING, steps=2, eval_every=1, eval_tokens=256)
    run = dropout_runs.trained(Plan(2_000, 0.3, 1), corpus, config)
    assert run.steps == (0, 1, 2) and run.passes == pytest.approx(2 * 8 * 64 / 2_000)
    again = from_json(DropoutRun, to_json(run))
    assert again.plan == run.plan and again.validation == pytest.approx(run.validation, rel=1e-4)


def test_all_trainings_are_stored_each_to_its_end():
    runs = dropout_runs.shipped()
    assert tuple(run.plan for run in runs) == PLANS
    assert {run.steps[-1] for run in runs} == {dropout_runs.TRAINING.steps}


@for_each("characters", (LITTLE, WHOLE))
def test_the_ends_are_medians_over_the_seeds(characters):
    runs = dropout_runs.shipped()
    for share, end in zip(SHARES, dropout_runs.ends(runs, characters), strict=True):
        some = [r for r in runs if r.plan.characters == characters and r.plan.dropout == share]
        assert end.seeds == len(some) == len(SEEDS) and end.dropout == share
        assert end.validation == float(np.median([run.validation[-1] for run in some]))
        assert end.spread == (min(r.validation[-1] for r in some), max(r.validation[-1] for r in some))


def test_a_difference_within_the_seeds_counts_as_none():
    bare = dropout_runs.Ends(0.0, 3, 1.0, 2.0, (1.9, 2.1), 1.9)
    for validation, spread, right in (
        (1.7, (1.6, 1.8), "helps"),
        (2.05, (2.0, 2.2), "nothing"),
        (2.4, (2.3, 2.5), "costs"),
    ):
        truth = training.dropped((bare, replace(bare, dropout=0.3, validation=validation, spread=spread)))
        assert truth is not None and truth.right == right
