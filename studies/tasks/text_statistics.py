"""Statistics of a text without a network: n-gram baselines, following letters, known words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from engine.data.corpus import Corpus
from engine.model import Transformer


@dataclass(frozen=True)
class Baselines:
    """Losses on the validation split of predictors that counted on the training split (nats per token).

    `uniform` is ln V; `unigram` knows how often each token occurs, `bigram` which follows which, `trigram`
    which follows which two; None where the text is too short. Add-one smoothing: p(b | a) = (count of ab + 1)
    / (count of a + V), crude for trigrams.
    """

    uniform: float
    unigram: float
    bigram: float
    trigram: float | None

    def __iter__(self) -> Iterator[tuple[str, float]]:
        """Yields (name, loss)."""
        result = {name: getattr(self, name) for name in ("uniform", "unigram", "bigram", "trigram")}
        return iter([(name, loss) for name, loss in result.items() if loss is not None])


def baselines(corpus: Corpus, bits: bool = False) -> Baselines:
    """Returns a text's baselines in nats per token, or in `bits` per character."""
    result = corpus.baselines_in_bits if bits else corpus.baselines
    return Baselines(result["uniform"], result["unigram"], result["bigram"], result.get("trigram"))


PLACES = 256  # of a text, spread evenly, over which a model's expectation is averaged


def counted(corpus: Corpus, given: str) -> np.ndarray:
    """Counts each token after `given` in the training split, as shares (vocab,), or zeros."""
    after = _ends(corpus.train, corpus.tokenizer.encode(given))
    counts = np.bincount(corpus.train.numpy()[after[after < len(corpus.train)]], minlength=corpus.vocab_size)
    return counts / max(counts.sum(), 1)


@torch.inference_mode()
def expected(model: Transformer, corpus: Corpus, given: str, count: int = PLACES) -> np.ndarray:
    """Returns the model's mean probabilities after `given` in the validation split, (vocab,)."""
    tokens, context = corpus.validation, model.config.context
    ends = _ends(tokens, corpus.tokenizer.encode(given))
    ends = ends[ends >= context]
    if not len(ends):
        return np.zeros(corpus.vocab_size)
    some = np.unique(ends[np.linspace(0, len(ends) - 1, min(count, len(ends))).astype(int)])
    windows = torch.stack([tokens[end - context : end] for end in some])
    parts: list[Tensor] = []
    for batch in windows.split(32):
        parts.append(model(batch)[:, -1].double().softmax(-1))
    return torch.cat(parts).mean(0).numpy()


def _ends(tokens: Tensor, given: list[int]) -> np.ndarray:
    """Returns the positions of what follows `given`."""
    text = tokens.numpy()
    result = np.ones(len(text) - len(given) + 1, bool)
    for i, token in enumerate(given):
        result &= text[i : len(text) - len(given) + 1 + i] == token
    return np.flatnonzero(result) + len(given)


WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
SHORTEST = 2  # letters: one alone is a word too often by chance


@lru_cache(maxsize=4)
def words_of(text: str) -> frozenset[str]:
    """Returns the words of a text, in small letters.

    >>> sorted(words_of("O, be quick! Be 'quick'."))
    ['be', 'quick']
    """
    return frozenset(word.lower() for word in WORD.findall(text) if len(word) >= SHORTEST)


def known_share(written: str, words: Collection[str]) -> float:
    """Returns the share of what is written, blanks aside, that lies in `words` (see `words_of`).

    >>> known_share("be qick::", {"be", "quick"})
    0.25
    """
    visible = sum(not letter.isspace() for letter in written)
    known = sum(len(word) for word in WORD.findall(written) if word.lower() in words)
    return known / visible if visible else 0.0
