"""Blocks: how the two sublayers, attention and feed-forward, are wired to the residual stream."""

from __future__ import annotations

from torch import Tensor, nn

from engine.config import ModelConfig
from engine.parts.attention import MIXERS, LayerCache
from engine.parts.feedforward import FEEDFORWARDS
from engine.parts.norms import NORMS
from engine.parts.positions import Seams
from engine.probe import Probe


class Block(nn.Module):
    """Owns the four parts; its subclasses only wire them. (batch, query, d_model) in and out.

    A part that is absent (mixer or ffn 'none') has no norm either, and writes nothing.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        norm = NORMS[config.norm]
        self.mixer = MIXERS[config.mixer](config)
        self.ffn = FEEDFORWARDS[config.ffn](config)
        self.norm1 = norm(config) if config.mixer != "none" else nn.Identity()
        self.norm2 = norm(config) if config.ffn != "none" else nn.Identity()


class PreNormBlock(Block):
    """The modern wiring: the stream itself is never normalised, so gradients run through it untouched.

    x ─┬─ norm1 ─ attention ─ + ─┬─ norm2 ─ ffn ─ + ─ out
       └──────────────────────┘  └────────────────┘
    """

    def forward(
        self, x: Tensor, seams: Seams, mask: Tensor | None, probe: Probe, cache: LayerCache | None = None
    ) -> Tensor:
        x = probe("resid_pre", x)
        x = probe("resid_mid", _add(x, self.mixer(probe("norm1", self.norm1(x)), seams, mask, probe, cache)))
        return probe("resid_post", _add(x, self.ffn(probe("norm2", self.norm2(x)), probe)))


class PostNormBlock(Block):
    """The wiring of 2017: the norm sits on the stream, after each sum.

    x ─┬─ attention ─ + ─ norm1 ─┬─ ffn ─ + ─ norm2 ─ out
       └──────────────┘          └────────┘
    """

    def forward(
        self, x: Tensor, seams: Seams, mask: Tensor | None, probe: Probe, cache: LayerCache | None = None
    ) -> Tensor:
        x = probe("resid_pre", x)
        x = probe("resid_mid", _add(x, self.mixer(x, seams, mask, probe, cache)))
        x = probe("norm1", self.norm1(x))
        x = probe("resid_post", _add(x, self.ffn(x, probe)))
        return probe("norm2", self.norm2(x))


class ParallelBlock(Block):
    """Both sublayers read the same stream and write to it together (GPT-J, GPT-NeoX, PaLM).

       ┌─ norm1 ─ attention ─┐
    x ─┼─────────────────────+─ out
       └─ norm2 ─ ffn ───────┘
    """

    def forward(
        self, x: Tensor, seams: Seams, mask: Tensor | None, probe: Probe, cache: LayerCache | None = None
    ) -> Tensor:
        x = probe("resid_pre", x)
        attn_out = self.mixer(probe("norm1", self.norm1(x)), seams, mask, probe, cache)
        ffn_out = self.ffn(probe("norm2", self.norm2(x)), probe)
        return probe("resid_post", _add(_add(x, attn_out), ffn_out))


class NoResidualBlock(Block):
    """No stream: each sublayer's output replaces its input. Shows why the residual connection is there.

    x ── norm1 ─ attention ── norm2 ─ ffn ── out
    """

    def forward(
        self, x: Tensor, seams: Seams, mask: Tensor | None, probe: Probe, cache: LayerCache | None = None
    ) -> Tensor:
        x = probe("resid_pre", x)
        attn_out = self.mixer(probe("norm1", self.norm1(x)), seams, mask, probe, cache)
        x = probe("resid_mid", x if attn_out is None else attn_out)
        ffn_out = self.ffn(probe("norm2", self.norm2(x)), probe)
        return probe("resid_post", x if ffn_out is None else ffn_out)


def _add(x: Tensor, update: Tensor | None) -> Tensor:
    return x if update is None else x + update


WIRINGS: dict[str, type[Block]] = {
    "pre": PreNormBlock,
    "post": PostNormBlock,
    "parallel": ParallelBlock,
    "none": NoResidualBlock,
}
