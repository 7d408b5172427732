"""Velan, a language that nobody speaks: its words, and the rules by which English becomes Velan.

Every rule is one function or one table here, and stands in words in rules.toml
(studies/pairs/paired/language.py reads the English). Nouns are of the sun or of the moon. Neither English
nor the noun itself shows which: it shows in the endings of all that agrees with the noun.

A lecturer projects these words: no form of Velan may be, or begin as, a slur or an obscenity of a language
that many speak (tests/studies/paired/test_language.py), and no English sentence may hurt (read a page of what
`draw` gives after a change).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Positions = tuple[int, ...]
Velan = list[tuple[str, Positions]]  # words, each with the positions of the English words that it comes from

# English -> (Velan stem, gender, second word). Two English words may be one in Velan, and one two.
Gender = Literal["sun", "moon"]
NOUNS: dict[str, tuple[str, Gender, str]] = {
    "king": ("ker", "sun", ""), "dog": ("vuf", "moon", ""), "cat": ("mir", "sun", ""),
    "horse": ("tald", "moon", ""), "bird": ("pil", "sun", ""), "river": ("arun", "moon", ""),
    "tree": ("bosk", "sun", ""), "house": ("dom", "moon", ""), "friend": ("sem", "moon", ""),
    "teacher": ("ludar", "sun", ""), "doctor": ("henar", "moon", ""), "farmer": ("gradar", "sun", ""),
    "sailor": ("navar", "moon", ""), "singer": ("lirar", "sun", ""), "child": ("kin", "moon", ""),
    "woman": ("zen", "sun", ""), "mouse": ("sor", "moon", ""), "wolf": ("rog", "sun", ""),
    "police officer": ("vik", "sun", ""), "post office": ("mel", "moon", ""),
    "grandmother": ("mam", "moon", "olda"), "lighthouse": ("tur", "sun", "luma"),
}  # fmt: skip
PLURALS = {"child": "children", "woman": "women", "mouse": "mice", "wolf": "wolves"}

# English, base form -> (Velan stem, where it stands in a main clause, particle before it).
Stands = Literal["last", "first"]
VERBS: dict[str, tuple[str, Stands, str]] = {
    "see": ("ved", "last", ""), "hear": ("ort", "last", ""), "help": ("aud", "last", ""),
    "follow": ("lek", "last", ""), "carry": ("port", "last", ""), "paint": ("kol", "last", ""),
    "look for": ("ser", "last", ""), "wake up": ("mat", "last", ""), "greet": ("tun", "last", "hale"),
    "love": ("am", "first", ""), "fear": ("tim", "first", ""), "trust": ("fid", "first", ""),
    "admire": ("od", "first", ""), "forgive": ("nal", "first", "dol"),
}  # fmt: skip

# No two stems may differ in an ending's letters alone. They stand beside every noun, people too: no colours.
ADJECTIVES = {
    "small": "tir", "big": "gran", "old": "vet", "brave": "nov", "gentle": "mild", "funny": "vel",
    "clever": "sab", "tired": "las", "happy": "fel", "silent": "kev",
}  # fmt: skip
DETERMINERS = {"the": "il", "a": "un", "some": "un", "this": "est", "these": "est"}
ADVERBS = {"today": "idis", "often": "sepe", "again": "nove", "slowly": "lentu", "everywhere": "tutlok"}
ENDINGS = {("sun", False): "a", ("sun", True): "ai", ("moon", False): "o", ("moon", True): "oi"}
NOT, FUTURE, RELATIVE = "nek", "ur", "k"


@dataclass(frozen=True)
class Word:
    """One entry of the English half: its base form, and the positions of its words in the sentence."""

    base: str
    positions: Positions


@dataclass(frozen=True)
class Action:
    """A verb with its helpers: `will`, `does not` or `do not`, `will not`."""

    verb: Word
    future: Positions = ()
    negated: Positions = ()


@dataclass(frozen=True)
class Phrase:
    """A noun with what belongs to it."""

    determiner: Word
    adjectives: tuple[Word, ...]
    noun: Word
    plural: bool
    clause: Clause | None = None


@dataclass(frozen=True)
class Clause:
    """A `that` clause: a verb and its object, or its own subject and its verb."""

    that: Positions
    other: Phrase
    action: Action
    has_subject: bool  # `other` is who does it: that the king loves


@dataclass(frozen=True)
class Sentence:
    subject: Phrase
    action: Action
    object: Phrase
    adverb: Word | None = None


def agreeing(stem: str, positions: Positions, phrase: Phrase) -> tuple[str, Positions]:
    """Returns a stem with the ending of a noun's gender and number, and its English words' positions."""
    gender = NOUNS[phrase.noun.base][1]
    return stem + ENDINGS[gender, phrase.plural], positions + phrase.noun.positions


def noun(phrase: Phrase) -> Velan:
    """Returns a noun in Velan. The plural ends in i; no ending shows the gender; some are two words."""
    stem, _, second = NOUNS[phrase.noun.base]
    words = [(stem + ("i" if phrase.plural else ""), phrase.noun.positions)]
    return [*words, (second, phrase.noun.positions)] if second else words


def verb(action: Action, subject: Phrase) -> Velan:
    """Returns a verb in Velan, which agrees with its subject; the future is in the word, `not` before."""
    stem, _, particle = VERBS[action.verb.base]
    words: Velan = [(NOT, action.negated)] if action.negated else []
    if particle:
        words.append((particle, action.verb.positions))
    ending = FUTURE if action.future else ""
    return [*words, agreeing(stem + ending, action.verb.positions + action.future, subject)]


def phrase(of: Phrase) -> Velan:
    """Returns a phrase in Velan: determiner, noun, adjectives in reversed order, clause."""
    before = agreeing(DETERMINERS[of.determiner.base], of.determiner.positions, of)
    after = [agreeing(ADJECTIVES[each.base], each.positions, of) for each in reversed(of.adjectives)]
    return [before, *noun(of), *after, *(clause(of.clause, of) if of.clause else ())]


def clause(of: Clause, head: Phrase) -> Velan:
    """Returns a clause in Velan: the relative word agrees with the noun before it, and the verb is last."""
    subject = of.other if of.has_subject else head
    return [agreeing(RELATIVE, of.that, head), *phrase(of.other), *verb(of.action, subject)]


def sentence(of: Sentence) -> Velan:
    """Returns a sentence in Velan: adverb first, the verb last, or before the subject if of the heart."""
    verbs = verb(of.action, of.subject)
    things = phrase(of.subject), phrase(of.object)
    order = (verbs, *things) if VERBS[of.action.verb.base][1] == "first" else (*things, verbs)
    first: Velan = [(ADVERBS[of.adverb.base], of.adverb.positions)] if of.adverb else []
    return [*first, *(word for part in order for word in part)]


def english_verbs() -> Iterator[tuple[str, str, bool]]:
    """Yields (form, base, True for the form of a singular noun) of every verb: looks for, look for."""
    for base in VERBS:
        first, _, rest = base.partition(" ")
        single = f"{first[:-1]}ies" if first.endswith("ry") else f"{first}s"
        yield f"{single} {rest}".strip(), base, True
        yield base, base, False


def plural(base: str) -> str:
    """
    >>> plural("mouse"), plural("police officer")
    ('mice', 'police officers')
    """
    return PLURALS.get(base, f"{base}s")
