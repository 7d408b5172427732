"""Matrices that are stored together because they are used together."""

from __future__ import annotations

from torch import nn


class StackedLinear(nn.Linear):
    """Several matrices that read the same input, row block under row block: one product instead of several.

    `row_blocks` are their heights; an optimiser that looks at whole matrices (Muon) must take them apart.
    """

    def __init__(self, d_in: int, row_blocks: tuple[int, ...], bias: bool) -> None:
        super().__init__(d_in, sum(row_blocks), bias=bias)
        self.row_blocks = row_blocks
