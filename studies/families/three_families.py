"""One text through the three families, with what was read when each symbol was written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from engine.config import SampleConfig
from engine.data.tokenizers import Tokenizer
from engine.errors import CorpusError, ShapeError, TaskError
from engine.model import Transformer
from engine.probe import Recorder
from engine.sample.generate import steps
from studies.families.written_target import write_target
from studies.pairs.paired import PAIR_TASKS, pairs
from studies.pairs.seq2seq import Seq2Seq
from studies.pairs.tokenizer import PairTokenizer

Hiding = Literal["letters", "half", "word"]
EVERY, FIRST = 5, 2  # every fifth letter, from the third


@dataclass(frozen=True, eq=False)
class WrittenSymbol:
    """A symbol that a model wrote. `probability` is at temperature 1. `self_weights` and `cross_weights`: how
    its query spread its weight over its own text and the source, the mean of all heads; each sums to 1.
    """

    symbol: str
    probability: float
    self_weights: np.ndarray = field(repr=False)
    cross_weights: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0, np.float32))


@dataclass(frozen=True, eq=False)
class FilledText:
    """The symbols that an encoder filled in at the hidden `positions`, all at once, in one pass."""

    text: str
    positions: tuple[int, ...]
    symbols: tuple[WrittenSymbol, ...]

    @property
    def right(self) -> int:
        """The number of gaps filled with the hidden letter."""
        return sum(
            self.text[place] == each.symbol for place, each in zip(self.positions, self.symbols, strict=True)
        )

    def passes(self, step: int) -> int:
        """Returns the model's passes after a step."""
        return 1


@dataclass(frozen=True, eq=False)
class Continuation:
    """The symbols that a decoder wrote after a text. The pass that reads the text writes the first symbol."""

    text: str
    symbols: tuple[WrittenSymbol, ...]

    @property
    def written(self) -> str:
        return "".join(each.symbol for each in self.symbols)

    def passes(self, step: int) -> int:
        return min(step, len(self.symbols))


@dataclass(frozen=True, eq=False)
class Translation:
    """The symbols that an encoder-decoder wrote; `answer` is right, or None and `why` says why not."""

    source: tuple[str, ...]
    symbols: tuple[WrittenSymbol, ...]
    text: str
    answer: str | None
    why: str

    @property
    def right(self) -> bool:
        return self.text == self.answer

    def passes(self, step: int) -> int:
        """Returns the encoder's single pass and the decoder's."""
        return 1 + min(step, len(self.symbols))


def sentences(count: int, longest: int) -> tuple[str, ...]:
    """Returns English sentences of at most `longest` characters, none of the translator's training."""
    _, held_out = pairs(PAIR_TASKS["language"], 0, 4 * count)
    return tuple(pair.source for pair in held_out if len(pair.source) <= longest)[:count]


def hidden_positions(text: str, hiding: Hiding, toggled: Collection[int] = ()) -> tuple[int, ...]:
    """Returns the positions hidden from the encoder: every fifth or second letter, or the letters of the
    middle word; those of `toggled` are turned round.

    >>> hidden_positions("the cat sat", "letters"), hidden_positions("the cat sat", "word", [4, 8])
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
def fill_in(model: Transformer, tokenizer: Tokenizer, text: str, hidden: Sequence[int]) -> FilledText:
    """Fills every hidden position with its likeliest symbol, in one pass. Raises CorpusError for an empty
    text, TokenizerError for unknown letters, ShapeError for too many, TaskError where nothing is hidden.
    """
    ids = _read(tokenizer, text, model.config.context)
    if not hidden:
        raise TaskError("nothing is hidden, so there is nothing to fill: click on a letter to hide it")
    window = torch.tensor([ids])
    window[0, list(hidden)] = model.config.vocab_size - 1  # the mask is the last id
    recorder = Recorder({"pattern"})
    chances = model(window, recorder)[0, :, :-1].softmax(-1)  # (position, vocab): the mask is no letter
    reads = _spread(recorder)
    best = chances.argmax(-1)
    symbols = tuple(
        WrittenSymbol(tokenizer.decode([int(best[place])]), float(chances[place, best[place]]), reads[place])
        for place in hidden
    )
    return FilledText(text, tuple(hidden), symbols)


@torch.inference_mode()
def carry_on(
    model: Transformer, tokenizer: Tokenizer, text: str, length: int, sampling: SampleConfig
) -> Continuation:
    """Writes `length` symbols after a text. Raises as `fill_in`, and ConfigError for bad settings."""
    ids = _read(tokenizer, text, model.config.context - length)
    drawn = list(steps(model, ids, length, sampling))
    recorder = Recorder({"pattern"})
    model(torch.tensor([[*ids, *(each.token for each in drawn[:-1])]]), recorder)
    reads = _spread(recorder)
    symbols = tuple(
        WrittenSymbol(
            tokenizer.decode([each.token]), each.probability, reads[each.position - 1, : each.position]
        )
        for each in drawn
    )
    return Continuation(text, symbols)


def translate(model: Seq2Seq, tokenizer: PairTokenizer, text: str) -> Translation:
    """Writes the likeliest target of a source. Raises as `fill_in`."""
    wrote = write_target(model, tokenizer, text)
    own, across = wrote.self_patterns.mean((0, 1)), wrote.pattern(None)
    symbols = tuple(
        WrittenSymbol(symbol, float(wrote.probabilities[i].max()), own[i, : i + 1], across[i])
        for i, symbol in enumerate(wrote.written)
    )
    answer, why = None, ""
    try:
        answer = PAIR_TASKS["language"].answer(text).target
    except TaskError as error:
        why = str(error)
    return Translation(wrote.source, symbols, wrote.text, answer, why)


def _read(tokenizer: Tokenizer, text: str, room: int) -> list[int]:
    if not text:
        raise CorpusError("the text is empty: write at least a letter")
    ids = tokenizer.encode(text)
    if len(ids) > room:
        raise ShapeError(f"a text of {len(ids)} letters is too long: this model has room for {room}")
    return ids


def _spread(recorder: Recorder) -> np.ndarray:
    """Returns the mean of all recorded patterns, of layers and heads: (query, key)."""
    mean: Tensor = torch.stack([*recorder.tensors.values()]).mean((0, 2))[0]
    return mean.float().numpy()
