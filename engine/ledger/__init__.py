"""What a model costs, from its configuration alone: parameters, floating-point operations, memory. Nothing is
built to count it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil

from engine.config import Extra, ModelConfig
from engine.ledger.flops import Product, products
from engine.ledger.memory import DTYPES, GB, TRAINED_IN, Memory, activation_numbers, kv_numbers
from engine.ledger.rows import COMPONENTS, PER_BLOCK, SYMBOLS, Row, parameter_rows

__all__ = [
    "COMPONENTS",
    "DTYPES",
    "GB",
    "PER_BLOCK",
    "SYMBOLS",
    "TRAINED_IN",
    "Extra",
    "Flops",
    "Ledger",
    "Memory",
    "Product",
    "Row",
    "activation_numbers",
    "component_parameters",
    "kv_numbers",
    "ledger",
    "parameter_formula",
    "parameter_rows",
    "shape_trace",
]


@dataclass(frozen=True)
class Flops:
    """Floating-point operations for each token of a sequence of `tokens`; see `engine.ledger.flops` for what
    counts.
    """

    tokens: int
    rows: tuple[Product, ...]
    six_n: int  # 6 for each parameter: the rule of thumb for training (Kaplan et al. 2020)

    @property
    def forward(self) -> int:
        return sum(row.flops for row in self.rows)

    @property
    def training(self) -> int:
        """Forward and backward, which is twice as dear."""
        return 3 * self.forward

    @property
    def scores(self) -> int:
        """The part of `forward` that grows with the length of the text."""
        return sum(row.flops for row in self.rows if row.grows)


@dataclass(frozen=True)
class Ledger:
    """The costs of one architecture. `config` is resolved; `rows` are its tensors, in the order in which data
    meets them.
    """

    config: ModelConfig
    rows: tuple[Row, ...]
    encoder: ModelConfig | None = None

    @property
    def total(self) -> int:
        """The number of parameters."""
        return sum(row.parameters for row in self.rows)

    @property
    def components(self) -> dict[str, int]:
        """Parameters of each of COMPONENTS that the model has rows for, summed over all blocks."""
        found = {name: 0 for name in COMPONENTS if any(row.component == name for row in self.rows)}
        for row in self.rows:
            found[row.component] += row.parameters
        return found

    @property
    def in_blocks(self) -> int:
        return sum(row.parameters for row in self.rows if row.component in PER_BLOCK)

    def flops(self, tokens: int | None = None) -> Flops:
        """For each token of a sequence of `tokens`, the whole context if None."""
        length = self.config.context if tokens is None else tokens
        return Flops(length, products(self.config, length, self.encoder), 6 * self.total)

    def crossover(self) -> int | None:
        """The first length at which attention's scores and sums cost as much as everything else together;
        None without attention.
        """
        one = self.flops(1)
        return None if one.scores == 0 else ceil((one.forward - one.scores) / one.scores)

    def memory(self, dtype: str = "bfloat16", batch: int = 1, tokens: int | None = None) -> Memory:
        """Bytes for `batch` sequences of `tokens` (the context if None), with weights, gradients, activations
        and cache in `dtype` (of DTYPES).

        The keys and values of a cache are kept in at least 16 bits, as is usual beside quantised weights.
        """
        c, length, size = self.config, self.config.context if tokens is None else tokens, DTYPES[dtype]
        sequence = batch * length
        kept = sum(activation_numbers(c, length).values())
        if self.encoder is not None:
            # What the encoder's blocks keep, and once more the attention of the decoder's: its queries, keys,
            # values, pattern.
            kept += (
                sum(activation_numbers(self.encoder, length).values())
                - activation_numbers(self.encoder, length)["output"]
            )
            kept += activation_numbers(c, length)["attention"] + c.n_layers * c.d_model
        weights = ceil(self.total * size)
        trainable = dtype in TRAINED_IN
        return Memory(
            weights=weights,
            gradients=weights if trainable else 0,
            master=0 if size == 4 or not trainable else 4 * self.total,
            moments=8 * self.total if trainable else 0,
            activations=ceil(sequence * kept * size) if trainable else 0,
            kv_cache=ceil(sequence * kv_numbers(c, self.encoder) * max(size, 2.0)),
        )


@lru_cache(maxsize=256)
def ledger(config: ModelConfig, extras: tuple[Extra, ...] = (), encoder: ModelConfig | None = None) -> Ledger:
    """The ledger of a configuration, with what a `Preset` knows beside it: `extras`, and the `encoder` that a
    decoder reads.

    >>> ledger(ModelConfig(vocab_size=65, d_model=128, n_layers=4, position="none")).total
    795904

    Raises ConfigError when a configuration cannot be built.
    """
    c = config.validate().resolved()
    below = None if encoder is None else encoder.validate().resolved()
    return Ledger(c, parameter_rows(c, extras, below), below)


def component_parameters(config: ModelConfig) -> dict[str, int]:
    """Parameters of each part of the whole model, in the order in which data meets the parts. The values sum
    to the total.

    `norm1`, `attention`, `norm2` and `feedforward` are summed over all blocks. A part that has none, or is
    absent, counts 0; so does a tied `unembedding`, whose matrix is the embedding's (Press & Wolf 2017).
    Raises ConfigError when the configuration cannot be built.
    """
    parts = (
        "embedding",
        "position",
        "norm1",
        "attention",
        "norm2",
        "feedforward",
        "norm_final",
        "unembedding",
    )
    return dict.fromkeys(parts, 0) | ledger(config).components


def parameter_formula(config: ModelConfig) -> int:
    """The number of parameters in closed form, from the configuration alone. Tests hold it against the model
    itself.
    """
    return ledger(config).total


@lru_cache(maxsize=64)
def shape_trace(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The shape of every activation for one sequence of `context` tokens, by its name in the vocabulary.

    Recorded from a forward pass on the meta device, which has shapes but no memory. All blocks are alike, so
    only one is run, and its names lose their `blocks.0.`. Raises ConfigError when the configuration cannot be
    built.
    """
    import torch

    from engine.model import build
    from engine.probe import Recorder

    recorder = Recorder()
    build(replace(config.validate(), n_layers=1), device="meta")(
        torch.empty(1, config.context, dtype=torch.int64, device="meta"), recorder
    )
    return {name.rpartition(".")[2]: shape for name, shape in recorder.shapes().items()}
