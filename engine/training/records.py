"""The records that a training yields: frozen, in the order in which things happen.

Losses are nats per token; `bits` are the same losses in bits per character, comparable between tokenizers
(None where not measured). `seconds` is time spent training so far (evaluation, sampling and snapshots
excluded).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor


@dataclass(frozen=True)
class Step:
    """One update of the weights. `step` counts from 1; `loss` is the batch's, before the update."""

    step: int
    loss: float
    grad_norm: float  # over all parameters, before clipping
    learning_rate: float  # AdamW's
    tokens: int  # seen so far
    seconds: float
    bits: float | None = None  # the batch's loss in bits per character


Grid = tuple[tuple[float, ...], ...]  # (layer, head)


@dataclass(frozen=True)
class HeadScores:
    """Attention of every head to random tokens that are read twice (studies.attention.head_scores).
    `induction` (layer, head): weight from each position of the second reading on the one after its first
    occurrence; `previous` (layer, head): on the token just before. Losses are those of the two readings.
    """

    induction: Grid
    previous: Grid
    first_loss: float
    second_loss: float


@dataclass(frozen=True)
class TaskScores:
    """Shares, 0 to 1, of a synthetic task's problems that are solved (studies.tasks.problems), of the
    training and the validation split.
    """

    train: float
    validation: float


@dataclass(frozen=True)
class Evaluation:
    """Mean losses over the same windows of the training and the validation split each time."""

    step: int
    train_loss: float
    validation_loss: float
    seconds: float
    complete: bool  # the whole validation split was read
    train_bits: float | None = None  # the same losses in bits per character
    validation_bits: float | None = None
    heads: HeadScores | None = None  # with TrainConfig.repeat, by the `score_heads` of `train`
    task: TaskScores | None = None  # where the text is a synthetic task


@dataclass(frozen=True)
class Sample:
    """The model's own text at a step: `text` follows `prompt` (or fills its gaps, for a masked model)."""

    step: int
    prompt: str
    text: str


@dataclass(frozen=True)
class TrainState:
    """All that a training needs to resume exactly: fp32 weights and optimiser state by name, on the CPU."""

    step: int
    seconds: float
    tensors: dict[str, Tensor] = field(repr=False)

    def weights(self) -> dict[str, Tensor]:
        """Returns the model's parameters alone, fp32, by name."""
        return {
            name.removeprefix("model."): t for name, t in self.tensors.items() if name.startswith("model.")
        }


@dataclass(frozen=True)
class Snapshot:
    """The state after a step, copied: to look inside, or to resume from."""

    step: int
    state: TrainState
    finite: bool = True  # it holds numbers, and what the model makes of a text with them are numbers too


@dataclass(frozen=True)
class Done:
    """The last record of every training."""

    step: int
    reason: Literal["finished", "stopped", "diverged"]
    message: str
    seconds: float


Record = Step | Evaluation | Sample | Snapshot | Done


@dataclass
class Control:
    """The settings that may be changed while a training runs. The trainer reads them before every step."""

    learning_rate: float | None = None  # a new peak for AdamW; Muon's is scaled alike
    prompt: str | None = None
    stop: bool = False
    snapshot: bool = False  # take one after the next step
