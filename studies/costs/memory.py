"""Bytes that a model takes up when it is used and when it is trained, from its configuration alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.config import ResolvedConfig
from engine.parts.registry import HEALTHY, Parts
from studies.costs.cards import BatchShape, SavedForBackward
from studies.costs.cards.table import card_of

# Bytes of a number. Four bits are two numbers in a byte; the scales that quantised weights need beside them
# (a few percent) are left out.
DTYPES = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.0, "int4": 0.5}
TRAINED_IN = ("float32", "bfloat16")
GB = 2**30


@dataclass(frozen=True)
class Memory:
    """Bytes. `master` and `moments` are AdamW's: a float32 copy of weights that are kept in fewer bits, and
    two float32 averages a weight (Kingma & Ba 2014; 16 bytes a parameter in all, Rajbhandari et al. 2020).
    `activations` are what backward needs of the forward pass.
    """

    weights: int
    gradients: int
    master: int
    moments: int
    activations: int
    kv_cache: int

    @property
    def optimizer(self) -> int:
        return self.master + self.moments

    @property
    def inference(self) -> int:
        """To write text: the weights, and the keys and values of the text so far."""
        return self.weights + self.kv_cache

    @property
    def training(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations


def kv_numbers(c: ResolvedConfig, encoder: ResolvedConfig | None = None, parts: Parts = HEALTHY) -> int:
    """Returns the numbers that a KV cache holds for each token, a key and a value for each layer and
    key-value head; as many again with an `encoder`. 0 without a causal mask: later tokens would change them.
    """
    if not c.causal:
        return 0
    return c.n_layers * card_of(parts.mixer(c)).cached_numbers(c) * (1 if encoder is None else 2)


def activations(
    c: ResolvedConfig,
    run: BatchShape,
    parts: Parts = HEALTHY,
    *,
    encoder: ResolvedConfig | None = None,
    head: bool = True,
) -> dict[str, SavedForBackward]:
    """Counts what backward needs for each token, by component: inputs of products and nonlinearities,
    patterns, probabilities; not dropout's masks and tables of positions. Without the output if not `head`;
    with an `encoder`, for one token that it reads and one that the decoder writes.
    """
    run = replace(run, turned="rotate" in parts.position(c).enters)
    result = _stack(c, run, parts)
    if encoder is not None:
        across = replace(run, turned=False)
        result["norm"] += card_of(parts.norm(c)).saved(c, run).times(c.n_layers)
        result["attention"] += card_of(parts.mixer(c)).saved(c, across).times(c.n_layers)
        for component, kept in _stack(encoder, run, parts).items():
            result[component] += kept
    if head:
        result["output"] += card_of(parts.output(c)).saved(c, run)
    return result


def _stack(c: ResolvedConfig, run: BatchShape, parts: Parts) -> dict[str, SavedForBackward]:
    norm, mixer, ffn, wiring = parts.norm(c), parts.mixer(c), parts.feedforward(c), parts.wiring(c)
    result = dict.fromkeys(("norm", "attention", "feedforward", "output"), SavedForBackward())
    readers = []  # of the stream itself, in each of the sublayers
    for component, sublayer in (("attention", mixer), ("feedforward", ffn)):
        if not sublayer.present:
            continue
        first, kept = card_of(norm).saved(c, run), card_of(sublayer).saved(c, run)
        readers.append(("norm", first) if norm.present else (component, kept))
        result["norm"] += first.times(c.n_layers)
        result[component] += kept.times(c.n_layers)
    if wiring.parallel and len(readers) == 2:  # both read the one stream, which is kept once
        component = readers[1][0]
        shared = min(kept.read for _, kept in readers)
        result[component] += SavedForBackward(read=-shared).times(c.n_layers)
    if c.embedding_norm:
        result["norm"] += card_of(norm).saved(c, run)
    if not wiring.ends_normed:
        result["norm"] += card_of(norm).saved(c, run)
    return result
