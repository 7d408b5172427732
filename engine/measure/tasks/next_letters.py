"""What comes after a letter or two: counted in a text, and as a model expects it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from engine.data.corpus import Corpus
from engine.model import Transformer

PLACES = 256  # of a text, spread evenly, over which a model's expectation is averaged


def counted(corpus: Corpus, given: str) -> np.ndarray:
    """How often each token comes after `given` in the training split, as shares (vocab,); zeros where it
    never occurs.
    """
    after = _ends(corpus.train, corpus.tokenizer.encode(given))
    counts = np.bincount(corpus.train.numpy()[after[after < len(corpus.train)]], minlength=corpus.vocab_size)
    return counts / max(counts.sum(), 1)


@torch.inference_mode()
def expected(model: Transformer, corpus: Corpus, given: str, places: int = PLACES) -> np.ndarray:
    """What the model expects after `given`, (vocab,): the mean of its probabilities at places of the
    validation split where that has just been read, each with as much before it as the model takes.
    """
    tokens, context = corpus.validation, model.config.context
    ends = _ends(tokens, corpus.tokenizer.encode(given))
    ends = ends[ends >= context]
    if not len(ends):
        return np.zeros(corpus.vocab_size)
    some = np.unique(ends[np.linspace(0, len(ends) - 1, min(places, len(ends))).astype(int)])
    windows = torch.stack([tokens[end - context : end] for end in some])
    parts: list[Tensor] = []
    for batch in windows.split(32):
        parts.append(model(batch)[:, -1].double().softmax(-1))
    return torch.cat(parts).mean(0).numpy()


def _ends(tokens: Tensor, given: list[int]) -> np.ndarray:
    """Where `given` has just ended: the places of what follows it."""
    text = tokens.numpy()
    found = np.ones(len(text) - len(given) + 1, bool)
    for i, token in enumerate(given):
        found &= text[i : len(text) - len(given) + 1 + i] == token
    return np.flatnonzero(found) + len(given)
