"""Does cross-attention look where a target comes from? In the tasks of engine/data/tasks/paired that is
known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from engine.data.pairs import Pair, rows_of
from engine.data.tasks.paired import Aligned
from engine.data.tasks.task import Sources
from engine.data.tokenizers.pairs import PairTokenizer
from engine.errors import ShapeError
from engine.measure.attention.habits import Named
from engine.measure.circuits.induction import ordered
from engine.probe import Recorder
from engine.seq2seq import Seq2Seq


@dataclass(frozen=True, eq=False)
class AlignmentScore:
    """`heads` (layer, head): for what share of a target's symbols the place of the source at which a head
    looks most is one that the symbol comes from, 0 to 1. `together`: the same of the mean of all heads'
    patterns. `chance`: of a look at any place, all alike. `symbols`: of how many; those that come from
    nowhere do not count.
    """

    heads: np.ndarray = field(repr=False)
    together: float
    chance: float
    symbols: int

    @property
    def mean(self) -> float:
        """Over all heads."""
        return float(self.heads.mean())

    @property
    def best(self) -> Named:
        """The head that is right most often."""
        return ordered(self.heads)[0]


def hits(pattern: np.ndarray, alignment: Sources) -> np.ndarray:
    """Where the most-looked-at place is a true one: pattern (..., query, key), whose query i writes symbol i
    -> bool (..., symbol), of the symbols that come from somewhere. Raises ShapeError for a pattern of fewer
    queries than symbols, and for an alignment that points behind the last key.
    """
    queries, keys = pattern.shape[-2:]
    if queries < len(alignment) or any(place >= keys for places in alignment for place in places):
        raise ShapeError(
            f"a pattern of {queries} queries and {keys} keys is not of this alignment of {len(alignment)}"
            " symbols"
        )
    counted = [i for i, places in enumerate(alignment) if places]
    most = pattern[..., counted, :].argmax(-1)  # (..., symbol)
    true = np.zeros((len(counted), keys), dtype=bool)
    for row, i in enumerate(counted):
        true[row, list(alignment[i])] = True
    return true[np.arange(len(counted)), most]


def alignment_score(patterns: Sequence[np.ndarray], alignments: Sequence[Sources]) -> AlignmentScore | None:
    """Over some pairs, each with its pattern (layer, head, query, key), without padding. None where no symbol
    comes from anywhere.
    """
    each = [hits(pattern, of) for pattern, of in zip(patterns, alignments, strict=True)]
    mean = [hits(pattern.mean((0, 1)), of) for pattern, of in zip(patterns, alignments, strict=True)]
    found = np.concatenate(each, axis=-1)  # (layer, head, symbol)
    if not found.shape[-1]:
        return None
    even = [
        len(places) / pattern.shape[-1]
        for pattern, of in zip(patterns, alignments, strict=True)
        for places in of
        if places
    ]
    return AlignmentScore(
        found.mean(-1), float(np.concatenate(mean).mean()), float(np.mean(even)), found.shape[-1]
    )


@torch.inference_mode()
def cross_patterns(model: Seq2Seq, tokenizer: PairTokenizer, pairs: Sequence[Aligned]) -> list[np.ndarray]:
    """What each head of the decoder looks at in the source while it writes the right target, which it is
    given: of each pair (layer, head, query, key), float32. The last query writes END, the last key is that of
    the source's END.
    """
    rows = rows_of([Pair(one.source, one.target) for one in pairs], tokenizer)
    recorder = Recorder({"cross_pattern"})
    device = model.embedding.device
    model(rows.sources.to(device), rows.targets[:, :-1].to(device), recorder)
    layers = torch.stack([*recorder.tensors.values()], dim=1).float().cpu().numpy()
    # (batch, layer, head, query, key)
    sizes = [(len(tokenizer.encode(one.target)) + 1, len(tokenizer.encode(one.source)) + 1) for one in pairs]
    return [layers[i, :, :, :queries, :keys] for i, (queries, keys) in enumerate(sizes)]


def model_alignment(
    model: Seq2Seq, tokenizer: PairTokenizer, pairs: Sequence[Aligned]
) -> AlignmentScore | None:
    """Of a model that reads these pairs."""
    return alignment_score(cross_patterns(model, tokenizer, pairs), [one.sources for one in pairs])
