"""Training, as a generator of records: a notebook loops over it, a worker sends them on, nothing prints.

    for record in train(ModelConfig(), TrainConfig(), corpora.load("python")):
        ...

Not asking for the next record is how a training is paused.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import torch

from engine.config import ModelConfig, TrainConfig
from engine.corpora import Corpus, check_length
from engine.errors import CheckpointError, ConfigError
from engine.faults import parts_of
from engine.measure.head_scores import head_scores
from engine.measure.task_scores import task_scores
from engine.model import Transformer, build
from engine.numerics import choose
from engine.parts.protocols import Parts
from engine.sample import complete
from engine.tasks import Task
from engine.training.batches import Batches
from engine.training.evaluation import loss_of, measure
from engine.training.optim import Optimiser, learning_rate_factor, spent
from engine.training.records import Control, Done, Evaluation, Record, Sample, Snapshot, Step, TrainState

KINDS = {"char": "characters", "byte": "bytes", "bpe": "BPE tokens"}


def check(model: ModelConfig, config: TrainConfig, corpus: Corpus) -> None:
    """Raises ConfigError or CorpusError when the three do not go together."""
    model.validate()
    config.validate()
    if config.tokenizer != corpus.cut:
        raise ConfigError(
            "tokenizer",
            config.tokenizer,
            f"must be that of the corpus, {corpus.cut}: load the corpus with the tokenizer of the config",
        )
    masked = config.objective == "masked"
    if masked and model.causal:
        raise ConfigError(
            "causal", True, "must be False for the masked objective: the model fills gaps from both sides"
        )
    if model.output_head == "none":
        raise ConfigError("output_head", "none", "leaves nothing to predict with; training needs a head")
    need = corpus.vocab_size + masked
    if model.vocab_size != need:
        mask = " and the mask" if masked else ""
        raise ConfigError(
            "vocab_size",
            model.vocab_size,
            f"must be {need} for the corpus {corpus.name!r}: its {corpus.vocab_size}"
            f" {KINDS[corpus.kind]}{mask}",
        )
    check_length(corpus, model.context)
    if corpus.task is not None:
        _check_task(model, config, corpus.task)


def _check_task(model: ModelConfig, config: TrainConfig, task: Task) -> None:
    """A problem is read whole and in order, as it is."""
    if config.objective != "next_token":
        raise ConfigError("objective", config.objective, f"must be next_token for the task {task.title}")
    if config.repeat:
        raise ConfigError(
            "repeat", config.repeat, f"must be 0 for the task {task.title}: its windows are problems"
        )
    if model.context < task.length:
        raise ConfigError(
            "context",
            model.context,
            f"must be at least {task.length} for the task {task.title}: a problem with its line break",
        )


def warning(model: ModelConfig, config: TrainConfig) -> str:
    """A sentence about a training that is allowed, and shows something else than it seems to; else ''."""
    if config.objective == "next_token" and not model.causal:
        return (
            "Without the causal mask every place sees the letter that it should guess. The loss falls towards"
            " 0 and says nothing; what the model writes alone shows that it learned to copy, not to write."
        )
    return ""


def train(
    model_config: ModelConfig,
    train_config: TrainConfig,
    corpus: Corpus,
    *,
    control: Control | None = None,
    resume: TrainState | None = None,
    device: str | torch.device = "auto",
    parts: str = "healthy",
) -> Iterator[Record]:
    """Trains a model and yields what happens: an Evaluation, a Sample and a Snapshot before the first step, a
    Step after each, the others at their intervals, and at the end a quick Evaluation and a complete one, a
    Sample, a Snapshot and Done.

    The same configs, corpus and seed give the same losses on the same machine; so does going on from a
    snapshot by `resume`. To train for longer, resume with a larger `steps`: the schedule is then that of the
    longer training. `parts` names what the model is made of (engine.faults.PARTS). Raises ConfigError or
    CorpusError at once, before the first record is asked for, when the three do not go together.
    """
    check(model_config, train_config, corpus)
    made_of = parts_of(parts)
    return _Training(model_config, train_config, corpus, control or Control(), device, made_of).records(
        resume
    )


class _Training:
    def __init__(
        self,
        model_config: ModelConfig,
        config: TrainConfig,
        corpus: Corpus,
        control: Control,
        device: str | torch.device,
        parts: Parts,
    ) -> None:
        train, validation = parts.split(corpus.train, corpus.validation)
        corpus = replace(corpus, train=train, validation=validation)
        self.config, self.corpus, self.control = config, corpus, control
        self.numerics = choose(config.precision, device)
        self.model = build(model_config, config.seed, parts=parts, init=config.init).to(self.numerics.device)
        parts.mode(self.model, True)
        self.optimiser = Optimiser(self.model, config, self.numerics)
        self.batches = Batches(corpus, model_config, config, parts.targets)
        self.step, self.seconds = 0, 0.0
        self.looked = -1  # the step of the last quick look

    def records(self, resume: TrainState | None) -> Iterator[Record]:
        if resume is not None:
            self._restore(resume)
        yield from self._look(complete=False, every=True)
        while not (self._over() or self.control.stop):
            record = self._one_step()
            if not (
                math.isfinite(record.loss) and math.isfinite(record.grad_norm)
            ):  # either way the weights are now lost
                yield record
                what = (
                    f"gradient norm became {record.grad_norm}"
                    if math.isfinite(record.loss)
                    else f"loss became {record.loss}"
                )
                message = (
                    f"the {what} at step {record.step}: the training diverged. A lower learning rate or"
                    " gradient clipping helps"
                )
                yield Done(self.step, "diverged", message, self.seconds)
                return
            yield record
            if not (self._over() or self.control.stop):
                yield from self._look(complete=False)
        config = self.config
        if config.eval_every and config.eval_tokens and self.looked != self.step:
            # the curve of quick looks goes on to its end, beside the other kind that follows
            yield self._evaluation(complete=False)
        yield from self._look(complete=True, every=True)
        if not self._over():
            message = f"stopped at step {self.step} of {self.config.steps}"
            yield Done(self.step, "stopped", message, self.seconds)
        else:
            early = f"its {config.seconds:g} s are over, after {self.step} steps"
            message = f"all {config.steps} steps done" if self.step >= config.steps else early
            yield Done(self.step, "finished", message, self.seconds)

    def _over(self) -> bool:
        """Whether its budget is spent."""
        return spent(self.config, self.step, self.seconds) >= 1

    def _one_step(self) -> Step:
        started = time.perf_counter()
        factor = learning_rate_factor(self.config, self.step, self.seconds)
        if self.control.learning_rate is not None:  # a new peak, changed by hand; Muon's moves in proportion
            factor *= self.control.learning_rate / max(self.config.learning_rate, 1e-12)
        batch = self.batches.at(self.step)
        with (
            self.numerics.scope(),
            _seeded(self.config.seed, self.step, self.numerics.device, self.model.config.dropout > 0),
        ):
            loss = loss_of(self.model, batch, self.numerics.device)
            value = float(loss.detach())
            norm = self.optimiser.update(loss, factor)
        self.step += 1
        self.seconds += time.perf_counter() - started
        tokens = self.step * batch.inputs.numel()
        return Step(
            self.step,
            value,
            norm,
            self.config.learning_rate * factor,
            tokens,
            self.seconds,
            self.batches.loss(value, batch).bits,
        )

    def _look(self, complete: bool, every: bool = False) -> Iterator[Record]:
        """Whatever is due at this step."""
        config, control = self.config, self.control
        # Nothing is yielded from inside a scope: while the caller holds a record, torch is as the caller left
        # it.
        evaluation = self._evaluation(complete) if every or look_due(config, "eval", self.step) else None
        if evaluation is not None:
            yield evaluation
        if config.sample_every and (every or look_due(config, "sample", self.step)):
            yield self._sample()
        if every or control.snapshot or snapshot_due(config, self.step):
            control.snapshot = False
            state = TrainState(self.step, self.seconds, self.optimiser.state())
            yield Snapshot(self.step, state, self._finite(state, evaluation))

    def _finite(self, state: TrainState, evaluation: Evaluation | None) -> bool:
        """Whether a state can be gone on from: its numbers are finite, and so is the loss that they give (in
        a diverging training the weights are often still numbers when the logits are none any more).
        """
        if not all(bool(tensor.isfinite().all()) for tensor in state.tensors.values()):
            return False
        if evaluation is not None:
            return math.isfinite(evaluation.train_loss) and math.isfinite(evaluation.validation_loss)
        with self.numerics.scope():
            return math.isfinite(measure(self.model, self.batches, self.corpus.train, limit=1).nats)

    def _evaluation(self, complete: bool) -> Evaluation:
        limit = self.config.eval_tokens
        self.looked = self.looked if complete else self.step
        with self.numerics.scope():
            training = measure(
                self.model, self.batches, self.corpus.train, limit or len(self.corpus.validation)
            )
            validation = measure(self.model, self.batches, self.corpus.validation, 0 if complete else limit)
            solved = task_scores(self.model, self.corpus)
        return Evaluation(
            self.step,
            training.nats,
            validation.nats,
            self.seconds,
            complete or not limit,
            training.bits,
            validation.bits,
            head_scores(self._in_float32(), self.corpus.tokenizer) if self.config.repeat else None,
            solved,
        )

    def _in_float32(self) -> Transformer:
        """To be looked into or to write with: one row at a time, bfloat16 takes a processor twice as long."""
        if self.numerics.device.type == "cpu" and self.numerics.dtype != torch.float32:
            return copy.deepcopy(self.model).float()
        return self.model

    def _sample(self) -> Sample:
        prompt = self.config.sample_prompt if self.control.prompt is None else self.control.prompt
        unknown = set(self.corpus.tokenizer.unknown(prompt))
        prompt = "".join(c for c in prompt if c not in unknown)  # what the model really sees
        seed = self.config.seed + self.step
        task = self.corpus.task
        if task is not None and not task.stream:
            return Sample(self.step, prompt, self._problems(task, prompt, seed))
        text = complete(
            self._in_float32(),
            self.corpus.tokenizer,
            prompt,
            self.config.sample_length,
            self.config.sample_temperature,
            seed,
        )
        return Sample(self.step, prompt, text)

    def _problems(self, task: Task, prompt: str, seed: int) -> str:
        """What follows the prompt when it makes up problems, one a line, and solves them: each from the
        beginning of a window, as it learned them.
        """
        model, start = self._in_float32(), prompt.strip("\n")[: task.length - 2]
        left, count = task.length - 1 - len(start), max(1, self.config.sample_length // task.length)
        lines = [
            start
            + complete(
                model,
                self.corpus.tokenizer,
                "\n" + start,
                left,
                self.config.sample_temperature,
                seed + 1000 * i,
            )
            for i in range(count)
        ]
        return "\n".join(lines)[len(start) :] + "\n"

    def _restore(self, state: TrainState) -> None:
        try:
            self.optimiser.load_state(state.tensors)
        except (KeyError, RuntimeError) as error:
            raise CheckpointError(f"this snapshot is not of this model: {error}") from error
        self.step, self.seconds = state.step, state.seconds


def snapshot_due(config: TrainConfig, step: int) -> bool:
    """Whether a snapshot is kept after a step: at the interval and, where asked for, after 1, 2, 4, 8 … steps
    up to it.
    """
    early = config.snapshot_early and 0 < step < config.snapshot_every and step & (step - 1) == 0
    return early or _due(step, config.snapshot_every)


def look_due(config: TrainConfig, kind: Literal["eval", "sample"], step: int) -> bool:
    """Whether the model is validated, or writes, after a step: at the interval and, where asked for, after 1,
    2, 5, 10, 20, 50 ... steps up to it: most is learned early, and a straight line from the first look to the
    first interval would hide it.
    """
    every = config.eval_every if kind == "eval" else config.sample_every
    return (config.look_early and early(step, every)) or _due(step, every)


def early(step: int, every: int) -> bool:
    """Whether a step is one of 1, 2, 5, 10, 20, 50 ... below an interval.

    >>> [step for step in range(120) if early(step, 100)]
    [1, 2, 5, 10, 20, 50]
    """
    return 0 < step < every and f"{step}"[0] in "125" and not f"{step}"[1:].strip("0")


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


class _seeded:
    """Draws of dropout inside depend on seed and step alone; torch's own generators are as before
    afterwards.
    """

    def __init__(self, seed: int, step: int, device: torch.device, needed: bool) -> None:
        devices = [device] if device.type == "cuda" else []
        self.fork = torch.random.fork_rng(devices=devices) if needed else None
        self.value = (seed * 1_000_003 + step) % 2**63

    def __enter__(self) -> None:
        if self.fork is not None:
            self.fork.__enter__()
            torch.manual_seed(self.value)

    def __exit__(self, *error: Any) -> None:
        if self.fork is not None:
            self.fork.__exit__(*error)
