"""Windows that repeat their own beginning: text in which looking back pays.

In ordinary text little comes twice within a window, and a small model learns no head that copies. Where half
of the windows repeat themselves it does, all at once (Olsson et al. 2022, "In-context learning and induction
heads"; data of this kind in Reddy 2023, "The mechanistic basis of data dependence").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

SHORTEST, LONGEST = 1 / 6, 5 / 12  # of a window: how long the piece is that is repeated
RANDOM = 1 / 3  # share of the repeating windows whose piece is random tokens, where nothing else helps


@dataclass(frozen=True)
class Repeats:
    """Windows `tokens` (batch, position), some of which repeat. `period` (batch,): the length of the piece
    that a window repeats to its end, 0 where it is unchanged; `random` (batch,): true where that piece is
    random tokens.
    """

    tokens: Tensor
    period: Tensor
    random: Tensor


def with_repeats(windows: Tensor, share: float, vocab: int, generator: torch.Generator) -> Repeats:
    """Makes about a `share` of `windows` (batch, position) repeat its own first tokens to the end. A piece
    has between SHORTEST and LONGEST of the window's tokens; a share RANDOM of the pieces is drawn at random
    from all `vocab` tokens instead.
    """
    rows, length = windows.shape
    shortest, longest = piece_lengths(length)
    draw = torch.rand((3, rows), generator=generator)
    period = shortest + (draw[1] * (longest - shortest + 1)).long().clamp(max=longest - shortest)
    period = torch.where(draw[0] < share, period, 0)  # (batch,)
    random = (draw[2] < RANDOM) & (period > 0)
    noise = torch.randint(vocab, windows.shape, generator=generator)
    pieces = torch.where(random[:, None], noise, windows)
    place = torch.arange(length).expand(rows, length)
    source = torch.where(period[:, None] > 0, place % period.clamp(min=1)[:, None], place)
    return Repeats(pieces.gather(1, source), period, random)


def piece_lengths(length: int) -> tuple[int, int]:
    """Returns the shortest and the longest piece of a window of so many tokens.

    >>> piece_lengths(96), piece_lengths(97), piece_lengths(3)
    ((16, 40), (16, 40), (1, 1))
    """
    return max(1, int(length * SHORTEST)), max(1, int(length * LONGEST))


def parted(tokens: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Splits a window that repeats its beginning into its pieces, the last one cut off; any other window is
    one piece.

    >>> parted("abcabca"), parted("abcd")
    ((('a', 'b', 'c'), ('a', 'b', 'c'), ('a',)), (('a', 'b', 'c', 'd'),))
    """
    longest = piece_lengths(len(tokens))[1] + 1  # of a window with its last target
    repeats = (
        length
        for length in range(1, longest + 1)
        if all(token == other for token, other in zip(tokens[length:], tokens, strict=False))
    )
    length = next(repeats, len(tokens))
    return tuple(tuple(tokens[i : i + length]) for i in range(0, len(tokens), length))
