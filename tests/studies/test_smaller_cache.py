"""A smaller KV cache: one pass over a text is what a cache computes that truly rounds and drops, token by token."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.data import corpora
from engine.data.progress import finish
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import ConfigError, CorpusError, ShapeError
from engine.parts.cache import KVCache
from engine.probe import Patcher
from studies.experiments import smaller_caches
from studies.generation.kv_cache import cache_size
from studies.generation.smaller_cache import (
    SINKS,
    Shrinking,
    cheapest,
    edits,
    few_bits,
    losses,
    passages,
    second_half_loss,
    ways,
)
from tests.engine.cases import for_each
from tests.engine.helpers import ARCHITECTURES, loud, tiny
from tests.models import REAL, SHIPPED, opened

ROUNDED = [Shrinking(bits) for bits in (8, 4, 2)]
DROPPED = [
    Shrinking(held=5),
    Shrinking(held=6, first=2),
    Shrinking(4, held=7, first=4),
    Shrinking(held=6, heavy=True),
    Shrinking(8, held=5, heavy=True),
]


class SmallCache(KVCache):
    """Holds what a way allows and nothing else: a list of rows for each layer and head."""

    def __init__(self, model: Any, way: Shrinking) -> None:
        super().__init__(model.config, model.config.context, model.embedding)
        self.way, self.rounding = way, way.way(model.config.d_head)
        heads = [[] for _ in range(model.config.n_kv_heads)]
        self.rows: list[list[list[tuple[Tensor, Tensor]]]] = [
            [list(head) for head in heads] for _ in range(model.config.n_layers)
        ]
        self.weight = [[[] for _ in head] for head in self.rows]

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if self.rounding is not None:
            k, v = few_bits(k, self.rounding), few_bits(v, self.rounding)
        for head, (rows, weight) in enumerate(zip(self.rows[layer], self.weight[layer], strict=True)):
            rows.append((k[0, head, 0], v[0, head, 0]))
            weight.append(0.0)
            if self.way.held and len(rows) > self.way.held:
                drops = self.way.first
                if self.way.heavy:
                    old = weight[: len(rows) - self.way.held // 2]
                    drops = old.index(min(old))
                del rows[drops], weight[drops]
        stacked = [
            torch.stack([torch.stack([row[n] for row in rows]) for rows in self.rows[layer]])[None]
            for n in (0, 1)
        ]
        return stacked[0], stacked[1]

    def note(self, name: str, x: Tensor) -> Tensor:
        """A probe: adds up the weights that the queries of a group give to each position."""
        if name.endswith(".pattern"):
            layer = int(name.split(".")[1])
            groups = x[0, :, 0].unflatten(0, (len(self.rows[layer]), -1)).sum(1)  # (kv_head, key)
            for weight, more in zip(self.weight[layer], groups.tolist(), strict=True):
                weight[:] = [a + b for a, b in zip(weight, more, strict=True)]
        return x


@torch.inference_mode()
def by_token(model: Any, tokens: Tensor, way: Shrinking) -> Tensor:
    cache = SmallCache(model, way)
    rows = [model(tokens[:, at : at + 1], cache.note, cache)[0, 0] for at in range(tokens.shape[1])]
    return torch.stack(rows)


def doubled(model: Any) -> Any:
    """Returns a copy that computes in float64: what differs is then no rounding of sums."""
    return copy.deepcopy(model).double()


@torch.inference_mode()
def at_once(model: Any, tokens: Tensor, way: Shrinking) -> Tensor:
    return model(tokens, Patcher(edits(model, way)))[0]


def text(vocab: int, length: int = 14) -> Tensor:
    return torch.randint(0, vocab, (1, length), generator=torch.Generator().manual_seed(5))


@for_each("way", [*ROUNDED, *DROPPED], ids=str)
@for_each("fields", [{}, {"n_heads": 4, "n_kv_heads": 2, "position": "rope"}], ids=["own keys", "shared"])
def test_a_pass_computes_what_the_cache_does_token_by_token(way: Shrinking, fields: dict[str, Any]) -> None:
    model = doubled(loud(tiny(**{"context": 24} | fields), seed=3, factor=3.0))
    tokens = text(model.config.vocab_size)
    once = at_once(model, tokens, way)
    assert torch.allclose(by_token(model, tokens, way), once, atol=1e-9, rtol=0)
    assert not torch.allclose(model(tokens)[0], once, atol=1e-5, rtol=0)


@for_each("way", [ROUNDED[1], DROPPED[1], DROPPED[3]], ids=str)
@for_each("name", SHIPPED)
def test_so_it_does_for_shipped_models(name: str, way: Shrinking) -> None:
    model, tokenizer = opened(name)
    model, tokens = doubled(model), torch.tensor([tokenizer.encode("KING RICHARD II:\nthe king, the king")])
    assert torch.allclose(by_token(model, tokens, way), at_once(model, tokens, way), atol=1e-9, rtol=0)


@for_each("fields", ARCHITECTURES.values(), ids=ARCHITECTURES)
def test_a_cache_that_loses_nothing_costs_nothing(fields: dict[str, Any]) -> None:
    model = loud(tiny(**{"context": 24} | fields), seed=3, factor=3.0)
    tokens = text(model.config.vocab_size, 16)
    with torch.inference_mode():
        own = F.cross_entropy(model(tokens)[0, 7:-1], tokens[0, 8:]).item()
    for way in (Shrinking(), Shrinking(held=16), Shrinking(held=16, first=4), Shrinking(held=16, heavy=True)):
        assert second_half_loss(model, tokens, way) == pytest.approx(own, abs=1e-6)


def test_a_rounded_vector_is_near_and_its_ends_are_exact_but_for_the_scale() -> None:
    x = torch.randn(1, 2, 3, 8, generator=torch.Generator().manual_seed(1))
    for bits in (8, 4, 2):
        way = Shrinking(bits).way(8)
        assert way is not None
        step = (x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True)) / (2**bits - 1)
        values = few_bits(x, way)
        assert bool(((values - x).abs() <= step * 0.51 + 1e-3).all())
        assert values[0, 0, 0].unique().numel() <= 2**bits


def test_bytes_are_those_of_the_rows_that_are_held() -> None:
    model = loud(tiny(context=24, n_heads=4, n_kv_heads=2), seed=3)
    c, tokens = model.config, 10
    numbers = 2 * c.n_layers * 2 * c.d_head
    assert Shrinking().size(c, tokens) == numbers * tokens * 2 == cache_size(c, tokens, "bfloat16").formula
    scales = 2 * c.n_layers * 2 * 4  # a scale and a minimum of 2 bytes for each key and each value
    assert Shrinking(4).size(c, tokens) == (numbers / 2 + scales) * tokens
    assert Shrinking(8, held=6, first=2).size(c, tokens) == (numbers + scales) * 6
    assert Shrinking(held=60).size(c, tokens) == Shrinking().size(c, tokens)
    assert Shrinking(held=6, heavy=True).size(c, tokens) == (numbers * 2 + 2 * c.n_layers * 2) * 6
    cache = SmallCache(model, Shrinking(held=6, first=2))
    with torch.inference_mode():
        for at in range(tokens):
            model(text(c.vocab_size)[:, at : at + 1], cache=cache)
    held = sum(k.numel() + v.numel() for layer in cache.rows for head in layer for k, v in head)
    assert 2 * held == Shrinking(held=6, first=2).size(c, tokens)


def test_the_cheapest_is_the_smallest_at_its_price() -> None:
    a, b, c = Shrinking(), Shrinking(4), Shrinking(2)
    sizes = {a: 16.0, b: 5.0, c: 3.0}
    costs = {a: 0.0, b: 0.1, c: 2.0}
    assert [cheapest(costs, sizes, most) for most in (0.05, 0.1, 1.0, 2.5)] == [a, b, b, c]


def test_all_ways_are_measured_and_come_along() -> None:
    model = loud(tiny(context=48), seed=3, factor=3.0)
    twice = text(model.config.vocab_size, 48).repeat(2, 1).tolist()
    cuts, seen = ways(48, 8), []
    found = finish(losses(model, twice, cuts), lambda at: seen.append(len(at.so_far)))
    assert tuple(found) == cuts and seen == list(range(len(cuts)))
    held = sorted((way.held, way.first, way.heavy) for way in cuts if way.held)
    assert held == sorted((n, *rest) for n in (24, 12, 6) for rest in ((0, False), (SINKS, False), (0, True)))
    for way in cuts:
        assert found[way] == second_half_loss(model, torch.tensor(twice), way)


def test_what_cannot_be_is_refused() -> None:
    for way in (Shrinking(1), Shrinking(12), Shrinking(held=4, first=4), Shrinking(held=1, heavy=True)):
        with pytest.raises(ConfigError):
            way.validate()
    with pytest.raises(ShapeError):
        finish(losses(loud(tiny(context=24), seed=3), [[1] * 47], ways(47, 8)))


@for_each("name", REAL, without="SmolLM2 is not installed")
def test_a_real_model_needs_its_first_tokens(name: str) -> None:
    model, tokenizer = opened(name)
    tokens = torch.tensor([tokenizer.encode(corpora.load("python").text[20_000:22_000])[:256]])
    full, alone, first = (
        second_half_loss(model, tokens, way)
        for way in (Shrinking(), Shrinking(held=64), Shrinking(held=64, first=SINKS))
    )
    assert alone > first + 0.5 > full


def test_passages_follow_one_another_in_the_held_out_text() -> None:
    corpus = corpora.load("python")
    first, second = passages(corpus, corpus.tokenizer, 40, 0, 2)
    assert passages(corpus, corpus.tokenizer, 40, 1, 1) == (second,)
    assert [*first, *second] == corpus.validation[:80].tolist()
    with pytest.raises(CorpusError):
        passages(corpus, CharTokenizer("äöü"), 40, 0, 1)


@pytest.mark.skipif(corpora.shakespeare_path() is None, reason="needs Tiny Shakespeare")
@for_each("name", REAL, without="SmolLM2 is not installed")
def test_a_stored_passage_is_measured_again(name: str) -> None:
    model, tokenizer = opened(name)
    text = passages(corpora.load("shakespeare"), tokenizer, smaller_caches.LENGTH, 1, 1)
    way = Shrinking(held=128, heavy=True)
    assert second_half_loss(model, torch.tensor(text), way) == pytest.approx(
        smaller_caches.shipped()[1][way], abs=2e-3
    )
