"""Attention over a whole text: bytes of its weights and seconds of its products; both grow with T²."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from engine.config import ResolvedConfig
from engine.data.progress import Progress, Steps
from engine.parts.attention import HeadMixer
from engine.parts.registry import HEALTHY, Parts
from studies.costs.flops import seen

EACH = 4  # bytes of a weight, in float32
LARGEST = 2**26  # bytes of one layer's weights, beyond which nothing is timed
SHORTEST = 64  # tokens: shorter texts take microseconds, of which calls are the most
ROUNDS = 5


def pattern_bytes(c: ResolvedConfig, tokens: int) -> int:
    """Returns the bytes of one layer's attention weights of a text in float32: heads · T · T · 4, and with a
    window heads · T · window · 4.

    >>> from engine.config import ModelConfig
    >>> pattern_bytes(ModelConfig(vocab_size=65, n_heads=12, d_model=768).resolved(), 1024)
    50331648
    """
    return c.n_heads * tokens * seen(c, tokens) * EACH


@dataclass(frozen=True)
class Timing:
    """Seconds of one layer's scores, mask, softmax and weighted sum, by the length of the text."""

    seconds: dict[int, float]
    window: int = 0  # of the model; 0 for none

    @property
    def longest(self) -> int:
        return max(self.seconds)

    def at(self, tokens: int) -> float:
        """Returns the measured seconds; beyond the longest text these in proportion to T², and beyond the
        window to T.
        """
        if tokens in self.seconds:
            return self.seconds[tokens]
        reach = min(tokens, max(self.window, self.longest)) if self.window else tokens
        return self.seconds[self.longest] * (tokens / self.longest) * (reach / self.longest)

    @property
    def doubled(self) -> float:
        """How many times as long the longest text took as one of half its length; NaN for a single one."""
        half = self.seconds.get(self.longest // 2)
        return self.seconds[self.longest] / half if half else float("nan")


def timed_lengths(c: ResolvedConfig, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the `lengths` whose weights are no more than LARGEST bytes."""
    return tuple(n for n in lengths if n >= SHORTEST and c.n_heads * n * n * EACH <= LARGEST)


def timing(config: ResolvedConfig, lengths: tuple[int, ...], parts: Parts = HEALTHY) -> Steps[Timing]:
    """Times one layer's attention on random queries, keys and values of each length in float32: the least of
    ROUNDS, in seconds.
    """
    with torch.device("meta"):  # its weights are not used
        mixer = parts.mixer(config)(config)
    if not isinstance(mixer, HeadMixer):
        return Timing({})
    measured = dict.fromkeys(lengths, float("inf"))
    for done in range(ROUNDS):
        for length in lengths:
            measured[length] = min(measured[length], _seconds(mixer, length))
            yield Progress(done, ROUNDS)
    return Timing(measured, config.widest_window)


@torch.inference_mode()
def _seconds(mixer: HeadMixer, length: int) -> float:
    numbers = torch.Generator().manual_seed(0)
    q = torch.randn(1, mixer.n_heads, length, mixer.d_head, generator=numbers)
    k, v = (torch.randn(1, mixer.n_kv_heads, length, mixer.d_head, generator=numbers) for _ in "kv")
    mask = torch.full((length, length), float("-inf")).triu(1)
    began = time.perf_counter()
    pattern = mixer.weights(mixer.masked(mixer.scores(q, k), mask), mask)  # (1, head, query, key)
    mixer.weighted_sum(pattern, v)
    return time.perf_counter() - began
