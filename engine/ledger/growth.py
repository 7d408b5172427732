"""How the costs of a model grow with the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from engine.ledger import Flops, Ledger, kv_numbers, ledger
from engine.ledger.flops import seen

LEVEL = {  # what does not grow
    "feed-forward": ("feedforward",),
    "attention's matrices": ("attention", "cross_attention"),
    "unembedding": ("unembedding",),
}


def by_part(ledger: Ledger, lengths: np.ndarray) -> dict[str, np.ndarray]:
    """Returns forward FLOPs for one token, part by part: label -> (lengths,) float64.

    Costs that grow do so in proportion to the tokens that are looked at, so one token's count is enough.
    """
    single = ledger.flops(1)
    result = {
        name: np.full(
            len(lengths),
            sum(p.flops for p in single.rows if p.component in components and not p.grows),
            dtype=np.float64,
        )
        for name, components in LEVEL.items()
    }
    level = np.full(len(lengths), single.forward - single.scores, dtype=np.float64)
    scores = np.array([single.scores * seen(ledger.config, int(n)) for n in lengths], dtype=np.float64)
    return {"everything else": level, "scores and sums": scores, **result}


@dataclass(frozen=True)
class Work:
    """FLOPs of a text of `flops.tokens` tokens, and the rule of thumb 6 N beside them."""

    flops: Flops
    attention: int  # parameters of attention's matrices

    @property
    def multiplying(self) -> int:
        """Parameters that meet each token in a product: a product counts 2 for each."""
        return (self.flops.forward - self.flops.scores) // 2

    @property
    def six_n_share(self) -> float:
        """6 for each parameter, as a share of training's FLOPs."""
        return self.flops.six_n / max(self.flops.training, 1)

    @property
    def six_multiplying_share(self) -> float:
        """6 for each parameter that meets a token in a product."""
        return 6 * self.multiplying / max(self.flops.training, 1)

    @property
    def text_forward(self) -> int:
        """FLOPs of a forward pass over the whole text."""
        return self.flops.text

    @property
    def text_training(self) -> int:
        """To be trained on the whole text once."""
        return 3 * self.flops.text


def work(ledger: Ledger, tokens: int) -> Work:
    counts = ledger.components
    return Work(ledger.flops(tokens), counts.get("attention", 0) + counts.get("cross_attention", 0))


def caches(ways: Mapping[str, Ledger], dtype: str, batch: int, lengths: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the bytes of the KV cache of `batch` texts of each length: name -> (lengths,) float64."""
    return {
        name: np.array([each.memory(dtype, batch, int(n)).kv_cache for n in lengths], dtype=np.float64)
        for name, each in ways.items()
    }


def with_weights(ledger: Ledger, dtype: str, cache: np.ndarray) -> np.ndarray:
    """Returns the bytes of the weights and of a cache (lengths,) together."""
    return cache + ledger.memory(dtype).weights


@dataclass(frozen=True)
class BreakEven:
    """Where a KV cache is as large as the weights, both in bfloat16."""

    weights: int  # bytes
    token: int  # bytes that one token takes in the cache; 0 where nothing can be kept
    group: int  # query heads for each key head
    window: int  # positions that attention looks back over; 0: all

    @property
    def most(self) -> int:
        """Bytes that the cache of one text never exceeds, where the window is reached before `tokens`; else
        0.
        """
        return self.token * self.window if 0 < self.window < self.tokens else 0

    @property
    def tokens(self) -> float:
        return self.weights / self.token


def break_even(ledger: Ledger) -> BreakEven:
    c = ledger.config
    numbers = kv_numbers(c, ledger.encoder)
    group = c.n_heads // c.n_kv_heads
    return BreakEven(ledger.memory("bfloat16").weights, 2 * numbers, group, c.window)


@dataclass(frozen=True)
class Headed:
    """The cost of one layer's attention with so many heads, each with keys of its own: FLOPs for one token
    (matrices, scores and sums), and the weights of its patterns.
    """

    heads: int
    d_head: int
    flops: int
    weights: int


def by_heads(counts: Ledger, tokens: int, heads: tuple[int, ...] = (1, 2, 4, 8, 16)) -> tuple[Headed, ...]:
    """Returns the same width shared out among other numbers of heads, those of `heads` that divide it:
    `tokens` is the length of the text. Each head is narrower in proportion, so products cost the same
    (Vaswani et al. 2017, 3.2.2). Empty where there is no attention to share out.
    """
    c = counts.config
    if c.mixer != "attention":
        return ()
    width = c.n_heads * (c.d_head or 0)
    result = []
    for count in (each for each in heads if width % each == 0 and (width // each) % 2 == 0):
        other = ledger(
            replace(c, n_heads=count, n_kv_heads=count, d_head=width // count),
            parts=counts.parts,
        )
        made = sum(p.flops for p in other.flops(tokens).rows if p.component == "attention")
        result.append(Headed(count, width // count, made, count * seen(c, tokens)))
    return tuple(result)
