"""What the mask, the scale and the order of the tokens do, against arithmetic done here."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.checkpoints import load
from engine.config import TrainConfig
from engine.data.corpus import Corpus
from engine.errors import ConfigError
from engine.recording import next_token_losses, record
from engine.training.batches import Batch, Batches
from studies.attention import scaling
from studies.attention.ablation import without_mask
from studies.experiments import no_causal_mask
from studies.families.unmasked_attention import continue_text, end_loss, opened, read
from studies.positions import permutation
from studies.positions.permutation import SAME, order_effect, setting_of
from tests.engine.cases import for_each
from tests.engine.helpers import ARCHITECTURES, loud, tiny


def test_without_the_mask_the_softmax_runs_over_all_keys():
    before = record(MODEL, IDS)
    found = without_mask(MODEL, before)
    p = torch.tensor(before["blocks.0.scores"]).softmax(-1).numpy()
    np.testing.assert_allclose(found.patterns[0], p, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.future[0], np.triu(p, 1)[:, :-1].sum(-1).mean(1), rtol=1e-4)
    wanted = F.cross_entropy(torch.tensor(before.logits[:-1]), torch.tensor(IDS[1:]), reduction="none")
    np.testing.assert_allclose(found.loss_with, wanted, rtol=1e-5)
    assert found.mean_with == pytest.approx(float(wanted.mean())) != found.mean_without


def test_the_same_scores_are_sharp_without_the_scale():
    for width in (1, 64, 512):
        found = scaling.sample_query(width, 3)
        np.testing.assert_allclose(found.scaled, scaling.softmax(found.scores / width**0.5))
        assert found.most_plain >= found.most_scaled and found.plain.sum() == pytest.approx(1)
        assert found.plain[found.best] == found.most_plain
    assert scaling.sample_query(1).most_plain == scaling.sample_query(1).most_scaled
    assert scaling.sample_query(64).most_plain > 0.95 > 0.5 > scaling.sample_query(64).most_scaled
    plain, scaled = (scaling.scaling(scaling.WIDTHS, e) for e in (0.0, 0.5))
    at = scaling.crossing(plain, scaled)
    assert at is not None and 16 <= at <= 128
    place = list(plain.widths).index(at)
    assert plain.jacobian[place] > scaled.jacobian[place] and plain.jacobian[-1] < scaled.jacobian[-1]


def test_the_same_weights_without_a_mask():
    found = opened(MODEL)
    assert not found.config.causal
    assert torch.equal(found(torch.tensor([IDS])), FULL(torch.tensor([IDS])))  # of the same seed
    with pytest.raises(ConfigError, match="none to take away"):
        opened(FULL)


MODEL = loud(tiny(n_layers=2), factor=4.0).requires_grad_(False)
FULL = loud(tiny(n_layers=2, causal=False), factor=4.0).requires_grad_(False)
IDS = [3, 1, 4, 1, 5, 9, 2]


def test_chances_are_those_of_the_next_token():
    found = read(FULL, IDS)
    chances = FULL(torch.tensor([IDS]))[0].softmax(-1)
    np.testing.assert_allclose(found.chances, chances[range(6), IDS[1:]], rtol=1e-5)
    by_layer = [np.triu(pattern, 1)[:, :-1].sum(-1).mean() for pattern in found.patterns]
    assert [found.ahead(layer) for layer in range(2)] == pytest.approx(by_layer, rel=1e-5)
    assert found.ahead(None) == pytest.approx(sum(by_layer) / 2, rel=1e-5) and by_layer[0] != by_layer[1]
    assert read(MODEL, IDS).ahead(None) == 0.0


def test_each_token_is_hidden_in_turn():
    blank = FULL.config.vocab_size - 1
    found = read(FULL, IDS, blank).chances
    for place, token in enumerate(IDS):
        said = FULL(torch.tensor([[*IDS[:place], blank, *IDS[place + 1 :]]]))[0, place].softmax(-1)
        assert found[place] == pytest.approx(float(said[token]), rel=1e-4)


def test_what_it_writes_when_opened_and_what_that_costs():
    blank = FULL.config.vocab_size - 1
    found = continue_text(FULL, IDS, 9, blank)
    assert found == continue_text(FULL, IDS, 9, blank) != continue_text(FULL, IDS, 9, blank, seed=1)
    generator, text = torch.Generator().manual_seed(0), list(IDS)
    for _ in range(9):
        seen = [*text[-(FULL.config.context - 1) :], blank]
        logits = FULL(torch.tensor([seen]))[0, -1].double() / 0.8
        logits[blank] = -math.inf
        text.append(int(torch.multinomial(logits.softmax(-1), 1, generator=generator)))
    assert text[len(IDS) :] == found and len(continue_text(MODEL, IDS, 3)) == 3
    inputs, targets = torch.tensor([IDS, IDS[::-1]]), torch.tensor([[-1] * 6 + [4], [-1] * 6 + [7]])
    wanted = float(F.cross_entropy(FULL(inputs)[:, -1], targets[:, -1]))
    halves = [Batch(inputs[i : i + 1], targets[i : i + 1]) for i in range(2)]
    for windows in ([Batch(inputs, targets)], halves):
        assert end_loss(FULL, windows) == pytest.approx(wanted, rel=1e-5)


def test_two_trainings_end_as_two_models(tmp_path, shakespeare: Corpus, monkeypatch):
    monkeypatch.setattr(no_causal_mask, "SEEN", 256)
    corpus = replace(shakespeare, validation=shakespeare.validation[:2000])
    masked, with_mask = no_causal_mask.learn(no_causal_mask.MASKED, corpus, 1)
    _, without = no_causal_mask.learn(no_causal_mask.UNMASKED, corpus, 1)
    assert with_mask.config.causal and not without.config.causal and masked.steps == (0, 1)
    short = lambda *_: {"validation_loss": 1.0, "end_loss": 2.0}  # noqa: E731
    monkeypatch.setattr(no_causal_mask, "losses", short)
    metrics = no_causal_mask.stored(with_mask, shakespeare, 1, tmp_path / "masked")
    assert metrics["opened"] == short() and metrics["step"] == 1
    assert "opened" not in no_causal_mask.stored(without, shakespeare, 1, tmp_path / "unmasked")
    assert no_causal_mask.square("masked", tmp_path).metrics == metrics


def test_the_shipped_two_are_what_their_metrics_say(shakespeare: Corpus):
    """A part of the held-out text, measured anew; on all of it they differ by what they learned."""
    curve = no_causal_mask.shipped()
    for name, learning in ((no_causal_mask.MASKED, curve.masked), (no_causal_mask.UNMASKED, curve.unmasked)):
        checkpoint = load(no_causal_mask.SQUARE / name)
        assert TrainConfig.from_dict(checkpoint.metrics["train"]).steps == no_causal_mask.STEPS
        assert checkpoint.metrics["validation_loss"] == pytest.approx(learning.losses[-1], abs=0.03)
        batches = Batches(shakespeare, checkpoint.config, TrainConfig.from_dict(checkpoint.metrics["train"]))
        some = list(batches.windows(shakespeare.validation, 30_000))
        assert end_loss(checkpoint.model, some) == pytest.approx(checkpoint.metrics["end_loss"], abs=0.25)
    masked = json.loads((no_causal_mask.SQUARE / "masked" / "metrics.json").read_text())
    cheat = json.loads((no_causal_mask.SQUARE / "unmasked" / "metrics.json").read_text())
    assert cheat["validation_loss"] < 0.1 and cheat["end_loss"] > masked["end_loss"] + 0.5
    assert masked["opened"]["validation_loss"] > masked["validation_loss"] + 0.1


TOKENS = (3, 1, 4, 1, 5, 9, 2, 6)


def test_orders_are_what_they_are_called():
    assert permutation.new_order(5, "reverse").tolist() == [4, 3, 2, 1, 0]
    assert permutation.new_order(5, "rotate").tolist() == [1, 2, 3, 4, 0]
    for seed, length in product(range(60), (2, 3, 9)):
        order = permutation.new_order(length, "shuffle", seed)
        assert sorted(order) == list(range(length)) and (order != np.arange(length)).any()
    one, again, other = (permutation.new_order(9, "shuffle", seed).tolist() for seed in (3, 3, 4))
    assert one == again != other
    assert [permutation.new_order(n, "shuffle").tolist() for n in (0, 1)] == [[], [0]]


@for_each("tokens, expected", [
    (list("to be or"), "orbe to "), (list("one"), "one"), (list("a\nb  c"), "cb  a\n"),
    (["The", " cat", " s", "at"], " sat catThe"), (list(" a b"), "ba  "),
])  # fmt: skip
def test_words_move_as_a_whole(tokens, expected):
    order = permutation.word_order(tokens, "reverse")
    assert sorted(order) == list(range(len(tokens))) and "".join(tokens[i] for i in order) == expected


@for_each("position", permutation.SCHEMES)
@for_each("name", ["learned", "post", "shared qk", "gated, qk-norm"])
def test_a_whole_model_without_positions_and_mask_sees_no_order(position, name):
    model = loud(tiny(**ARCHITECTURES[name] | {"position": position}), factor=4.0)
    order = permutation.new_order(len(TOKENS), "shuffle", 2)
    by = {(s.position, s.mask): s for s in permutation.in_order_and_out(model, TOKENS, order)}
    assert list(by) == [(True, True), (False, True), (True, False), (False, False)]
    assert by[False, False].relative < 2e-5
    assert by[False, True].relative > 0.01 and by[True, True].relative > 0.01
    assert (by[True, False].relative > 1e-4) == (position != "none")
    assert by[True, False].loss_in is None and by[False, False].loss_out is None


def test_the_losses_are_those_of_the_text_in_each_order():
    model = loud(tiny(position="rope"), factor=4.0)
    order = permutation.new_order(len(TOKENS), "reverse")
    first = permutation.in_order_and_out(model, TOKENS, order)[0]
    texts = [record(model, ids) for ids in (TOKENS, TOKENS[::-1])]
    losses = [next_token_losses(text).mean() for text in texts]
    assert (first.loss_in, first.loss_out) == pytest.approx(losses, abs=1e-5)
    before, after = (text["norm_final"] for text in texts)
    size = np.sqrt((before**2).sum(-1).mean())
    assert first.moved == pytest.approx(np.linalg.norm(after[::-1] - before, axis=-1) / size, abs=1e-5)
    assert first.relative == pytest.approx(float(np.sqrt((first.moved**2).mean())))


FOUR, BACK = (0, 1, 2, 3), np.array([3, 2, 1, 0])


def test_every_scheme_is_compared_with_its_own_mask():
    one = permutation.fresh(permutation.Plan("rope"), 100, 8)
    spreads = [float(x.std()) for x in (one.blocks[0].mixer.w_qkv.weight, one.embedding)]
    assert spreads == pytest.approx([one.config.d_model**-0.5, 1.0], rel=0.1)
    found = order_effect(FOUR, BACK)
    assert set(found.comparisons) == {(s, mask) for s in permutation.SCHEMES for mask in (False, True)}
    for scheme, mask in (("rope", True), ("rope", False), ("none", True), ("t5", False)):
        alone = permutation.compare(FOUR, BACK, permutation.Plan(scheme, mask))
        assert found.largest(scheme, mask) == alone.largest == np.abs(alone.matched - alone.before).max()
    assert found.largest("rope", True) != found.largest("rope", False)
    assert found.verdict("none", False) == "one bag" and found.largest("none", False) < SAME
    assert found.verdict("none", True) == "mask leaks" and found.largest("none", True) > SAME
    assert found.verdict("alibi", False) == "distances kept"
    assert found.verdict("alibi", True) == "order counts"
    for scheme in ("sinusoidal", "learned", "rope", "t5"):
        assert found.verdict(scheme, False) == found.verdict(scheme, True) == "order counts"
    assert order_effect(FOUR, np.array([1, 2, 3, 0])).verdict("alibi", False) == "order counts"
    assert order_effect((0, 1, 0), np.array([2, 1, 0])).verdict("rope", True) == "reads the same"


@for_each("causal", [True, False])
def test_a_setting_is_found_by_its_switches(causal):
    model = loud(tiny(position="rope", causal=causal))
    settings = permutation.in_order_and_out(model, (1, 2, 3), permutation.new_order(3, "reverse"))
    for position, mask in product((True, False), repeat=2):
        found = setting_of(settings, position, mask)
        if mask and not causal:
            assert found is None
        else:
            assert (found.position, found.mask) == (position, mask)
