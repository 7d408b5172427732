"""Classifiers: their accuracy, that of counting words, and what each word does to the answer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from engine.errors import ShapeError
from studies.pairs.checkpoints import LabelCheckpoint
from studies.pairs.dataset import LabelledRows, LabelledText, label_ids
from studies.pairs.seq2seq import Classifier
from studies.pairs.tokenizer import cut

AT_ONCE = 256  # texts of one forward pass


@torch.inference_mode()
def labelled_right(model: Classifier, rows: LabelledRows) -> list[bool]:
    """Returns for each text whether its label is the model's likeliest."""
    device = model.w_label.weight.device
    right: list[bool] = []
    for some in torch.arange(len(rows)).split(AT_ONCE):
        batch = rows.of(some)
        right += (model(batch.texts.to(device)).argmax(-1).cpu() == batch.labels).tolist()
    return right


def counting_right(text: LabelledText, added: float = 0.5) -> list[bool]:
    """Returns for each held-out text whether naive Bayes on words finds its label. It takes the largest log
    P(label) + sum of log P(word | label), counted in the training texts, `added` to each count (Manning et
    al. 2008, 13.2).
    """
    counted: dict[str, Counter[str]] = {label: Counter() for label in text.labels}
    for example in text.train:
        counted[example.label].update(cut(example.text, "speech"))
    known = len(set().union(*counted.values()))
    often = Counter(example.label for example in text.train)

    def score(label: str, words: Sequence[str]) -> float:
        counts, total = counted[label], counted[label].total() + added * known
        prior = math.log(often[label]) if often[label] else -math.inf
        return prior + sum(math.log((counts[word] + added) / total) for word in words)

    right = []
    for example in text.validation:
        words = cut(example.text, "speech")
        right.append(max(text.labels, key=lambda label: score(label, words)) == example.label)
    return right


def share(right: Sequence[bool]) -> float:
    """Returns the share that is right, 0 to 1."""
    return sum(right) / len(right)


def by_size(right: Sequence[bool], sizes: Sequence[int]) -> dict[int, float]:
    """Returns size -> share of the texts of that size that are right.

    >>> by_size([True, False, True], [1, 1, 8])
    {1: 0.5, 8: 1.0}
    """
    return {
        size: share([hit for hit, of in zip(right, sizes, strict=True) if of == size])
        for size in sorted(set(sizes))
    }


@dataclass(frozen=True, eq=False)
class WordAblation:
    """A text of `words`, its label probabilities, and those without each word. `unknown` are the words that
    the vocabulary lacks, `shares` (label,) the probabilities of `labels`, `without` (word, label) those when
    a word is left out.
    """

    words: tuple[str, ...]
    unknown: tuple[str, ...]
    labels: tuple[str, ...]
    shares: np.ndarray = field(repr=False)
    without: np.ndarray = field(repr=False)

    @property
    def moves(self) -> np.ndarray:
        """How much more probable each label is with the word: (word, label)."""
        return self.shares - self.without

    @property
    def order(self) -> list[int]:
        """The labels, likeliest first."""
        return np.argsort(-self.shares, kind="stable").tolist()

    @property
    def heaviest(self) -> int:
        """The word whose leaving out changes the share of the likeliest label most."""
        return int(np.abs(self.moves[:, self.order[0]]).argmax())


@torch.inference_mode()
def ablate_words(checkpoint: LabelCheckpoint, text: str) -> WordAblation:
    """Reads a text whole, and once without each of its words (leave-one-out: Li et al. 2016). Raises
    CorpusError for a text without a word, TokenizerError for an unknown one where there is no symbol for
    such, ShapeError for more words than the model was built for.
    """
    ids = label_ids(text, checkpoint.tokenizer)  # BEGIN, the words, END
    longest = checkpoint.model.config.context
    if len(ids) > longest:
        raise ShapeError(f"this model reads {longest - 2} words and signs at once, not {len(ids) - 2}")
    fewer = [[*ids[:place], *ids[place + 1 :]] for place in range(1, len(ids) - 1)]
    return WordAblation(
        tuple(cut(text, checkpoint.tokenizer.by)),
        tuple(checkpoint.tokenizer.unknown(text)),
        checkpoint.labels,
        _shares(checkpoint, [ids])[0],
        _shares(checkpoint, fewer),
    )


def _shares(checkpoint: LabelCheckpoint, rows: list[list[int]]) -> np.ndarray:
    """Returns probabilities (row, label) of rows of ids, equally long."""
    logits = checkpoint.model(torch.tensor(rows, device=checkpoint.model.w_label.weight.device))
    return logits.float().softmax(-1).cpu().numpy()
