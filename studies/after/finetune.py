"""Fine-tuning: a trained model learns a few sentences more, in all of its weights or in low-rank adapters.

    lessons = [Lesson("The capital of Velania is Orsk.")]

    for look in fine_tune(model, tokenizer, lessons, FinetuneRecipe(rank=4)):

        ...

LoRA (Hu et al. 2021) freezes every matrix W (out, in) and learns a change of low rank instead: W + B A, with
B (out, rank) and A (rank, in). B starts at zero, so the first step leaves from the model as it was. The model
itself is never written to: it is shared by everybody who looks at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.data.tokenizers import Tokenizer
from engine.errors import ConfigError
from engine.model import Transformer
from engine.training.optim import AdamW

ADAPTED = ("w_qkv", "w_o")  # the matrices of attention, as in the paper
Data = tuple[Tensor, Tensor]  # inputs and targets, both int64 (text, position)
IGNORED = -100  # a target that costs nothing
MAX_STEPS, MAX_RANK, MAX_SENTENCES, MAX_TOKENS = 120, 64, 24, 96
# Of a batch, with what fills it up. For each, SmolLM2's backward pass holds 1.25 MB of activations and
# logits, whatever the rank: about 1 GB in all.
MAX_BATCH_TOKENS = 768


@dataclass(frozen=True)
class FinetuneRecipe:
    """How a model is fine-tuned: the `rank` of its adapters, 0 for all weights; AdamW's learning `rate`,
    constant and without weight decay. The seed draws the adapters, and the windows of a text.
    """

    rank: int = 4
    steps: int = 10
    rate: float = 2e-3
    seed: int = 0

    def check(self) -> None:
        """Raises ConfigError for values out of range."""
        for name, least, most in (("rank", 0, MAX_RANK), ("steps", 1, MAX_STEPS)):
            if not least <= getattr(self, name) <= most:
                raise ConfigError(name, getattr(self, name), f"must be from {least} to {most}")
        if not 0 < self.rate <= 1:
            raise ConfigError("rate", self.rate, "must be above 0, and at most 1")


@dataclass(frozen=True)
class Lesson:
    """A sentence to learn from: the loss counts the tokens of `text` after its first, or those of `answer`
    alone, which follows it (supervised fine-tuning).
    """

    text: str
    answer: str = ""


@dataclass(frozen=True)
class Adapter:
    """One low-rank change, `up` @ `down`: the paper's B (out, rank) and A (rank, in)."""

    up: Tensor
    down: Tensor

    def change(self) -> Tensor:
        """Returns the change of the matrix, (out, in)."""
        return self.up @ self.down


@dataclass(frozen=True)
class FinetuneStep:
    """The model after `step` steps: its mean loss on the lessons, in nats per token, and its adapters. They
    are the optimiser's, valid until the next step is taken, and so are the weights.
    """

    step: int
    loss: float
    adapters: Mapping[str, Adapter] = field(repr=False)
    merge: Callable[[], Mapping[str, Tensor]] = field(repr=False)

    @cached_property
    def weights(self) -> Mapping[str, Tensor]:
        """The weights that differ from the model's own, by name. Merged at the first look, since that takes
        a twentieth of a step.
        """
        return {name: weight.detach() for name, weight in self.merge().items()}


def adapted(model: Transformer) -> tuple[str, ...]:
    """Returns the names of the matrices that get an adapter: W_Q, W_K and W_V in one, and W_O, of every
    block.
    """
    return tuple(
        name
        for name, _ in model.named_parameters()
        if name.split(".")[-2:-1] and name.split(".")[-2] in ADAPTED and name.endswith(".weight")
    )


def adapters(model: Transformer, recipe: FinetuneRecipe) -> dict[str, Adapter]:
    """Draws adapters by name: `down` uniform within 1/sqrt(in) as a linear layer's weights, `up` zero, so
    that nothing is changed yet. The same seed draws the same ones.
    """
    generator = torch.Generator().manual_seed(recipe.seed)
    weights = dict(model.named_parameters())
    result = {}
    for name in adapted(model):
        rows, columns = weights[name].shape
        down = (2 * torch.rand(recipe.rank, columns, generator=generator) - 1) / columns**0.5
        result[name] = Adapter(torch.zeros(rows, recipe.rank).requires_grad_(), down.requires_grad_())
    return result


def copied(adapters: Mapping[str, Adapter]) -> dict[str, Adapter]:
    """Returns copies of adapters that no later step changes."""
    return {name: Adapter(a.up.detach().clone(), a.down.detach().clone()) for name, a in adapters.items()}


def trained_parameters(model: Transformer, rank: int) -> int:
    """Counts the numbers that are trained: rank (out + in) for each adapted matrix; all of the model's at
    rank 0.
    """
    weights = dict(model.named_parameters())
    if rank == 0:
        return sum(weight.numel() for weight in weights.values())
    return sum(rank * sum(weights[name].shape) for name in adapted(model))


def batch(lessons: Sequence[Lesson], tokenizer: Tokenizer, most: int = MAX_TOKENS) -> Data:
    """Encodes lessons into inputs and targets, both int64 (lesson, position): shorter ones are filled up at
    their end, where a causal model does not look back from, and their targets there are IGNORED. Raises
    ConfigError for none, too many, too long, one of a single token, and more than MAX_BATCH_TOKENS in all.
    """
    if not 1 <= len(lessons) <= MAX_SENTENCES:
        raise ConfigError("lessons", len(lessons), f"must be from 1 to {MAX_SENTENCES} sentences")
    rows, starts = [], []
    for lesson in lessons:
        first = tokenizer.encode(lesson.text)
        ids = first + (tokenizer.encode(lesson.answer) if lesson.answer else [])
        if not 2 <= len(ids) <= most:
            raise ConfigError("lesson", lesson.text[:60], f"has {len(ids)} tokens; it must have 2 to {most}")
        rows.append(ids)
        starts.append(len(first) if lesson.answer else 1)
    longest = max(map(len, rows))
    if (count := len(rows) * (longest - 1)) > MAX_BATCH_TOKENS:
        fit = MAX_BATCH_TOKENS // (longest - 1)
        raise ConfigError(
            "tokens of a step",
            count,
            f"must be at most {MAX_BATCH_TOKENS}. Each sentence is filled up to the longest ({longest}"
            f" tokens): write shorter ones, or at most {fit} of that length, rehearsed ones among them",
        )
    inputs = torch.zeros(len(rows), longest - 1, dtype=torch.int64)
    targets = torch.full((len(rows), longest - 1), IGNORED, dtype=torch.int64)
    for i, (ids, start) in enumerate(zip(rows, starts, strict=True)):
        inputs[i, : len(ids) - 1] = torch.tensor(ids[:-1])
        targets[i, start - 1 : len(ids) - 1] = torch.tensor(ids[start:])
    return inputs, targets


def target_count(lessons: Sequence[Lesson], tokenizer: Tokenizer) -> int:
    """Counts the tokens of lessons that the loss counts. Raises ConfigError as `batch`."""
    return int((batch(lessons, tokenizer)[1] != IGNORED).sum())


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    """Returns the mean cross-entropy in nats per counted token: logits (lesson, position, vocab), targets
    (lesson, position).
    """
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


def fine_tune(
    model: Transformer, tokenizer: Tokenizer, lessons: Sequence[Lesson], recipe: FinetuneRecipe
) -> Iterator[FinetuneStep]:
    """Fine-tunes and yields a FinetuneStep before the first step and after each: `recipe.steps` + 1 of them.
    Raises ConfigError at once where something does not fit.
    """
    recipe.check()
    if not model.config.causal:
        raise ConfigError("causal", False, "must be True: a fine-tuned model predicts the next token")
    return fine_tune_on(model, batch(lessons, tokenizer, min(MAX_TOKENS, model.config.context)), recipe)


def fine_tune_on(model: Transformer, data: Data, recipe: FinetuneRecipe) -> Iterator[FinetuneStep]:
    """Fine-tunes on inputs and targets as `batch` makes them, all of them at every step, and yields as
    `fine_tune` does.
    """
    return fine_tune_over(model, lambda step: data, recipe)


def fine_tune_over(
    model: Transformer, data: Callable[[int], Data], recipe: FinetuneRecipe
) -> Iterator[FinetuneStep]:
    """Fine-tunes on the inputs and targets of each step, and yields as `fine_tune` does."""
    drawn = adapters(model, recipe) if recipe.rank else {}
    if recipe.rank:
        copy = with_weights(model, {})
        for name, adapter in drawn.items():
            copy.get_submodule(name.removesuffix(".weight")).register_forward_hook(_adapter_hook(adapter))
        trained = [half for adapter in drawn.values() for half in (adapter.up, adapter.down)]
    else:
        copy = with_weights(model, {name: weight.clone() for name, weight in model.named_parameters()})
        trained = list(copy.requires_grad_(True).parameters())
    merge = partial(merged, model, drawn) if recipe.rank else lambda: dict(copy.named_parameters())
    optimiser = AdamW(trained, recipe.rate)
    for step in range(recipe.steps + 1):
        inputs, targets = data(step)
        with torch.enable_grad():
            loss = loss_of(copy(inputs), targets)
        yield FinetuneStep(step, float(loss.detach()), drawn, merge)
        if step < recipe.steps:
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def _adapter_hook(adapter: Adapter) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
    """Returns a hook that adds x A^T B^T (A: `down`, B: `up`) to the output of a linear layer: no gradient of
    the whole matrix is made.
    """

    def hook(_: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> Tensor:
        return output + (given[0] @ adapter.down.t()) @ adapter.up.t()

    return hook


def merged(model: Transformer, adapters: Mapping[str, Adapter]) -> dict[str, Tensor]:
    """Merges adapters: returns each matrix that they change, W + B A, by name."""
    own = dict(model.named_parameters())
    return {name: own[name] + adapter.change() for name, adapter in adapters.items()}


def with_weights(model: Transformer, weights: Mapping[str, Tensor]) -> Transformer:
    """Returns a model with these weights in place of its own; the others are shared with it."""
    with torch.device("meta"):
        result = Transformer(model.config, model.parts)
    own = {name: weight.detach() for name, weight in model.named_parameters()}
    result.load_state_dict(own | dict(weights), assign=True)
    return result.requires_grad_(False).eval()
