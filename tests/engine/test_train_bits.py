"""Losses in bits per character, trainings whose tokens are not characters, and two trainings held against each other."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from engine.corpora import from_text
from engine.model import build
from engine.tokenizers.char import CharTokenizer
from engine.training.batches import MAX_LOGITS, Batches
from engine.training.compare import Compared, MeanLoss, compared
from engine.training.evaluation import measure
from engine.training.records import Evaluation, Sample, Step
from engine.training.shifted import shifted_batch
from tests.engine.cases import for_each
from tests.engine.helpers import VERSE
from tests.engine.trainings import CORPUS, MODEL, TRAIN, losses, only, run


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


def test_a_model_that_knows_nothing_needs_log2_v_bits_a_token() -> None:
    corpus = from_text(VERSE, tokenizer="bpe:300")
    config = replace(MODEL, vocab_size=corpus.vocab_size)
    model = build(config, seed=0)
    for parameter in model.parameters():
        parameter.data.zero_()
    found = measure(model, Batches(corpus, config, replace(TRAIN, tokenizer="bpe:300")), corpus.validation)
    assert found.bits == pytest.approx(math.log2(corpus.vocab_size) * found.tokens / found.characters)
    assert found.bits < math.log2(corpus.vocab_size)


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
    found = compared(first, second)
    assert found == Compared((10, 10), (3.0, 3.5), False) and found.difference == 0.5
    assert compared([*first, look(30, 2.0, True)], second) == found, "one of them is not at its end"
    both = compared([*first, look(30, 2.0, True)], [*second, look(60, 1.0, True)])
    assert both == Compared((30, 60), (2.0, 1.0), True)
    assert compared(first, []) is None and compared([look(5, math.nan)], [look(5, 1.0)]) is None


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
