"""Blocks of a decoder that reads another text too: attention, cross-attention, feed-forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.parts.blocks import add
from engine.parts.cache import LayerCache
from engine.parts.formula import Formula
from engine.parts.positions import PositionHooks
from engine.parts.protocols import Parts
from engine.probe import Probe, crossing

NO_POSITIONS = PositionHooks()  # cross-attention gets none: a position in one text means nothing in the other


class DecoderBlock(nn.Module):
    """A decoder's block: six parts, which a subclass wires. (batch, query, d_model) in and out.

    `cross` is a mixer like `mixer`, with weights of its own: its queries come from the stream, its keys and
    values from the memory (Vaswani et al. 2017, 3.2.3). A part that is absent has no norm either, and writes
    nothing.
    """

    ends_normed: ClassVar[bool] = False

    def __init__(self, config: ResolvedConfig, parts: Parts) -> None:
        super().__init__()
        norm, mixer, ffn = parts.norm(config), parts.mixer(config), parts.feedforward(config)
        self.mixer, self.cross, self.ffn = mixer(config), mixer(config), ffn(config)
        self.norm1 = norm(config) if mixer.present else nn.Identity()
        self.norm_cross = norm(config) if mixer.present else nn.Identity()
        self.norm2 = norm(config) if ffn.present else nn.Identity()

    def forward(
        self,
        x: Tensor,
        hooks: PositionHooks,
        mask: Tensor | None,
        probe: Probe,
        cache: tuple[LayerCache, LayerCache] | None = None,
        *,
        memory: Tensor,
        across: Tensor | None = None,
    ) -> Tensor:
        """Returns x (batch, query, d_model) after the block, which reads `memory` (batch, source, d_model).

        `mask` is added to the scores of its own text, `across` to those of the source. If the cache
        holds the source's keys and values, `memory` may have no rows.
        """
        own, source = cache or (None, None)

        def read(x: Tensor) -> Tensor | None:
            return self.cross(x, NO_POSITIONS, across, crossing(probe), source, memory)

        return self.connect(x, hooks, mask, probe, own, read)

    def connect(
        self,
        x: Tensor,
        hooks: PositionHooks,
        mask: Tensor | None,
        probe: Probe,
        cache: LayerCache | None,
        read: Callable[[Tensor], Tensor | None],
    ) -> Tensor:
        """Joins the sublayers to the residual stream. `read` is the cross-attention: its queries come from
        the argument (batch, query, d_model), its keys and values from the memory.
        """
        raise NotImplementedError

    @classmethod
    def formulas(cls) -> dict[str, Formula]:
        return {
            "resid_mid": (r"x \leftarrow x + \mathrm{attn\_out}", "stream + attn_out"),
            "cross_resid": (r"x \leftarrow x + \mathrm{cross\_out}", "stream + cross_out"),
            "resid_post": (r"x \leftarrow x + \mathrm{ffn\_out}", "stream + ffn_out"),
        }


class PreNormDecoderBlock(DecoderBlock):
    """Each sublayer reads a normed copy of the stream (T5).

    x ─┬─ norm1 ─ attention ─ + ─┬─ norm_cross ─ cross ─ + ─┬─ norm2 ─ ffn ─ + ─ out
       └──────────────────────┘  └───────────────────────┘  └────────────────┘
    """

    def connect(
        self,
        x: Tensor,
        hooks: PositionHooks,
        mask: Tensor | None,
        probe: Probe,
        cache: LayerCache | None,
        read: Callable[[Tensor], Tensor | None],
    ) -> Tensor:
        x = probe("resid_pre", x)
        x = probe("resid_mid", add(x, self.mixer(probe("norm1", self.norm1(x)), hooks, mask, probe, cache)))
        normed = probe("cross_norm", self.norm_cross(x))
        x = probe("cross_resid", add(x, read(normed)))
        return probe("resid_post", add(x, self.ffn(probe("norm2", self.norm2(x)), probe)))


class PostNormDecoderBlock(DecoderBlock):
    """A norm sits on the stream after each of the three sums: the decoder of 2017.

    x ─┬─ attention ─ + ─ norm1 ─┬─ cross ─ + ─ norm_cross ─┬─ ffn ─ + ─ norm2 ─ out
       └──────────────┘          └──────────┘               └────────┘
    """

    ends_normed: ClassVar[bool] = True

    def connect(
        self,
        x: Tensor,
        hooks: PositionHooks,
        mask: Tensor | None,
        probe: Probe,
        cache: LayerCache | None,
        read: Callable[[Tensor], Tensor | None],
    ) -> Tensor:
        x = probe("resid_pre", x)
        x = probe("resid_mid", add(x, self.mixer(x, hooks, mask, probe, cache)))
        x = probe("norm1", self.norm1(x))
        x = probe("cross_resid", add(x, read(x)))
        x = probe("cross_norm", self.norm_cross(x))
        x = probe("resid_post", add(x, self.ffn(x, probe)))
        return probe("norm2", self.norm2(x))
