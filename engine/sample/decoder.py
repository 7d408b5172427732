"""A decoder with a KV cache, on a fast path for single tokens where there is one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from engine.additions import import_additions
from engine.errors import HeadError, ShapeError
from engine.model import Transformer
from engine.parts.cache import KVCache

ROOM = 64  # positions of a new cache, which doubles as needed


class FastPath(Protocol):
    """A model's forward pass of one token, computed in another way."""

    rows: int  # positions that it can read

    def read(self, token: int) -> Tensor:
        """Returns the logits (vocab,) after a token, and enters its keys and values in the cache."""

    def follow(self, cache: KVCache) -> None:
        """Takes the cache that it was given once it has grown."""


# The model, its cache, matrices prepared for it or None -> its fast path; None where a part is not supported.
# What adds to this module enters its own.
FAST_PATHS: list[Callable[[Transformer, KVCache, Any], FastPath | None]] = []


class Decoder:
    """A causal model with the keys and values of the tokens that it has read. A single token takes a fast
    path (`FAST_PATHS`) if that supports every part. It copies small matrices, so later changes of them are
    not seen. `products` are matrices that it prepared for many Decoders, perhaps in another arithmetic;
    several tokens at once, such as a prompt, are read exactly. The cache grows up to the
    context from `capacity` positions. Use it inside `torch.inference_mode()`. Raises ShapeError for a model
    that is not causal, HeadError for one without an output head.
    """

    def __init__(self, model: Transformer, capacity: int | None = None, products: object = None) -> None:
        context = model.config.context
        if not model.can_cache:
            raise ShapeError(
                "only a causal model can keep keys and values: without the mask every later token changes"
                " them"
            )
        if not model.output.present:
            raise HeadError("this model has no output head: it reads, and writes nothing")
        self.model, self.limit = model, capacity or context
        self.cache = KVCache(model.config, capacity or min(context, ROOM), model.embedding)
        import_additions(__name__)
        paths = (path(model, self.cache, products) for path in FAST_PATHS)
        self._fast = next((path for path in paths if path is not None), None)

    @property
    def length(self) -> int:
        return self.cache.length

    def reset(self) -> None:
        self.cache.length = 0

    def read(self, ids: Sequence[int]) -> Tensor:
        """Returns the logits (vocab,) after the last of the ids. Raises ShapeError where they do not fit."""
        return self.read_each(ids)[-1]

    def read_each(self, ids: Sequence[int]) -> Tensor:
        """Returns the logits (token, vocab) after each of the ids, read in one pass. Raises as `read`."""
        need = self.length + len(ids)
        if self.cache.capacity < need <= self.limit:
            self.cache.grow(min(self.limit, max(need, 2 * self.cache.capacity)))
            if self._fast is not None:
                self._fast.follow(self.cache)
        if self._fast is not None and len(ids) == 1 and need <= self._fast.rows:
            return self._fast.read(ids[0])[None]
        tokens = torch.tensor([list(ids)], dtype=torch.int64, device=self.model.embedding.device)
        return self.model(tokens, cache=self.cache)[0]


class Held:
    """A Decoder and the ids it has read, which no text reads again. One writer at a time: take `lock`."""

    def __init__(self, model: Transformer, products: object = None) -> None:
        self.decoder = Decoder(model, products=products)
        self.ids: list[int] = []  # never more than the decoder has read
        self.lock = threading.Lock()

    def begin(self, ids: Sequence[int]) -> Decoder:
        """Returns the decoder, set back to where a text differs: at least its last token is left to read."""
        same = 0
        for ours, theirs in zip(self.ids, ids[:-1], strict=False):
            if ours != theirs:
                break
            same += 1
        self.ids = self.ids[:same]
        self.decoder.cache.length = same
        return self.decoder
