"""The work of learning merges, known before: words that never recur take longer than prose."""

from __future__ import annotations

from math import log2

from engine.data.tokenizers.bpe import BYTES
from engine.errors import TokenizerError
from studies.tokens.bpe_watch import affordable


def rounds(vocab_size: int) -> float:
    """Returns the cost of a byte of a word, in the time of laying it down: once for that, and once for every
    doubling of the vocabulary. Measured on random words: 1.2, 5.1 and 6.6 microseconds a byte for 300, 2,048
    and 8,192 entries.

    >>> rounds(256), rounds(2048)
    (1.0, 4.0)
    """
    return 1.0 + log2(max(1.0, vocab_size / len(BYTES)))


def check(text: str, vocab_size: int, most: int) -> None:
    """Raises TokenizerError, with what would fit, for a text that is more work than `most`: the bytes of its
    distinct words, each as often as `rounds` says. It looks no further than that.
    """
    limit = int(most / rounds(vocab_size))
    fits = affordable(text, "byte", "words", limit)
    if fits < len(text):
        raise TokenizerError(
            f"its words hardly ever come again, so that learning {vocab_size:,} tokens takes too long here:"
            f" the words that differ may have {limit:,} bytes in all. Its first {fits:,} characters would fit"
            ", or a smaller vocabulary, or characters or bytes as tokens"
        )
