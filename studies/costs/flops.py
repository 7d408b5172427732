"""Floating-point operations of a model, from its configuration alone. Each part declares its products
(`products` in engine.parts).

Convention: a multiplication with an addition counts 2, so a product of (m, k) and (k, n) counts 2·m·k·n. Only
such products count: norms, softmax, nonlinearities and sums are a few percent more. The causal mask saves
nothing here: the engine computes every score and hides those of the future, as most do. A window of attention
does save: beyond it scores and sums are counted for the window alone, as the code of such models makes them
(the engine here computes all and hides the rest). Training counts three times forward: backward makes a
product for the gradient of each of a product's two inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import ResolvedConfig
from engine.parts.output import POOLERS
from engine.parts.registry import HEALTHY, Parts
from studies.costs import cards
from studies.costs.cards.table import card_of
from studies.costs.rows import SYMBOLS


@dataclass(frozen=True)
class Product:
    """A matrix product: `each` are its FLOPs for one token, which grow with the T looked at if `grows`."""

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


def products(
    c: ResolvedConfig, tokens: int, encoder: ResolvedConfig | None = None, parts: Parts = HEALTHY
) -> tuple[Product, ...]:
    """Returns every product of the forward pass for one token among `tokens`; with an `encoder`, for one that
    it reads and one that the decoder writes.
    """
    rows = _stack(c, tokens, parts)
    if encoder is not None:
        across = _of("cross_attention", card_of(parts.mixer(c)).products(c), c, tokens)
        rows = [*_stack(encoder, tokens, parts), *rows, *across]
    last = (_product("unembedding", each, c, tokens, 1) for each in card_of(parts.output(c)).products(c))
    return (*rows, *last)


def once(c: ResolvedConfig) -> tuple[Product, ...]:
    """Returns the products made once for a text: the pooler's, of its first token. A mean has none."""
    made = card_of(POOLERS[c.pooling]).products() if c.pooler else ()
    return tuple(_product("pooler", each, c, 1, 1) for each in made)


def seen(c: ResolvedConfig, tokens: int) -> int:
    """Returns how many of `tokens` a token is compared with in a layer, in that which compares most: no more
    than the window.

    >>> from engine.config import ModelConfig
    >>> c = ModelConfig(window=8).resolved()
    >>> seen(c, 5), seen(c, 64)
    (5, 8)
    """
    return min(tokens, c.widest_window) if c.widest_window else tokens


def seen_by_layers(c: ResolvedConfig, tokens: int) -> int:
    """Returns the same, summed over all layers, some of which may have a window."""
    return sum(min(tokens, window) if window else tokens for window in c.windows)


def _stack(c: ResolvedConfig, tokens: int, parts: Parts) -> list[Product]:
    mixing, thinking = card_of(parts.mixer(c)).products(c), card_of(parts.feedforward(c)).products(c)
    return [*_of("attention", mixing, c, tokens), *_of("feedforward", thinking, c, tokens)]


def _of(component: str, made: tuple[cards.Product, ...], c: ResolvedConfig, tokens: int) -> list[Product]:
    """Once for all layers; where what grows with the text grows to a window in some, once for each kind."""
    result = []
    for each in made:
        kinds = [(tokens, c.n_layers)]
        if "T" in each.sizes and component == "attention":
            whole = c.windows.count(0)
            kinds = [(tokens, whole), (min(tokens, c.window), c.n_layers - whole)]
        result += [_product(component, each, c, reach, count) for reach, count in kinds if count]
    return result


def _product(component: str, made: cards.Product, c: ResolvedConfig, tokens: int, copies: int) -> Product:
    each, letters, numbers = 2, ["2"], ["2"]
    for size in made.sizes:
        value = tokens if size == "T" else int(getattr(c, size))
        each *= value
        letters.append(SYMBOLS.get(size, size))
        numbers.append(f"{value:,}")
    return Product(
        component, made.name, "·".join(letters), "·".join(numbers), each, copies, "T" in made.sizes
    )
