"""Another text that a small model is taught: by step the loss on it and on the text that it was trained on,
both held out.

    texts = split(in_alphabet(new, tokenizer), old, tokenizer)

    taught = finish(teach_text(model, tokenizer, texts, FinetuneRecipe(rank=4, steps=60), rehearse=True))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call

from engine.config import SampleConfig
from engine.data.corpus import VALIDATION_SHARE
from engine.data.progress import Progress, Steps
from engine.data.tokenizers import Tokenizer
from engine.errors import ConfigError
from engine.model import Transformer
from engine.sample import generate
from engine.training.batches import next_token_batch, windows_at
from studies.after.finetune import Data, FinetuneRecipe, fine_tune_over, loss_of, with_weights
from studies.after.new_fact import Taught

LEAST, MOST = 500, 100_000  # tokens of a text: fewer are refused, more are not read
LEAST_HELD_OUT = 100  # tokens of a short text that are held out: a tenth of it would be too few
BATCH = 8  # windows of a step, half of them from the old text where that is rehearsed
WINDOWS = 16  # of each text that a look reads
LOOKS = 12  # at a fine-tuning, after the first
WRITTEN, TEMPERATURE = 160, 0.8  # tokens of a sample, and how they are drawn


@dataclass(frozen=True, eq=False)
class Texts:
    """Two texts as ids, int64 (position,), each with a part that no step reads."""

    new: Tensor
    new_held_out: Tensor
    old: Tensor
    old_held_out: Tensor


@dataclass(frozen=True)
class TextEvaluation:
    """After `step` steps: the `loss` on the step's batch, and on the held-out parts of the new text and of
    the old one, in nats per token.
    """

    step: int
    loss: float
    new: float
    old: float


def in_alphabet(text: str, tokenizer: Tokenizer) -> str:
    """Returns a text without the characters that a vocabulary lacks, and with plain line ends.

    >>> from engine.data.tokenizers.char import CharTokenizer
    >>> in_alphabet("a_b\\r\\na", CharTokenizer("ab\\n"))
    'ab\\na'
    """
    text = text.replace("\r\n", "\n")
    lacking = dict.fromkeys(map(ord, tokenizer.unknown(text)))
    return text.translate(lacking)


def split(new: str, old: str, tokenizer: Tokenizer) -> Texts:
    """Encodes both texts, as much of them as MOST tokens, and holds out the end of each: of the old one the
    last tenth, which its training held out too. Raises ConfigError for a text that is too short.
    """
    cut = int(len(old) * (1 - VALIDATION_SHARE))
    new_ids, read, held_out = (_ids(text, tokenizer) for text in (new, old[:cut], old[cut:]))
    for name, ids, least in (("text", new_ids, LEAST), ("old text", held_out, 2), ("old text", read, 2)):
        if len(ids) < least:
            raise ConfigError(name, len(ids), f"tokens that the model can read; at least {least} are needed")
    end = len(new_ids) - max(LEAST_HELD_OUT, int(len(new_ids) * VALIDATION_SHARE))
    return Texts(new_ids[:end], new_ids[end:], read, held_out)


def _ids(text: str, tokenizer: Tokenizer) -> Tensor:
    """Encodes a text, int64 (position,): no token has fewer bytes than one, so that MOST characters are
    enough.
    """
    return torch.tensor(tokenizer.encode(text[:MOST]), dtype=torch.int64)


def teach_text(
    model: Transformer,
    tokenizer: Tokenizer,
    texts: Texts,
    recipe: FinetuneRecipe,
    rehearse: bool = False,
    prompt: str = "",
) -> Steps[Taught[TextEvaluation]]:
    """Fine-tunes a copy of the model on the new text. `rehearse`: half of every batch is the old one. After a
    `prompt` the model writes at both ends, with the same draws. Yields the looks so far. Raises ConfigError
    where something does not fit.
    """
    recipe.check()
    if not model.config.causal:
        raise ConfigError("causal", False, "must be True: a fine-tuned model predicts the next token")
    generator = torch.Generator().manual_seed(recipe.seed)
    looks: list[TextEvaluation] = []
    apart = max(1, recipe.steps // LOOKS)

    def batch(step: int) -> Data:
        share = BATCH // 2 if rehearse else BATCH
        parts = [(texts.new, share), *([(texts.old, BATCH - share)] if rehearse else [])]
        length = min(model.config.context, *(len(ids) - 1 for ids, _ in parts))
        return _pairs(torch.cat([_drawn(ids, rows, length, generator) for ids, rows in parts]))

    yield Progress(0, recipe.steps + 1, ())
    before = sample(model, tokenizer, prompt, recipe.seed)
    for look in fine_tune_over(model, batch, recipe):
        if look.step % apart == 0 or look.step == recipe.steps:
            looks.append(TextEvaluation(look.step, look.loss, *held_out_losses(model, texts, look.weights)))
        yield Progress(look.step + 1, recipe.steps + 1, tuple(looks))
    after = sample(with_weights(model, look.weights), tokenizer, prompt, recipe.seed)
    return Taught.of(model, recipe, look, looks, before, after)


def _pairs(windows: Tensor) -> Data:
    batch = next_token_batch(windows)
    return batch.inputs, batch.targets


def _drawn(ids: Tensor, rows: int, length: int, generator: torch.Generator) -> Tensor:
    """Draws windows of a text, (row, length + 1)."""
    starts = torch.randint(0, len(ids) - length, (rows,), generator=generator)
    return windows_at(ids, starts, length + 1)


def _spread(ids: Tensor, context: int) -> Data:
    """Returns up to WINDOWS windows at even distances, the whole context long where the text is."""
    length = min(context, len(ids) - 1)
    last = len(ids) - 1 - length
    starts = torch.linspace(0, last, min(WINDOWS, last + 1)).long()
    return _pairs(windows_at(ids, starts, length + 1))


@torch.no_grad()
def held_out_losses(
    model: Transformer, texts: Texts, weights: Mapping[str, Tensor] | None = None
) -> tuple[float, float]:
    """Returns the mean losses on the held-out parts of the new text and of the old one, in nats per token,
    with these weights in place of the model's own.
    """
    losses = []
    for ids in (texts.new_held_out, texts.old_held_out):
        inputs, targets = _spread(ids, model.config.context)
        losses.append(float(loss_of(functional_call(model, dict(weights or {}), (inputs,)), targets)))
    return losses[0], losses[1]


def sample(model: Transformer, tokenizer: Tokenizer, prompt: str, seed: int) -> tuple[str, ...]:
    """Returns what the model writes after a prompt, one text; none without a prompt."""
    ids = tokenizer.encode(prompt)
    if not ids:
        return ()
    sampling = SampleConfig(temperature=TEMPERATURE, seed=seed)
    return (tokenizer.decode(list(generate(model, ids, WRITTEN, sampling))),)
