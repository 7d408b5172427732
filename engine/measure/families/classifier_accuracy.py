"""How often a classifier is right, and how often counting words is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import torch

from engine.data.pairs import LabelledRows, LabelledText
from engine.data.tokenizers.pairs import cut
from engine.seq2seq import Classifier

AT_ONCE = 256  # texts of one forward pass


@torch.inference_mode()
def labelled_right(model: Classifier, rows: LabelledRows) -> list[bool]:
    """Whether the label of each text is the likeliest to the model."""
    device = model.w_label.weight.device
    right: list[bool] = []
    for some in torch.arange(len(rows)).split(AT_ONCE):
        batch = rows.of(some)
        right += (model(batch.texts.to(device)).argmax(-1).cpu() == batch.labels).tolist()
    return right


def counting_right(text: LabelledText, added: float = 0.5) -> list[bool]:
    """Whether naive Bayes on words is right about each held-out text: it says the label with the largest
    log P(label) + sum of log P(word | label), counted in what is learned from, `added` to each count
    (Manning et al. 2008, 13.2). A model that beats it has learned more than who uses which words.
    """
    said: dict[str, Counter[str]] = {label: Counter() for label in text.labels}
    for one in text.train:
        said[one.label].update(cut(one.text, "speech"))
    known = len(set().union(*said.values()))
    often = Counter(one.label for one in text.train)

    def score(label: str, words: Sequence[str]) -> float:
        counts, total = said[label], said[label].total() + added * known
        prior = math.log(often[label]) if often[label] else -math.inf
        return prior + sum(math.log((counts[word] + added) / total) for word in words)

    right = []
    for one in text.validation:
        words = cut(one.text, "speech")
        right.append(max(text.labels, key=lambda label: score(label, words)) == one.label)
    return right


def share(right: Sequence[bool]) -> float:
    """Of those that are right, 0 to 1."""
    return sum(right) / len(right)


def by_size(right: Sequence[bool], sizes: Sequence[int]) -> dict[int, float]:
    """Size -> share of those of that size that are right.

    >>> by_size([True, False, True], [1, 1, 8])
    {1: 0.5, 8: 1.0}
    """
    found = {size: [one for one, of in zip(right, sizes, strict=True) if of == size] for size in set(sizes)}
    return {size: share(found[size]) for size in sorted(found)}
