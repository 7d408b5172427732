"""Direct preference optimisation: of two texts, a model learns which is preferred, without a reward model.

    training, held_out = finish(drawn_pairs(model, tokenizer, Plan()))

    for look in prefer(model, tokenizer, training, held_out, Plan()):

        ...

DPO (Rafailov et al. 2023): the loss of a pair is -log sigmoid(beta (log-ratio of the chosen text - log-ratio
of the rejected one)). A log-ratio is how far the log-probability of a text has moved from that of the frozen
model. Pairs of short or long sentences are the model's own samples; those with a word are speeches of its
text, since its samples rarely have it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.data.progress import Progress, Steps
from engine.data.tokenizers import Tokenizer
from engine.errors import ConfigError
from engine.model import Transformer
from engine.parts.cache import KVCache
from engine.training.optim import AdamW
from studies.after.finetune import IGNORED, with_weights

Kind = Literal["short", "long", "with", "without"]
KINDS: tuple[Kind, ...] = ("short", "long", "with", "without")
PROMPT = "ROMEO:\n"  # every text follows it
END = ".!?"  # of a sentence, with which a text ends
CHARACTERS = 56  # of a text, at most: with the prompt they fit into a context of 64
PAIRS, LEAST = 128, 32  # pairs that are drawn, and that must be there; a quarter of them is held out
SAMPLES, SHOWN = 128, 3  # texts that are drawn at a look, and how many of them are shown
MOST_WORD = 20  # characters of a word
OPENING = re.compile(r"^[A-Z][^\n:]*:\n((?:.+\n)+)", re.MULTILINE)  # a speaker, then a speech


@dataclass(frozen=True)
class Taste:
    """A preference between two texts: the `short` or the `long` one, the one `with` or `without` a word."""

    kind: Kind = "short"
    word: str = ""

    def check(self) -> None:
        """Raises ConfigError for another kind, and for a word that is none."""
        if self.kind not in KINDS:
            raise ConfigError("kind", self.kind, f"must be one of {', '.join(KINDS)}")
        if self.of_word and not re.fullmatch(rf"[A-Za-z']{{1,{MOST_WORD}}}", self.word):
            raise ConfigError("word", self.word, f"must be one word of 1 to {MOST_WORD} letters")

    @property
    def of_word(self) -> bool:
        """True if it is about a word."""
        return self.kind in ("with", "without")

    def has(self, text: str) -> bool:
        """True if the word stands in a text, in capitals or not."""
        return re.search(rf"(?<![\w']){re.escape(self.word)}(?![\w'])", text, re.IGNORECASE) is not None

    def score(self, text: str) -> float:
        """Returns a number that is higher for the preferred text, and equal where neither is preferred."""
        size = float(self.has(text) if self.of_word else len(text))
        return size if self.kind in ("long", "with") else -size

    def measure(self, texts: Sequence[str]) -> float:
        """Returns the mean length of texts in characters, or the share of those with the word."""
        return sum(float(self.has(text) if self.of_word else len(text)) for text in texts) / len(texts)


@dataclass(frozen=True)
class Plan:
    """A training by preferences: `beta` weighs the log-ratios, a higher one keeps the model closer to the
    frozen one; AdamW's `rate`; `batch` pairs a step. The seed draws pairs, their order and the samples.
    """

    taste: Taste = Taste()
    beta: float = 0.1
    rate: float = 1e-4
    batch: int = 8
    steps: int = 40
    look_every: int = 5
    seed: int = 0

    def check(self) -> None:
        """Raises ConfigError for values out of range."""
        self.taste.check()
        for name, least, most in (("beta", 0.001, 10), ("batch", 1, 64), ("steps", 1, 500)):
            if not least <= getattr(self, name) <= most:
                raise ConfigError(name, getattr(self, name), f"must be from {least} to {most}")


@dataclass(frozen=True)
class Pair:
    """Two texts after PROMPT, the first of them preferred."""

    chosen: str
    rejected: str


@dataclass(frozen=True)
class Scores:
    """Means over pairs: the `margin`, beta times the difference of the log-ratios; the share `ranked` right,
    a tie as half; how far the log-probability of `chosen` and `rejected` texts has moved from the frozen
    model's, in nats per text.
    """

    margin: float
    ranked: float
    chosen: float
    rejected: float


@dataclass(frozen=True)
class PreferenceEvaluation:
    """After `step` steps: scores of the pairs it is trained on and of those held out, and of new samples what
    the taste measures, characters or a share; `texts` are a few of them.
    """

    step: int
    training: Scores
    held_out: Scores
    measured: float
    texts: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True)
class Preferred:
    """A training by preferences and all of its looks, and how many pairs it was trained and tested on."""

    plan: Plan
    looks: tuple[PreferenceEvaluation, ...]
    pairs: int
    held_out: int


def measure(model: Transformer, tokenizer: Tokenizer, plan: Plan, text: str = "") -> Steps[Preferred]:
    """Draws pairs and trains a copy of the model by them. Yields the looks so far. `text` has the speeches
    for a taste about a word. Raises ConfigError for a plan that is none, and for too few pairs.
    """
    plan.check()
    yield Progress(0, plan.steps, ())
    training, held_out = yield from drawn_pairs(model, tokenizer, plan, text)
    looks: list[PreferenceEvaluation] = []
    for look in prefer(model, tokenizer, training, held_out, plan):
        looks.append(look)
        yield Progress(look.step, plan.steps, tuple(looks))
    return Preferred(plan, tuple(looks), len(training), len(held_out))


def drawn_pairs(
    model: Transformer, tokenizer: Tokenizer, plan: Plan, text: str = ""
) -> Steps[tuple[list[Pair], list[Pair]]]:
    """Draws pairs to train on, and others to test on. Yields at each character of the samples. Raises
    ConfigError for too few.
    """
    taste, draws = plan.taste, random.Random(plan.seed)
    if taste.of_word:
        texts = list(dict.fromkeys(first_sentence(opening) for opening in OPENING.findall(text)))
        texts = [each for each in texts if not tokenizer.unknown(each)]
        draws.shuffle(texts)
        texts.sort(key=taste.has)  # those with the word last
        count = min(PAIRS, sum(map(taste.has, texts)), len(texts) // 2)
        pairs = list(zip(texts[:count], reversed(texts), strict=False))
    else:
        generator = torch.Generator().manual_seed(plan.seed)
        columns = []
        for column in characters(model, tokenizer, 3 * PAIRS, generator):
            columns.append(column)
            yield Progress(0, plan.steps, (), preparing=True)
        texts = sentences(columns, tokenizer)
        pairs = list(zip(texts[::2], texts[1::2], strict=True))
    ranked = [sorted(pair, key=taste.score, reverse=True) for pair in pairs]
    result = [Pair(*pair) for pair in ranked if taste.score(pair[0]) > taste.score(pair[1])][:PAIRS]
    if len(result) < LEAST:
        raise ConfigError("word", taste.word, f"makes {len(result)} pairs; at least {LEAST} are needed")
    cut = len(result) // 4
    return result[cut:], result[:cut]


def first_sentence(text: str) -> str:
    """Returns a text up to the end of its first sentence, and at most CHARACTERS of it.

    >>> first_sentence("No. I will not"), first_sentence("No")
    ('No.', 'No')
    """
    end = next((i + 1 for i, character in enumerate(text) if character in END), len(text))
    return text[: min(end, CHARACTERS)]


def sampled(model: Transformer, tokenizer: Tokenizer, count: int, generator: torch.Generator) -> list[str]:
    """Draws first sentences after PROMPT, at temperature 1."""
    return sentences(characters(model, tokenizer, count, generator), tokenizer)


def sentences(columns: Iterable[Tensor], tokenizer: Tokenizer) -> list[str]:
    """Returns the first sentence of each text, from its characters (text, 1)."""
    return [first_sentence(tokenizer.decode(row)) for row in torch.cat([*columns], 1).tolist()]


@torch.no_grad()
def characters(
    model: Transformer, tokenizer: Tokenizer, count: int, generator: torch.Generator
) -> Iterator[Tensor]:
    """Draws `count` texts after PROMPT, at temperature 1. Yields CHARACTERS times the next token of all of
    them, (text, 1).
    """
    new = torch.tensor([tokenizer.encode(PROMPT)]).expand(count, -1)
    cache = KVCache(model.config, new.shape[1] + CHARACTERS, model.embedding, batch=count)
    for _ in range(CHARACTERS):
        new = torch.multinomial(model(new, cache=cache)[:, -1].softmax(-1), 1, generator=generator)
        yield new


def encoded(texts: Sequence[str], tokenizer: Tokenizer) -> tuple[Tensor, Tensor]:
    """Encodes texts after PROMPT into inputs and targets, both int64 (text, position): targets of the prompt
    and behind the end of a shorter text are IGNORED.
    """
    prompt, rows = tokenizer.encode(PROMPT), [tokenizer.encode(text) for text in texts]
    length = len(prompt) + max(map(len, rows))
    ids = torch.zeros(len(rows), length, dtype=torch.int64)
    targets = torch.full((len(rows), length), IGNORED, dtype=torch.int64)
    for i, row in enumerate(rows):
        ids[i, : len(prompt) + len(row)] = torch.tensor(prompt + row)
        targets[i, len(prompt) : len(prompt) + len(row)] = torch.tensor(row)
    return ids[:, :-1], targets[:, 1:]


def log_p(model: Transformer, data: tuple[Tensor, Tensor]) -> Tensor:
    """Returns the log-probability of each text after its prompt, in nats (text,)."""
    inputs, targets = data
    losses = F.cross_entropy(model(inputs).transpose(1, 2), targets, ignore_index=IGNORED, reduction="none")
    return -losses.sum(-1)


def preference_loss(chosen: Tensor, rejected: Tensor, beta: float) -> Tensor:
    """Returns the mean of -log sigmoid(beta (chosen - rejected)) over log-ratios (pair,), as equation 7 of
    the paper has it.
    """
    return -F.logsigmoid(beta * (chosen - rejected)).mean()


class _Pairs:
    """Pairs, encoded once, with the log-probabilities that the frozen model gives their texts."""

    def __init__(self, model: Transformer, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> None:
        self.count = len(pairs)
        texts = [pair.chosen for pair in pairs] + [pair.rejected for pair in pairs]
        self.inputs, self.targets = encoded(texts, tokenizer)
        with torch.no_grad():
            self.reference = log_p(model, (self.inputs, self.targets))

    def ratios(self, model: Transformer, of: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the log-ratios of chosen and rejected texts of some pairs, both (pair,)."""
        rows = torch.cat([of, of + self.count])
        ratios = log_p(model, (self.inputs[rows], self.targets[rows])) - self.reference[rows]
        return ratios[: len(of)], ratios[len(of) :]

    @torch.no_grad()
    def scores(self, model: Transformer, beta: float) -> Scores:
        chosen, rejected = self.ratios(model, torch.arange(self.count))
        apart = chosen - rejected
        ranked = (apart > 0).float() + 0.5 * (apart == 0).float()
        values = (beta * apart, ranked, chosen, rejected)
        return Scores(*(float(each.mean()) for each in values))


def prefer(
    first: Transformer, tokenizer: Tokenizer, training: Sequence[Pair], held_out: Sequence[Pair], plan: Plan
) -> Iterator[PreferenceEvaluation]:
    """Trains a copy of a model by pairs and yields looks: before the first step, every `look_every` steps and
    at the end. Raises ConfigError for a plan that is none.
    """
    plan.check()
    model = with_weights(first, {name: weight.clone() for name, weight in first.named_parameters()})
    optimiser = AdamW(model.requires_grad_(True).parameters(), plan.rate)
    learned, tested = (_Pairs(first, tokenizer, pairs) for pairs in (training, held_out))
    order, queue = torch.Generator().manual_seed(plan.seed + 1), torch.empty(0, dtype=torch.int64)
    for step in range(plan.steps + 1):
        if step % plan.look_every == 0 or step == plan.steps:
            texts = sampled(model, tokenizer, SAMPLES, torch.Generator().manual_seed(2**20 + plan.seed))
            trained, other = (pairs.scores(model, plan.beta) for pairs in (learned, tested))
            yield PreferenceEvaluation(step, trained, other, plan.taste.measure(texts), tuple(texts[:SHOWN]))
        if step == plan.steps:
            return
        if len(queue) < plan.batch:  # every pair once, then again in another order
            queue = torch.cat([queue, torch.randperm(learned.count, generator=order)])
        batch, queue = queue[: plan.batch], queue[plan.batch :]
        with torch.enable_grad():
            loss = preference_loss(*learned.ratios(model, batch), plan.beta)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
