"""How often a classifier is right, and how often counting words is."""

from __future__ import annotations

import math
import re
from collections import Counter

import torch

from engine.classifier import Classifier
from engine.paired import LabelledRows, LabelledText

AT_ONCE = 256  # texts of one forward pass


@torch.inference_mode()
def labelled_right(model: Classifier, rows: LabelledRows) -> float:
    """The share of texts whose label is the likeliest to the model, 0 to 1."""
    device = model.w_label.weight.device
    right = 0
    for some in torch.arange(len(rows)).split(AT_ONCE):
        batch = rows.of(some)
        right += int((model(batch.texts.to(device)).argmax(-1).cpu() == batch.labels).sum())
    return right / len(rows)


def counting_right(text: LabelledText, added: float = 0.5) -> float:
    """The share of held-out texts that naive Bayes on words is right about, 0 to 1: the label with the
    largest log P(label) + sum of log P(word | label), counted in what is learned from, `added` to each count
    (Manning et al. 2008, 13.2). A model that beats it has learned more than who uses which words.
    """
    said: dict[str, Counter[str]] = {label: Counter() for label in text.labels}
    for one in text.train:
        said[one.label].update(_words(one.text))
    known = len(set().union(*said.values()))
    often = Counter(one.label for one in text.train)

    def score(label: str, words: list[str]) -> float:
        counts, total = said[label], said[label].total() + added * known
        prior = math.log(often[label]) if often[label] else -math.inf
        return prior + sum(math.log((counts[word] + added) / total) for word in words)

    right = 0
    for one in text.validation:
        words = _words(one.text)
        right += max(text.labels, key=lambda label: score(label, words)) == one.label
    return right / len(text.validation)


def _words(text: str) -> list[str]:
    """Words in small letters, and signs.

    >>> _words("Ay, 'tis he!")
    ['ay', ',', "'tis", 'he', '!']
    """
    return re.findall(r"[a-z']+|[^\sa-z']", text.lower())
