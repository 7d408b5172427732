"""Byte-pair encoding by hand: count the pairs, choose the most frequent, merge it, and count again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from random import Random

from engine.data.tokenizers.bpe import train
from studies.exercises.exercise import Mistake, mistakes
from studies.exercises.forms import Numbers, Pieces
from studies.exercises.sets.tokens import Cut, Pair, draw_text, join, listed, merge_mistakes, pair_counts
from studies.exercises.worked_example import Cell, Row, WorkedExample

COUNTED = 4  # pairs
MERGES = 2
OTHER = "Another pair is more frequent. A pair counts as often as the words containing it occur."


def merges_of(counts: Mapping[str, int], merges: int) -> list[Pair]:
    """Returns the pairs that the engine's BPE merges first in words with their counts."""
    text = "\n".join(word for word, times in counts.items() for _ in range(times))
    tokenizer = train(text, len(set(text)) + merges, level="char", split="words")
    tokens = [token.decode() for token in tokenizer.tokens]
    return [(tokens[merge.pair[0]], tokens[merge.pair[1]]) for merge in tokenizer.merges]


def two_merges(seed: int) -> WorkedExample:
    """Returns the first two merges of four words."""
    counts = draw_text(Random(f"two merges/{seed}"), MERGES)
    letters: Cut = {word: tuple(word) for word in counts}
    first, second = merges_of(counts, MERGES)
    once = {word: join(parts, first) for word, parts in letters.items()}
    twice = {word: join(parts, second) for word, parts in once.items()}
    return WorkedExample(
        f"Words and how often each occurs: {listed(counts)}. BPE starts from characters, and no merge crosses"
        " a word boundary.",
        (
            Row("Count pairs", _counts(letters, counts, first)),
            Row("Pair to merge", (_choice(letters, counts, first),)),
            Row("Words after it", _applied(letters, once, first)),
            Row(
                "Count again: pair",
                (_choice(once, counts, second, first), _count("how often", second, once, counts)),
            ),
            Row("Words after it", _applied(once, twice, second)),
        ),
        "0-0",
        2,
    )


def _counts(cut: Cut, counts: Mapping[str, int], best: Pair) -> tuple[Cell, ...]:
    """Returns a cell for the count of some pairs, the most frequent among them, in alphabetical order."""
    ranked = [pair for pair, _ in pair_counts(cut, counts).most_common(COUNTED)]
    assert best in ranked
    return tuple(_count(f"`{' '.join(pair)}`", pair, cut, counts) for pair in sorted(ranked))


def _count(label: str, pair: Pair, cut: Cut, counts: Mapping[str, int]) -> Cell:
    """Returns the cell for how often a pair stands in the words."""
    times = pair_counts(cut, counts)[pair]
    holding = {word: Counter(pairwise(parts))[pair] for word, parts in cut.items() if pair in pairwise(parts)}
    both = (word for word, parts in cut.items() if set(pair) <= set(parts))
    terms = " + ".join(
        f"{within} · {counts[word]}" if within > 1 else str(counts[word]) for word, within in holding.items()
    )
    return Cell.of(
        label,
        Numbers(),
        (times,),
        mistakes(
            ((len(holding),), "You counted each word once, not as often as it occurs."),
            ((sum(counts[word] for word in both),), "Both must be neighbours, in this order."),
            ((sum(counts.values()),), "That is the number of words. Only those with this pair count."),
        ),
        (
            "In which words do these two stand side by side, in this order?",
            f"In {', '.join(f'`{word}`' for word in holding)}. Each counts as often as it occurs.",
            f"{terms} = {times}",
        ),
    )


def _choice(cut: Cut, counts: Mapping[str, int], best: Pair, before: Pair | None = None) -> Cell:
    """Returns the cell for the pair that is merged; `before` is the pair that was merged before it."""
    pairs = pair_counts(cut, counts)
    rival = pairs.most_common(2)[1]
    stale = []
    if before is not None:
        letters: Cut = {word: tuple(word) for word in counts}
        old = next(pair for pair, _ in pair_counts(letters, counts).most_common() if pair != before)
        stale = [Mistake(old, "That pair was second in the first count. Count again: the merge changed it.")]
        stale.append(Mistake(before, "That pair has been merged: it stands nowhere any more."))
    return Cell.of(
        "the pair",
        Pieces(OTHER),
        best,
        (*stale, *merge_mistakes(cut, counts)),
        (
            "BPE is greedy: it looks at nothing but counts."
            if before is None
            else "After a merge its result is a symbol like any other, and all pairs are counted again.",
            "Take the pair with the largest count. Write its two pieces, a space between them."
            if before is None
            else f"Among the pairs there are now, the best two occur {pairs[best]} and {rival[1]} times.",
            f"`{best[0]} {best[1]}` occurs {pairs[best]} times, more often than any other.",
        ),
    )


def _applied(before: Cut, after: Cut, pair: Pair) -> tuple[Cell, ...]:
    """Returns a cell for the pieces of each word after a merge."""
    return tuple(
        Cell.of(
            f"`{word}`",
            Pieces("The pieces are different. Merge this pair, and no other.", word),
            after[word],
            (
                Mistake(parts, "The merge is missing: this word has the pair."),
                Mistake(tuple(word), "Those are its characters: earlier merges stay."),
                Mistake((word,), "Only this pair is merged, not the whole word."),
                *_reversed(word, parts, pair),
            ),
            (
                "A merge is made wherever the pair stands, and nowhere else.",
                f"Look for `{pair[0]}` followed by `{pair[1]}` in `{' '.join(parts)}`.",
                f"`{' '.join(parts)}` becomes `{' '.join(after[word])}`."
                if parts != after[word]
                else f"`{' '.join(parts)}` does not have the pair, so it stays as it is.",
            ),
        )
        for word, parts in before.items()
    )


def _reversed(word: str, parts: tuple[str, ...], pair: Pair) -> list[Mistake]:
    """Returns the mistake of merging the pair the other way round, where a word has it so."""
    turned = join(parts, pair[::-1])
    return [Mistake(turned, "The pair has an order: here its pieces stand the other way round.")]
