"""Code that several views of Positions need: the choice of a mask, a written number, the small models that
were trained with one scheme each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from engine.errors import GlassformerError
from engine.model import Transformer
from engine.weights import checkpoints
from engine.weights.checkpoints import Checkpoint
from ui import widgets
from ui.fit_text import most_tokens, read
from ui.model_bar import Subject
from ui.models import SHIPPED, model_of
from ui.site import ROOT
from ui.text.markdown import safe
from ui.text.numbers import minus
from ui.training_step import NEWEST

MASKS = ("causal", "both ways")


def signed(value: float, digits: int = 3) -> str:
    """Returns a number with a true minus sign.

    >>> signed(-1.5), signed(2.0, 1)
    ('−1.500', '2.0')
    """
    return minus(f"{value:.{digits}f}")


def thousands(value: float) -> str:
    """Returns a number as sliders write it.

    >>> thousands(10_000), thousands(0.25)
    ('10,000', '0.25')
    """
    return f"{value:,}"


def choose_mask(causal: bool, key: str) -> bool:
    """True for a causal mask; the model's own choice stands first."""
    return widgets.select("Mask", MASKS if causal else MASKS[::-1], key) == MASKS[0]


@dataclass(frozen=True)
class Shown:
    """The subject of a view: the bar's own, or a substitute; then `line` says so."""

    subject: Subject
    line: str


def fitting_subject(subject: Subject, fits: Callable[[Transformer], bool], otherwise: str, why: str) -> Shown:
    """Returns the subject where its model `fits`; else the shipped model `otherwise`, reading the same text,
    where it is there. `why`: what the chosen model has instead.
    """
    if fits(subject.model) or not (ROOT / "checkpoints" / otherwise).is_dir():
        return Shown(subject, "")
    found = model_of(otherwise, NEWEST, ())
    ids, text, _ = read(subject.text, found.tokenizer, most_tokens(found.config))
    other = Subject(
        (otherwise, NEWEST), SHIPPED[otherwise], found.model, found.tokenizer, text, ids, subject.corpus
    )
    chosen, instead = (safe(one.title.removesuffix(" (trained)")) for one in (subject, other))
    return Shown(other, f":material/info: {chosen} {why}. Shown instead: {instead}.")


def example(scheme: str) -> Checkpoint | None:
    """Returns the small model that was trained with a scheme, `checkpoints/positions/<scheme>`; None where it
    is not there or not whole.
    """
    folder = ROOT / "checkpoints" / "positions" / scheme
    try:
        return _example(scheme, (folder / checkpoints.CONFIG).stat().st_mtime)
    except (OSError, GlassformerError):
        return None


@st.cache_resource(max_entries=4, show_spinner=False)
def _example(scheme: str, stamp: float) -> Checkpoint:
    return checkpoints.load(ROOT / "checkpoints" / "positions" / scheme)
