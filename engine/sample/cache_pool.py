"""Keys and values of texts that were read, cached for whoever continues them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from engine.model import Transformer
from engine.sample.decoder import Decoder
from engine.sample.single_row import Products


class Held:
    """A Decoder, and the ids that it has read: a text that begins alike is not read from its beginning.

    One writer at a time: take `lock` where there may be several.
    """

    def __init__(self, model: Transformer, products: Products | None = None) -> None:
        self.decoder = Decoder(model, products=products)
        self.ids: list[int] = []  # never more than the decoder has read
        self.lock = threading.Lock()

    def begin(self, ids: Sequence[int]) -> Decoder:
        """Returns the decoder, set back to where a text stops being the one that it has read: at least its
        last token is left to read.
        """
        same = 0
        for ours, theirs in zip(self.ids, ids[:-1], strict=False):
            if ours != theirs:
                break
            same += 1
        self.ids = self.ids[:same]
        self.decoder.cache.length = same
        return self.decoder
