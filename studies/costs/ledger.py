"""Cost of a model from its configuration alone, nothing built: parameters, FLOPs (its products), memory."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil

from engine.config import ModelConfig, ResolvedConfig
from engine.parts.registry import HEALTHY, Parts
from engine.presets import Preset
from studies.costs.cards import BatchShape, SavedForBackward
from studies.costs.cards.table import card_of
from studies.costs.flops import Product, once, products, seen_by_layers
from studies.costs.memory import DTYPES, GB, TRAINED_IN, Memory, activations, kv_numbers
from studies.costs.meta_device import plain_sizes
from studies.costs.rows import COMPONENTS, PER_BLOCK, SYMBOLS, Row, parameter_rows

__all__ = [
    "COMPONENTS", "DTYPES", "GB", "PER_BLOCK", "SYMBOLS", "TRAINED_IN", "BatchShape", "Flops", "Ledger",
    "Memory", "Product", "Row", "SavedForBackward", "activations", "component_parameters", "kv_numbers",
    "ledger", "ledger_of", "parameter_formula", "parameter_rows", "shape_trace",
]  # fmt: skip


@dataclass(frozen=True)
class Flops:
    """Floating-point operations for each token of a sequence of `tokens`, and those that are made `once` for
    all of them; see `studies.costs.flops` for what counts.
    """

    tokens: int
    rows: tuple[Product, ...]
    once: tuple[Product, ...]
    six_n: int  # 6 for each parameter: the rule of thumb for training (Kaplan et al. 2020)

    @property
    def forward(self) -> int:
        return sum(row.flops for row in self.rows)

    @property
    def text(self) -> int:
        """Forward, of all tokens together, with what is made once."""
        return self.tokens * self.forward + sum(row.flops for row in self.once)

    @property
    def training(self) -> int:
        """Forward and backward, which is twice as dear."""
        return 3 * self.forward

    @property
    def text_training(self) -> int:
        return 3 * self.text

    @property
    def scores(self) -> int:
        """The part of `forward` that grows with the length of the text."""
        return sum(row.flops for row in self.rows if row.grows)

    @property
    def multiplying(self) -> int:
        """Parameters that meet each token in a product: a product counts 2 for each."""
        return (self.forward - self.scores) // 2

    def of_training(self, parameters: int) -> float:
        """Returns 6 FLOPs for each of so many parameters, as a share of training's."""
        return 6 * parameters / max(self.training, 1)


@dataclass(frozen=True)
class Ledger:
    """Costs of one architecture, of a resolved `config`. `rows` are its tensors, as data meets them."""

    config: ResolvedConfig
    rows: tuple[Row, ...]
    encoder: ResolvedConfig | None = None
    parts: Parts = HEALTHY

    @property
    def total(self) -> int:
        return sum(row.parameters for row in self.rows)

    @property
    def active(self) -> int:
        """Parameters that a token meets: without the experts that are not chosen for it."""
        stacks = [self.config] if self.encoder is None else [self.config, self.encoder]
        idle = sum(c.n_layers * card_of(self.parts.feedforward(c)).idle(c) for c in stacks)
        return self.total - idle

    @property
    def components(self) -> dict[str, int]:
        """Parameters of each of COMPONENTS that the model has rows for, summed over all blocks."""
        result = {name: 0 for name in COMPONENTS if any(row.component == name for row in self.rows)}
        for row in self.rows:
            result[row.component] += row.parameters
        return result

    @property
    def in_blocks(self) -> int:
        return sum(row.parameters for row in self.rows if row.component in PER_BLOCK)

    @property
    def in_attention(self) -> int:
        """Parameters of attention's matrices, those that read an encoder included."""
        return sum(row.parameters for row in self.rows if row.component in ("attention", "cross_attention"))

    def of_stack(self, stack: str, components: Container[str]) -> int:
        """Returns the parameters of some components in the "encoder" or the "decoder"."""
        rows = (row for row in self.rows if row.stack == stack and row.component in components)
        return sum(row.parameters for row in rows)

    def flops(self, tokens: int | None = None) -> Flops:
        """Counts the FLOPs for each token of a sequence of `tokens`, the whole context if None."""
        length = self.config.context if tokens is None else tokens
        made = products(self.config, length, self.encoder, self.parts)
        return Flops(length, made, once(self.config), 6 * self.total)

    def crossover(self) -> int | None:
        """Returns the first length at which attention's scores and sums cost as much as everything else
        together; None where they never do: without attention, or where its window is shorter.
        """
        c, single = self.config, self.flops(1)
        if single.scores == 0:
            return None
        level = single.forward - single.scores
        length = ceil(level / single.scores)
        if not 0 < c.window < length:
            return length
        growing = single.scores * c.windows.count(0) // c.n_layers
        return ceil((level - (single.scores - growing) * c.window) / growing) if growing else None

    def memory(self, dtype: str = "bfloat16", batch: int = 1, tokens: int | None = None) -> Memory:
        """Returns the bytes for `batch` sequences of `tokens` (the context if None) in `dtype` (of DTYPES). A
        cache is kept in at least 16 bits, as is usual, and no further back than a window reaches.
        """
        c, length, size = self.config, self.config.context if tokens is None else tokens, DTYPES[dtype]
        weights = ceil(self.total * size)
        trainable = dtype in TRAINED_IN
        run = BatchShape(batch, length, narrow=size < 4)
        kept = activations(c, run, self.parts, encoder=self.encoder).values()
        cached = seen_by_layers(c, length) * kv_numbers(c, self.encoder, self.parts) // c.n_layers
        return Memory(
            weights=weights,
            gradients=weights if trainable else 0,
            master=0 if size == 4 or not trainable else 4 * self.total,
            moments=8 * self.total if trainable else 0,
            activations=ceil(batch * length * sum(each.size(size) for each in kept)) if trainable else 0,
            kv_cache=ceil(batch * cached * max(size, 2.0)),
        )


@lru_cache(maxsize=256)
def ledger(config: ModelConfig, encoder: ModelConfig | None = None, parts: Parts = HEALTHY) -> Ledger:
    """Returns the ledger of a configuration built from `parts`, with the `encoder` that it reads, where it is
    a decoder.

    >>> ledger(ModelConfig(vocab_size=65, d_model=128, n_layers=4, position="none")).total
    795904

    Raises ConfigError when a configuration cannot be built.
    """
    c = config.validate().resolved()
    below = None if encoder is None else encoder.validate().resolved()
    return Ledger(c, parameter_rows(c, below, parts), below, parts)


def ledger_of(preset: Preset) -> Ledger:
    """Returns the ledger of a preset, with its encoder."""
    return ledger(preset.model, preset.encoder)


def component_parameters(config: ModelConfig, parts: Parts = HEALTHY) -> dict[str, int]:
    """Returns the parameters of each part, summed over all blocks, as data meets them; the values sum to the
    total. A part that is absent counts 0, as does a tied `unembedding` (Press & Wolf 2017). Raises
    ConfigError when the configuration cannot be built.
    """
    absent = {"norm_cross", "cross_attention", "pooler", "" if config.embedding_norm else "norm_embed"}
    names = (name for name in COMPONENTS if name not in absent)
    return dict.fromkeys(names, 0) | ledger(config, parts=parts).components


def parameter_formula(config: ModelConfig, parts: Parts = HEALTHY) -> int:
    """Returns the number of parameters in closed form; tests hold it against the model itself."""
    return ledger(config, parts=parts).total


@lru_cache(maxsize=64)
def shape_trace(config: ModelConfig, parts: Parts = HEALTHY) -> dict[str, tuple[int, ...]]:
    """Returns the shape of every activation for one sequence of `context` tokens, by its name without
    `blocks.0.`. Recorded from a pass through one block on the meta device. Raises ConfigError.
    """
    import torch

    from engine.model import build
    from engine.probe import Recorder

    recorder = Recorder()
    model = build(replace(config.validate(), n_layers=1), device="meta", parts=parts)
    with plain_sizes(), torch.no_grad():
        model(torch.zeros(1, config.context, dtype=torch.int64, device="meta"), recorder)
    return {name.rpartition(".")[2]: shape for name, shape in recorder.shapes().items()}
