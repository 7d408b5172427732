"""The models that visitors have fine-tuned here: kept for a while, each under a name that stands in links."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from engine.config import ResolvedConfig
from engine.data.tokenizers import Tokenizer
from engine.model import Transformer
from ui import memo

TUNED = "tuned-"  # how the names begin
GONE = "That fine-tuned model is no longer on this server"
_MINE = "tuned_here"  # the names of this session, the newest first


@dataclass(frozen=True)
class Tuned:
    """A fine-tuned model. `base` is the name of the model that it began as, `taught` what it has learned."""

    model: Transformer = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    base: str
    title: str
    metrics: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> ResolvedConfig:
        return self.model.config


def keep(recipe: str, tuned: Tuned, size: int) -> str:
    """Keeps a model of so many bytes of its own, for everybody who has its link; returns its name, the same
    for the same `recipe`.
    """
    name = TUNED + hashlib.sha256(recipe.encode()).hexdigest()[:12]
    memo.LOADED.put(name, tuned, size)
    st.session_state[_MINE] = [name, *(each for each in mine() if each != name)][:4]
    return name


def get(name: str) -> Tuned | None:
    """Returns a fine-tuned model; None where it is no longer here, and for any other name."""
    kept: Tuned | None = memo.LOADED.known(name) if name.startswith(TUNED) else None
    return kept


def mine() -> list[str]:
    """Returns the names of the models that this session has fine-tuned and that are still here."""
    return [name for name in st.session_state.get(_MINE, ()) if get(name) is not None]


def offered(named: str | None) -> list[str]:
    """Returns this session's models, and the one that a link names, if it is here."""
    linked = [named] if named is not None and named not in mine() and get(named) is not None else []
    return [*mine(), *linked]
