"""Training tells what happens, in order and in bits; repeats itself exactly; and ends well even when it goes wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.config import ModelConfig
from engine.data.corpora import from_text
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import CheckpointError, ConfigError, CorpusError
from engine.model import build
from engine.parts.registry import HEALTHY
from engine.training.batches import MAX_LOGITS, Batches, masked_batch, measure, next_token_batch, windows_at
from engine.training.numerics import Numerics
from engine.training.records import Control, Done, Evaluation, Record, Sample, Snapshot, Step
from engine.training.train import train, warning
from runs.compare import Comparison, MeanLoss, compare
from studies.shapes.batch_example import shifted_batch
from tests.engine.cases import for_each
from tests.engine.helpers import VERSE
from tests.engine.trainings import CORPUS, MODEL, TRAIN, losses, only, run


def test_records_come_in_the_promised_order() -> None:
    records = run()
    look = [Evaluation, Sample, Snapshot]
    expected = [*look, *[Step] * 10, *look, *[Step] * 10, Evaluation, *look, Done]
    assert [type(record) for record in records] == expected
    steps, looks = only(records, Step), only(records, Evaluation)
    assert [record.step for record in steps] == list(range(1, 21))
    assert [(one.step, one.complete) for one in looks] == [(0, False), (10, False), (20, False), (20, True)]
    assert records[-1].reason == "finished" and records[-1].step == 20
    assert [step.tokens for step in steps] == [64 * (i + 1) for i in range(20)]
    assert all(a.seconds < b.seconds for a, b in pairwise(steps))
    assert max(step.learning_rate for step in steps) == pytest.approx(3e-3)
    ends = run(eval_every=0, sample_every=0, snapshot_every=0)
    assert [type(one) for one in ends] == [Evaluation, Snapshot, *[Step] * 20, Evaluation, Snapshot, Done]


def test_initial_loss_is_near_knowing_nothing_and_then_falls() -> None:
    evaluations = only(run(steps=80, eval_every=0), Evaluation)
    assert evaluations[0].validation_loss == pytest.approx(math.log(CORPUS.vocab_size), abs=0.1)
    assert evaluations[-1].validation_loss < CORPUS.baselines["unigram"] < evaluations[0].validation_loss


def test_one_batch_can_be_learned_by_heart() -> None:
    """The habit that catches broken gradients: a text of one window, again and again."""
    corpus = from_text("the quick brown fox jumps over a lazy dog", "fox")
    model = replace(MODEL, vocab_size=corpus.vocab_size, context=32)
    how = {"steps": 100, "learning_rate": 1e-2, "weight_decay": 0.0, "eval_every": 0}
    for optimizer in ("adamw", "muon"):
        assert losses(run(model, corpus, optimizer=optimizer, **how))[-1] < 0.4


def test_the_same_seed_gives_the_same_losses() -> None:
    first, again, other = run(), run(), run(seed=1)
    assert losses(first) == losses(again) != losses(other)
    assert only(first, Sample) == only(again, Sample)


@for_each(("init", "std"), [("scaled", 0.02), ("normal", 1.0)])
def test_the_first_weights_are_drawn_as_the_training_says(init: str, std: float) -> None:
    first = only(run(steps=1, init=init), Snapshot)[0]
    assert first.state.weights()["embedding"].std().item() == pytest.approx(std, rel=0.1)


def test_looking_does_not_change_what_is_learned() -> None:
    model = replace(MODEL, dropout=0.2)
    assert losses(run(model)) == losses(run(model, eval_every=3, sample_every=1, snapshot_every=7))


@for_each("model, fields", [
    (MODEL, {}), (MODEL, {"precision": "bfloat16", "optimizer": "muon"}),
    (replace(MODEL, dropout=0.3, position="rope", ffn="swiglu", norm="rmsnorm", n_kv_heads=1), {}),
])  # fmt: skip
def test_going_on_from_a_snapshot_is_exact(model: ModelConfig, fields: dict[str, Any]) -> None:
    whole = run(model, **fields)
    middle = next(record for record in only(whole, Snapshot) if record.step == 10)
    rest = run(model, resume=middle.state, **fields)
    assert losses(rest) == losses(whole)[10:]
    last, other = only(whole, Snapshot)[-1].state, only(rest, Snapshot)[-1].state
    assert all(torch.equal(tensor, other.tensors[name]) for name, tensor in last.tensors.items())
    assert only(rest, Evaluation)[-1].validation_loss == only(whole, Evaluation)[-1].validation_loss
    assert only(rest, Step)[0].step == 11
    assert only(rest, Step)[-1].tokens == only(whole, Step)[-1].tokens
    assert only(rest, Step)[0].seconds > middle.state.seconds


def test_training_for_longer() -> None:
    short = run(steps=10, schedule="constant")
    longer = run(steps=20, schedule="constant", resume=only(short, Snapshot)[-1].state)
    assert losses(short) + losses(longer) == losses(run(steps=20, schedule="constant"))
    assert only(longer, Done)[0].reason == "finished"


def test_a_snapshot_of_another_model_is_refused() -> None:
    state = only(run(steps=1), Snapshot)[-1].state
    for other in (replace(MODEL, d_model=64), replace(MODEL, n_layers=3), replace(MODEL, position="t5")):
        with pytest.raises(CheckpointError, match="not of this model"):
            run(other, resume=state)


@pytest.mark.exhaustive
def test_float32_and_bfloat16_stay_together() -> None:
    exact, rounded = run(steps=200, precision="float32"), run(steps=200, precision="bfloat16")
    for a, b in zip(losses(exact), losses(rounded), strict=True):
        assert a == pytest.approx(b, abs=0.15)
    a, b = only(exact, Evaluation)[-1], only(rounded, Evaluation)[-1]
    assert a.validation_loss == pytest.approx(b.validation_loss, abs=0.03)


def test_two_trainings_side_by_side_do_not_disturb_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no process-wide state: records asked for in turn are those of each alone."""
    paths = {
        "float32": Numerics(torch.device("cpu"), torch.float32, "medium", ""),
        "bfloat16": Numerics(torch.device("cpu"), torch.bfloat16, "highest", ""),
    }
    monkeypatch.setattr("engine.training.train.choose", lambda precision, device: paths[precision])
    precision, generator = torch.get_float32_matmul_precision(), torch.random.get_rng_state()
    dropout = replace(MODEL, dropout=0.3)
    one = train(dropout, TRAIN, CORPUS, device="cpu")
    two = train(MODEL, replace(TRAIN, precision="bfloat16"), CORPUS, device="cpu")
    both = [], []
    for records, training in cycle(zip(both, (one, two), strict=True)):
        record = next(training, None)
        if record is None:
            break
        records.append(record)
        assert torch.get_float32_matmul_precision() == precision
    both[1].extend(two)
    assert losses(both[0]) == losses(run(dropout))
    assert losses(both[1]) == losses(run(precision="bfloat16"))
    assert torch.equal(torch.random.get_rng_state(), generator)
    assert torch.get_float32_matmul_precision() == precision


def _until(records: Iterator[Record], step: int) -> None:
    for record in records:
        if isinstance(record, Step) and record.step == step:
            return


def test_stop_ends_after_the_current_step() -> None:
    control = Control()
    records = train(MODEL, TRAIN, CORPUS, control=control, device="cpu")
    _until(records, 7)
    control.stop = True
    rest = list(records)
    assert [type(record) for record in rest] == [Evaluation, Evaluation, Sample, Snapshot, Done]
    assert [look.complete for look in only(rest, Evaluation)] == [False, True]
    assert rest[-1].reason == "stopped" and rest[-1].step == 7
    assert "7 of 20" in rest[-1].message


def test_a_new_learning_rate_a_new_prompt_and_a_snapshot_on_demand() -> None:
    control, steady = Control(), replace(TRAIN, schedule="constant", warmup_steps=0, snapshot_every=0)
    records = train(MODEL, steady, CORPUS, control=control, device="cpu")
    _until(records, 8)
    control.learning_rate, control.prompt, control.snapshot = 1e-4, "green", True
    rest = list(records)
    assert {step.learning_rate for step in only(rest, Step)} == {1e-4}
    assert {sample.prompt for sample in only(rest, Sample)} == {"green"}
    assert only(rest, Snapshot)[0].step in (8, 9) and not control.snapshot


@for_each("prompt", ["", "ж", "green 9 \n", "x" * 500])
def test_any_prompt_gives_text(prompt: str) -> None:
    samples = only(run(steps=1, sample_prompt=prompt), Sample)
    assert all(len(sample.text) == 8 and set(sample.text) <= set(VERSE) for sample in samples)
    # shown as the model saw it
    assert all(sample.prompt == "".join(c for c in prompt if c in VERSE) for sample in samples)


@for_each(("optimizer", "eval_every"), [("adamw", 0), ("muon", 1)])
def test_a_diverging_training_says_so_and_which_snapshots_lead_on(optimizer: str, eval_every: int) -> None:
    wild = {"learning_rate": 1e4, "muon_learning_rate": 1e4, "warmup_steps": 0, "grad_clip": 0.0}
    records = run(**wild, optimizer=optimizer, steps=300, snapshot_every=1, eval_every=eval_every)
    end = records[-1]
    assert isinstance(end, Done) and end.reason == "diverged", losses(records)[-3:]
    assert "diverged" in end.message and "lower learning rate" in end.message and only(records, Step)
    snapshots = only(records, Snapshot)
    # With Muon's products in bfloat16, on a processor that has it, a gradient is no number while the loss still is one.
    straight = "loss became" in end.message
    assert snapshots[0].finite and not (straight and snapshots[-1].finite), "the last one gives no loss"
    kept = [snapshot for snapshot in snapshots if snapshot.finite]
    assert all(torch.isfinite(tensor).all() for one in kept for tensor in one.state.tensors.values())
    last = kept[-1]
    again = run(resume=last.state, steps=last.step + 1, learning_rate=1e-3, optimizer=optimizer)
    assert math.isfinite(only(again, Step)[0].loss), last.step


def test_weights_that_are_no_numbers_are_no_snapshot_to_go_on_from() -> None:
    from engine.training.train import _Training

    training = _Training(MODEL, replace(TRAIN, sample_every=0), CORPUS, Control(), "cpu", HEALTHY)
    training.optimiser.second_moment[-1] = math.inf
    (snapshot,) = [r for r in training.records(None) if isinstance(r, Snapshot) and r.step == 0]
    assert not snapshot.finite


@given(length=st.integers(1, 6), extra=st.integers(1, 6))
def test_targets_are_the_inputs_one_place_on(length: int, extra: int) -> None:
    tokens = torch.arange(length + extra)
    starts = torch.arange(extra)  # the last one ends on the last token: the classic off-by-one
    batch = next_token_batch(windows_at(tokens, starts, length + 1))
    assert batch.inputs.shape == batch.targets.shape == (extra, length)
    assert torch.equal(batch.targets, batch.inputs + 1)
    assert batch.targets[-1, -1] == tokens[-1]


def test_random_windows_reach_both_ends() -> None:
    corpus = from_text("abcdefghijklmnopqrstuvwxyz0123456789")
    model = replace(MODEL, vocab_size=corpus.vocab_size, context=8)
    batches = Batches(corpus, model, replace(TRAIN, batch_size=64))
    inputs = torch.cat([batches.at(step).inputs for step in range(20)])
    assert inputs[:, 0].min() == corpus.train.min() or corpus.train[0] in inputs[:, 0]
    assert {int(t) for t in inputs[:, 0]} == {int(t) for t in corpus.train[: len(corpus.train) - 8]}


@given(rate=st.floats(0.01, 0.99), seed=st.integers(0, 1000))
def test_masked_batches_hide_what_they_ask_for(rate: float, seed: int) -> None:
    tokens = torch.arange(100) % 10
    windows = windows_at(tokens, torch.tensor([0, 40]), 20)
    batch = masked_batch(windows, rate, 10, torch.Generator().manual_seed(seed))
    hidden = batch.targets >= 0
    assert hidden.any(dim=1).all()
    assert (batch.inputs[hidden] == 10).all()
    assert torch.equal(torch.where(hidden, batch.targets, batch.inputs), windows)


@for_each("changes, fields, field", [
    ({"vocab_size": 7}, {}, "vocab_size"), ({}, {"objective": "masked"}, "causal"),
    ({"causal": False}, {"objective": "masked"}, "vocab_size"), ({"n_heads": 5}, {}, "n_heads"),
    ({}, {"steps": 0}, "steps"), ({}, {"tokenizer": "byte"}, "tokenizer"),
])  # fmt: skip
def test_a_wrong_combination_is_refused_at_once(
    changes: dict[str, Any], fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        train(
            replace(MODEL, **changes), replace(TRAIN, **fields), CORPUS
        )  # before the first record is asked for
    assert caught.value.field == field


def test_a_text_shorter_than_a_window_is_refused_and_a_validation_split_is_not() -> None:
    model = replace(MODEL, vocab_size=10, context=64)
    with pytest.raises(CorpusError, match="short has 27 tokens"):
        train(model, TRAIN, from_text("abcdefghij" * 3, "short"))
    evaluations = only(run(model, from_text("abcdefghij" * 10, "short"), steps=1), Evaluation)
    assert all(math.isfinite(e.validation_loss) and math.isfinite(e.train_loss) for e in evaluations)


@pytest.mark.exhaustive
def test_without_the_mask_it_is_warned_of_and_learns_to_copy_and_not_to_write() -> None:
    model = replace(MODEL, causal=False)
    config = replace(TRAIN, steps=300, optimizer="muon", learning_rate=1e-2, batch_size=16)
    assert "Without the causal mask" in warning(model, config)
    assert warning(MODEL, config) == "" and warning(model, replace(config, objective="masked")) == ""
    records = list(train(model, config, CORPUS))
    loss = only(records, Evaluation)[-1].validation_loss
    # it reads the next letter: no model that guesses comes so low
    assert loss < CORPUS.baselines["bigram"] / 4
    sample = only(records, Sample)[-1]
    assert len(sample.text) == config.sample_length  # it writes on, and fills no gaps


def test_it_looks_early_where_that_is_asked_for() -> None:
    config = replace(TRAIN, steps=60, eval_every=50, sample_every=20, look_early=True)
    records = list(train(MODEL, config, CORPUS))
    assert [e.step for e in only(records, Evaluation)] == [0, 1, 2, 5, 10, 20, 50, 60, 60]
    assert [s.step for s in only(records, Sample)] == [0, 1, 2, 5, 10, 20, 40, 60]


def test_of_characters_they_are_nats_over_ln_2() -> None:
    records = run(steps=3)
    for nats, bits in [
        *((step.loss, step.bits) for step in only(records, Step)),
        *((e.train_loss, e.train_bits) for e in only(records, Evaluation)),
        *((e.validation_loss, e.validation_bits) for e in only(records, Evaluation)),
    ]:
        assert bits == pytest.approx(nats / math.log(2))


@for_each("tokenizer", ["byte", "bpe:280"])
@for_each("limit", [0, 64])
def test_bits_by_an_independent_computation(tokenizer: str, limit: int) -> None:
    """-log2 p of every predicted token, one window at a time, over the characters that their bytes begin."""
    text = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich 🙂.\n" * 30
    corpus = from_text(text, tokenizer=tokenizer)
    config = replace(MODEL, vocab_size=corpus.vocab_size)
    model = build(config, seed=3)
    batches = Batches(corpus, config, replace(TRAIN, tokenizer=tokenizer))
    bits = characters = 0.0
    for batch in batches.windows(corpus.validation, limit, size=1):
        assert len(batch.inputs) == 1
        with torch.inference_mode():
            p = torch.softmax(model(batch.inputs)[0].double(), dim=-1)
        for i, target in enumerate(batch.targets[0].tolist()):
            bits -= math.log2(p[i, target])
            characters += sum(not 128 <= byte < 192 for byte in corpus.tokenizer.decode_bytes([target]))  # type: ignore[attr-defined]
    found = measure(model, batches, corpus.validation, limit)
    assert found.characters == characters and found.bits == pytest.approx(bits / characters, rel=1e-5)
    if not limit:  # every token of the split but the first of each rest is predicted: so are its characters
        text = corpus.tokenizer.decode(corpus.validation[1 : found.tokens + 1].tolist())
        assert abs(found.characters - len(text)) <= 1


@for_each("length", [17, 64, 65, 72, 73, 100, 200])
def test_the_whole_split_is_read_to_its_last_token(length: int) -> None:
    """Every token but the first is a target once, in the order of the text; the last window may be short."""
    tokens = CORPUS.train[:length]
    batches = list(Batches(CORPUS, MODEL, TRAIN).windows(tokens, 0, size=3))
    assert torch.cat([b.targets.flatten() for b in batches]).tolist() == tokens[1:].tolist()
    assert torch.cat([b.inputs.flatten() for b in batches]).tolist() == tokens[:-1].tolist()
    hidden = Batches(CORPUS, replace(MODEL, causal=False), replace(TRAIN, objective="masked"))
    assert sum(b.inputs.numel() for b in hidden.windows(tokens, 0)) == length
    model = build(MODEL, seed=1)
    assert measure(model, Batches(CORPUS, MODEL, TRAIN), tokens).tokens == length - 1
    some = Batches(CORPUS, MODEL, TRAIN).windows(CORPUS.train[:100], 3 * MODEL.context)
    assert torch.cat([b.inputs for b in some]).shape == (3, MODEL.context), "whole windows"


def test_bpe_is_learned_and_its_samples_are_whole_characters() -> None:
    text = "größer, süßer, Öl; 日本語 und 🙂!\n" * 40
    corpus = from_text(text, tokenizer="bpe:270")
    model, how = replace(MODEL, vocab_size=corpus.vocab_size), {"sample_length": 7, "sample_prompt": "ö "}
    records = run(model, corpus, steps=12, tokenizer="bpe:270", **how)
    assert losses(records)[-1] < losses(records)[0] - 0.5
    assert all("\ufffd" not in sample.text for sample in only(records, Sample))


def test_masked_bpe_hides_with_the_last_id() -> None:
    corpus = from_text(VERSE, tokenizer="bpe:300")
    model = replace(MODEL, vocab_size=corpus.vocab_size + 1, causal=False)
    evaluations = only(run(model, corpus, steps=5, tokenizer="bpe:300", objective="masked"), Evaluation)
    assert all(0 < e.validation_bits < e.validation_loss / math.log(2) for e in evaluations)


def test_an_evaluation_with_a_large_vocabulary_is_cut_into_small_batches() -> None:
    corpus = replace(CORPUS, tokenizer=CharTokenizer("".join(map(chr, range(0x4E00, 0x4E00 + 20_000)))))
    batches = Batches(corpus, replace(MODEL, context=64), TRAIN).windows(corpus.train, 0)
    assert max(len(batch.inputs) for batch in batches) * 64 * 20_000 <= MAX_LOGITS


def look(step: int, loss: float, complete: bool = False) -> Evaluation:
    return Evaluation(step, loss, loss, 0.0, complete)


def test_two_trainings_are_compared_where_both_were_looked_at_alike() -> None:
    first, second = [look(0, 4.0), look(10, 3.0), look(20, 2.5)], [look(0, 4.1), look(10, 3.5)]
    found = compare(first, second)
    assert found == Comparison((10, 10), (3.0, 3.5), False) and found.difference == 0.5
    assert compare([*first, look(30, 2.0, True)], second) == found, "one of them is not at its end"
    both = compare([*first, look(30, 2.0, True)], [*second, look(60, 1.0, True)])
    assert both == Comparison((30, 60), (2.0, 1.0), True)
    assert compare(first, []) is None and compare([look(5, math.nan)], [look(5, 1.0)]) is None


def test_a_loss_is_a_share_of_the_texts_surprise() -> None:
    chances = [0.5, 0.25, 0.125]  # of three tokens, each after those before it
    nats = -math.log(math.prod(chances)) / 3
    said = MeanLoss(nats, 3)
    assert said.sum == pytest.approx(-math.log(1 / 64))
    assert 10**said.power_of_ten == pytest.approx(math.prod(chances))
    assert said.mean_probability == pytest.approx(0.25)  # the geometric mean of the three


def test_the_targets_of_a_batch_are_its_inputs_one_place_further() -> None:
    found = shifted_batch(CORPUS, MODEL, TRAIN, 7)
    text = CORPUS.text
    for start, x, y in zip(found.starts, found.x, found.y, strict=True):
        assert "".join(x) == text[start : start + MODEL.context]
        assert "".join(y) == text[start + 1 : start + MODEL.context + 1]
        assert 0 <= start < found.bound
    assert found.bound + MODEL.context == found.tokens == len(CORPUS.train)
    assert found.shifted == found.pairs == (MODEL.context - 1) * TRAIN.batch_size
    masked = replace(MODEL, vocab_size=CORPUS.vocab_size + 1, causal=False)
    hidden = shifted_batch(CORPUS, masked, replace(TRAIN, objective="masked"), 7)
    assert "[mask]" in hidden.x[0] and "" in hidden.y[0] and hidden.shifted < hidden.pairs / 2
