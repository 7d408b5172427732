"""What predictors without a network reach on a text, as lines to hold a loss against."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.data.corpus import Corpus


@dataclass(frozen=True)
class Baselines:
    """Mean losses on the validation split of predictors that counted on the training split, in nats per token
    (or in bits per character). `uniform` knows nothing: ln V. `unigram` knows how often each token occurs,
    `bigram` which follows which, `trigram` which follows which two; None where the text is too short for it.

    Unseen ones have a chance by add-one smoothing: p(b | a) = (count of ab + 1) / (count of a + V). For three
    tokens that is crude (most of the V^3 never occur), so a better trigram would lie a little lower.
    """

    uniform: float
    unigram: float
    bigram: float
    trigram: float | None

    def __iter__(self) -> Iterator[tuple[str, float]]:
        """(name, loss) of those there are."""
        found = {name: getattr(self, name) for name in ("uniform", "unigram", "bigram", "trigram")}
        return iter([(name, loss) for name, loss in found.items() if loss is not None])


def baselines(corpus: Corpus, bits: bool = False) -> Baselines:
    """Those of a text; in nats per token, or in `bits` per character."""
    found = corpus.baselines_in_bits if bits else corpus.baselines
    return Baselines(found["uniform"], found["unigram"], found["bigram"], found.get("trigram"))
