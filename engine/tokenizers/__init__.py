"""Text to ids and back. Every tokenizer has `vocab_size`, `encode`, `decode`, `token`, `to_dict`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from engine.errors import TokenizerError
from engine.tokenizers.bpe import BpeTokenizer
from engine.tokenizers.char import CharTokenizer


class Tokenizer(Protocol):
    """What the rest of the engine asks of a tokenizer."""

    @property
    def vocab_size(self) -> int: ...
    def encode(self, text: str) -> list[int]: ...
    def decode(self, ids: list[int]) -> str: ...
    def unknown(self, text: str) -> list[str]: ...
    def to_dict(self) -> dict[str, Any]: ...


KINDS: dict[str, type[CharTokenizer] | type[BpeTokenizer]] = {"char": CharTokenizer, "bpe": BpeTokenizer}


def from_dict(values: Mapping[str, Any]) -> Tokenizer:
    """A tokenizer from what its `to_dict` gave. Raises TokenizerError for anything else."""
    kind = values.get("kind") if isinstance(values, Mapping) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise TokenizerError(f"unknown tokenizer kind {kind!r}; known: {', '.join(KINDS)}")
    return KINDS[kind].from_dict(values)
