"""Byte-pair encoding by hand (Sennrich et al. 2016): words with their counts, merges inside words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

from studies.exercises.exercise import Exercise, Mistake, see
from studies.exercises.forms import Numbers, Pieces

WORDS = (
    "low", "lower", "lowest", "new", "newer", "newest", "slow", "slower", "old", "older", "oldest", "cold",
    "colder", "wide", "wider", "widest", "hot", "hotter", "hottest", "rest", "tower", "flower", "shower",
    "power",
)  # fmt: skip
Pair = tuple[str, str]
Cut = dict[str, tuple[str, ...]]


def pair_counts(cut: Cut, counts: Mapping[str, int]) -> Counter[Pair]:
    """Counts how often two pieces stand side by side, each word as often as it occurs."""
    result: Counter[Pair] = Counter()
    for word, parts in cut.items():
        for pair in pairwise(parts):
            result[pair] += counts[word]
    return result


def join(parts: Sequence[str], pair: Pair) -> tuple[str, ...]:
    """Merges a pair wherever it stands in a word.

    >>> join(("l", "o", "w"), ("o", "w"))
    ('l', 'ow')
    """
    result: list[str] = []
    place = 0
    while place < len(parts):
        both = tuple(parts[place : place + 2]) == pair
        result.append("".join(pair) if both else parts[place])
        place += 2 if both else 1
    return tuple(result)


def _learned(counts: Mapping[str, int], merges: int) -> tuple[list[Pair], list[int], bool]:
    """(the merges, how often each pair stood there, whether one of them had a rival just as frequent)."""
    cut: Cut = {word: tuple(word) for word in counts}
    order, often, tie = [], [], False
    for _ in range(merges):
        ranked = pair_counts(cut, counts).most_common(2)
        tie = tie or (len(ranked) > 1 and ranked[0][1] == ranked[1][1])
        pair, times = ranked[0]
        order.append(pair)
        often.append(times)
        cut = {word: join(parts, pair) for word, parts in cut.items()}
    return order, often, tie


def _apply(word: str, order: Sequence[Pair]) -> tuple[str, ...]:
    parts = tuple(word)
    for pair in order:
        parts = join(parts, pair)
    return parts


def draw_text(rng: Random, merges: int) -> dict[str, int]:
    """Draws words and counts whose first merges have no rival."""
    while True:
        counts = {word: rng.randint(1, 9) for word in rng.sample(WORDS, 4)}
        if not _learned(counts, merges)[2]:
            return counts


def listed(counts: Mapping[str, int]) -> str:
    """
    >>> listed({"low": 5, "new": 2})
    '`low` 5×, `new` 2×'
    """
    return ", ".join(f"`{word}` {times}×" for word, times in counts.items())


def merge_mistakes(cut: Cut, counts: Mapping[str, int]) -> tuple[Mistake, ...]:
    """Returns the usual mistakes of the next merge: a pair that stands in most words, and the second best."""
    (best, _), *rest = pair_counts(cut, counts).most_common()
    once = Counter(pair for parts in cut.values() for pair in set(pairwise(parts)))
    types = [pair for pair, times in once.items() if times == max(once.values())]
    mistakes = (
        [Mistake(types[0], "You counted each word once, not as often as it occurs.")]
        if len(types) == 1 and types[0] != best
        else []
    )
    second = rest[0][0]
    if all(second != mistake.value for mistake in mistakes):
        mistakes.append(
            Mistake(second, f"Close: that pair occurs {rest[0][1]} times; another is more frequent.")
        )
    return tuple(mistakes)


def merge(rng: Random) -> Exercise:
    counts = draw_text(rng, 1)
    cut: Cut = {word: tuple(word) for word in counts}
    pairs = pair_counts(cut, counts)
    (best, often), *_ = pairs.most_common()
    return Exercise(
        f"A text of these words: {listed(counts)}. BPE starts from characters and never merges across"
        " words. Which pair is merged first? (Its two pieces, separated by a space.)",
        Pieces("Another pair is more frequent. A pair counts as often as the words containing it occur."),
        best,
        (
            "Every pair counts as often as the words containing it:",
            ", ".join(f"`{a} {b}` {times}" for (a, b), times in pairs.most_common(4)) + " ...",
            f"The most frequent: **`{best[0]} {best[1]}`**, {often} times.",
        ),
        merge_mistakes(cut, counts),
        see("tokens", tokens_view="bpe"),
        {"counts": counts},
    )


def after(rng: Random) -> Exercise:
    merges = rng.choice([2, 3])
    while True:
        counts = draw_text(rng, merges + 1)
        order, often, _ = _learned(counts, merges + 1)
        words = [w for w in WORDS if w not in counts and _differ(w, order, merges)]
        if words:
            break
    word = rng.choice(words)
    right = _apply(word, order[:merges])
    fewer, more, letters = _apply(word, order[: merges - 1]), _apply(word, order), tuple(word)
    mistakes = [Mistake(letters, "Those are the single characters: apply the merges in order.")]
    if fewer not in (right, letters):
        mistakes.append(Mistake(fewer, "The last of the merges is missing."))
    if more != right:
        mistakes.append(Mistake(more, f"That is one merge too many: the question asks for {merges}."))
    return Exercise(
        f"BPE learns **{merges} merges** from these words, starting with characters: {listed(counts)}. Into"
        f" which pieces does it then split `{word}`? (Separated by spaces.)",
        Pieces("The pieces are different. Learn the merges first, then apply them in order.", word),
        right,
        (
            *(
                f"Merge {place}: `{a}` + `{b}`, {times} times."
                for place, ((a, b), times) in enumerate(zip(order[:merges], often[:merges], strict=True), 1)
            ),
            f"`{word}`: **`{' '.join(right)}`**.",
        ),
        tuple(mistakes),
        see("tokens", tokens_view="bpe"),
        {"counts": counts, "merges": merges, "word": word},
    )


def _differ(word: str, order: Sequence[Pair], merges: int) -> bool:
    return len(_apply(word, order[:merges])) < len(word)


def vocabulary(rng: Random) -> Exercise:
    start, merges, special = rng.choice([256, 65, 96]), rng.randint(20, 50_000), rng.choice([0, 1, 2])
    beside = f", plus {special} special {'token' if special == 1 else 'tokens'}" if special else ""
    mistakes = [
        Mistake((merges,), "The single characters or bytes stay in the vocabulary."),
        Mistake((start + 2 * merges + special,), "A merge adds *one* entry, the joined pair."),
        Mistake((start - merges + special,), "Nothing is removed: the two pieces stay."),
    ]
    if special:
        mistakes.append(Mistake((start + merges,), "Special tokens are entries too."))
    return Exercise(
        f"BPE starts from {start} {'bytes' if start == 256 else 'characters'} and learns {merges:,}"
        f" merges{beside}. How large is its vocabulary?",
        Numbers(),
        (start + merges + special,),
        (
            "Each merge adds one entry; the merged pieces stay.",
            f"{start} + {merges:,} + {special} = **{start + merges + special:,}**. (GPT-2: 256 + 50,000 +"
            " 1.)",
        ),
        tuple(mistakes),
        see("tokens", tokens_view="cost"),
        {"start": start, "merges": merges, "special": special},
    )


TASKS = (
    ("merge", "The first merge", merge),
    ("after", "After some merges", after),
    ("vocabulary", "Merges and vocabulary size", vocabulary),
)
