"""One text through the three families: an encoder fills what is hidden of it, a decoder continues it, an
encoder-decoder writes it in another language; with what was read when each symbol was written.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from engine.config import SampleConfig
from engine.data.pairs import source_ids
from engine.data.tasks.paired import PAIR_TASKS, pairs
from engine.data.tokenizers import Tokenizer
from engine.data.tokenizers.pairs import PairTokenizer
from engine.errors import CorpusError, ShapeError, TaskError
from engine.model import Transformer
from engine.probe import Recorder
from engine.sample.generate import steps
from engine.sample.pairs import pair_steps
from engine.seq2seq import Seq2Seq

Hiding = Literal["letters", "half", "word"]
EVERY, FIRST = 5, 2  # every fifth letter, from the third


@dataclass(frozen=True, eq=False)
class Said:
    """A symbol that a model wrote. `probability` is the model's own, at temperature 1. `own` and `across`:
    how its query spread its weight over the places of its own text and of the source, the mean of all layers
    and heads; each sums to 1.
    """

    symbol: str
    probability: float
    own: np.ndarray = field(repr=False)
    across: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0, np.float32))


@dataclass(frozen=True, eq=False)
class Filled:
    """What an encoder made of the `places` that were hidden: all at once, in one pass."""

    text: str
    places: tuple[int, ...]
    said: tuple[Said, ...]

    @property
    def right(self) -> int:
        """How many are the letter that was hidden."""
        return sum(
            self.text[place] == each.symbol for place, each in zip(self.places, self.said, strict=True)
        )

    def passes(self, step: int) -> int:
        """So many times the model has run after a step."""
        return 1


@dataclass(frozen=True, eq=False)
class Continued:
    """What a decoder wrote after a text. The pass that reads the text writes the first symbol."""

    text: str
    said: tuple[Said, ...]

    @property
    def written(self) -> str:
        return "".join(each.symbol for each in self.said)

    def passes(self, step: int) -> int:
        return min(step, len(self.said))


@dataclass(frozen=True, eq=False)
class Translated:
    """What an encoder-decoder wrote from a source, its end included. `answer` is the one right target; None
    where the source is no sentence of the grammar, and `why` says why not.
    """

    source: tuple[str, ...]
    said: tuple[Said, ...]
    text: str
    answer: str | None
    why: str

    @property
    def right(self) -> bool:
        return self.text == self.answer

    def passes(self, step: int) -> int:
        """The encoder's one, and the decoder's."""
        return 1 + min(step, len(self.said))


def sentences(count: int, longest: int) -> tuple[str, ...]:
    """English sentences of at most `longest` characters that the shipped translator never learned from."""
    _, held_out = pairs(PAIR_TASKS["language"], 0, 4 * count)
    return tuple(pair.source for pair in held_out if len(pair.source) <= longest)[:count]


def hidden_places(text: str, hiding: Hiding, toggled: Collection[int] = ()) -> tuple[int, ...]:
    """The places that are hidden from the encoder: every fifth or second letter, or the letters of the middle
    word; those of `toggled` are turned round.

    >>> hidden_places("the cat sat", "letters"), hidden_places("the cat sat", "word", [4, 8])
    ((2,), (5, 6, 8))
    """
    if hiding == "word":
        words = text.split(" ")
        start = len(" ".join(words[: len(words) // 2])) + (len(words) > 1)
        chosen = set(range(start, start + len(words[len(words) // 2])))
    else:
        chosen = set(range(FIRST, len(text), EVERY if hiding == "letters" else 2))
        chosen = {place for place in chosen if text[place].strip()}
    return tuple(sorted(chosen ^ {place for place in toggled if 0 <= place < len(text)}))


@torch.inference_mode()
def fill_in(model: Transformer, tokenizer: Tokenizer, text: str, hidden: Sequence[int]) -> Filled:
    """The likeliest symbol at every hidden place, all from one pass. Raises CorpusError for an empty text,
    TokenizerError for letters that the model lacks, ShapeError for too many, TaskError where nothing is
    hidden.
    """
    ids = _read(tokenizer, text, model.config.context)
    if not hidden:
        raise TaskError("nothing is hidden, so there is nothing to fill: click on a letter to hide it")
    window = torch.tensor([ids])
    window[0, list(hidden)] = model.config.vocab_size - 1  # the mask is the last id
    recorder = Recorder({"pattern"})
    chances = model(window, recorder)[0, :, :-1].softmax(-1)  # (position, vocab): the mask is no letter
    reads = _spread(recorder, "pattern")
    best = chances.argmax(-1)
    said = tuple(
        Said(tokenizer.decode([int(best[place])]), float(chances[place, best[place]]), reads[place])
        for place in hidden
    )
    return Filled(text, tuple(hidden), said)


@torch.inference_mode()
def carry_on(
    model: Transformer, tokenizer: Tokenizer, text: str, length: int, sampling: SampleConfig
) -> Continued:
    """`length` symbols after a text. Raises as `fill_in`, and ConfigError for settings out of range."""
    ids = _read(tokenizer, text, model.config.context - length)
    drawn = list(steps(model, ids, length, sampling))
    recorder = Recorder({"pattern"})
    model(torch.tensor([[*ids, *(each.token for each in drawn[:-1])]]), recorder)
    reads = _spread(recorder, "pattern")
    said = tuple(
        Said(tokenizer.decode([each.token]), each.probability, reads[each.position - 1, : each.position])
        for each in drawn
    )
    return Continued(text, said)


@torch.inference_mode()
def translate(model: Seq2Seq, tokenizer: PairTokenizer, text: str, task: str = "language") -> Translated:
    """The likeliest target of a source. Raises as `fill_in`."""
    ids = source_ids(text, tokenizer)
    drawn = list(pair_steps(model, ids))
    written = [each.token for each in drawn]
    recorder = Recorder({"pattern", "cross_pattern"})
    memory = model.encode(torch.tensor([ids]))
    model.decode(torch.tensor([[model.config.begin, *written[:-1]]]), memory, recorder)
    own, across = _spread(recorder, "pattern"), _spread(recorder, "cross_pattern")
    said = tuple(
        Said(name, each.probability, own[i, : i + 1], across[i])
        for i, (name, each) in enumerate(zip(tokenizer.shown(written), drawn, strict=True))
    )
    answer, why = None, ""
    try:
        answer = PAIR_TASKS[task].answer(text).target
    except TaskError as error:
        why = str(error)
    return Translated(tokenizer.shown(ids), said, tokenizer.decode(written), answer, why)


def _read(tokenizer: Tokenizer, text: str, room: int) -> list[int]:
    if not text:
        raise CorpusError("the text is empty: write at least a letter")
    ids = tokenizer.encode(text)
    if len(ids) > room:
        raise ShapeError(f"a text of {len(ids)} letters is too long: this model has room for {room}")
    return ids


def _spread(recorder: Recorder, name: str) -> np.ndarray:
    """(query, key): the mean of all layers and heads."""
    found = [x for scoped, x in recorder.tensors.items() if scoped.rpartition(".")[2] == name]
    mean: Tensor = torch.stack(found).mean((0, 2))[0]
    return mean.float().numpy()
