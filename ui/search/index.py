"""A small search index: entries with weighted fields, ranked as a person would expect.

    Index(entries).find("perplexty")

A word of the query matches a word of a field that equals it, begins with it, has the same stem or is spelt
almost like it; each with less weight than the one before. Rare words count more than frequent ones.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from math import log

MOST = 12  # results
MOST_QUERY = 120  # characters that are read of a query
STEM, BEGINS, ALMOST = 0.95, 0.8, 0.6  # weight of a match that is not exact
CLOSE = 0.86  # similarity of two spellings (difflib)
MOST_SLIPS = 4  # words of a query whose spelling is compared with the index: it takes longest
SHORTEST = 4  # letters of a word that may be misspelt
PHRASE = 2.0  # times the score, where the query is a title, a name or a question as it stands
_SIGNS = {"√": " sqrt ", "×": " x ", "÷": " divide ", "β": " beta ", "σ": " sigma "}
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
# Words of a question that name no topic. A query of nothing else is read as it is.
_QUESTION_WORDS = (
    "a an and are at be by can could did do does for from get give has have how i in into is it its kind "
    "many me much my of on one or show shows so than that the their them there these they this to use "
    "used was we were what what's when where which who why will with work works would you your"
)
_COMMON = frozenset(_QUESTION_WORDS.split())
VIEW, TERM, EXERCISE, NOTEBOOK, COURSE, SCENE = "View", "Term", "Exercise", "Notebook", "Course", "Scene"


@dataclass(frozen=True)
class Entry:
    """A search result. `kind` groups entries and limits how many of them are shown; `names` are what it is
    called, `about` what else is asked or shown there, `text` what is written about it. `weight` multiplies
    the score; `address` lies below the app's root.
    """

    kind: str
    title: str
    detail: str
    address: str
    names: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    text: str = ""
    weight: float = 1.0


_FIELDS = (("names", 10.0), ("title", 7.0), ("about", 6.0), ("text", 1.0))


class Index:
    """An index over entries, built once. `most` limits the results of a kind."""

    def __init__(self, entries: Iterable[Entry], most: Mapping[str, int] | None = None) -> None:
        self.entries = tuple(entries)
        self._most = dict(most or {})
        self._weights = [_weights(entry) for entry in self.entries]
        self._holders: dict[str, list[int]] = {}
        for i, weights in enumerate(self._weights):
            for word in weights:
                self._holders.setdefault(word, []).append(i)
        self._stems: dict[str, list[str]] = {}
        for word in self._holders:
            self._stems.setdefault(stem(word), []).append(word)
        self._by_letter: dict[str, list[str]] = {}
        for word in sorted(self._holders):
            if len(word) >= SHORTEST:
                self._by_letter.setdefault(word[0], []).append(word)
        self._similar = lru_cache(2_000)(self._matches)
        self._misspelt = lru_cache(2_000)(self._almost)

    def find(self, query: str, most: int = MOST, kind: str = "") -> list[Entry]:
        """Returns the best entries for a query, best first; of a single `kind` where that is given."""
        terms = words(query[:MOST_QUERY])
        topic = [word for word in terms if word not in _COMMON] or terms
        scores = self._scores(topic)
        plain = " ".join(terms)
        for i in scores:
            if plain in _called(self.entries[i]):
                scores[i] *= PHRASE
        order = sorted(scores, key=lambda i: (-scores[i], i))
        if kind:
            return [self.entries[i] for i in order if self.entries[i].kind == kind][:most]
        return self._limited(order, most)

    def _scores(self, topic: Sequence[str]) -> dict[int, float]:
        """Entry -> score, less where a word of the query is missing."""
        scores: dict[int, float] = defaultdict(float)
        matched: Counter[int] = Counter()
        unknown = [word for word in dict.fromkeys(topic) if len(word) >= SHORTEST and not self._similar(word)]
        for word in topic:
            best: dict[int, float] = {}
            known_words = self._misspelt(word) if word in unknown[:MOST_SLIPS] else self._similar(word)
            for known, quality in known_words:
                rarity = log(1 + len(self.entries) / len(self._holders[known]))
                for i in self._holders[known]:
                    best[i] = max(best.get(i, 0.0), quality * rarity * self._weights[i][known])
            for i, value in best.items():
                scores[i] += value
                matched[i] += 1
        return {
            i: score * self.entries[i].weight * (matched[i] / len(topic)) ** 2 for i, score in scores.items()
        }

    def _matches(self, word: str) -> tuple[tuple[str, float], ...]:
        """Words of the index that a word of a query means, with the quality of the match."""
        result = dict.fromkeys(self._stems.get(stem(word), ()), STEM)
        if len(word) > 1:
            begins = {each: BEGINS for each in self._holders if each.startswith(word)}
            result = begins | result
        if word in self._holders:
            result[word] = 1.0
        return tuple(result.items())

    def _almost(self, word: str) -> tuple[tuple[str, float], ...]:
        """Words of the index that have the same first letter and almost the same spelling, or two letters the
        other way round.
        """
        swapped = (word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1))
        close = get_close_matches(word, self._by_letter.get(word[0], ()), 3, CLOSE)
        return tuple(dict.fromkeys([*filter(self._holders.__contains__, swapped), *close], ALMOST).items())

    def _limited(self, order: Sequence[int], most: int) -> list[Entry]:
        best = {(self.entries[i].kind, self.entries[i].title): i for i in reversed(order)}
        shown: Counter[str] = Counter()
        result = []
        for i in sorted(best.values(), key=order.index):
            entry = self.entries[i]
            shown[entry.kind] += 1
            if shown[entry.kind] <= self._most.get(entry.kind, most):
                result.append(entry)
        return result[:most]


def words(text: str) -> list[str]:
    """Returns the words of a text, in small letters and without accents.

    >>> words("Why divide by √d_k? Naïve Top-k")
    ['why', 'divide', 'by', 'sqrt', 'd', 'k', 'naive', 'top', 'k']
    """
    for sign, written in _SIGNS.items():
        text = text.replace(sign, written)
    plain = unicodedata.normalize("NFKD", text.lower().replace("’", "'"))
    return _WORD.findall("".join(each for each in plain if not unicodedata.combining(each)))


def stem(word: str) -> str:
    """Returns what is left of a word without its ending.

    >>> [stem(word) for word in ("heads", "dividing", "divide", "masked", "masks", "bias", "loss", "losses")]
    ['head', 'divid', 'divid', 'mask', 'mask', 'bias', 'loss', 'loss']
    """
    for ending in ("ings", "ing", "edly", "ed", "es", "s", "e"):
        left = word[: -len(ending)]
        if word.endswith(ending) and len(left) >= 4 and not (ending in ("s", "es") and left[-1] in "siu"):
            return stem(word[:-2]) if word.endswith("sses") else left
    return word


def _weights(entry: Entry) -> dict[str, float]:
    """Word -> its weight: of the best field that holds it, and a little more for each further mention."""
    weights: dict[str, float] = {}
    for name, weight in _FIELDS:
        value = getattr(entry, name)
        text = value if isinstance(value, str) else " ".join(value)
        for word, count in Counter(words(text)).items():
            weights[word] = max(weights.get(word, 0.0), weight) + 0.3 * log(count)
    return weights


def _called(entry: Entry) -> set[str]:
    return {" ".join(words(name)) for name in (entry.title, *entry.names, *entry.about)}
