"""Encoder-decoders at work, held against plain loops over the same model and against the masks by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.errors import CorpusError, ShapeError, TokenizerError
from engine.probe import Recorder
from studies.families import cross_attention as measured
from studies.families.cross_attention import (
    SharpestWeight,
    alignment_score,
    at_the_end,
    cross_patterns,
    hits,
    looked,
    masks_of,
    model_alignment,
    sharpest,
)
from studies.families.written_target import shuffled, with_parts, write_target
from studies.pairs.config import Seq2SeqConfig
from studies.pairs.corpora import pair_text
from studies.pairs.paired import PAIR_TASKS, Aligned, pairs
from studies.pairs.seq2seq import build_pair
from studies.pairs.tokenizer import BEGIN, END, PairTokenizer
from tests.engine.cases import for_each
from tests.studies.seq2seq_toys import loud_pair

WORDS = PairTokenizer.train(["abcdefg-"], by="letters")


@pytest.fixture(scope="module")
def model():
    """Untrained, with large weights, so that every change is seen in what it writes."""
    sizes = ModelConfig(WORDS.vocab_size, 9, 12, 2, 3, position="learned")
    made = build_pair(Seq2SeqConfig.of(sizes), seed=3).eval().requires_grad_(False)
    for parameter in made.parameters():
        parameter.mul_(12 if parameter.dim() == 2 else 1)
    return made


def greedy(model, source):
    seen = [BEGIN]
    while seen[-1] != END and len(seen) <= 9:
        seen.append(int(looks(model, source, seen)[1][-1].argmax()))
    return seen


@torch.no_grad()
def looks(model, source, seen):
    """(layer, head, query, key) weights of cross-attention, and the logits, of one plain pass."""
    recorder = Recorder({"cross_pattern"})
    logits = model(torch.tensor([source]), torch.tensor([seen]), recorder)[0]
    return torch.cat([*recorder.tensors.values()]).numpy(), logits


def test_it_writes_what_a_plain_loop_writes_and_keeps_every_row(model):
    found = write_target(model, WORDS, "bad-cafe")
    ids = [*WORDS.encode("bad-cafe"), END]
    seen = greedy(model, ids)
    assert found.written == WORDS.shown(seen[1:]) and found.source == (*"bad-cafe", "<end>")
    assert found.cross_patterns.shape == (2, 3, len(seen) - 1, 9)
    np.testing.assert_allclose(found.pattern(None), found.cross_patterns.mean((0, 1)))
    np.testing.assert_array_equal(found.pattern((1, 2)), found.cross_patterns[1, 2])
    assert found.ended == (seen[-1] == END)
    np.testing.assert_allclose(found.cross_patterns, looks(model, ids, seen[:-1])[0], atol=1e-5)
    short = write_target(model, WORDS, "bad-cafe", longest=3)
    assert short.written == found.written[:3] and not short.ended
    assert len(write_target(model, WORDS, "bad-cafe", longest=99).written) <= 9


def test_a_source_that_is_cut_or_shuffled(model):
    one, other = (write_target(model, WORDS, text, "cut") for text in ("bad", "fed-a"))
    assert one.written == other.written
    np.testing.assert_allclose(one.cross_patterns, 1 / 4, rtol=1e-5)  # all keys are alike
    assert write_target(model, WORDS, "bad").written != write_target(model, WORDS, "fed-a").written
    found = write_target(model, WORDS, "abcdefg", "shuffled", seed=1)
    assert sorted(found.source[:-1]) == list("abcdefg") and found.source[:-1] != tuple("abcdefg")
    assert found.source[-1] == "<end>" and shuffled([5, 5], 0) == [5, 5]


@for_each("change", ["none", "swapped"])
def test_a_row_is_what_was_looked_at_when_the_symbol_was_written(model, change):
    """Under the causal mask a later look would be the same; with the masks swapped it is another."""
    found = write_target(model, WORDS, "abcdefg", change)
    reader = with_parts(model, "swapped_masks") if change == "swapped" else model
    source = [*WORDS.encode("abcdefg"), END]
    ids = {symbol: i for i in range(WORDS.vocab_size) for symbol in WORDS.shown([i])}
    seen = [BEGIN, *(ids[symbol] for symbol in found.written)]
    for i in range(len(found.written)):
        patterns, logits = looks(reader, source, seen[: i + 1])
        assert int(logits[-1].argmax()) == seen[i + 1]
        np.testing.assert_allclose(found.cross_patterns[:, :, i], patterns[:, :, -1], rtol=1e-5, atol=1e-7)
    whole = looks(reader, source, seen[:-1])[0]
    assert np.allclose(whole, found.cross_patterns, atol=1e-5) is (change == "none")


def test_masks_by_hand():
    found = masks_of("healthy", [3, 5], 0, 4)
    assert found.shapes == ((4, 4), (2, 1, 1, 5)) and (found.ahead, found.hidden) == (0, 0)
    assert found.self_visible.tolist() == [[key <= query for key in range(4)] for query in range(4)]
    assert found.cross_visible.tolist() == [[True, True, True, False, False]] * 4
    swap = masks_of("swapped_masks", [3, 5], 0, 4)
    assert swap.self_visible.tolist() == [[True, True, True, False]] * 4 and swap.ahead == 2 + 1
    assert swap.hidden == 2 + 1 and not swap.cross_visible[0, 1:4].any()
    assert masks_of("swapped_masks", [3, 5], 1, 4).ahead == 6


def test_where_a_pattern_looked() -> None:
    right = Aligned("ab", "ba-", ((1,), (0,), ()))
    pattern = np.array([[0.1, 0.8, 0.1], [0.2, 0.7, 0.1], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    found = looked(pattern, right, "ba-")
    assert found is not None and (found.right, found.counted) == (1, 2)
    assert math.isclose(found.chance, 2 / 3) and looked(pattern, right, "bb-") is None
    pattern = np.array([[0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.0, 0.4, 0.6], [0.0, 0.0, 1.0]])
    assert at_the_end(pattern, ("2", "0", "-", "<end>")) == ("0", "-"), "not for its own end"
    assert at_the_end(pattern[:1], ("<end>",)) == ()
    pattern = np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.2, 0.6, 0.2]])
    assert sharpest(pattern) == SharpestWeight(1, 0, 0.6)
    assert sharpest(pattern[:, 2:]) is None


def test_what_is_right_is_known_for_sources_alone() -> None:
    assert PAIR_TASKS["dates"].truth("21/11/26").target == "2026-11-21"
    assert PAIR_TASKS["dates"].truth("yesterday") is None
    assert measured.differing(["2", "0"], ["2", "1", "<end>"]) == 2 and measured.differing("ab", "ab") == 0
    pattern = looking_at([0, 2, 1, 4, 3], 5)  # the last query writes END
    assert hits(pattern, ((0,), (1, 2), (), (3,))).tolist() == [True, True, False]
    heads = np.stack([pattern, looking_at([1, 1, 1, 3, 3], 5)])
    assert hits(heads, ((0,), (1, 2), (), (3,))).tolist() == [[True, True, False], [False, True, True]]
    with pytest.raises(ShapeError, match="2 queries and 5 keys"):
        hits(looking_at([0, 1], 5), ((0,), (1,), (2,)))
    with pytest.raises(ShapeError, match="3 queries and 2 keys"):
        hits(looking_at([0, 1, 0], 2), ((0,), (2,)))


def test_what_cannot_be_read_is_said(model):
    for text, error in (("", CorpusError), ("xyz", TokenizerError), ("a" * 12, ShapeError)):
        with pytest.raises(error):
            write_target(model, WORDS, text)


def looking_at(places: list[int], keys: int) -> np.ndarray:
    """A pattern (query, key) whose row i has most of its weight at places[i]."""
    pattern = np.full((len(places), keys), 0.1 / keys, dtype=np.float32)
    pattern[np.arange(len(places)), places] += 0.9
    return pattern


def test_scores_over_pairs_of_other_lengths() -> None:
    right, wrong = looking_at([0, 1, 2], 4), looking_at([3, 3, 3], 4)
    short, off = looking_at([1, 0], 2), looking_at([0, 0], 2)
    patterns = [np.stack([right, wrong])[None], np.stack([short, off])[None]]  # (layer, head, query, key)
    found = alignment_score(patterns, [((0,), (), (2, 3)), ((1,), (0,))])
    assert found is not None
    assert found.heads.tolist() == [[1.0, 0.5]]  # 4 of 4; of the second head 3 is a true place, and 0
    assert found.heads.mean() == 0.75 and found.symbols == 4
    assert (found.best.layer, found.best.head, found.best.value) == (0, 0, 1.0)
    assert found.chance == pytest.approx((1 / 4 + 2 / 4 + 1 / 2 + 1 / 2) / 4)
    assert 0 <= found.together <= 1
    sure, torn = np.array([[0.1, 0.9, 0.0]]), np.array([[0.5, 0.2, 0.3]])
    found = alignment_score([np.stack([torn, sure])[:, None]], [((1,),)])
    assert found is not None
    assert found.heads.tolist() == [[0.0], [1.0]] and found.together == 1.0
    assert alignment_score([looking_at([0, 0], 3)[None, None]], [((), ())]) is None


@for_each("name", ["dates", "language"])
def test_patterns_of_a_model_are_those_of_each_pair_alone(name: str) -> None:
    """A batch is filled up; what is filled in is in no pattern."""
    text = pair_text(name, 200, 20)
    sizes = ModelConfig(d_model=16, n_layers=2, n_heads=2, position="rope")
    model = build_pair(text.fitted(sizes), seed=3).eval()
    some, encode = pairs(PAIR_TASKS[name], 5, 1)[0], text.tokenizer.encode
    together = cross_patterns(model, text.tokenizer, some)
    for one, pattern in zip(some, together, strict=True):
        alone = looks(model, [*encode(one.source), END], [BEGIN, *encode(one.target)])[0]
        assert pattern.shape == (2, 2, len(one.sources) + 1, len(encode(one.source)) + 1)
        assert pattern == pytest.approx(alone, abs=1e-5)
    found = model_alignment(model, text.tokenizer, some)
    by_hand = alignment_score(together, [one.sources for one in some])
    assert found is not None and by_hand is not None and found.heads.tolist() == by_hand.heads.tolist()


TOKENIZER = PairTokenizer(tuple("abcdefghij"))


@pytest.fixture(scope="module", params=["rope", "t5", "sinusoidal"])
def pair(request):
    return loud_pair(position=request.param, factor=3.0)


def test_each_step_says_what_the_model_says_after_what_was_written(pair):
    found = write_target(pair, TOKENIZER, "badge")
    ids = [*TOKENIZER.encode("badge"), END]
    seen = [BEGIN]
    for step, symbol in enumerate(found.written):
        chances = pair(torch.tensor([ids]), torch.tensor([seen]))[0, -1].softmax(-1)
        best, token = chances.max(-1)
        assert TOKENIZER.shown([int(token)]) == (symbol,)
        assert found.likeliest(step, 1) == [(int(token), pytest.approx(float(best), abs=1e-5))]
        assert found.probabilities[step] == pytest.approx(chances.numpy(), abs=1e-5)
        assert [chance for _, chance in found.likeliest(step, 3)] == sorted(found.probabilities[step])[:-4:-1]
        seen.append(int(token))
    assert seen[-1] == END or len(seen) - 1 == pair.config.decoder.context
    assert found.read == TOKENIZER.shown(seen[:-1]) and found.text == TOKENIZER.decode(seen[1:])
    assert found.source == (*"badge", "<end>") and found.width == pair.config.encoder.d_model
    for step, row in enumerate(found.pattern(None)):  # the mean of all heads
        assert found.most_attended(step) == (row.argmax(), pytest.approx(row.max()))


def test_sizes_are_root_mean_squares_of_the_streams(pair):
    found = write_target(pair, TOKENIZER, "ab")
    recorder = Recorder()
    ids = torch.tensor([[*TOKENIZER.encode("ab"), END]])
    begun = torch.tensor([[BEGIN, *(TOKENIZER.shown(range(13)).index(s) for s in found.written[:-1])]])
    pair(ids, begun, recorder)
    own = recorder["encoder.blocks.0.resid_pre"][0]
    assert found.source_sizes[0] == pytest.approx(float((own**2).mean(-1).sqrt().mean()), rel=1e-4)
    last = pair.config.decoder.n_layers
    assert found.sizes.shape == (last + 1, len(found.written))
    end = recorder[f"decoder.blocks.{last - 1}.resid_post"][0]
    assert found.sizes[last].tolist() == pytest.approx((end**2).mean(-1).sqrt().tolist(), rel=1e-4)
