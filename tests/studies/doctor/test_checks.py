"""Each check's number is worked out a second time here, in another way; and each limit has two sides."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.config import ModelConfig, TrainConfig
from engine.data.progress import finish
from engine.model import Transformer, build
from engine.parts.attention import causal_mask
from engine.parts.registry import HEALTHY, swapped
from engine.probe import Recorder
from engine.training.records import Evaluation
from studies.lab.doctor import forward, over_training, start
from studies.lab.doctor.case import Case, NotApplicable, TrainingCurve
from studies.lab.doctor.check import Check, Finding, Measurement, run_check
from studies.lab.doctor.checks import CHECKS, examine
from studies.lab.faults import PARTS
from tests.engine.cases import for_each
from tests.engine.helpers import loud, verse

CORPUS = verse()

MODEL = ModelConfig(vocab_size=CORPUS.vocab_size, context=16, d_model=32, n_layers=3, n_heads=2)
TRAIN = TrainConfig(steps=40, batch_size=4, precision="float32", warmup_steps=0, learning_rate=3e-3)


def case(parts: str = "healthy", model: ModelConfig = MODEL, **rest: Any) -> Case:
    """A model with weights that make a difference, of these parts."""
    return Case(loud(model, parts=PARTS[parts]), **({"corpus": CORPUS, "train": TRAIN} | rest))


def test_the_future_is_a_difference_of_logits() -> None:
    """The leak at one place, worked out by hand, is no larger than what is found, and not far below it."""
    sick = case("no_mask")
    model, ids = sick.exact, sick.ids
    before = model(ids)
    changed = ids.clone()
    changed[:, 1:] = (changed[:, 1:] + 1) % CORPUS.vocab_size
    by_hand = float((model(changed)[:, 0] - before[:, 0]).abs().max() / before[:, 0].abs().max())
    found = forward.sees_the_future(sick).number
    assert by_hand > 0.01 and found >= by_hand * (1 - 1e-9) and found < 20 * by_hand
    assert forward.sees_the_future(case()).number == pytest.approx(0, abs=1e-12)


def test_a_leak_at_one_place_is_found() -> None:
    """A mask that is right everywhere but for one query."""

    def almost(length: int, like: torch.Tensor, start: int = 0) -> torch.Tensor:
        mask = causal_mask(length, like, start)
        mask[length - 2, length - 1] = 0.0
        return mask

    sick = loud(MODEL, parts=swapped(HEALTHY, "almost", mask=almost))
    found = forward.sees_the_future(Case(sick, corpus=CORPUS))
    assert found.number > 1e-4 and found.facts["place"] == 14


def test_a_text_of_the_batch_that_changes_another_is_found() -> None:
    class Averaged(torch.nn.Module):
        def __init__(self, model: Transformer, share: float) -> None:
            super().__init__()
            self.model, self.config, self.parts, self.share = model, model.config, model.parts, share

        def forward(self, ids: torch.Tensor, *rest: object) -> torch.Tensor:
            logits = self.model(ids, *rest)
            return logits + self.share * logits.mean(0, keepdim=True)

    for share in (0.0, 0.1):
        mixed: Any = Averaged(loud(MODEL), share)
        assert (forward.sees_the_future(Case(mixed, corpus=CORPUS)).number > 1e-3) == (share > 0)


def test_rows_are_summed() -> None:
    sick = case("mask_after_softmax")
    recorder = Recorder({"pattern"})
    with torch.no_grad():
        sick.evaluated(sick.ids, recorder)
    sums = np.concatenate([p.numpy().astype(float).sum(-1).ravel() for p in recorder.tensors.values()])
    found = forward.rows_of_the_pattern(sick)
    assert found.number == pytest.approx(np.abs(sums - 1).max(), rel=1e-5) and found.number > 0.1
    assert found.facts["least"] == pytest.approx(sums.min(), rel=1e-5) and found.facts["rows"] == sums.size


def test_scores_are_as_wide_as_the_root_of_their_length() -> None:
    """q · k of N(0, 1) entries has the variance d_head."""
    model = replace(MODEL, d_model=64, n_heads=1)
    assert forward.spread_of_scores(case("unscaled_scores", model)).number == pytest.approx(8, rel=0.05)
    assert forward.spread_of_scores(case("healthy", model)).number == pytest.approx(1, rel=0.05)
    shared = replace(MODEL, n_heads=4, n_kv_heads=2, d_head=8)
    assert forward.spread_of_scores(case("healthy", shared)).number == pytest.approx(1, rel=0.1)


def test_a_bag_of_words_is_exactly_one() -> None:
    bag = case(model=replace(MODEL, position="none"), meant=MODEL)
    assert forward.bag_of_words(bag).number < 1e-13
    for position in ("sinusoidal", "learned", "rope", "alibi", "t5"):
        assert forward.bag_of_words(case(model=replace(MODEL, position=position))).number > 1e-6, position
    with pytest.raises(NotApplicable):
        forward.bag_of_words(case(model=replace(MODEL, position="none")))


def test_blocks_that_do_not_run_are_missed() -> None:
    whole = Recorder()
    case().evaluated(torch.zeros(1, 5, dtype=torch.int64), whole)
    in_a_block = sum(name.startswith("blocks.0.") for name in whole.tensors)
    found = forward.shapes_and_names(case("first_block_only"))
    assert found.number == 2 * in_a_block and found.facts["there"] == "missing"
    assert str(found.facts["first"]).startswith("blocks.1.")
    assert found.facts["checked"] == len(whole.tensors)


def test_the_reference_is_that_of_what_was_meant() -> None:
    """A model without positions is a right one, until it was meant to have some."""
    bag = replace(MODEL, position="none")
    assert forward.like_the_reference(case(model=bag)).number < 1e-5
    found = forward.like_the_reference(case(model=bag, meant=MODEL))
    assert math.isinf(found.number) and "positions.weight" in str(found.facts["begins"])
    scaled = forward.like_the_reference(case("unscaled_scores"))
    assert scaled.number > 0.01 and "blocks.0.scores" in str(scaled.facts["begins"])


def test_the_first_loss_is_a_cross_entropy() -> None:
    batch = case().batch()
    model = build(MODEL, TRAIN.seed).eval()
    with torch.no_grad():
        p = model(batch.inputs).double().softmax(-1)
    right = p.gather(-1, batch.targets[..., None]).log().mean()
    by_hand = -float(right) - math.log(CORPUS.vocab_size)
    assert start.first_loss(case()).number == pytest.approx(by_hand, abs=1e-5)
    assert start.first_loss(case("loud_embedding")).number > 1


def test_gradients_are_those_of_hooks() -> None:
    """PyTorch's own hooks on the first block's input and on the last one's output."""
    batch = case().batch()
    model = build(MODEL, TRAIN.seed, init="plain").eval()
    ends: dict[str, torch.Tensor] = {}
    model.blocks[0].register_forward_pre_hook(lambda module, about: ends.update(first=about[0]))
    model.blocks[-1].register_forward_hook(lambda module, about, out: ends.update(last=out))
    loss = F.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
    first, last = (float(g.norm()) for g in torch.autograd.grad(loss, [ends["first"], ends["last"]]))
    found = start.gradients_by_block(case(train=replace(TRAIN, init="plain")))
    assert found.facts["ours"] == pytest.approx(first / last, rel=1e-4)
    assert found.number == pytest.approx(float(found.facts["ours"]) / float(found.facts["theirs"]))
    assert found.number > 1.2 and start.gradients_by_block(case()).number == pytest.approx(1, abs=1e-6)
    found = start.gradients_by_block(case("first_block_only"))
    assert math.isinf(found.number) and "block 1 gets no gradient" in str(found.facts["said"])


def test_one_batch_is_learned_by_heart() -> None:
    found = start.overfits_a_batch(case())
    assert found.number < 0.5 and found.facts["first"] == pytest.approx(math.log(CORPUS.vocab_size), abs=0.1)
    wild = start.overfits_a_batch(case(train=replace(TRAIN, learning_rate=1.0)))
    assert not wild.number < 1


def test_targets_that_are_not_the_next_token() -> None:
    assert over_training.next_tokens(case()).number == 1
    same = over_training.next_tokens(case("not_shifted"))
    assert same.number < 0.3 and same.facts["here"] == 1
    batch = case("shifted_by_two").batch()
    by_hand = float((batch.inputs[:, 1:] == batch.targets[:, :-1]).double().mean())
    assert over_training.next_tokens(case("shifted_by_two")).number == pytest.approx(by_hand)


def test_text_that_was_read_before() -> None:
    wanted = over_training.WINDOW
    runs = {CORPUS.text[i : i + wanted] for i in range(len(CORPUS.train) - wanted + 1)}
    end = CORPUS.text[len(CORPUS.train) :]
    seen = [end[i : i + wanted] in runs for i in range(len(end) - wanted + 1)]
    assert over_training.unseen(case()).number == pytest.approx(np.mean(seen)) and 0 < np.mean(seen) < 1
    assert over_training.unseen(case("overlapping_split")).number == 1


def went(losses: list[float], looks: tuple[Evaluation, ...] = (), diverged: bool = False) -> TrainingCurve:
    return TrainingCurve(np.arange(1, len(losses) + 1), np.array(losses), looks, diverged)


def test_the_course_of_a_training() -> None:
    falls = [4.0 - 0.01 * i for i in range(200)]
    jumps = falls[:100] + [9.0] * 10 + falls[110:]
    assert over_training.largest_rise(case(curve=went(falls))).number == 0
    rise = 9.0 - np.mean(falls[90:100])
    found = over_training.largest_rise(case(curve=went(jumps)))
    assert found.number == pytest.approx(rise) and found.facts["step"] == 110
    assert math.isinf(over_training.largest_rise(case(curve=went(falls, diverged=True))).number)
    long = replace(TRAIN, batch_size=64, steps=200)
    end = np.mean(falls[-10:]) - CORPUS.baselines["unigram"]
    assert over_training.learned(case(curve=went(falls), train=long)).number == pytest.approx(end)
    with pytest.raises(NotApplicable, match="too few"):
        over_training.learned(case(curve=went(falls)))
    with pytest.raises(NotApplicable):
        over_training.largest_rise(case(curve=went(falls[:20])))


def test_the_gap_is_of_the_last_look() -> None:
    looks = (Evaluation(100, 3.0, 3.1, 1.0, False), Evaluation(200, 1.5, 2.25, 2.0, True))
    assert over_training.gap(case(curve=went([1.0] * 200, looks))).number == pytest.approx(0.75)
    with pytest.raises(NotApplicable):
        over_training.gap(case(curve=went([1.0] * 50, (Evaluation(50, 3.0, 3.1, 1.0, False),))))


def test_surprise_is_a_count_of_pairs() -> None:
    train, ids = CORPUS.train.numpy(), CORPUS.validation.numpy()[:60]
    pairs, before = Counter(pairwise(train.tolist())), Counter(train[:-1].tolist())
    chances = [(pairs[a, b] + 1) / (before[a] + CORPUS.vocab_size) for a, b in pairwise(ids.tolist())]
    assert over_training.surprise(train, ids, CORPUS.vocab_size) == pytest.approx(-np.mean(np.log(chances)))


def test_no_number_is_a_failure_and_no_question_is_none() -> None:
    check = CHECKS["spread"]
    assert check.judge(Measurement(math.nan, {"d_head": 4})).verdict == "fail"
    assert check.judge(Measurement(1.0, {"d_head": 4})).verdict == "pass"
    assert "standard deviation **6.00**" in check.judge(Measurement(6.0, {"d_head": 36})).sentence

    def silent(case: Case) -> Measurement:
        raise NotApplicable("There is nothing to ask.")

    found = run_check(replace(check, measure=silent), case())
    told = (found.verdict, found.number, found.sentence)
    assert told == ("not applicable", None, "There is nothing to ask.")


@for_each("check", CHECKS.values(), ids=lambda check: check.name)
def test_both_sentences_can_be_said(check: Check) -> None:
    """Every fact that a sentence names is one that the experiment gives."""
    falls = went([3.5 - 0.01 * i for i in range(300)], (Evaluation(200, 2.0, 2.1, 1.0, True),))
    facts = {"loss": 1.0, "counted": 3.0, "text": "eeee"}  # of a model that can write
    healthy = case(curve=falls, train=replace(TRAIN, batch_size=64))
    found = Measurement(0.0, facts) if check.name == "writes" else check.measure(healthy)
    for number in (max(check.low, -1.0), math.inf if check.high < math.inf else -1.0):
        said = check.judge(replace(found, number=number)).sentence
        assert "{" not in said and said.rstrip("”*").endswith((".", "”", ":"))
    assert check.minutes >= 1 and check.question.endswith("?")


def test_nothing_is_changed_by_an_examination() -> None:
    model = loud(replace(MODEL, dropout=0.2))
    before = {name: p.clone() for name, p in model.state_dict().items()}
    random = torch.random.get_rng_state()
    found = finish(examine(Case(model, corpus=CORPUS, train=TRAIN)))
    assert [type(f) for f in found] == [Finding] * len(CHECKS) and not model.training
    assert all(torch.equal(p, before[name]) for name, p in model.state_dict().items())
    assert not any(p.requires_grad and p.grad is not None for p in model.parameters())
    assert torch.equal(random, torch.random.get_rng_state())
    assert model.mask(4, torch.zeros(1)) is not None


@for_each("objective", ["next_token", "masked"])
def test_a_batch_read_in_pieces_gives_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch, objective: str
) -> None:
    train = replace(TRAIN, objective=objective, init="plain", grad_clip=0.0)
    causal = objective == "next_token"
    model = replace(MODEL, causal=causal, vocab_size=MODEL.vocab_size + (not causal))  # one more: the mask
    measures = (start.first_loss, start.gradients_by_block, start.clipped)
    measured = []
    for piece in (10_000, 2 * MODEL.context, 1):
        monkeypatch.setattr(start, "PIECE", piece)
        some = case(model=model, train=train)
        measured.append([measure(some).number for measure in measures])
    assert len(list(start.pieces(some.batch()))) == TRAIN.batch_size
    assert measured[1] == pytest.approx(measured[0], rel=1e-4)
    assert measured[2] == pytest.approx(measured[0], rel=1e-4)


def test_a_gradient_is_clipped_or_not() -> None:
    """The norm by PyTorch's own function."""
    batch = case().batch()
    model = build(MODEL, TRAIN.seed, init="normal").eval()
    F.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten()).backward()
    norm = float(torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None]))
    wild = replace(TRAIN, init="normal", grad_clip=0.0)
    assert start.clipped(case(train=wild)).number == pytest.approx(norm, rel=1e-4) and norm > 5
    assert start.clipped(case(train=replace(wild, grad_clip=1.0))).number == 1.0
