"""Which trained encoder-decoders there are, and what one wrote."""

from __future__ import annotations

from engine.data.pair_corpora import pair_text
from engine.data.tasks.paired import PAIR_TASKS
from engine.errors import RunError
from engine.measure.families.cross_attention import (
    AlignmentScore,
    model_alignment,
)
from engine.measure.families.written_target import Change, WrittenTarget, write_target
from engine.training.kinds import PAIRS_OF
from engine.weights.checkpoints import PairCheckpoint
from engine.weights.pretrained import pairs
from engine.weights.pretrained.pairs import PretrainedPair
from ui import families, memo, session
from ui.fit_text import PAIR
from ui.models import PRETRAINED, RUN, is_pretrained, run_of, title_of
from ui.training_step import NEWEST

ASKED = 40  # held-out pairs whose alignment is scored
LONGEST = 48  # tokens that a model of others writes: it may never come to an end


def shipped() -> dict[str, str]:
    """Returns task -> title, of those whose model came with the app."""
    there = families.offered()
    return {name: task.title for name, task in PAIR_TASKS.items() if PAIR + name in there}


def published() -> dict[str, str]:
    """Returns the encoder-decoders that others trained, name in links -> title, as far as they are on this
    server.
    """
    names = pairs.available() if session.profile().max_pretrained else ()
    return {PRETRAINED + name: title_of(PRETRAINED + name) for name in names}


def task_of(name: str) -> str | None:
    """Returns the task that a model learned, a name of PAIR_TASKS; None for one that others trained."""
    if is_pretrained(name):
        return None
    run = run_of(name)
    return run.spec.corpus.removeprefix(PAIRS_OF) if run else name


def opened(name: str, step: int = NEWEST) -> PairCheckpoint | PretrainedPair:
    """Loads a training's model as it was after a `step` of its snapshots. Raises GlassformerError where it
    cannot be read, or is too large for this server.
    """
    if is_pretrained(name):
        return _published(name.removeprefix(PRETRAINED))
    pair = families.pair_of(name if name.startswith(RUN) else PAIR + name, step)
    if pair is None:
        raise RunError("That run does not learn from pairs.")
    return pair


@memo.loaded("Loading the model: a few seconds the first time …")
def _published(name: str) -> PretrainedPair:
    return pairs.load_pair(name, session.profile().max_pretrained)


@memo.measured(copied=True)
def aligned(name: str, step: int) -> AlignmentScore | None:
    """Returns where a training's heads look while they write ASKED held-out targets, after a `step`. Raises
    GlassformerError when that is gone.
    """
    checkpoint, task = opened(name, step), task_of(name)
    assert isinstance(checkpoint, PairCheckpoint) and task is not None
    held_out = pair_text(task).validation[:ASKED]
    return model_alignment(
        checkpoint.model, checkpoint.tokenizer, [PAIR_TASKS[task].answer(pair.source) for pair in held_out]
    )


@memo.measured()
def crossed(name: str, text: str, change: Change, seed: int, step: int = NEWEST) -> WrittenTarget:
    """Raises what `opened` and `engine.measure.families.written_target.write_target` raise."""
    checkpoint, longest = opened(name, step), LONGEST if is_pretrained(name) else None
    return write_target(checkpoint.model, checkpoint.tokenizer, text, change, seed, longest)
