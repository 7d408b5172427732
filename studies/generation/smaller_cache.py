"""A smaller KV cache of a trained model: its keys and values in few bits, or only some of its positions, and
the loss that it costs.

One pass over a text computes what a model with such a cache would compute token by token: each position's
keys and values are rounded as they are written, and each query sees the positions that are still held then.
Keys keep the rotation of their own positions, so a text may not be longer than the context.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig
from engine.data.corpus import Corpus
from engine.data.progress import Progress, Steps
from engine.data.tokenizers import Tokenizer
from engine.errors import ConfigError, CorpusError, ShapeError
from engine.model import Transformer
from engine.parts.registry import HEALTHY, Parts
from engine.probe import Patcher
from studies.circuits.quantisation import Rounding, rounded
from studies.costs.ledger import kv_numbers

FULL = 16  # bits of a number that is not rounded, as caches are usually held
BITS = (FULL, 8, 4, 2)
SINKS = 4  # first positions that StreamingLLM never drops
FEWEST = 48  # tokens of a text of which an eighth holds the first positions and later ones


@dataclass(frozen=True)
class Shrinking:
    """A way to hold less: numbers in `bits`, and at most `held` positions of a head, its own among them (0:
    all): the `first` ones for ever, and the latest (StreamingLLM, Xiao et al. 2023). With `heavy` they are
    those that gathered most attention, beside as many of the latest (H2O, Zhang et al. 2023).
    """

    bits: int = FULL
    held: int = 0
    first: int = 0
    heavy: bool = False

    def validate(self) -> Shrinking:
        """Returns itself; raises ConfigError for what cannot be."""
        if self.bits != FULL and not 2 <= self.bits <= 8:
            raise ConfigError("bits", self.bits, f"must be between 2 and 8, or {FULL}: not rounded")
        if self.held < 0 or (self.held and not 0 <= self.first < self.held):
            raise ConfigError("held", self.held, "must be more than the first positions, or 0 for all")
        if self.heavy and (self.first or self.held < 2):
            raise ConfigError("held", self.held, "must be at least 2 by weight, with no first positions")
        return self

    def way(self, d_head: int) -> Rounding | None:
        """Returns the rounding of a key or value: a scale and a minimum for each position and head."""
        return None if self.bits == FULL else Rounding(self.bits, d_head, offset=True)

    def size(self, config: ModelConfig, tokens: int, parts: Parts = HEALTHY) -> float:
        """Returns the bytes of the cache of a text of `tokens`, scales and minima among them, and by weight a
        sum of 16 bits for each position and head.
        """
        c = config.resolved()
        way = self.way(c.d_head)
        bits = FULL if way is None else way.stored_bits(1, c.d_head)
        each = kv_numbers(c, parts=parts) * bits + FULL * c.n_layers * c.n_kv_heads * self.heavy
        return each / 8 * (min(tokens, self.held) if self.held else tokens)


def ways(length: int, bits: int) -> tuple[Shrinking, ...]:
    """Returns what the curve of a text of `length` shows: all positions in fewer and fewer bits; and in
    `bits`, a half, a quarter and an eighth of them: the latest alone, with the first, and by weight.
    """
    cuts = [Shrinking(each) for each in BITS]
    for held in (length // 2, length // 4, length // 8):
        latest = Shrinking(bits, held)
        cuts += [latest, replace(latest, first=SINKS), replace(latest, heavy=True)]
    return tuple(cuts)


def passages(
    corpus: Corpus, tokenizer: Tokenizer, length: int, begin: int, count: int
) -> tuple[tuple[int, ...], ...]:
    """Cuts a corpus's held-out text into passages of `length` tokens and returns `count` from `begin` on, or
    as many as there are. Raises CorpusError where there is none.
    """
    text = corpus.tokenizer.decode(corpus.validation[: 8 * length * (begin + count)].tolist())
    unknown = set(tokenizer.unknown(text))
    ids = tokenizer.encode("".join(c for c in text if c not in unknown))
    stop = min(len(ids) - length + 1, length * (begin + count))
    if not (found := tuple(tuple(ids[at : at + length]) for at in range(begin * length, stop, length))):
        raise CorpusError("the held-out text here is not in this model's alphabet, or too short")
    return found


def cheapest(costs: Mapping[Shrinking, float], sizes: Mapping[Shrinking, float], allowed: float) -> Shrinking:
    """Returns the way with the fewest bytes among those that cost at most `allowed`; else the full cache."""
    return min((way for way in costs if costs[way] <= allowed), key=sizes.__getitem__, default=Shrinking())


def mean_losses(
    runs: Sequence[Mapping[Shrinking, float]], cuts: Sequence[Shrinking]
) -> dict[Shrinking, float]:
    """Returns the mean loss of each way over passages."""
    return {way: sum(run[way] for run in runs) / len(runs) for way in cuts}


def losses(
    model: Transformer, passages: Sequence[Sequence[int]], cuts: Sequence[Shrinking]
) -> Steps[dict[Shrinking, float]]:
    """Measures the loss of each way, in nats: the mean over the second half of each of the equally long
    passages, whose tokens have lost something. Results so far come along. Raises ShapeError, ConfigError.
    """
    tokens = torch.tensor([list(each) for each in passages])
    if tokens.shape[1] < FEWEST:
        raise ShapeError(f"a passage has {tokens.shape[1]} tokens, which is too short: it needs {FEWEST}")
    found: dict[Shrinking, float] = {}
    for way in cuts:
        yield Progress(len(found), len(cuts), dict(found))
        found[way] = second_half_loss(model, tokens, way)
    return found


@torch.inference_mode()
def second_half_loss(model: Transformer, tokens: Tensor, way: Shrinking) -> float:
    """Returns the mean loss of the second half of texts (text, position), nats. Raises ConfigError."""
    half = tokens.shape[1] // 2
    logits = model(tokens, Patcher(edits(model, way)))[:, half - 1 : -1]  # (text, half, vocab)
    return float(F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, half:].flatten()))


def edits(model: Transformer, way: Shrinking) -> dict[str, Callable[[Tensor], Tensor]]:
    """Returns the edits of a pass by which every layer has a smaller cache. Raises ConfigError."""
    way.validate()
    result: dict[str, Callable[[Tensor], Tensor]] = {}
    c = model.config
    rounding = way.way(c.d_head)
    for layer in range(c.n_layers):
        if rounding is not None:
            for name in ("k_rot", "v"):
                result[f"blocks.{layer}.{name}"] = lambda x: few_bits(x, rounding)
        if way.held:
            result[f"blocks.{layer}.masked_scores"] = lambda scores: hidden(scores, way, c.n_kv_heads)
    return result


def few_bits(x: Tensor, way: Rounding) -> Tensor:
    """Rounds keys or values (batch, kv_head, key, d_head), each vector by its own scale and minimum."""
    return rounded(x.flatten(0, 2), way).values.view_as(x).to(x.dtype)


def hidden(scores: Tensor, way: Shrinking, kv_heads: int) -> Tensor:
    """Hides from each query the positions that a cache no longer holds: masked scores (batch, head, query,
    key), -inf where nothing may be seen.
    """
    length = scores.shape[-1]
    if not way.heavy:
        at = torch.arange(length, device=scores.device)
        held = (at[:, None] - at < way.held - way.first) | (at < way.first)  # (query, key)
        return scores.masked_fill(~held, -math.inf)
    by_group = scores.unflatten(1, (kv_heads, -1)).flatten(0, 1)  # (batch * kv_head, group, query, key)
    gone = ~held_by_weight(by_group, way.held)[:, None]
    return by_group.masked_fill(gone, -math.inf).view_as(scores)


def held_by_weight(scores: Tensor, held: int) -> Tensor:
    """Returns which positions each query finds in a cache of `held`, (cache, query, key): before it is read,
    the one with the least attention so far goes, summed over the queries that share it; the latest half
    stays. `scores` (cache, group, query, key) are masked.
    """
    caches, _, length, _ = scores.shape
    there = torch.zeros(caches, length, dtype=torch.bool)
    weight = torch.zeros(caches, length)
    result = torch.zeros(caches, length, length, dtype=torch.bool)
    for at in range(length):
        there[:, at] = True
        if at >= held:
            old = at + 1 - held // 2
            least = weight[:, :old].masked_fill(~there[:, :old], math.inf).argmin(1, keepdim=True)
            there.scatter_(1, least, False)
        seen = scores[:, :, at, : at + 1].masked_fill(~there[:, None, : at + 1], -math.inf)
        weight[:, : at + 1] += seen.softmax(-1).sum(1)
        result[:, at] = there
    return result
