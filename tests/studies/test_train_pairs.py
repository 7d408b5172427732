"""Training on pairs and on labels: what is learned from, what is measured, and that it goes on exactly."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from engine.config import ModelConfig, TrainConfig
from engine.data.tokenizers.stored import tokenizer_from_dict
from engine.errors import ConfigError, CorpusError, ShapeError, TokenizerError
from engine.training.records import Control, Done, Evaluation, Record, Sample, Snapshot, Step
from studies.costs.ledger import ledger
from studies.lab.faults import PARTS
from studies.lab.faults.training import not_shifted
from studies.pairs import train as trainer
from studies.pairs.dataset import Labelled, LabelledText, Pair, PairedText, Rows, padded, source_ids
from studies.pairs.generate import write_targets
from studies.pairs.seq2seq import build_classifier, build_pair
from studies.pairs.tokenizer import BEGIN, END, PAD, SIGNS, PairTokenizer
from studies.pairs.train import label_loss, pair_loss, teacher_forced, train_labels, train_pairs
from tests.engine.cases import for_each
from tests.engine.trainings import only
from tests.studies.seq2seq_toys import WORDS, labelling, loud_ending, loud_pair, pair_config, reversing, some

SMALL = ModelConfig(d_model=32, n_layers=1, n_heads=2)
LOOKS = {"eval_every": 5, "eval_tokens": 30, "sample_every": 6, "snapshot_every": 4}
SAMPLE = {"sample_prompt": "cab", "sample_temperature": 0.0}
TRAIN = TrainConfig(12, 6, learning_rate=3e-3, warmup_steps=3, precision="float32", **LOOKS, **SAMPLE)  # type: ignore[arg-type]
QUICK: dict[str, Any] = dict(
    dropout=0.0, steps=150, optimizer="muon", batch_size=9, eval_every=0, snapshot_every=0
)


def pairs(**changes: Any) -> list[Record]:
    return trained(train_pairs, reversing(), **changes)


def labels(**changes: Any) -> list[Record]:
    return trained(train_labels, labelling(), **changes)


def trained(train: Callable[..., Any], text: Any, dropout: float = 0.3, **changes: Any) -> list[Record]:
    settings = {name: changes.pop(name) for name in ("resume", "control", "parts") if name in changes}
    model = text.fitted(replace(SMALL, dropout=dropout))
    return list(train(model, replace(TRAIN, **changes), text, device="cpu", **settings))


@functools.cache
def whole(run: Callable[..., list[Record]], optimizer: str) -> list[Record]:
    return run(optimizer=optimizer)


def test_letters_and_words() -> None:
    letters = PairTokenizer.train(["cab", "bd"])
    assert letters.symbols == ("a", "b", "c", "d") and letters.vocab_size == 7 and letters.stops == {END}
    assert letters.encode("bad") == [4, 3, 6] and letters.decode([BEGIN, 4, 3, END, 6, PAD]) == "ba"
    words = PairTokenizer.train(["three hundred", "a  three"], by="words")
    assert words.encode("hundred three") == [4, 5] and words.decode([5, 4, PAD]) == "three hundred"
    assert words.shown([1, 5, 2, 0]) == ("<begin>", "three", "<end>", "<pad>")
    assert words.unknown("two three two") == ["two"] and tokenizer_from_dict(words.to_dict()) == words
    speech = PairTokenizer.train(["On, off!", "on"], "speech", "<other>", 2)
    assert speech.symbols == ("<other>", "on") and speech.encode("Off on") == [3, 4]
    assert speech.unknown("On, off, on") == [",", "off"] and tokenizer_from_dict(speech.to_dict()) == speech
    assert trainer.known(" on e ", speech) == "on e"
    assert tuple(range(len(SIGNS))) == (PAD, BEGIN, END)


def test_unknown_symbols_and_ids() -> None:
    tokenizer = PairTokenizer.train(WORDS)
    with pytest.raises(TokenizerError, match="3 letters lacks 'x' 'y'"):
        tokenizer.encode("axby")
    for ids in ([6], [-1]):
        with pytest.raises(TokenizerError, match="between 0 and 5"):
            tokenizer.decode(ids)
    with pytest.raises(TokenizerError, match="as a list"):
        tokenizer_from_dict({"kind": "paired", "symbols": "abc", "by": "letters"})
    for by, *wrong in (("letters", (), ("a", "a"), ("ab",)), ("words", ("a b",), ("<end>",))):
        for symbols in wrong:
            with pytest.raises(TokenizerError):
                PairTokenizer(symbols, by)  # type: ignore[arg-type]
    with pytest.raises(TokenizerError, match="must be one of the symbols"):
        PairTokenizer(("a",), "words", "b")
    assert trainer.known("axb", tokenizer) == "ab"
    assert trainer.known("on e off", PairTokenizer(("on", "off"), "words")) == "on off"


def test_rows_by_hand() -> None:
    text = reversing()
    rows = text.rows["train"]
    ids = {letter: 3 + place for place, letter in enumerate("abc")}
    assert rows.sources[:2].tolist() == [[ids["a"], ids["b"], END, PAD], [ids["a"], ids["b"], ids["c"], END]]
    assert rows.targets[0].tolist() == [BEGIN, ids["b"], ids["a"], END, PAD]
    assert text.longest == (5, 5) and len(rows) == 9 and len(text.rows["validation"]) == 3
    fitted = text.fitted(SMALL)
    assert (fitted.encoder.context, fitted.decoder.context, fitted.decoder.vocab_size) == (5, 5, 6)
    batch = teacher_forced(rows.of(torch.tensor([0, 1])))
    assert batch.inputs.tolist() == [[1, 4, 3, 2], [1, 5, 4, 3]]
    assert batch.targets.tolist() == [[4, 3, 2, -1], [5, 4, 3, 2]] and batch.predicted == 7
    short = rows.of(torch.tensor([0, 2]))  # only as long as the longest of these
    assert short.sources.shape == (2, 3) and short.targets.shape == (2, 4)


def test_what_cannot_be_learned_from() -> None:
    tokenizer = PairTokenizer(("a", "b"))
    one, other = (Pair("a", "b"),), (Pair("b", "a"),)
    for held, error, says in (
        ((), CorpusError, "something that is held out"),
        (one, CorpusError, "holds out 'a', which it learns from too"),
        ((Pair("", "a"),), CorpusError, "at least one symbol"),
        ((Pair("b", "c"),), TokenizerError, "lacks 'c'"),
    ):
        with pytest.raises(error, match=says):
            _ = PairedText("x", "X", tokenizer, one, held).rows
    with pytest.raises(CorpusError, match="'z' is none of the labels"):
        LabelledText("x", "X", tokenizer, ("y", "n"), (Labelled("a", "y"),), (Labelled("b", "z"),))
    assert PairedText("x", "X", tokenizer, one, other).vocab_size == 5
    assert source_ids("ab", tokenizer) == [3, 4, END]


def test_batches_are_of_the_seed_and_the_step() -> None:
    one, again = (trainer.drawn(50, TRAIN, 3) for _ in range(2))
    assert torch.equal(one, again) and one.shape == (6,)
    assert not torch.equal(one, trainer.drawn(50, TRAIN, 4))
    assert not torch.equal(one, trainer.drawn(50, replace(TRAIN, seed=1), 3))
    many = torch.cat([trainer.drawn(5, TRAIN, step) for step in range(200)])
    assert torch.bincount(many).min() > 1200 / 5 * 0.8
    assert trainer.spread(7, 0).tolist() == list(range(7)) and trainer.spread(7, 100).tolist() == list(
        range(7)
    )


def test_the_loss_by_hand_and_without_padding() -> None:
    model, text = loud_pair(factor=3.0), reversing()
    rows = text.rows["train"]
    total, count = 0.0, 0
    for pair in text.train[:4]:
        source, target = (text.tokenizer.encode(side) for side in (pair.source, pair.target))
        logits = model(torch.tensor([[*source, END]]), torch.tensor([[BEGIN, *target]]))[0]
        total += float(F.cross_entropy(logits, torch.tensor([*target, END]), reduction="sum"))
        count += len(target) + 1
    four = teacher_forced(rows.of(torch.arange(4)))
    assert four.predicted == count
    assert float(pair_loss(model, four)) == pytest.approx(total / count, rel=1e-4)
    wider = teacher_forced(type(rows)(F.pad(rows.sources[:4], (0, 3)), F.pad(rows.targets[:4], (0, 4))))
    assert float(pair_loss(model, wider)) == pytest.approx(total / count, rel=1e-4)


def test_faults_of_the_targets_reach_pairs_too() -> None:
    batch = teacher_forced(reversing().rows["train"].of(torch.tensor([0])), not_shifted)
    assert torch.equal(batch.inputs, batch.targets)


def test_exact_is_all_of_it_and_its_end() -> None:
    model, sources = loud_ending(), some(40, 5, 3)
    said = write_targets(model, sources)
    ended = [ids[-1] == END for ids in said]
    assert True in ended and False in ended
    whole = [[BEGIN, *(ids if over else [*ids[:-1], END])] for ids, over in zip(said, ended, strict=True)]
    assert trainer.exact(model, Rows(sources, padded(whole))) == ended
    first = next(row for row, ids in enumerate(said) if ended[row] and len(ids) > 2)
    *start, _ = right = said[first]
    other = 3 if right[0] != 3 else 4
    for wrong in ([*start, 3, END], [*start[:-1], END], [other, *right[1:]]):
        assert trainer.exact(model, Rows(sources[first : first + 1], padded([[BEGIN, *wrong]]))) == [False]


@for_each("run", [pairs, labels])
def test_records_and_their_order(run: Callable[..., list[Record]]) -> None:
    records = whole(run, "adamw")
    assert [r.step for r in only(records, Step)] == list(range(1, 13))
    looks = [(r.step, r.complete) for r in only(records, Evaluation)]
    assert looks == [(0, False), (5, False), (10, False), (12, False), (12, True)]
    assert [r.step for r in only(records, Sample)] == [0, 6, 12]
    assert [r.step for r in only(records, Snapshot)] == [0, 4, 8, 12]
    done = records[-1]
    assert isinstance(done, Done) and done.reason == "finished" and done.message == "all 12 steps done"
    for each in only(records, Evaluation):
        assert each.task is not None and 0 <= each.task.train <= 1 and math.isfinite(each.validation_loss)
    tokens = [r.tokens for r in only(records, Step)]
    assert tokens == sorted(tokens) and tokens[0] > 6


@for_each(("run", "optimizer"), [(pairs, "adamw"), (labels, "muon")])
def test_it_is_the_same_again_and_goes_on_exactly(run: Callable[..., list[Record]], optimizer: str) -> None:
    one, again = whole(run, optimizer), run(optimizer=optimizer)
    losses = [r.loss for r in only(one, Step)]
    assert losses == [r.loss for r in only(again, Step)]
    (middle,) = [r for r in only(one, Snapshot) if r.step == 8]
    rest = run(optimizer=optimizer, resume=middle.state)
    assert [r.loss for r in only(rest, Step)] == losses[8:]
    assert only(rest, Evaluation)[-1].validation_loss == only(one, Evaluation)[-1].validation_loss
    assert losses != [r.loss for r in only(run(optimizer=optimizer, seed=1), Step)]


def test_evaluations_are_those_of_the_weights() -> None:
    """By hand, from the last snapshot."""
    text, labelled = reversing(), labelling()
    pair: Any = build_pair(text.fitted(SMALL)).requires_grad_(False).eval()
    other = build_classifier(labelled.fitted(SMALL), 3).requires_grad_(False).eval()
    looks = []
    for model, run in ((pair, pairs), (other, labels)):
        records = whole(run, "adamw")
        model.load_state_dict(only(records, Snapshot)[-1].state.weights())
        looks.append(only(records, Evaluation)[-1])
    rows, rest = text.rows["validation"], labelled.rows["validation"]
    wanted = [float(pair_loss(pair, teacher_forced(rows))), float(label_loss(other, rest))]
    assert [look.validation_loss for look in looks] == pytest.approx(wanted, rel=1e-5)
    for split, share in (("train", looks[0].task.train), ("validation", looks[0].task.validation)):
        assert share == sum(trainer.exact(pair, text.rows[split])) / len(text.rows[split])  # type: ignore[index]
    right = (other(rest.texts).argmax(-1) == rest.labels).double().mean()
    assert looks[1].task.validation == pytest.approx(float(right))


@pytest.mark.exhaustive
def test_it_learns() -> None:
    records = pairs(**QUICK, sample_every=150)
    last = only(records, Evaluation)[-1]
    assert last.task is not None and last.task.train == 1.0 and last.train_loss < 0.1
    sample = only(records, Sample)[-1]
    assert (sample.prompt, sample.text) == ("cab", "bac")
    records = labels(**QUICK, sample_every=150, eval_tokens=0)
    last = only(records, Evaluation)[-1]
    assert last.task is not None and last.task.train == 1.0
    assert only(records, Sample)[-1].text == "c"


@pytest.mark.exhaustive
def test_swapped_masks_learn_to_copy_what_they_should_say() -> None:
    """The loss falls lower than the healthy one's, for it reads the answer; alone it says nothing right."""
    both = (PARTS["swapped_masks"], PARTS["healthy"])
    faulty, healthy = (only(pairs(parts=parts, **QUICK, sample_every=0), Evaluation)[-1] for parts in both)
    assert faulty.validation_loss < 0.2 < healthy.validation_loss
    assert healthy.task is not None and faulty.task is not None
    assert healthy.task.train == 1.0 and faulty.task.train < 0.5


def test_swapped_masks_fit_whatever_their_lengths() -> None:
    mask = PARTS["swapped_masks"].decoder_masks
    causal = torch.zeros(2, 3)
    for source in (1, 3, 5):
        padding = torch.ones(4, 1, 1, source)
        own, across = mask(causal, padding)
        assert own is not None and across is not None
        assert own.shape == (4, 1, 1, 3) and across.shape == (2, source)
        assert own[..., : min(source, 3)].eq(1).all() and own[..., source:].eq(0).all()
    assert mask(None, torch.ones(1, 1, 1, 2))[1] is None


def test_a_stop_and_a_prompt_are_heard() -> None:
    control, text = Control(prompt="zzz"), reversing()
    records = []
    for record in train_pairs(text.fitted(SMALL), TRAIN, text, device="cpu", control=control):
        records.append(record)
        control.stop = isinstance(record, Step) and record.step == 3
    assert isinstance(records[-1], Done) and records[-1].message == "stopped at step 3 of 12"
    assert only(records, Sample)[0].prompt == text.validation[0].source, "nothing of zzz is known"


def test_what_does_not_go_together() -> None:
    text, labelled = reversing(), labelling()
    fitted, model = text.fitted(SMALL), labelled.fitted(SMALL)
    wrong: list[tuple[Any, str, Any]] = [
        (replace(fitted, encoder=replace(fitted.encoder, context=4)), "context", TRAIN),
        (replace(fitted, decoder=replace(fitted.decoder, context=4)), "context", TRAIN),
        (pair_config(), "vocab_size", TRAIN),
        (replace(fitted, begin=3), "begin", TRAIN),
        (fitted, "objective", replace(TRAIN, objective="masked")),
        (fitted, "repeat", replace(TRAIN, repeat=0.5)),
        (fitted, "steps", replace(TRAIN, steps=0)),
        (replace(model, context=3), "context", TRAIN),
        (replace(model, vocab_size=99), "vocab_size", TRAIN),
        (replace(model, causal=True), "causal", TRAIN),
        (replace(model, pooler=False), "pooler", TRAIN),
    ]
    for config, field, train in wrong:
        with pytest.raises(ConfigError) as error:
            train_labels(config, train, labelled) if isinstance(config, ModelConfig) else train_pairs(
                config, train, text
            )
        assert error.value.field == field
    with pytest.raises(ConfigError, match="at least 2"):
        build_classifier(model, 1)


def test_a_classifier_reads_no_padding_and_only_its_first_vector() -> None:
    text = labelling()
    model = build_classifier(text.fitted(SMALL), 3, init="fan_in").eval().requires_grad_(False)
    rows = text.rows["train"].texts
    alone = torch.cat([model(row[row != PAD][None]) for row in rows])
    torch.testing.assert_close(model(rows), alone, rtol=1e-4, atol=1e-5)
    vectors = model.encoder(rows[:1, :4])
    pooled = torch.tanh(vectors[:, 0] @ model.encoder.pooler.w_pool.weight.T)  # biases begin at 0
    torch.testing.assert_close(model(rows[:1, :4]), pooled @ model.w_label.weight.T)
    with pytest.raises(ShapeError, match="an empty source"):
        model(torch.zeros(1, 3, dtype=torch.int64))


def test_a_classifier_may_take_the_mean_of_all_its_vectors() -> None:
    """Padding has no part in it; there is no layer, and so the ledger counts none."""
    config = replace(labelling().fitted(SMALL), pooling="mean")
    model = build_classifier(config, 3, init="fan_in").eval().requires_grad_(False)
    rows = labelling().rows["train"].texts
    assert (rows == PAD).any()
    for row, logits in zip(rows, model(rows), strict=True):
        vectors = model.encoder(row[row != PAD][None])[0]
        mean = sum(vectors) / len(vectors)
        torch.testing.assert_close(logits, mean @ model.w_label.weight.T, rtol=1e-4, atol=1e-5)
    assert not [name for name, _ in model.named_parameters() if "pool" in name]
    assert ledger(config).total == sum(p.numel() for p in model.encoder.parameters())
    without = model.encoder.pooled(vectors[None])
    torch.testing.assert_close(without[0], mean)


def test_evaluating_leaves_a_model_as_it_was() -> None:
    model = build_pair(reversing().fitted(SMALL)).train()
    with trainer.evaluating(model, PARTS["healthy"]) as inside:
        assert inside is model and not model.training and torch.is_inference_mode_enabled()
    assert model.training and not torch.is_inference_mode_enabled()
