"""Floating-point operations of a model, from its configuration alone.

Convention: a multiplication with an addition counts 2, so a product of (m, k) and (k, n) counts 2·m·k·n. Only
such products count: norms, softmax, nonlinearities and sums are a few percent more. The causal mask saves
nothing here: the engine computes every score and hides those of the future, as most do. Training counts three
times forward: backward makes a product for the gradient of each of a product's two inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import GATED, LEARNED_MIXERS, ModelConfig
from engine.ledger.rows import SYMBOLS


@dataclass(frozen=True)
class Product:
    """A matrix product. `each` are its FLOPs for one token; those of attention's scores and sums grow with
    the tokens looked at, `T`.
    """

    component: str
    name: str
    formula: str
    numbers: str
    each: int
    copies: int
    grows: bool = False

    @property
    def flops(self) -> int:
        return self.each * self.copies


def products(c: ModelConfig, tokens: int, encoder: ModelConfig | None = None) -> tuple[Product, ...]:
    """Every product of the forward pass, for one token among `tokens`. The configurations must be resolved.

    With an `encoder`: for one token that it reads and one that the decoder writes, with `tokens` of each.
    """
    rows = list(_stack(c, tokens))
    if encoder is not None:
        rows = [*_stack(encoder, tokens), *rows, *_attention(c, tokens, "cross_attention")]
    rows.append(_product(c, "unembedding", "logits", ("d_model", "vocab_size"), tokens, 1))
    return tuple(rows)


def _stack(c: ModelConfig, tokens: int) -> list[Product]:
    rows = [] if c.mixer == "none" else _attention(c, tokens)
    if c.ffn != "none":
        for name in ("gate W_G", "W_1") if c.ffn in GATED else ("W_1",):
            rows.append(_product(c, "feedforward", name, ("d_model", "d_ff"), tokens))
        rows.append(_product(c, "feedforward", "W_2", ("d_ff", "d_model"), tokens))
    return rows


def _attention(c: ModelConfig, tokens: int, component: str = "attention") -> list[Product]:
    q, kv = ("n_heads", "d_head"), ("n_kv_heads", "d_head")
    rows = []
    if c.mixer in LEARNED_MIXERS:
        read = [("W_Q", q), ("W_K", kv), ("W_V", kv)] if c.mixer == "attention" else [("W_QK", q), ("W_V", q)]
        rows += [_product(c, component, name, ("d_model", *width), tokens) for name, width in read]
    if c.mixer != "mean":  # a mean has no scores
        rows.append(_product(c, component, "scores q·k", ("T", *q), tokens))
    rows.append(_product(c, component, "weighted sum of v", ("T", *q), tokens))
    if c.mixer in LEARNED_MIXERS and c.output_projection:
        rows.append(_product(c, component, "W_O", (*q, "d_model"), tokens))
    return rows


def _product(
    c: ModelConfig, component: str, name: str, sizes: tuple[str, ...], tokens: int, copies: int | None = None
) -> Product:
    each, letters, numbers = 2, ["2"], ["2"]
    for size in sizes:
        value = tokens if size == "T" else int(getattr(c, size))
        each *= value
        letters.append(SYMBOLS.get(size, size))
        numbers.append(f"{value:,}")
    return Product(
        component,
        name,
        "·".join(letters),
        "·".join(numbers),
        each,
        c.n_layers if copies is None else copies,
        "T" in sizes,
    )
