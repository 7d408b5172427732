"""Targets as they are written: with keys and values kept, and by a naive loop that keeps nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from engine.config import SampleConfig
from engine.errors import ConfigError, CorpusError, ShapeError, TokenizerError
from engine.probe import Recorder
from studies.generation.single_row import is_fast
from studies.lab.faults import PARTS
from studies.pairs.generate import pair_steps, write_pair, write_targets
from studies.pairs.seq2seq import Seq2Seq
from studies.pairs.tokenizer import PairTokenizer
from tests.engine.cases import for_each
from tests.studies.seq2seq_toys import KINDS, attending, loud_ending, loud_pair, some


def naively(model: Seq2Seq, source: list[int], length: int) -> list[int]:
    """The likeliest token, again and again, each time from the very beginning."""
    ids = [model.config.begin]
    while len(ids) <= length:
        logits = model(torch.tensor([source]), torch.tensor([ids]))[0, -1]
        ids.append(int(logits.argmax()))
        if ids[-1] == model.config.end:
            break
    return ids[1:]


@for_each("length", [1, 5, 12], fast=[12])
@attending
def test_greedy_is_the_naive_loop(fields: dict[str, Any], length: int) -> None:
    model = loud_pair(**fields)
    sources = [some(1, n, n)[0].tolist() for n in (1, 4, 7, 12)]
    wanted = [naively(model, source, length) for source in sources]
    for cached in (True, False):
        found = [[r.token for r in pair_steps(model, source, length, cached=cached)] for source in sources]
        assert found == wanted
    rows = torch.zeros(4, 12, dtype=torch.int64)
    for row, source in enumerate(sources):
        rows[row, : len(source)] = torch.tensor(source)
    assert write_targets(model, rows, length) == wanted == write_targets(model, rows, length, cached=False)


@attending
def test_cached_keys_give_the_same_logits(fields: dict[str, Any]) -> None:
    model, source, target = loud_pair(**fields), some(3, 7), some(3, 9, 1)
    source[1, 4:] = 0
    whole = model(source, target)
    memory = model.encode(source)
    cache = model.cache(memory)
    with torch.inference_mode():
        pieces = [model.decode(part, memory, cache=cache) for part in target.split([1, 3, 1, 4], dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole, rtol=1e-4, atol=1e-4)
    assert cache.length == 9 and cache.knows_source and cache.source.length == 7


GROUPED = {"n_heads": 6, "d_model": 24, "n_kv_heads": 2, "qk_norm": True, "qk_gain": True}


@for_each("fields", [*KINDS, GROUPED])
def test_a_row_at_a_time_gives_the_logits_of_the_whole_target(fields: dict[str, Any]) -> None:
    """In float64, where a different order of the sums does not hide another formula."""
    model, source = loud_pair(**fields).double(), some(1, 7)
    records = list(pair_steps(model, source[0].tolist(), 12))
    target = torch.tensor([[model.config.begin, *(record.token for record in records[:-1])]])
    whole = model(source, target)[0]
    assert is_fast(model) is (fields.get("mixer", "attention") == "attention")
    torch.testing.assert_close(torch.stack([r.logits for r in records]).double(), whole, rtol=1e-5, atol=1e-5)


def test_a_source_with_padding_and_one_that_is_looked_into_take_the_model_s_own_forward(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, passes = loud_pair(), []
    decode = model.decode
    monkeypatch.setattr(model, "decode", lambda *given: passes.append(1) or decode(*given))
    padded = model.encode(torch.tensor([[4, 5, 6, 0, 0]]))
    fast = [record.token for record in pair_steps(model, [4, 5, 6], 5)]
    assert not passes
    assert [record.token for record in pair_steps(model, padded, 5)] == fast and len(passes) == len(fast)
    recorder = Recorder({"decoder.norm_final"})
    assert [record.token for record in pair_steps(model, [4, 5, 6], 5, probe=recorder)] == fast
    assert len(passes) == 2 * len(fast) and "decoder.norm_final" in recorder.tensors


def test_the_source_is_read_once() -> None:
    model, read = loud_pair(), []
    encode = model.encode
    model.encode = lambda *given, **named: read.append(1) or encode(*given, **named)  # type: ignore[method-assign]
    keys = []
    heads = model.decoder.blocks[0].cross.heads
    model.decoder.blocks[0].cross.heads = lambda x, memory: keys.append(memory.shape[1]) or heads(x, memory)
    (ids,) = write_targets(model, torch.tensor([[4, 5, 6]]), 5)
    assert len(ids) > 1 and read == [1] and keys == [3, *[0] * (len(ids) - 1)]
    keys.clear()
    records = list(pair_steps(model, [4, 5, 6], 5))
    assert [r.token for r in records] == ids and read == [1, 1] and keys == [3]
    assert [r.computed for r in records] == [1] * len(records)
    assert [r.position for r in records] == list(range(1, len(records) + 1))


def test_draws_are_those_of_the_probabilities_and_the_seed() -> None:
    model = loud_pair(factor=4.0)
    sampling = [SampleConfig(temperature=1.3, seed=seed) for seed in range(200)]
    first = [next(iter(pair_steps(model, [4, 5, 6, 7], 1, s))).token for s in sampling]
    p = (model(torch.tensor([[4, 5, 6, 7]]), torch.tensor([[1]]))[0, -1] / 1.3).softmax(-1)
    counts = torch.bincount(torch.tensor(first), minlength=13) / 200
    assert float((counts - p).abs().max()) < 4 * math.sqrt(0.25 / 200)
    for s in sampling[:3]:
        one, again, uncached = (
            [r.token for r in pair_steps(model, [4, 5], 9, s, cached=cached)]
            for cached in (True, True, False)
        )
        assert one == again == uncached
    assert len({tuple(r.token for r in pair_steps(model, [4, 5], 9, s)) for s in sampling[:20]}) > 5


def test_an_end_is_the_last_token(monkeypatch: pytest.MonkeyPatch) -> None:
    model = loud_ending()
    found = write_targets(model, some(40, 5, 3))
    assert len({len(ids) for ids in found}) > 3, "some of them end, at several places"
    assert found == [naively(model, source, 12) for source in some(40, 5, 3).tolist()]
    assert [[r.token for r in pair_steps(model, some(40, 5, 3)[i].tolist())] for i in range(5)] == found[:5]
    for ids in found:
        assert len(ids) <= 12 and 2 not in ids[:-1] and (ids[-1] == 2 or len(ids) == 12)
    sources = some(40, 5, 3)
    lengths = [len(ids) for ids in write_targets(model, sources)]
    soon = [row for row, length in enumerate(lengths) if length < 8]
    assert len({lengths[row] for row in soon}) > 1
    steps, decode = [], model.decode
    monkeypatch.setattr(model, "decode", lambda *given, **named: steps.append(1) or decode(*given, **named))
    write_targets(model, sources[soon])
    assert len(steps) == max(lengths[row] for row in soon)


def test_a_faulty_decoder_is_never_cached() -> None:
    """Where later tokens change earlier ones, what was kept would be wrong."""
    for name in ("no_mask", "mask_after_softmax"):
        model = loud_pair(PARTS[name])
        assert not model.can_cache
        assert [r.token for r in pair_steps(model, [4, 5, 6], 6)] == naively(model, [4, 5, 6], 6)
        with pytest.raises(ShapeError, match="cannot be kept"):
            memory = model.encode(some(1, 3))
            model.decode(some(1, 2), memory, cache=model.cache(memory))


def test_bad_input_is_a_sentence() -> None:
    model, tokenizer = loud_pair(), PairTokenizer(tuple("abcdefghij"))
    assert isinstance(write_pair(model, tokenizer, "abba"), str)
    for text, error, says in (
        ("", CorpusError, "at least one symbol"), ("az", TokenizerError, "lacks 'z'"),
        ("a" * 12, ShapeError, "a source of 13 tokens is too long"),
    ):  # fmt: skip
        with pytest.raises(error, match=says):
            write_pair(model, tokenizer, text)
    for length in (0, 13):
        with pytest.raises(ConfigError, match="length"):
            write_targets(model, some(1, 2), length)
    memory = model.encode(some(1, 3))
    with pytest.raises(ShapeError, match="a cache of 2 positions, 0 of them filled, cannot take 3 more"):
        model.decode(some(1, 3), memory, cache=model.cache(memory, 2))
