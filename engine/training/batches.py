"""Windows of a text as batches of inputs and targets, and the loss of a model on them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig, TrainConfig
from engine.data.corpus import Corpus, check_length
from engine.model import Transformer
from engine.parts.registry import Targets, shifted

# Of one forward pass of an evaluation: with a large vocabulary, 64 windows at once would take gigabytes.
MAX_LOGITS = 2**24


@dataclass(frozen=True)
class Loss:
    """A mean loss over windows of a text: `nats` per predicted token; its `bits` are per character of those
    tokens.

    nats = sum / tokens, bits = sum / characters / ln 2, where `sum` is -log p over the predicted tokens. A
    character that lies in two tokens counts where it begins (engine.data.tokenizers.characters), so that the
    tokens of a text have exactly its characters.

    Nats per token, and perplexity, their exponential, depend on how the text is cut: a longer token is harder
    to guess but says more at once. Bits per character divide by something that every tokenizer leaves alone.
    (They are an upper bound on what the model as a distribution over texts would give: one way of cutting the
    text is counted, and others could spell it too.) The masked objective guesses the hidden tokens alone, and
    hiding a longer one hides more at once: there, compare within one tokenizer.
    """

    nats: float
    tokens: int
    characters: int

    @property
    def bits(self) -> float:
        """Bits per character; NaN where no predicted token begins a character."""
        return self.nats * self.tokens / self.characters / math.log(2) if self.characters else math.nan


@dataclass(frozen=True)
class Batch:
    """Inputs (batch, position) and targets (batch, position), -1 where nothing is predicted."""

    inputs: Tensor
    targets: Tensor


def windows_at(tokens: Tensor, starts: Tensor, length: int) -> Tensor:
    """Returns `length` tokens from each of `starts` (batch,) on: (batch, position). The last window that fits
    starts at len(tokens) - length.
    """
    return tokens[starts[:, None] + torch.arange(length)]


def next_token_batch(windows: Tensor, targets: Targets = shifted) -> Batch:
    """Splits `windows` (batch, position + 1) into inputs and, one position further on, targets (or what else
    `targets` makes of them).
    """
    return Batch(*targets(windows))


def masked_batch(windows: Tensor, rate: float, mask_id: int, generator: torch.Generator) -> Batch:
    """Hides a share `rate` of the tokens of `windows` (batch, position) behind `mask_id`: the targets of a
    model that reads in both directions (Devlin et al. 2018).
    """
    hidden = torch.rand(windows.shape, generator=generator) < rate
    hidden[:, 0] |= ~hidden.any(dim=1)  # every window has something to guess
    return Batch(windows.masked_fill(hidden, mask_id), windows.masked_fill(~hidden, -1))


def graded(batch: Batch, counts: Tensor | None) -> Batch:
    """Returns a batch in which only the positions marked in `counts`, bool (position,), are predicted."""
    return batch if counts is None else Batch(batch.inputs, batch.targets.masked_fill(~counts, -1))


class Batches:
    """Draws the batches of a training. A batch depends on seed and step alone, so that a resumed training
    sees the same ones.
    """

    def __init__(
        self, corpus: Corpus, model: ModelConfig, config: TrainConfig, targets: Targets = shifted
    ) -> None:
        check_length(corpus, model.context)
        self.targets = targets
        self.corpus, self.length, self.config = corpus, model.context, config
        self.mask_id, self.period = corpus.vocab_size, corpus.period
        of = torch.from_numpy(corpus.token_characters)
        self._characters = None if bool((of == 1).all()) else of

    @property
    def bound(self) -> int:
        """The exclusive end of window starts in the training text: targets reach one token further."""
        return len(self.corpus.train) - self.length

    def starts(self, step: int) -> tuple[Tensor, torch.Generator]:
        """Draws the starts (batch_size,) of a step's windows, 0 .. bound - 1 (in a synthetic task, where a
        problem begins). Returns them with the generator, which later draws go on with.
        """
        generator = torch.Generator().manual_seed((self.config.seed * 1_000_003 + step) % 2**63)
        places = -(-self.bound // self.period)  # multiples of the period below the bound
        starts = torch.randint(places, (self.config.batch_size,), generator=generator) * self.period
        return starts, generator

    def at(self, step: int) -> Batch:
        """Returns a random training batch (batch_size, context). A share of its windows repeats its own
        beginning, where the configuration says so (engine.training.repeats).
        """
        starts, generator = self.starts(step)
        return self._make(self.corpus.train, starts, self.length, generator, self.config.repeat)

    def loss(self, nats: float, batch: Batch) -> Loss:
        """Returns a batch's mean loss with the number of tokens and characters it is a mean over."""
        predicted = batch.targets[batch.targets >= 0]
        characters = len(predicted) if self._characters is None else int(self._characters[predicted].sum())
        return Loss(nats, len(predicted), characters)

    def windows(self, tokens: Tensor, limit: int, size: int = 64) -> Iterator[Batch]:
        """Yields windows side by side over a split: all of it, the shorter last one too, or about `limit`
        tokens spread evenly when limit > 0.
        """
        length = min(
            self.length, len(tokens) - 1
        )  # the last tenth of a short text may be shorter than a window
        apart = -(-length // self.period) * self.period
        starts = torch.arange(0, len(tokens) - length, apart)
        sampled = 0 < limit < len(starts) * length
        if sampled:
            starts = starts[torch.linspace(0, len(starts) - 1, max(1, limit // length)).long()]
        generator = torch.Generator().manual_seed(0)
        size = max(1, min(size, MAX_LOGITS // (length * self.corpus.vocab_size)))
        for some in starts.split(size):
            yield self._make(tokens, some, length, generator)
        end = len(starts) * apart
        rest = len(tokens) - end - (self.config.objective == "next_token")  # the last token is a target only
        if rest > 0 and not sampled:
            yield self._make(tokens, torch.tensor([end]), rest, generator)

    def _make(
        self, tokens: Tensor, starts: Tensor, length: int, generator: torch.Generator, repeat: float = 0.0
    ) -> Batch:
        masked = self.config.objective == "masked"
        windows = windows_at(tokens, starts, length + (not masked))  # targets reach one further
        if repeat:
            from engine.training.repeats import with_repeats

            windows = with_repeats(windows, repeat, self.corpus.vocab_size, generator).tokens
        if masked:
            return masked_batch(windows, self.config.mask_rate, self.mask_id, generator)
        return graded(next_token_batch(windows, self.targets), self.corpus.graded(length))


def loss_of(model: Transformer, batch: Batch, device: torch.device) -> Tensor:
    """Returns the mean cross-entropy in nats per predicted token, in float32 whatever the model computes
    in.
    """
    logits = model(batch.inputs.to(device))  # (batch, position, vocab)
    return F.cross_entropy(logits.flatten(0, 1).float(), batch.targets.to(device).flatten(), ignore_index=-1)


@torch.inference_mode()
def measure(model: Transformer, batches: Batches, tokens: Tensor, limit: int = 0) -> Loss:
    """Returns the loss over windows of a split, each `context` long: the whole split, or about `limit`
    tokens.
    """
    device = next(model.parameters()).device
    training = model.training
    model.parts.mode(model, False)
    total, count, characters = 0.0, 0, 0
    for batch in batches.windows(tokens, limit):
        loss = batches.loss(float(loss_of(model, batch, device)), batch)
        total += loss.nats * loss.tokens
        count, characters = count + loss.tokens, characters + loss.characters
    model.parts.mode(model, training)
    return Loss(total / count if count else math.nan, count, characters)


@torch.inference_mode()
def guessed_right(model: Transformer, batches: Batches, tokens: Tensor, limit: int = 0) -> float:
    """Returns the accuracy, 0 to 1, of a model in evaluation mode over the windows that `measure` reads."""
    device = next(model.parameters()).device
    right = count = 0
    for batch in batches.windows(tokens, limit):
        asked = batch.targets >= 0
        named = model(batch.inputs.to(device)).argmax(-1).cpu()
        right += int((named == batch.targets)[asked].sum())
        count += int(asked.sum())
    return right / count if count else math.nan
