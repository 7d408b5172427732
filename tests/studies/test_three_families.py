"""One text in three families, and who would say it, held against plain passes through the models."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.checkpoints import load
from engine.config import ModelConfig, SampleConfig
from engine.errors import CorpusError, ShapeError, TaskError, TokenizerError
from engine.probe import Recorder
from studies.families.classifier import ablate_words
from studies.families.three_families import carry_on, fill_in, hidden_positions, sentences, translate
from studies.families.visibility import flows
from studies.pairs.checkpoints import LabelCheckpoint, load_pair
from studies.pairs.dataset import source_ids
from studies.pairs.paired import PAIR_TASKS
from studies.pairs.seq2seq import build_classifier
from studies.pairs.tokenizer import BEGIN, END, PairTokenizer
from tests.engine.cases import for_each

FOLDER = Path(__file__).parents[2] / "checkpoints"
TEXT = "this horse will fear the funny old friend"
GREEDY = SampleConfig(temperature=0.0)


@pytest.fixture(scope="module")
def encoder():
    return load(FOLDER / "encoders" / "blanks")


@pytest.fixture(scope="module")
def decoder():
    return load(FOLDER / "shakespeare-modern")


@pytest.fixture(scope="module")
def translator():
    return load_pair(FOLDER / "paired" / "language")


def mean_row(recorder: Recorder, name: str, row: int) -> np.ndarray:
    """Of one query, over all layers and heads."""
    found = [x[0, :, row] for n, x in recorder.tensors.items() if n.split(".")[-1] == name]
    return torch.cat(found).mean(0).numpy()


def test_what_is_hidden():
    for text, how, places in (
        (TEXT, "letters", (2, 7, 12, 17, 22, 27, 32, 37)), ("ab c", "letters", ()),  # the third is a blank
        ("abcdef", "half", (2, 4)), ("cat", "word", (0, 1, 2)), ("a dog", "word", (2, 3, 4)),
    ):  # fmt: skip
        assert hidden_positions(text, how) == places
    assert [TEXT[place] for place in hidden_positions(TEXT, "word")] == list("the")
    assert hidden_positions("abcdef", "half", [4, 0, 99, -1]) == (0, 2)


@torch.inference_mode()
def test_blanks_are_filled_from_one_pass(encoder):
    places, mask = hidden_positions(TEXT, "letters"), encoder.config.vocab_size - 1
    found = fill_in(encoder.model, encoder.tokenizer, TEXT, places)
    ids = [mask if i in places else token for i, token in enumerate(encoder.tokenizer.encode(TEXT))]
    recorder = Recorder({"pattern"})
    chances = encoder.model(torch.tensor([ids]), recorder)[0, :, :65].softmax(-1)
    for place, said in zip(places, found.symbols, strict=True):
        assert said.symbol == encoder.tokenizer.alphabet[int(chances[place].argmax())]
        assert said.probability == pytest.approx(float(chances[place].max()), abs=1e-5)
        np.testing.assert_allclose(said.self_weights, mean_row(recorder, "pattern", place), atol=1e-6)
        assert len(said.self_weights) == len(TEXT) and said.self_weights.sum() == pytest.approx(1, abs=1e-5)
    right = sum(said.symbol == TEXT[place] for place, said in zip(places, found.symbols, strict=True))
    assert found.right == right == 5
    assert [found.passes(step) for step in (1, 2, 24)] == [1, 1, 1]


@torch.inference_mode()
def test_a_letter_a_pass(decoder):
    found = carry_on(decoder.model, decoder.tokenizer, TEXT, 5, GREEDY)
    text = TEXT
    for said in found.symbols:
        recorder = Recorder({"pattern"})
        chances = decoder.model(torch.tensor([decoder.tokenizer.encode(text)]), recorder)[0, -1].softmax(-1)
        assert said.symbol == decoder.tokenizer.alphabet[int(chances.argmax())]
        assert said.probability == pytest.approx(float(chances.max()), abs=1e-4)
        np.testing.assert_allclose(said.self_weights, mean_row(recorder, "pattern", len(text) - 1), atol=1e-5)
        text += said.symbol
    assert found.written == text[len(TEXT) :]
    assert [found.passes(step) for step in (0, 1, 4, 5, 9)] == [0, 1, 4, 5, 5]


@torch.inference_mode()
def test_a_word_a_pass_after_one_over_the_source(translator):
    model, tokenizer = translator.model, translator.tokenizer
    found = translate(model, tokenizer, TEXT)
    source, written = torch.tensor([source_ids(TEXT, tokenizer)]), [model.config.begin]
    for said in found.symbols:
        recorder = Recorder({"pattern", "cross_pattern"})
        logits = model(source, torch.tensor([written]), recorder)[0, -1]
        recorder.tensors = {n: x for n, x in recorder.tensors.items() if n.startswith("decoder.")}
        assert said.symbol == tokenizer.shown([int(logits.argmax())])[0]
        assert said.probability == pytest.approx(float(logits.softmax(-1).max()), abs=1e-4)
        for given, name in ((said.self_weights, "pattern"), (said.cross_weights, "cross_pattern")):
            np.testing.assert_allclose(given, mean_row(recorder, name, len(written) - 1), atol=1e-5)
        written.append(int(logits.argmax()))
    assert written[-1] == model.config.end and found.source[-1] == "<end>"
    assert found.text == "timuro esto tald ilo sem veto velo" == found.answer
    assert found.right and found.why == ""
    assert [found.passes(step) for step in (0, 1, 8, 20)] == [1, 2, 9, 9]


def test_no_sentence_of_the_grammar_has_no_answer(translator):
    found = translate(translator.model, translator.tokenizer, "the king sees dog")
    assert found.answer is None and not found.right and "in place of “dog”" in found.why
    offered = sentences(24, 48)
    assert len(set(offered)) == 24 and max(map(len, offered)) <= 48 and TEXT in offered
    task = PAIR_TASKS["language"]
    assert all(task.for_validation(one) and task.answer(one).target for one in offered)


def test_each_says_what_it_cannot(encoder, decoder, translator):
    for text, hidden, error, says in (
        (TEXT, (), TaskError, "nothing is hidden"), ("", (), CorpusError, "empty"),
        ("é7", (0,), TokenizerError, "lacks 'é' '7'"), ("a" * 65, (0,), ShapeError, "has room for 64"),
    ):  # fmt: skip
        with pytest.raises(error, match=says):
            fill_in(encoder.model, encoder.tokenizer, text, hidden)
    with pytest.raises(ShapeError, match="room for 104"):
        carry_on(decoder.model, decoder.tokenizer, "a" * 105, 24, GREEDY)
    with pytest.raises(TokenizerError, match="lacks 'zebra'"):
        translate(translator.model, translator.tokenizer, "the zebra sees a cat")


@for_each(("source", "target"), [(1, 1), (4, 3), (2, 7)])
def test_every_pair_is_looked_at_once(source, target):
    now, allowed = Counter(), {}
    for step in range(1, target + 1):
        for family, made in flows(source, target, step).items():
            for flow in made:
                now[family, flow.name] += flow.now
                allowed[family, flow.name] = flow.allowed
                assert now[family, flow.name] == flow.seen
    n = source + target - 1
    assert now == allowed == {
        ("encoder", "self"): source * source,
        ("decoder", "self"): n * (n + 1) // 2,
        ("both", "encoder"): source * source,
        ("both", "decoder"): target * (target + 1) // 2,
        ("both", "cross"): target * source,
    }  # fmt: skip


def test_the_prompt_is_read_at_once_and_then_a_row_a_step():
    found = flows(2, 3, 2)
    (decoder,), (_, target, cross) = found["decoder"], found["both"]
    assert decoder.cells.tolist() == [[2, 0, 0, 0], [2, 2, 0, 0], [3, 3, 3, 0], [1, 1, 1, 1]]
    assert target.cells[1].tolist() == [3, 3, 0] and cross.cells.tolist() == [[2, 2], [3, 3], [1, 1]]


TOKENIZER = PairTokenizer(("!", "<other>", "ay", "me"), "speech", "<other>")
CONFIG = ModelConfig(7, 8, 16, 1, 2, causal=False, output_head="none", pooler=True)
LABELS = ("x", "y", "z")


def made(pooling: str) -> LabelCheckpoint:
    config = replace(CONFIG, pooling=pooling)
    model = build_classifier(config, 3, seed=3, init="normal").eval().requires_grad_(False)
    return LabelCheckpoint(model, TOKENIZER, LABELS, {})


def by_hand(found: LabelCheckpoint, words: list[str]) -> list[float]:
    ids = {word: 3 + place for place, word in enumerate(TOKENIZER.symbols)}
    row = [BEGIN, *(ids.get(word, ids["<other>"]) for word in words), END]
    exact = [float(one) for one in found.model(torch.tensor([row]))[0]]
    total = sum(np.exp(exact))
    return [np.exp(one) / total for one in exact]


@for_each("pooling", ["first", "mean"])
def test_each_word_is_left_out_in_its_turn(pooling: str) -> None:
    found = made(pooling)
    words = ["ay", "me", "hark", "!"]
    heard = ablate_words(found, "Ay me hark!")
    assert (heard.words, heard.unknown, heard.labels) == (tuple(words), ("hark",), LABELS)
    wanted = by_hand(found, words)
    np.testing.assert_allclose(heard.shares, wanted, rtol=1e-4)
    for place in range(4):
        fewer = by_hand(found, [*words[:place], *words[place + 1 :]])
        np.testing.assert_allclose(heard.without[place], fewer, rtol=1e-4)
        np.testing.assert_allclose(heard.moves[place], np.subtract(wanted, fewer), atol=1e-5)
    np.testing.assert_allclose(heard.moves.sum(1), 0, atol=1e-6)
    assert heard.order == sorted(range(3), key=lambda i: -wanted[i])
    first = heard.order[0]
    most = max(range(4), key=lambda i: abs(wanted[first] - heard.without[i, first]))
    assert heard.heaviest == most


def test_one_word_alone_can_be_left_out() -> None:
    found = made("mean")
    heard = ablate_words(found, "ay")
    np.testing.assert_allclose(heard.without[0], by_hand(found, []), rtol=1e-4)
    with pytest.raises(CorpusError, match="nothing to read"):
        ablate_words(made("mean"), "  ")
    with pytest.raises(ShapeError, match="reads 6 words and signs at once, not 7"):
        ablate_words(made("mean"), "ay " * 7)
