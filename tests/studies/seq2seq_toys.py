"""What the tests of the encoder-decoder share: a loud small model of odd sizes, and ids for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from engine.config import ModelConfig
from engine.parts.registry import HEALTHY, Parts
from engine.probe import Recorder
from studies.pairs.config import Seq2SeqConfig
from studies.pairs.dataset import Labelled, LabelledText, Pair, PairedText
from studies.pairs.seq2seq import Seq2Seq, build_pair
from studies.pairs.tokenizer import PairTokenizer
from tests.engine.cases import for_each
from tests.engine.helpers import amplified

BASE = ModelConfig(vocab_size=13, context=12, d_model=18, n_layers=2, n_heads=3, d_ff=25)
WORDS = ("ab", "abc", "ba", "bac", "ca", "cab", "acb", "bca", "cba", "bc", "cb", "aabb")

KINDS: list[dict[str, Any]] = [
    {},
    {"wiring": "post", "position": "sinusoidal", "ffn": "relu", "embedding_scale": True, "norm_bias": True},
    {"position": "rope", "norm": "rmsnorm", "ffn": "swiglu", "n_kv_heads": 1, "tie_embeddings": False},
    {"position": "t5", "score_scale": False, "output_head": "scaled"},
    {"position": "alibi", "attention_bias": True, "embedding_norm": True, "qk_norm": True},
    {"mixer": "shared_qk", "position": "none"},
    {"mixer": "mean"},
    {"mixer": "none"},
]
kinds = for_each("fields", KINDS)
attending = for_each("fields", KINDS[:5])  # those with attention of a kind


def pair_config(**fields: Any) -> Seq2SeqConfig:
    """BASE with other fields; the decoder is one layer deeper."""
    pair = Seq2SeqConfig.of(replace(BASE, **fields))
    return replace(pair, decoder=replace(pair.decoder, n_layers=pair.decoder.n_layers + 1))


def loud_pair(parts: Parts = HEALTHY, seed: int = 0, factor: float = 8.0, **fields: Any) -> Seq2Seq:
    """Weights that are large enough for every part to make a difference, in evaluation, without gradients."""
    model = build_pair(pair_config(**fields), seed, parts=parts)
    return amplified(model, seed, factor).requires_grad_(False)


def loud_ending(**fields: Any) -> Seq2Seq:
    """One whose targets come to an end, some sooner and some later: END is as likely as the likeliest other,
    on average.
    """
    model, recorder = loud_pair(tie_embeddings=False, **fields), Recorder({"decoder.norm_final"})
    best = model(some(20, 6, 7), some(20, 6, 8), recorder).amax(-1).mean()
    usual = recorder["decoder.norm_final"].mean(dim=(0, 1))
    assert model.unembedding is not None
    with torch.no_grad():
        model.unembedding[2] = usual * best / usual.square().sum()
    return model


def some(batch: int, length: int, seed: int = 0) -> Tensor:
    """(batch, length) ids of symbols, none of them a sign."""
    return torch.randint(3, BASE.vocab_size, (batch, length), generator=torch.Generator().manual_seed(seed))


def reversing() -> PairedText:
    """Words and the same read backwards."""
    pairs = tuple(Pair(word, word[::-1]) for word in WORDS)
    return PairedText("reverse", "Backwards", PairTokenizer.train(WORDS), pairs[:9], pairs[9:])


def labelling() -> LabelledText:
    """Words, by their first letter."""
    found = tuple(Labelled(word, word[0]) for word in WORDS)
    tokenizer = PairTokenizer.train(WORDS)
    return LabelledText("first", "First letter", tokenizer, ("a", "b", "c"), found[:9], found[9:])
