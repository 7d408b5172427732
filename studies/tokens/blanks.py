"""Texts with blanks, as an encoder reads them that fills blanks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from engine.data.tokenizers import Storable

BLANK = "_"  # how a gap is written


@dataclass(frozen=True)
class BlankTokenizer:
    """The tokenizer of a model that was trained to guess hidden tokens, and one id more: the mask's, which
    stands where the text has a BLANK.

    >>> from engine.data.tokenizers.char import CharTokenizer
    >>> t = BlankTokenizer(CharTokenizer("aht"))
    >>> t.encode("h_t"), t.decode([1, 3, 2]), t.unknown("h_x")
    ([1, 3, 2], 'h_t', ['x'])
    """

    inner: Storable

    @property
    def vocab_size(self) -> int:
        return self.inner.vocab_size + 1

    @property
    def mask_id(self) -> int:
        return self.inner.vocab_size

    def unknown(self, text: str) -> list[str]:
        return [char for char in self.inner.unknown(text) if char != BLANK]

    def encode(self, text: str) -> list[int]:
        """Encodes a text with blanks. Raises what the inner tokenizer raises for the text between them."""
        first, *others = text.split(BLANK)
        ids = self.inner.encode(first)
        for piece in others:
            ids += [self.mask_id, *self.inner.encode(piece)]
        return ids

    def encode_array(self, text: str) -> np.ndarray:
        """Encodes a long text: int64 (token,). Raises as `encode` does."""
        within = getattr(self.inner, "encode_array", self.inner.encode)
        first, *others = (np.asarray(within(piece), np.int64) for piece in text.split(BLANK))
        return np.concatenate([first, *(part for piece in others for part in ([self.mask_id], piece))])

    def decode(self, ids: list[int]) -> str:
        return BLANK.join(self.inner.decode(ids[a + 1 : b]) for a, b in pairwise(self._gaps(ids)))

    def _gaps(self, ids: list[int]) -> Iterator[int]:
        """Where the masks are, between one place before the first token and the place behind the last."""
        yield -1
        yield from (i for i, token in enumerate(ids) if token == self.mask_id)
        yield len(ids)

    def to_dict(self) -> dict[str, Any]:
        """Returns the inner tokenizer's JSON: the model's vocabulary says that there is a mask."""
        return self.inner.to_dict()
