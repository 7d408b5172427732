"""Where the parameters of a model are: one row for each matrix, table and vector, with its formula in letters
and in numbers. Each part declares its tensors (`tensors` in engine.parts).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

from engine.config import ResolvedConfig
from engine.parts.output import POOLERS
from engine.parts.registry import HEALTHY, Parts
from studies.costs.cards import Weight
from studies.costs.cards.table import card_of

# How a size is written in a formula.
SYMBOLS = {
    "vocab_size": "V", "context": "T", "d_model": "d", "n_layers": "L", "n_heads": "H", "n_kv_heads": "H_kv",
    "d_head": "d_head", "d_ff": "d_ff", "d_latent": "d_c", "d_rotated": "d_R", "d_query": "d_c'",
    "n_experts": "E", "active_experts": "k", "shared_experts": "E_s",
}  # fmt: skip
PER_BLOCK = ("norm1", "attention", "norm_cross", "cross_attention", "norm2", "feedforward")
COMPONENTS = (
    "embedding", "position", "norm_embed", "norm1", "attention", "norm_cross", "cross_attention", "norm2",
    "feedforward", "norm_final", "pooler", "unembedding",
)  # fmt: skip

Spec = tuple[str, Weight]  # component, tensor


@dataclass(frozen=True)
class Row:
    """One tensor, `copies` times in the model. `formula` is its shape in letters (`V·d`), `numbers` in
    numbers, `each` its parameters; a tied matrix counts 0 the second time.
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
    c: ResolvedConfig, encoder: ResolvedConfig | None = None, parts: Parts = HEALTHY
) -> tuple[Row, ...]:
    """Returns the rows of a model as data meets them. With an `encoder`, `c` is the decoder that reads it:
    one embedding, and a cross-attention in each block (Vaswani et al. 2017).
    """
    output = list(_of("unembedding", card_of(parts.output(c)).tensors(c)))
    if encoder is None:
        return _in_order(_row(c, spec) for spec in (*_stack(c, parts), *output))
    below = [_row(encoder, spec, "encoder") for spec in _stack(encoder, parts) if spec != _EMBEDDING]
    stack = [*_stack(c, parts), *_cross(c, parts)]
    above = _in_order(_row(c, spec, "decoder") for spec in stack if spec != _EMBEDDING)
    return (_row(c, _EMBEDDING), *below, *above, *(_row(c, spec) for spec in output))


def _in_order(rows: Iterable[Row]) -> tuple[Row, ...]:
    """By component. Stable: what a part says first stands first."""
    return tuple(sorted(rows, key=lambda row: COMPONENTS.index(row.component)))


_EMBEDDING: Spec = ("embedding", Weight("token embedding E", ("vocab_size", "d_model")))


def _stack(c: ResolvedConfig, parts: Parts) -> Iterator[Spec]:
    """From the embedding to the last norm."""
    norm, mixer, ffn = parts.norm(c), parts.mixer(c), parts.feedforward(c)
    yield _EMBEDDING
    if c.token_types:
        yield "embedding", Weight("token types S: which text", (c.token_types, "d_model"))
    yield from _of("position", card_of(parts.position(c)).tensors(c))
    if c.embedding_norm:
        yield from _of("norm_embed", card_of(norm).tensors(c))
    if mixer.present:
        yield from _of("norm1", card_of(norm).tensors(c))
    yield from _of("attention", card_of(mixer).tensors(c))
    if ffn.present:
        yield from _of("norm2", card_of(norm).tensors(c))
    yield from _of("feedforward", card_of(ffn).tensors(c))
    if not parts.wiring(c).ends_normed:
        yield from _of("norm_final", card_of(norm).tensors(c))
    if c.pooler:
        yield from _of("pooler", card_of(POOLERS[c.pooling]).tensors())


def _cross(c: ResolvedConfig, parts: Parts) -> Iterator[Spec]:
    """A decoder block's second attention, whose keys and values come from the encoder, and its norm."""
    if parts.mixer(c).present:
        yield from _of("norm_cross", card_of(parts.norm(c)).tensors(c))
    yield from _of("cross_attention", card_of(parts.mixer(c)).tensors(c))


def _of(component: str, weights: tuple[Weight, ...]) -> Iterator[Spec]:
    return ((component, weight) for weight in weights)


def _row(c: ResolvedConfig, spec: Spec, stack: str = "") -> Row:
    component, weight = spec
    sizes = [size if isinstance(size, int) else int(getattr(c, size)) for size in weight.shape]
    letters = "·".join(str(size) if isinstance(size, int) else SYMBOLS[size] for size in weight.shape)
    numbers = "·".join(f"{size:,}" for size in sizes)
    copies = c.n_layers if component in PER_BLOCK else 1
    return Row(component, weight.name, letters, numbers, prod(sizes), copies, stack)
