"""A published model by its name, with all that is needed to use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from engine.config import ResolvedConfig
from engine.data.tokenizers import Tokenizer
from engine.errors import PretrainedError
from engine.model import Transformer
from studies.costs.ledger import parameter_formula
from studies.weights.pretrained import cache, sources
from studies.weights.pretrained.load import open_model
from studies.weights.pretrained.sources import Facts


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A model that others trained. `facts` is None for one that is not known by name; `path` is the file or
    folder it was read from, `bits` what one of its numbers takes there. No `metrics`: it was not trained
    here.
    """

    name: str
    model: Transformer = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    facts: Facts | None
    bits: float
    path: Path = field(repr=False)
    metrics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> ResolvedConfig:
        return self.model.config


def load(name: str, largest: int, path: Path | str | None = None, keep: Path | None = None) -> Pretrained:
    """Returns the model of a name (or at a `path`), its weights mapped from the cache: float32, shared by all
    who load it.

    Raises PretrainedError where it is not on this machine, cannot be read, or has more than `largest`
    parameters: before anything is allocated.
    """
    place = located(name, path)
    opened = open_model(place)
    check_size(name, parameter_formula(opened.config), largest)
    tokenizer = opened.vocabulary()
    check_rows(name, tokenizer, opened.config.vocab_size)
    model = opened.model(cache.weights(opened, place, keep))
    _origins[model] = _origins[tokenizer] = name, place
    return Pretrained(name, model, tokenizer, sources.KNOWN.get(name), opened.source.bits, place)


_origins: WeakKeyDictionary[object, tuple[str, Path]] = WeakKeyDictionary()


def origin(model_or_tokenizer: object) -> tuple[str, Path] | None:
    """Returns the name and path of the published model that this is, or whose vocabulary it is; None for any
    other.
    """
    try:
        return _origins.get(model_or_tokenizer)
    except TypeError:  # it cannot be a key
        return None


def located(name: str, path: Path | str | None) -> Path:
    """Returns where a model lies. Raises PretrainedError where it is not on this machine."""
    result = sources.find(name, path)
    if result is None:
        raise PretrainedError(f"there is no model {name!r} on this machine")
    return result


def check_size(name: str, parameters: int, largest: int) -> None:
    """Raises PretrainedError for a model of more than `largest` parameters."""
    if parameters > largest:
        raise PretrainedError(
            f"{name} has {parameters:,} parameters; this server loads models of at most {largest:,}"
        )


def check_rows(name: str, tokenizer: Tokenizer, rows: int) -> None:
    """Raises PretrainedError where a vocabulary has more tokens than the embedding has rows."""
    if tokenizer.vocab_size > rows:
        raise PretrainedError(f"{name} has {tokenizer.vocab_size:,} tokens, but its embedding {rows:,} rows")
