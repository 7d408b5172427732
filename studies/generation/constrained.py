"""Constrained decoding: at each step tokens that leave a grammar get no probability, and the others share it
(Willard & Louf 2023).

A text x is then drawn with the probability q(x) = p(x) / prod Z, Z being the mass that the grammar leaves at
a step: not the model's p(x) among valid texts (Park et al. 2024). So the mean of prod Z over such texts is
the probability that the model alone stays within the grammar.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import torch

from engine.data.progress import Progress, Steps
from engine.data.tokenizers import Tokenizer, token_bytes
from engine.errors import ConfigError
from engine.model import Transformer
from engine.parts.cache import KVCache
from engine.sample import draw, uniform
from studies.generation.grammar import DEAD, TokenGrammar

SHOWN = 6  # likeliest tokens that are noted of a step
LONGEST = 48  # tokens of a text
_DAYS = "(0[1-9]|[12][0-9]|3[01])"


@dataclass(frozen=True)
class Form:
    """A form that texts have to have: a regular expression, a check that knows nothing of it, and what the
    model reads before, as a question and with an example; `truth` is the question's answer, if it has one.
    """

    pattern: str
    check: Callable[[str], bool]
    question: str
    example: str
    truth: str = ""


def is_date(text: str) -> bool:
    """True for a day of the calendar, as 1969-07-20."""
    with suppress(ValueError):
        return len(text) == 10 and bool(datetime.date.fromisoformat(text))
    return False


def is_person(text: str) -> bool:
    """True for a JSON object with a name, a text, and an age, a whole number from 1 to 99."""
    with suppress(ValueError):
        person = json.loads(text)
        named = isinstance(person, dict) and set(person) == {"name", "age"}
        return (
            named
            and isinstance(person["name"], str)
            and type(person["age"]) is int
            and 0 < person["age"] < 100
        )
    return False


def is_speaker(text: str) -> bool:
    """True for a speaker's name of one or two words, in capitals, with a colon and a line break."""
    names = text.removesuffix(":\n").split(" ")
    return (
        text.endswith(":\n") and len(names) < 3 and all(name.isalpha() and name.isupper() for name in names)
    )


FORMS = {
    "date": Form(
        "[12][0-9]{3}-((01|03|05|07|08|10|12)-" + _DAYS + "|(04|06|09|11)-(0[1-9]|[12][0-9]|30)"
        "|02-(0[1-9]|1[0-9]|2[0-8]))",
        is_date,
        "When did the first people walk on the moon? The date, as year-month-day:\n",
        "When did the Berlin Wall fall? The date, as year-month-day:\n1989-11-09\n\n",
        "1969-07-20",
    ),
    "json": Form(
        r'\{"name": "[A-Z][a-z]{1,11}( [A-Z][a-z]{1,11})?", "age": [1-9][0-9]?\}',
        is_person,
        "A person with name and age, as JSON:\n",
        'A person with name and age, as JSON:\n{"name": "Maria", "age": 34}\n\n',
    ),
    "speaker": Form(
        "[A-Z]{3,12}( [A-Z]{3,12})?:\n",
        is_speaker,
        "Will you come with me?\n\n",
        "Is the king gone?\n\nKING HENRY:\nAy, my lord.\n\n",
    ),
}


def grammar_of(form: str, tokenizer: Tokenizer) -> TokenGrammar:
    """Returns the grammar of a form over a model's tokens. Raises ConfigError where they cannot write it."""
    words = []
    for token in token_bytes(tokenizer):
        try:
            words.append(token.decode())
        except UnicodeDecodeError:  # a part of a character
            words.append("")
    return TokenGrammar(FORMS[form].pattern, words)


def writable(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Returns the forms that a model's tokens can write."""
    able = []
    for name in FORMS:
        with suppress(ConfigError):
            grammar_of(name, tokenizer)
            able.append(name)
    return tuple(able)


@dataclass(frozen=True)
class Step:
    """One token: the `mass` that the grammar leaves at its step, its log probability by the model alone, and
    the likeliest tokens before the grammar and after it, each with its probability by the model alone.
    """

    token: int
    mass: float
    log_p: float
    before: tuple[tuple[int, float], ...] = field(default=(), repr=False)
    after: tuple[tuple[int, float], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Written:
    """A text up to its end, or to where it left the grammar."""

    text: str
    valid: bool
    steps: tuple[Step, ...]

    @property
    def log_p(self) -> float:
        """The log probability of the text by the model without the grammar, nats."""
        return sum(step.log_p for step in self.steps)

    @property
    def left(self) -> float:
        """The product of the masses that the grammar left."""
        return math.prod(step.mass for step in self.steps)


@dataclass(frozen=True)
class Drawn:
    """Texts under the grammar, and as many without it, at temperature 1."""

    bound: tuple[Written, ...]
    free: tuple[Written, ...]

    @property
    def valid(self) -> tuple[float, float]:
        """The shares of valid texts under the grammar and without it."""
        bound, free = (float(np.mean([text.valid for text in texts])) for texts in (self.bound, self.free))
        return bound, free

    @property
    def log_p(self) -> float:
        """The mean log probability of a text under the grammar, by the model without it, nats."""
        return float(np.mean([text.log_p for text in self.bound]))

    @property
    def free_log_p(self) -> float:
        """The mean log probability of the valid texts that the model drew alone; NaN where none is."""
        valid = [text.log_p for text in self.free if text.valid]
        return float(np.mean(valid)) if valid else math.nan

    @property
    def expected(self) -> float:
        """The probability that the model alone stays within the grammar, by the texts under it."""
        return float(np.mean([text.left for text in self.bound]))


@torch.inference_mode()
def first_mass(model: Transformer, tokenizer: Tokenizer, prompt: Sequence[int], form: str) -> float:
    """Returns the mass that a form's grammar leaves of the first token after a prompt. Raises ConfigError."""
    grammar = grammar_of(form, tokenizer)
    p = model(torch.tensor([list(prompt)[-model.config.context :]]))[0, -1].float().softmax(-1).numpy()
    return taken(p, grammar, grammar.start, 0.5, True).mass


def drawing(
    model: Transformer, tokenizer: Tokenizer, prompt: Sequence[int], form: str, count: int, seed: int = 0
) -> Steps[Drawn]:
    """Draws `count` texts after a prompt under a form's grammar, and as many without. Raises ConfigError."""
    grammar = grammar_of(form, tokenizer)
    ids = list(prompt)[-max(1, model.config.context - LONGEST) :]
    bound = yield from _texts(model, ids, grammar, form, count, seed, True)
    free = yield from _texts(model, ids, grammar, form, count, seed + 1, False)
    return Drawn(bound, free)


@torch.inference_mode()
def _texts(
    model: Transformer, ids: list[int], grammar: TokenGrammar, form: str, count: int, seed: int, bound: bool
) -> Steps[tuple[Written, ...]]:
    """Draws texts side by side, the first ones the same however many; the cache holds those that go on."""
    numbers = torch.stack([uniform(seed + 2 * row, LONGEST) for row in range(count)]).numpy()
    states, texts, going = [grammar.start] * count, [""] * count, list(range(count))
    steps: list[list[Step]] = [[] for _ in going]
    cache = KVCache(model.config, len(ids) + LONGEST, model.embedding)
    logits = model(torch.tensor([ids]), cache=cache)[:, -1].expand(count, -1)
    cache = cache.branch([0] * count)
    for turn in range(LONGEST):
        yield Progress((not bound) * LONGEST + turn, 2 * LONGEST)
        p = logits.float().softmax(-1).numpy()  # (text, vocab)
        on = []
        for at, row in enumerate(going):
            record = taken(p[at], grammar, states[row], numbers[row, turn], bound)
            word = grammar.words[record.token]
            states[row], used = grammar.read(states[row], word)
            steps[row].append(record)
            texts[row] += word[:used]
            if word and states[row] != DEAD and states[row] not in grammar.ends:
                on.append(at)
        if not on:
            break
        if len(on) < len(going):
            going, cache = [going[at] for at in on], cache.branch(on)
        logits = model(torch.tensor([[steps[row][-1].token] for row in going]), cache=cache)[:, -1]
    check = FORMS[form].check
    valid = [state in grammar.ends and check(text) for state, text in zip(states, texts, strict=True)]
    return tuple(Written(*each) for each in zip(texts, valid, map(tuple, steps), strict=True))


def taken(p: np.ndarray, grammar: TokenGrammar, state: int, number: float, bound: bool) -> Step:
    """Draws a token from probabilities (vocab,) by a number in [0, 1): among those that the grammar allows
    where it is `bound`.
    """
    ids = grammar.allowed(state)[:, 0]
    mass = float(p[ids].sum(dtype=np.float64))
    token = int(ids[draw(p[ids], number)]) if bound else draw(p, number)
    best = ids[np.argsort(-p[ids], kind="stable")[:SHOWN]]
    first = np.argpartition(-p, min(SHOWN, len(p) - 1))[:SHOWN]
    first = first[np.argsort(-p[first], kind="stable")]
    before, after = (tuple((int(n), float(p[n])) for n in some) for some in (first, best))
    return Step(token, mass, math.log(max(float(p[token]), 1e-45)), before, after)
