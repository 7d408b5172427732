"""Training, as a generator of records: a notebook loops over it, a worker sends them on, nothing prints.

    text = corpora.load("python")
    for record in train(ModelConfig(vocab_size=text.vocab_size), TrainConfig(), text):
        ...

Not asking for the next record is how a training is paused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from engine.config import ModelConfig, TrainConfig
from engine.data.corpus import Corpus, Task, check_length
from engine.data.tokenizers import Tokenizer
from engine.errors import ConfigError, RunError
from engine.model import Transformer, build
from engine.parts.registry import HEALTHY, Parts
from engine.sample import complete
from engine.training.batches import Batch, Batches, loss_of, measure
from engine.training.loop import Loop
from engine.training.numerics import choose
from engine.training.records import (
    Control,
    Done,
    Evaluation,
    HeadScores,
    Record,
    Sample,
    Snapshot,
    TaskScores,
    TrainState,
)

if TYPE_CHECKING:
    from engine.checkpoints import Checkpoint

HeadScorer = Callable[[Transformer, Tokenizer], HeadScores | None]
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
            "causal",
            True,
            "must be False for the masked objective: the model fills in masked tokens from both sides",
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
    """Raises ConfigError if a task does not fit the configurations: each window is one whole problem."""
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
    """Returns a sentence about a training that is allowed but misleading, '' for any other."""
    if config.objective == "next_token" and not model.causal:
        return (
            "Without the causal mask every position sees the token that it should predict. The loss falls"
            " towards 0 and says nothing; the model's own samples show that it learned to copy, not to"
            " write."
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
    parts: Parts = HEALTHY,
    score_heads: HeadScorer | None = None,
) -> Iterator[Record]:
    """Trains a model and yields records: an Evaluation, a Sample and a Snapshot before the first step, a Step
    after each, the others at their intervals, all of them again at the end, with a complete Evaluation, and
    Done. Without `sample_every` there are no samples; after a divergence only Done follows.

    The same configs, corpus and seed give the same losses on the same machine; so does going on from a
    snapshot by `resume`. To train for longer, resume with a larger `steps`: the schedule is then that of the
    longer training. `parts` are what the model is made of. `score_heads`
    (studies.attention.head_scores) is asked at each evaluation of a training with `repeat`. Raises
    ConfigError or CorpusError at once, before the first record is asked for, when the three do not go
    together.
    """
    check(model_config, train_config, corpus)
    if train_config.repeat and score_heads is None:
        raise ConfigError(
            "repeat",
            train_config.repeat,
            "needs score_heads, such as studies.attention.head_scores.head_scores: a training on"
            " repeats says at each evaluation what every head does with a text read twice",
        )
    training = _Training(model_config, train_config, corpus, control or Control(), device, parts, score_heads)
    return training.records(resume)


def fit(
    model_config: ModelConfig,
    train_config: TrainConfig,
    corpus: Corpus,
    *,
    watch: Callable[[Record], object] | None = None,
    **options: Any,
) -> Checkpoint:
    """Trains a model to its end and returns it with its tokenizer, in evaluation mode, float32, on the CPU.

    `watch` is shown each record, such as `print`; `options` are those of `train`. Its `metrics` are the last
    losses. Raises RunError for a training that diverged.
    """
    from engine.checkpoints import Checkpoint, model_with

    state: TrainState | None = None
    metrics: dict[str, Any] = {}
    for record in train(model_config, train_config, corpus, **options):
        if watch is not None:
            watch(record)
        if isinstance(record, Snapshot):
            state = record.state
        elif isinstance(record, Evaluation):
            losses = {"train_loss": record.train_loss, "validation_loss": record.validation_loss}
            metrics = {"steps": record.step} | losses
        elif isinstance(record, Done) and record.reason == "diverged":
            raise RunError(record.message)
    assert state is not None, "every training ends with a snapshot"
    model = model_with(model_config, state.weights(), parts=options.get("parts", HEALTHY))
    return Checkpoint(model, model.config, corpus.tokenizer, metrics)


class _Training(Loop[Transformer, Batch]):
    def __init__(
        self,
        model_config: ModelConfig,
        config: TrainConfig,
        corpus: Corpus,
        control: Control,
        device: str | torch.device,
        parts: Parts,
        score_heads: HeadScorer | None = None,
    ) -> None:
        train, validation = parts.split(corpus.train, corpus.validation)
        self.corpus = replace(corpus, train=train, validation=validation)
        model = build(model_config, config.seed, parts=parts, init=config.init)
        has_dropout = model.config.dropout > 0
        numerics = choose(config.precision, device)
        if model.config.n_experts:  # as many rows as the routing says: oneDNN would prepare each product anew
            numerics = replace(numerics, matmul="highest")
        super().__init__(model, parts, config, control, numerics, has_dropout)
        self.batches = Batches(self.corpus, model_config, config, parts.targets)
        self.score_heads = score_heads if config.repeat else None

    def batch(self) -> Batch:
        return self.batches.at(self.step)

    def loss(self, batch: Batch) -> Tensor:
        return loss_of(self.model, batch, self.numerics.device)

    def tokens(self, batch: Batch) -> int:
        return self.step * batch.inputs.numel()

    def bits(self, loss: float, batch: Batch) -> float:
        return self.batches.loss(loss, batch).bits

    def quick_loss(self) -> float:
        return measure(self.model, self.batches, self.corpus.train, limit=1).nats

    def evaluation(self, complete: bool) -> Evaluation:
        limit = self.config.eval_tokens
        self.last_quick_step = self.last_quick_step if complete else self.step
        with self.numerics.scope():
            training = measure(
                self.model, self.batches, self.corpus.train, limit or len(self.corpus.validation)
            )
            validation = measure(self.model, self.batches, self.corpus.validation, 0 if complete else limit)
            solved = self._solved()
        return Evaluation(
            step=self.step,
            train_loss=training.nats,
            validation_loss=validation.nats,
            seconds=self.seconds,
            complete=complete or not limit,
            train_bits=training.bits,
            validation_bits=validation.bits,
            heads=self.score_heads(self.in_float32(), self.corpus.tokenizer) if self.score_heads else None,
            task=solved,
        )

    def _solved(self) -> TaskScores | None:
        """Returns the shares of the problems of a synthetic task that are solved; None for any other text."""
        return None if self.corpus.solved is None else self.corpus.solved(self.model, self.corpus)

    def sample(self) -> Sample:
        prompt = self.config.sample_prompt if self.control.prompt is None else self.control.prompt
        unknown = set(self.corpus.tokenizer.unknown(prompt))
        prompt = "".join(c for c in prompt if c not in unknown)  # what the model really sees
        seed = self.config.seed + self.step
        task = self.corpus.task
        if task is not None and not task.stream:
            return Sample(self.step, prompt, self._problems(task, prompt, seed))
        text = complete(
            self.in_float32(),
            self.corpus.tokenizer,
            prompt,
            self.config.sample_length,
            self.config.sample_temperature,
            seed,
        )
        return Sample(self.step, prompt, text)

    def _problems(self, task: Task, prompt: str, seed: int) -> str:
        """Writes problems after the prompt, one a line, and solves them: each from the beginning of a window,
        as the model learned them.
        """
        model, start = self.in_float32(), prompt.strip("\n")[: task.length - 2]
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
