"""Who would say this, to a classifier; and what each word of it does to that."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from engine.data.pairs import label_ids
from engine.data.tokenizers.pairs import cut
from engine.errors import ShapeError
from engine.weights.pair_checkpoints import LabelCheckpoint


@dataclass(frozen=True, eq=False)
class Spoken:
    """A text of `words`, as the tokenizer cuts it; `unknown`: those that the vocabulary lacks. `shares`
    (label,): the model's probability of each of `labels`. `without` (word, label): the same when a word is
    left out.
    """

    words: tuple[str, ...]
    unknown: tuple[str, ...]
    labels: tuple[str, ...]
    shares: np.ndarray = field(repr=False)
    without: np.ndarray = field(repr=False)

    @property
    def moves(self) -> np.ndarray:
        """(word, label): how much more probable each label is with the word than without it."""
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
def spoken(found: LabelCheckpoint, text: str) -> Spoken:
    """Reads a text whole, and once without each of its words (leave-one-out: Li et al. 2016).

    Raises CorpusError for a text without a word, TokenizerError for an unknown one where there is no symbol
    for such, ShapeError for more words than the model was built for.
    """
    ids = label_ids(text, found.tokenizer)  # BEGIN, the words, END
    longest = found.model.config.context
    if len(ids) > longest:
        raise ShapeError(f"this model reads {longest - 2} words and signs at once, not {len(ids) - 2}")
    fewer = [[*ids[:place], *ids[place + 1 :]] for place in range(1, len(ids) - 1)]
    return Spoken(
        tuple(cut(text, found.tokenizer.by)),
        tuple(found.tokenizer.unknown(text)),
        found.labels,
        _shares(found, [ids])[0],
        _shares(found, fewer),
    )


def _shares(found: LabelCheckpoint, rows: list[list[int]]) -> np.ndarray:
    """Rows of ids, equally long -> probabilities (row, label)."""
    logits = found.model(torch.tensor(rows, device=found.model.w_label.weight.device))
    return logits.float().softmax(-1).cpu().numpy()
