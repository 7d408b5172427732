"""The purpose of an encoder-decoder's two masks: the same training with both in their places, and swapped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from engine.parts.registry import parts_of
from engine.training.records import Evaluation, Sample
from studies.experiments.command import complete, folder_options, from_json, made, reading
from studies.pairs.corpora import pair_text
from studies.pairs.presets import PAIRED
from studies.pairs.train import train_pairs

SHIPPED = Path(__file__).parents[2] / "checkpoints" / "swapped.json"
TASK, SOURCE, EVERY = "dates", "the 21st of November 2026", 25
HEALTHY, SWAPPED = "healthy", "swapped_masks"  # names of parts


@dataclass(frozen=True)
class Swapped:
    """One training: at each of `steps` the `losses` on held-out pairs (nats per symbol, the right beginning
    given, as in training), the share of held-out sources whose target is `right` when the model writes alone,
    and what it writes for SOURCE.
    """

    steps: tuple[int, ...]
    losses: tuple[float, ...]
    right: tuple[float, ...]
    texts: tuple[str, ...]
    made: str = ""


def learn(parts: str, steps: int = 0) -> Swapped:
    """Trains the task's own recipe with these parts; `steps` in the place of its own, if not 0."""
    preset, text = PAIRED[TASK], pair_text(TASK)
    assert preset.train is not None
    config = replace(
        preset.train,
        steps=steps or preset.train.steps,
        eval_every=EVERY,
        sample_every=EVERY,
        sample_prompt=SOURCE,
    )
    looks: dict[int, tuple[float, float]] = {}
    texts: dict[int, str] = {}
    for record in train_pairs(text.fitted(preset.model), config, text, parts=parts_of(parts)):
        if isinstance(record, Evaluation) and record.task is not None:
            looks[record.step] = (record.validation_loss, record.task.validation)
        elif isinstance(record, Sample):
            texts[record.step] = record.text
    reached = sorted(looks)
    return Swapped(
        tuple(reached),
        tuple(looks[step][0] for step in reached),
        tuple(looks[step][1] for step in reached),
        tuple(texts.get(step, "") for step in reached),
        made("masks-swapped"),
    )


def opened(path: Path) -> dict[str, Swapped]:
    """Reads the stored trainings, by the name of the parts. Raises CheckpointError for an unreadable file."""
    with reading(path, "masks-swapped") as stored:
        return {name: from_json(Swapped, each) for name, each in stored.items()}


@cache
def shipped(path: Path = SHIPPED) -> dict[str, Swapped]:
    """Reads the trainings that come with the app; none where not both are made yet."""
    trainings = opened(path) if path.is_file() else {}
    return trainings if trainings.keys() >= {HEALTHY, SWAPPED} else {}


def main(arguments: Sequence[str] | None = None) -> None:
    def ends(training: Swapped) -> str:
        return f"{training.right[-1]:.2f} of the held-out targets are right"

    file = folder_options(__doc__).parse_args(arguments).into / SHIPPED.name
    complete(file, (HEALTHY, SWAPPED), opened, learn, ends, dict)
