"""English sentences for Velan: how they are drawn, how they are read, and the task.

sentence -> phrase verb phrase [adverb]
phrase   -> determiner adjective* noun [that verb phrase | that phrase verb]    (a clause holds no other)
verb     -> [will | does | do] [not] form
"""

from __future__ import annotations

import random
from collections.abc import Collection

from engine.errors import TaskError
from studies.pairs.paired import grammar
from studies.pairs.paired.grammar import (
    ADJECTIVES,
    ADVERBS,
    DETERMINERS,
    NOUNS,
    VERBS,
    Action,
    Clause,
    Phrase,
    Sentence,
    Word,
)
from studies.pairs.paired.task import Aligned, PairTask, rules_of

_NOUNS = {base: (base, False) for base in NOUNS} | {grammar.plural(base): (base, True) for base in NOUNS}
_VERBS = {form: (base, single) for form, base, single in grammar.english_verbs()}
_SINGLE = {base: form for form, (base, single) in _VERBS.items() if single}
FORM = "a sentence such as “the small dog that the king loves does not see a river today”"


class _Reader:
    """Reads a sentence from left to right; `at` is the position of the next word."""

    def __init__(self, text: str) -> None:
        self.words, self.at = text.split(), 0

    def next_is(self, choices: Collection[str]) -> str | None:
        """Returns the longest of some entries, of one or two words, that stands next; None: none does."""
        for length in (2, 1):
            phrase = " ".join(self.words[self.at : self.at + length])
            if phrase in choices and self.at + length <= len(self.words):
                return phrase
        return None

    def take(self, choices: Collection[str], what: str) -> tuple[str, grammar.Positions]:
        word = self.next_is(choices)
        if word is None:
            raise TaskError(f"{self._where()} there must be {what}. Type {FORM}")
        start, self.at = self.at, self.at + len(word.split())
        return word, tuple(range(start, self.at))

    def _where(self) -> str:
        if self.at >= len(self.words):
            return "at the end of the sentence"
        return f"in place of “{self.words[self.at][:30]}”, word {self.at + 1},"

    def maybe(self, word: str) -> grammar.Positions:
        return self.take((word,), word)[1] if self.next_is((word,)) else ()

    def phrase(self, clause: bool) -> Phrase:
        determiner, where = self.take(DETERMINERS, "a word such as “the”, “a” or “some”")
        adjectives = []
        while self.next_is(ADJECTIVES):
            adjectives.append(Word(*self.take(ADJECTIVES, "")))
        noun, positions = self.take(_NOUNS, "a noun that is known")
        base, many = _NOUNS[noun]
        if determiner != "the" and many != (determiner in ("some", "these")):
            raise TaskError(f"“{determiner}” and “{noun}” do not agree: one is singular, the other plural")
        of = Phrase(Word(determiner, where), tuple(adjectives), Word(base, positions), many)
        if not clause or not (that := self.maybe("that")):
            return of
        return Phrase(of.determiner, of.adjectives, of.noun, many, self._clause(that, of))

    def _clause(self, that: grammar.Positions, head: Phrase) -> Clause:
        if self.next_is(DETERMINERS):
            other = self.phrase(clause=False)
            return Clause(that, other, self.action(other), has_subject=True)
        action = self.action(head)
        return Clause(that, self.phrase(clause=False), action, has_subject=False)

    def action(self, subject: Phrase) -> Action:
        """Raises TaskError where the verb does not agree with its subject."""
        future = self.maybe("will")
        helper = () if future else self.maybe("do" if subject.plural else "does")
        negated = self.maybe("not") if future or helper else ()
        if helper and not negated:
            raise TaskError(f"“{self.words[helper[0]]}” must be followed by “not”")
        single = not (future or helper or subject.plural)
        forms = {form for form, (_, each) in _VERBS.items() if each == single}
        word, positions = self.take(forms, f"a verb that goes with “{self._named(subject)}”")
        return Action(Word(_VERBS[word][0], positions), future, helper + negated if negated else ())

    def _named(self, subject: Phrase) -> str:
        return " ".join(self.words[i] for i in subject.noun.positions)


def read(text: str) -> Sentence:
    """Parses an English sentence. Raises TaskError naming the word that does not fit."""
    reader = _Reader(text)
    subject = reader.phrase(clause=True)
    action = reader.action(subject)
    target = reader.phrase(clause=True)
    adverb = Word(*reader.take(ADVERBS, "")) if reader.next_is(ADVERBS) else None
    if reader.at < len(reader.words):
        raise TaskError(f"the sentence is over before “{reader.words[reader.at][:30]}”. Type {FORM}")
    return Sentence(subject, action, target, adverb)


def answer(source: str) -> Aligned:
    """Returns the sentence in Velan with its alignment; a word that agrees comes from the noun too."""
    velan = grammar.sentence(read(source))
    text = " ".join(source.split())
    return Aligned(text, " ".join(word for word, _ in velan), tuple(positions for _, positions in velan))


def draw(draws: random.Random) -> str:
    """Draws a sentence of 5 to some 25 words: half of the subjects and three in ten objects have a clause."""
    subject, many = _phrase(draws)
    words = [subject]
    if draws.random() < 0.5:
        words.append(_clause(draws, many))
    words.append(_action(draws, many))
    target, many = _phrase(draws)
    words.append(target)
    if draws.random() < 0.3:
        words.append(_clause(draws, many))
    if draws.random() < 0.3:
        words.append(draws.choice([*ADVERBS]))
    return " ".join(words)


def _phrase(draws: random.Random) -> tuple[str, bool]:
    many = draws.random() < 0.5
    determiner = draws.choice(("the", "the", "some", "these") if many else ("the", "the", "a", "this"))
    adjectives = draws.sample([*ADJECTIVES], draws.choice((0, 0, 0, 1, 1, 2)))
    base = draws.choice([*NOUNS])
    return " ".join([determiner, *adjectives, grammar.plural(base) if many else base]), many


def _action(draws: random.Random, many: bool) -> str:
    base = draws.choice([*VERBS])
    plain = base if many else _SINGLE[base]
    helper = "do not" if many else "does not"
    return draws.choice((plain, plain, plain, f"{helper} {base}", f"will {base}", f"will not {base}"))


def _clause(draws: random.Random, many: bool) -> str:
    other, others = _phrase(draws)
    if draws.random() < 0.5:
        return f"that {other} {_action(draws, others)}"
    return f"that {_action(draws, many)} {other}"


LANGUAGE = PairTask(
    name="language",
    title="A small language",
    rule="Say an English sentence in Velan, a language that nobody speaks.",
    by="words",
    form=FORM,
    draw=draw,
    answer=answer,
    rules=rules_of("language", answer),
)
