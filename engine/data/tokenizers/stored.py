"""Tokenizers read back from JSON, whichever kind they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.additions import import_additions
from engine.data.tokenizers import Storable
from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import TokenizerError

KINDS: dict[str, Callable[[Mapping[str, Any]], Storable]] = {
    "char": CharTokenizer.from_dict,
    "bpe": BpeTokenizer.from_dict,
}


def tokenizer_from_dict(values: Mapping[str, Any]) -> Storable:
    """Returns the tokenizer that a `to_dict` came from. Raises TokenizerError for anything else."""
    kind = values.get("kind") if isinstance(values, Mapping) else None
    if isinstance(kind, str) and kind not in KINDS:
        import_additions(__name__)
    if not isinstance(kind, str) or kind not in KINDS:
        raise TokenizerError(f"unknown tokenizer kind {kind!r}; known: {', '.join(KINDS)}")
    return KINDS[kind](values)
