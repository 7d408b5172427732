"""Encoders and encoder-decoders among the models that can be looked into. What family a name means is asked
here, and nowhere else.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import streamlit as st

from engine import checkpoints
from engine.checkpoints import Checkpoint
from engine.checkpoints_paired import PairCheckpoint, load_pair
from engine.reader import reader_of
from engine.tasks.paired import PAIR_TASKS
from engine.tokenizers.blanks import BlankTokenizer
from engine.tokenizers.sources import SourceTokenizer
from ui.reading import GAPS, PAIR
from ui.site import ROOT

Family = Literal["encoder", "decoder", "both"]
ENCODER = "encoder-"  # in checkpoints/encoders; encoder-decoders are in checkpoints/paired
ENCODERS = {"blanks": "Fill the blanks: encoder"}
FIRST_ENCODER, FIRST_PAIR = f"{ENCODER}blanks", f"{PAIR}language"
_FOLDERS = {ENCODER: ROOT / "checkpoints" / "encoders", PAIR: ROOT / "checkpoints" / "paired"}


def pair_task(name: str) -> str | None:
    """The task of an encoder-decoder; None for any other model."""
    task = name.removeprefix(PAIR)
    return task if name.startswith(PAIR) and task in PAIR_TASKS else None


def family_of(name: str) -> Family:
    """Of what comes with the app. A model of a run or of others may be an encoder, too, as its configuration
    says.
    """
    if pair_task(name) is not None:
        return "both"
    return "encoder" if name.startswith(ENCODER) else "decoder"


def offered() -> list[str]:
    """The names of those that are there."""
    names = [ENCODER + name for name in ENCODERS] + [PAIR + task for task in PAIR_TASKS]
    return [name for name in names if (_folder(name) / checkpoints.CONFIG).is_file()]


def _folder(name: str) -> Path:
    prefix = PAIR if name.startswith(PAIR) else ENCODER
    return _FOLDERS[prefix] / name.removeprefix(prefix)


def title_of(name: str) -> str | None:
    """None for a model of another kind."""
    task = pair_task(name)
    if task is not None:
        return f"{PAIR_TASKS[task].title}: encoder-decoder"
    return ENCODERS.get(name.removeprefix(ENCODER)) if name.startswith(ENCODER) else None


def kind_of(name: str) -> str | None:
    """What one reads, as `ui.reading.examples_of` has it; None for a model of another kind."""
    if pair_task(name) is not None:
        return name
    return GAPS if family_of(name) == "encoder" else None


def pair_of(name: str) -> PairCheckpoint | None:
    """The encoder-decoder of that name; None for any other model. Raises CheckpointError when its files are
    not whole.
    """
    return None if pair_task(name) is None else _pair(name)


def model_of(name: str) -> Checkpoint | None:
    """An encoder; of an encoder-decoder the half that reads, into which every page can look; None for another
    kind. Raises as `pair_of`.
    """
    pair = pair_of(name)
    if pair is not None:
        return _reader(name, pair)
    return _encoder(name) if family_of(name) == "encoder" else None


def as_read(found: Checkpoint) -> Checkpoint:
    """With a sign for a gap, where the model has a token for it that its tokenizer does not know."""
    if found.config.causal or found.config.vocab_size != found.tokenizer.vocab_size + 1:
        return found
    return replace(found, tokenizer=BlankTokenizer(found.tokenizer))


def exact_of(found: object) -> str | None:
    """How often an encoder-decoder is right; None for another kind."""
    if not (isinstance(found, Checkpoint) and isinstance(found.tokenizer, SourceTokenizer)):
        return None
    return f"{found.metrics['exact']:.1%} of held-out sources written right, whole"


@st.cache_resource(max_entries=8, show_spinner="Reading the model …")
def _pair(name: str) -> PairCheckpoint:
    return load_pair(_folder(name))


@st.cache_resource(max_entries=4, show_spinner="Reading the model …")
def _encoder(name: str) -> Checkpoint:
    return checkpoints.load(_folder(name))


@st.cache_resource(max_entries=8, show_spinner=False)
def _reader(name: str, _pair: PairCheckpoint) -> Checkpoint:
    model = reader_of(_pair.model)
    return Checkpoint(model, model.config, SourceTokenizer(_pair.tokenizer), _pair.metrics)


# What a page says of the half that it looks into -----------------------------------------------------------


def seen_half(name: str, both: bool) -> str:
    """Above a view of an encoder-decoder: that it shows one half, or whichever of `both` is chosen in it
    (Markdown).
    """
    if both:
        return f"Two halves, one at a time; how one looks at the other: [Cross-attention]({crossing(name)})."
    return (
        f"Seen here: **the half that reads**, its encoder. The half that writes looks at it in"
        f" [Cross-attention]({crossing(name)})."
    )


CLOSED = {
    "says": (
        "An encoder-decoder has two halves, and the one that a page looks into, the encoder, says nothing by"
        " itself."
    ),
    "sums": (
        "These sums are of English words, or of letters as texts have them; the encoder-decoders that come"
        " with the app know few of either."
    ),
    "checks": (
        "These checks ask a model what follows in a text. An encoder-decoder answers a source instead: it is"
        " right or wrong as a whole."
    ),
}


def why_closed(reason: str, name: str) -> str:
    """In the place of a view that has no meaning for an encoder-decoder (Markdown)."""
    return (
        f"{CLOSED[reason]} What it writes, and where it looks meanwhile: [Cross-attention]({crossing(name)})."
    )


def crossing(name: str) -> str:
    """The address of the page on what an encoder-decoder writes, with that model."""
    return f"/crossattention?cross_task={pair_task(name)}"
