"""Faults in a block, and in the loop over the blocks (`engine.parts.blocks`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from engine.parts.blocks import PassContext
from studies.lab.faults.fault import ADAMW, DEEP, fault, settings_fault

settings_fault("no_residual", model={"wiring": "none"}, on_model={"n_layers": 4})
settings_fault(
    "post_norm_no_warmup",
    train={"warmup_steps": 0},
    on_model={"wiring": "post", "n_layers": 12},
    on_train=ADAMW | DEEP | {"warmup_steps": 60, "schedule": "constant"},
)


@fault("first_block_only", "stack", on_model={"n_layers": 4})
def first_block(
    blocks: Sequence[Callable[[Tensor, PassContext], Tensor]],
    norm: Callable[[Tensor], Tensor],
    x: Tensor,
    context: PassContext,
) -> Tensor:
    """Returns from inside the loop: only the first block ever runs."""
    for index, block in enumerate(blocks):
        x = block(x, context.block(index))
        return x
    return x


@fault("norm_in_loop", "stack", on_model={"n_layers": 4})
def norm_in_the_loop(
    blocks: Sequence[Callable[[Tensor, PassContext], Tensor]],
    norm: Callable[[Tensor], Tensor],
    x: Tensor,
    context: PassContext,
) -> Tensor:
    """Applies the final norm inside the loop: the stream is normalised after every block."""
    for index, block in enumerate(blocks):
        x = block(x, context.block(index))
        x = norm(x)
    return x
