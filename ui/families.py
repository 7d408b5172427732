"""Encoders and encoder-decoders among the models that can be looked into: the two halves of one, and what a
page says of the half that it shows.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from engine import checkpoints
from engine.checkpoints import Checkpoint
from engine.errors import RunError
from runs.kinds import PAIRS, PAIRS_OF
from studies.pairs.checkpoints import PairCheckpoint, load_pair
from studies.pairs.paired import PAIR_TASKS
from studies.pairs.seq2seq import reader_of
from studies.pairs.tokenizer import SourceTokenizer
from studies.tokens.blanks import BlankTokenizer
from ui import memo, session
from ui.fit_text import PAIR
from ui.site import ROOT
from ui.training_step import NEWEST

Family = Literal["encoder", "decoder", "both"]
RUN = "run-"  # a training of somebody's, on this server
ENCODER = "encoder-"  # in checkpoints/encoders; encoder-decoders are in checkpoints/paired
ENCODERS = {"blanks": "Fill the blanks: encoder"}
FIRST_ENCODER, FIRST_PAIR = f"{ENCODER}blanks", f"{PAIR}language"
_FOLDERS = {ENCODER: ROOT / "checkpoints" / "encoders", PAIR: ROOT / "checkpoints" / "paired"}


def pair_task(name: str) -> str | None:
    """Returns the task of an encoder-decoder, shipped or of a run; None for any other model."""
    if name.startswith(RUN):
        run = session.manager().view(name.removeprefix(RUN))
        return run.spec.corpus.removeprefix(PAIRS_OF) if run is not None and run.spec.kind is PAIRS else None
    task = name.removeprefix(PAIR)
    return task if name.startswith(PAIR) and task in PAIR_TASKS else None


def family_of(name: str) -> Family:
    """Returns the family of a shipped model or of a run of pairs. A model of another run or of others may be
    an encoder, too, as its configuration says.
    """
    if pair_task(name) is not None:
        return "both"
    return "encoder" if name.startswith(ENCODER) else "decoder"


def is_here(name: str) -> bool:
    """True if a shipped one lies here."""
    return (_folder(name) / checkpoints.CONFIG).is_file()


def _folder(name: str) -> Path:
    prefix = PAIR if name.startswith(PAIR) else ENCODER
    return _FOLDERS[prefix] / name.removeprefix(prefix)


def pair_of(name: str, step: int = NEWEST) -> PairCheckpoint | None:
    """Returns the encoder-decoder of that name, of a run after a `step` of its snapshots; None for any other
    model. Raises CheckpointError when its files are not whole, RunError when a snapshot has gone.
    """
    if pair_task(name) is None:
        return None
    return _snapshot(name, _kept(name, step)) if name.startswith(RUN) else _pair(name)


def reader(name: str, step: int, pair: PairCheckpoint) -> Checkpoint:
    """Returns the half of an encoder-decoder that reads, into which every page can look."""
    return _reader(name, _kept(name, step), pair)


def _kept(name: str, step: int) -> int:
    """The step of a run that NEWEST is; of what was not trained here always NEWEST."""
    if not name.startswith(RUN):
        return NEWEST
    run = session.manager().view(name.removeprefix(RUN))
    if run is None or not run.snapshots:
        raise RunError("That run has no snapshots to inspect.")
    return max(run.snapshots) if step == NEWEST else step


def as_read(checkpoint: Checkpoint) -> Checkpoint:
    """Adds a sign for a gap to the tokenizer of a model that has a token for it which the tokenizer does not
    know.
    """
    if checkpoint.config.causal or checkpoint.config.vocab_size != checkpoint.tokenizer.vocab_size + 1:
        return checkpoint
    return replace(checkpoint, tokenizer=BlankTokenizer(checkpoint.tokenizer))


def reads_only(loaded: object) -> bool:
    """True for the encoder of an encoder-decoder."""
    return isinstance(loaded, Checkpoint) and isinstance(loaded.tokenizer, SourceTokenizer)


@memo.loaded("Reading the model …")
def _pair(name: str) -> PairCheckpoint:
    return load_pair(_folder(name))


@memo.loaded("Reading the model …")
def encoder(name: str) -> Checkpoint:
    """Returns a shipped encoder. Raises CheckpointError when its files are not whole."""
    return checkpoints.load(_folder(name))


@memo.loaded()
def _snapshot(name: str, step: int) -> PairCheckpoint:
    result = session.manager().trained(name.removeprefix(RUN), step)
    assert isinstance(result, PairCheckpoint)
    return result


@memo.loaded()
def _reader(name: str, step: int, _pair: PairCheckpoint) -> Checkpoint:
    model = reader_of(_pair.model)
    return Checkpoint(model, model.config, SourceTokenizer.of(_pair.tokenizer), _pair.metrics)


# What a page says of the half that it looks into -----------------------------------------------------------


def seen_half(name: str, both: bool) -> str:
    """Returns the sentence above a view of an encoder-decoder: that it shows one half, or whichever of `both`
    is chosen in it (Markdown).
    """
    if both:
        return f"One half at a time; [Cross-attention]({crossing(name)}) shows how they connect."
    return (
        f"Shown here: **the encoder**, which reads. [Cross-attention]({crossing(name)}) shows how the decoder"
        " attends to it."
    )


CLOSED = {
    "says": ("This page shows the encoder of an encoder-decoder, which predicts nothing by itself."),
    "sums": (
        "These analogies need English words, or the characters of ordinary text; the shipped encoder-decoders"
        " know few of either."
    ),
    "checks": (
        "These checks are for models that continue a text. An encoder-decoder writes a target for a source,"
        " which is right or wrong as a whole."
    ),
}


def why_closed(why: str, name: str) -> str:
    """Returns the sentence in place of a view that has no meaning for an encoder-decoder, and where to look
    instead (Markdown).
    """
    return f"{why} [Cross-attention]({crossing(name)}) shows what it writes, and what it attends to."


def crossing(name: str) -> str:
    """Returns the address of the page on what an encoder-decoder writes, with that model."""
    return f"/crossattention?cross_task={crossed(name)}"


def crossed(name: str) -> str | None:
    """Returns the name of an encoder-decoder on the page about cross-attention: a run's own, a shipped one's
    task.
    """
    return name if name.startswith(RUN) else pair_task(name)
