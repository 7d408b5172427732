"""Blocks: how the two sublayers, attention and feed-forward, are wired to the residual stream; the context
that a forward pass hands to them, and the loop over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.errors import ShapeError
from engine.parts.positions import PositionHooks
from engine.probe import Probe, crossing, identity, scoped

if TYPE_CHECKING:
    from engine.parts.cache import KVCache
    from engine.parts.registry import Parts


NO_POSITIONS = PositionHooks()


class PassContext(NamedTuple):
    """The inputs of a block beside the stream x (batch, query, d_model). Immutable, and made quickly.

    hooks   the position scheme, ready for the positions of the queries
    mask    added to the scores: causal (query, key), padding (batch, 1, 1, key), both together (batch, 1,
            query, key); None for nothing
    probe   is shown every activation, and may replace it
    cache   keys and values of the tokens before x, for all layers
    layer   the index of the block
    memory  vectors (batch, key, d_model) that keys and values are made of; None: x itself
    cross   the context of a decoder's cross-attention
    """

    hooks: PositionHooks = NO_POSITIONS
    mask: Tensor | None = None
    probe: Probe = identity
    cache: KVCache | None = None
    layer: int = 0
    memory: Tensor | None = None
    cross: PassContext | None = None

    def block(self, index: int) -> PassContext:
        """Returns the context of one block: its activations are called `blocks.{index}.q` and so on."""
        probe = scoped(self.probe, f"blocks.{index}.")
        cross = self.cross and self.cross._replace(probe=crossing(probe), layer=index)
        return PassContext(self.hooks, self.mask, probe, self.cache, index, self.memory, cross)

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Returns keys and values (batch, kv_head, key, d_head) with those of the tokens before, if any."""
        return (k, v) if self.cache is None else self.cache.extend(self.layer, k, v)


def each_block(
    blocks: Sequence[Callable[[Tensor, PassContext], Tensor]],
    norm: Callable[[Tensor], Tensor],
    x: Tensor,
    context: PassContext,
) -> Tensor:
    """Runs every block on what the one before left. The final `norm` comes after all of them, not here: it is
    given for the faults that apply it in between (`Parts.stack`).
    """
    for index, block in enumerate(blocks):
        x = block(x, context.block(index))
    return x


class Sublayers(Protocol):
    """The four parts that a block wires: its own, or the faster ones of a fast path."""

    @property
    def norm1(self) -> Callable[[Tensor], Tensor]: ...

    @property
    def norm2(self) -> Callable[[Tensor], Tensor]: ...

    @property
    def mixer(self) -> Callable[..., Tensor | None]: ...

    @property
    def ffn(self) -> Callable[[Tensor, Probe], Tensor | None]: ...


class Block(nn.Module):
    """Owns the four parts; its subclasses only wire them. (batch, query, d_model) in and out.

    A part that is absent (mixer or ffn 'none') has no norm either, and writes nothing.
    """

    ends_normed: ClassVar[bool] = False  # norms sit on the stream, after each sum; none is left for the end
    parallel: ClassVar[bool] = False  # both sublayers read at one place and write at one place
    replaces: ClassVar[bool] = False  # what a sublayer makes takes the place of what it read

    def __init__(self, config: ResolvedConfig, parts: Parts) -> None:
        super().__init__()
        norm, mixer, ffn = parts.norm(config), parts.mixer(config), parts.feedforward(config)
        self.mixer, self.ffn = mixer(config), ffn(config)
        self.norm1 = norm(config) if mixer.present else nn.Identity()
        self.norm2 = norm(config) if ffn.present else nn.Identity()

    def forward(self, x: Tensor, context: PassContext) -> Tensor:
        return self.connect(self, x, context)

    @staticmethod
    def connect(parts: Sublayers, x: Tensor, context: PassContext) -> Tensor:
        """Joins norms and sublayers to the residual stream."""
        raise NotImplementedError


class PreNormBlock(Block):
    """The modern wiring: the stream itself is never normalised, so gradients run through it untouched.

    x ─┬─ norm1 ─ attention ─ + ─┬─ norm2 ─ ffn ─ + ─ out
       └──────────────────────┘  └────────────────┘
    """

    @staticmethod
    def connect(parts: Sublayers, x: Tensor, context: PassContext) -> Tensor:
        probe = context.probe
        x = probe("resid_pre", x)
        normed = probe("norm1", parts.norm1(x))
        x = probe("resid_mid", add(x, parts.mixer(normed, context)))
        return probe("resid_post", add(x, parts.ffn(probe("norm2", parts.norm2(x)), probe)))


class PostNormBlock(Block):
    """The wiring of 2017: the norm sits on the stream, after each sum.

    x ─┬─ attention ─ + ─ norm1 ─┬─ ffn ─ + ─ norm2 ─ out
       └──────────────┘          └────────┘
    """

    ends_normed: ClassVar[bool] = True

    @staticmethod
    def connect(parts: Sublayers, x: Tensor, context: PassContext) -> Tensor:
        probe = context.probe
        x = probe("resid_pre", x)
        x = probe("resid_mid", add(x, parts.mixer(x, context)))
        x = probe("norm1", parts.norm1(x))
        x = probe("resid_post", add(x, parts.ffn(x, probe)))
        return probe("norm2", parts.norm2(x))


class ParallelBlock(Block):
    """Both sublayers read the same stream and write to it together (GPT-NeoX; GPT-J and PaLM share one
    norm between them).

       ┌─ norm1 ─ attention ─┐
    x ─┼─────────────────────+─ out
       └─ norm2 ─ ffn ───────┘
    """

    parallel: ClassVar[bool] = True

    @staticmethod
    def connect(parts: Sublayers, x: Tensor, context: PassContext) -> Tensor:
        probe = context.probe
        x = probe("resid_pre", x)
        attn_out = parts.mixer(probe("norm1", parts.norm1(x)), context)
        ffn_out = parts.ffn(probe("norm2", parts.norm2(x)), probe)
        return probe("resid_post", add(add(x, attn_out), ffn_out))


class NoResidualBlock(Block):
    """No stream: each sublayer's output replaces its input. Shows why the residual connection is there.

    x ── norm1 ─ attention ── norm2 ─ ffn ── out
    """

    replaces: ClassVar[bool] = True

    @staticmethod
    def connect(parts: Sublayers, x: Tensor, context: PassContext) -> Tensor:
        probe = context.probe
        x = probe("resid_pre", x)
        attn_out = parts.mixer(probe("norm1", parts.norm1(x)), context)
        x = probe("resid_mid", x if attn_out is None else attn_out)
        ffn_out = parts.ffn(probe("norm2", parts.norm2(x)), probe)
        return probe("resid_post", x if ffn_out is None else ffn_out)


def add(x: Tensor, update: Tensor | None) -> Tensor:
    """Adds a sublayer's output to the stream; None for nothing."""
    return x if update is None else x + update


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

    def forward(self, x: Tensor, context: PassContext) -> Tensor:
        """Returns x (batch, query, d_model) after the block. `context.cross` has the memory that it reads."""
        if context.cross is None:
            raise ShapeError("a decoder's block needs a memory to read: `context.cross`")
        return self.connect(self, x, context)

    @staticmethod
    def connect(parts: DecoderBlock, x: Tensor, context: PassContext) -> Tensor:
        """Joins norms and sublayers to the residual stream, as `Block.connect` does."""
        raise NotImplementedError


class PreNormDecoderBlock(DecoderBlock):
    """Each sublayer reads a normed copy of the stream (T5).

    x ─┬─ norm1 ─ attention ─ + ─┬─ norm_cross ─ cross ─ + ─┬─ norm2 ─ ffn ─ + ─ out
       └──────────────────────┘  └───────────────────────┘  └────────────────┘
    """

    @staticmethod
    def connect(parts: DecoderBlock, x: Tensor, context: PassContext) -> Tensor:
        probe = context.probe
        x = probe("resid_pre", x)
        x = probe("resid_mid", add(x, parts.mixer(probe("norm1", parts.norm1(x)), context)))
        normed = probe("cross_norm", parts.norm_cross(x))
        x = probe("cross_resid", add(x, parts.cross(normed, context.cross)))
        return probe("resid_post", add(x, parts.ffn(probe("norm2", parts.norm2(x)), probe)))


class PostNormDecoderBlock(DecoderBlock):
    """A norm sits on the stream after each of the three sums: the decoder of 2017.

    x ─┬─ attention ─ + ─ norm1 ─┬─ cross ─ + ─ norm_cross ─┬─ ffn ─ + ─ norm2 ─ out
       └──────────────┘          └──────────┘               └────────┘
    """

    ends_normed: ClassVar[bool] = True

    @staticmethod
    def connect(parts: DecoderBlock, x: Tensor, context: PassContext) -> Tensor:
        probe = context.probe
        x = probe("resid_pre", x)
        x = probe("resid_mid", add(x, parts.mixer(x, context)))
        x = probe("norm1", parts.norm1(x))
        x = probe("cross_resid", add(x, parts.cross(x, context.cross)))
        x = probe("cross_norm", parts.norm_cross(x))
        x = probe("resid_post", add(x, parts.ffn(x, probe)))
        return probe("norm2", parts.norm2(x))
