"""Where the parameters of a model are: one row for each matrix, table and vector, with its formula in letters
and in numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from engine.config import GATED, LEARNED_MIXERS, Extra, ModelConfig

# How a size is written in a formula.
SYMBOLS = {
    "vocab_size": "V",
    "context": "T",
    "d_model": "d",
    "n_layers": "L",
    "n_heads": "H",
    "n_kv_heads": "H_kv",
    "d_head": "d_head",
    "d_ff": "d_ff",
}
PER_BLOCK = ("norm1", "attention", "norm_cross", "cross_attention", "norm2", "feedforward")
COMPONENTS = (
    "embedding",
    "position",
    "norm_embed",
    "norm1",
    "attention",
    "norm_cross",
    "cross_attention",
    "norm2",
    "feedforward",
    "norm_final",
    "pooler",
    "unembedding",
)
T5_BUCKETS = 32  # distances that a T5 bias tells apart (engine.parts.positions.T5Bias)

Factor = int | str  # a number, or a size by its field's name
Spec = tuple[str, str, tuple[Factor, ...]]  # component, name, shape


@dataclass(frozen=True)
class Row:
    """One tensor, `copies` times in the model: one for each layer where it belongs to a block.

    `formula` is its shape in letters (`V·d`), `numbers` the same in numbers, `each` its parameters. A tied
    matrix counts 0 the second time.
    """

    component: str  # of COMPONENTS
    name: str
    formula: str
    numbers: str
    each: int
    copies: int = 1
    stack: str = ""  # encoder or decoder, where there are both

    @property
    def parameters(self) -> int:
        return self.each * self.copies


def parameter_rows(
    c: ModelConfig, extras: tuple[Extra, ...] = (), encoder: ModelConfig | None = None
) -> tuple[Row, ...]:
    """The rows of a model in the order in which data meets them. The configurations must be resolved.

    With an `encoder`, `c` is the decoder that reads it: both have the one embedding, and each decoder block a
    cross-attention (Vaswani et al. 2017).
    """
    if encoder is None:
        specs = [*_stack(c), *((e.component, e.name, e.shape) for e in extras), *_output(c)]
        rows = [_row(c, spec) for spec in specs]
        return tuple(
            sorted(rows, key=lambda row: COMPONENTS.index(row.component))
        )  # stable: an extra stands at the end of its component
    below = [_row(encoder, spec, "encoder") for spec in _stack(encoder) if spec[0] != "embedding"]
    above = [_row(c, spec, "decoder") for spec in [*_stack(c), *_cross(c)] if spec[0] != "embedding"]
    return (
        _row(c, _EMBEDDING),
        *below,
        *sorted(above, key=lambda row: COMPONENTS.index(row.component)),
        *(_row(c, spec) for spec in _output(c)),
    )


_EMBEDDING: Spec = ("embedding", "token embedding E", ("vocab_size", "d_model"))


def _stack(c: ModelConfig) -> Iterator[Spec]:
    """From the embedding to the last norm."""
    yield _EMBEDDING
    if c.position == "learned":
        yield "position", "position table P", ("context", "d_model")
    if c.position == "t5":
        yield "position", "bias for each distance and head", (T5_BUCKETS, "n_heads")
    if c.mixer != "none":
        yield from _norm("norm1", c)
    if c.mixer in LEARNED_MIXERS:
        yield from _attention(c)
    if c.ffn != "none":
        yield from _norm("norm2", c)
        yield from _feedforward(c)
    if c.wiring != "post":  # post-norm blocks end in a norm of their own
        yield from _norm("norm_final", c)


def _norm(component: str, c: ModelConfig) -> Iterator[Spec]:
    if c.norm != "none" and c.norm_gain:
        yield component, "gain g", ("d_model",)
    if c.norm_bias:
        yield component, "bias b", ("d_model",)


def _attention(c: ModelConfig, component: str = "attention") -> Iterator[Spec]:
    q, kv = ("n_heads", "d_head"), ("n_kv_heads", "d_head")
    read = [("W_Q", q), ("W_K", kv), ("W_V", kv)] if c.mixer == "attention" else [("W_QK", q), ("W_V", q)]
    for name, width in read:
        yield component, name, ("d_model", *width)
        if c.attention_bias:
            yield component, f"bias of {name}", width
    if c.output_projection:
        yield component, "W_O", (*q, "d_model")
        if c.attention_bias and c.output_bias:
            yield component, "bias of W_O", ("d_model",)


def _cross(c: ModelConfig) -> Iterator[Spec]:
    """A decoder block's second attention, whose keys and values come from the encoder, and its norm."""
    yield from _norm("norm_cross", c)
    yield from _attention(c, "cross_attention")


def _feedforward(c: ModelConfig) -> Iterator[Spec]:
    for name in ("gate W_G", "W_1") if c.ffn in GATED else ("W_1",):
        yield "feedforward", name, ("d_model", "d_ff")
        if c.ffn_bias:
            yield "feedforward", f"bias of {name.split()[-1]}", ("d_ff",)
    yield "feedforward", "W_2", ("d_ff", "d_model")
    if c.ffn_bias:
        yield "feedforward", "bias of W_2", ("d_model",)


def _output(c: ModelConfig) -> Iterator[Spec]:
    yield (
        "unembedding",
        "W_U, which is E" if c.tie_embeddings else "W_U",
        (0,) if c.tie_embeddings else ("d_model", "vocab_size"),
    )


def _row(c: ModelConfig, spec: Spec, stack: str = "") -> Row:
    component, name, shape = spec
    sizes = [size if isinstance(size, int) else int(getattr(c, size)) for size in shape]
    letters = "·".join(str(size) if isinstance(size, int) else SYMBOLS[size] for size in shape)
    copies = c.n_layers if component in PER_BLOCK else 1
    return Row(component, name, letters, "·".join(f"{size:,}" for size in sizes), prod(sizes), copies, stack)
