"""Velan: each of its rules by sentences that were translated by hand, and its words against each other."""

from __future__ import annotations

import random
import re
from itertools import product

import pytest

from engine.errors import TaskError
from studies.pairs.paired.grammar import (
    ADJECTIVES,
    ADVERBS,
    DETERMINERS,
    ENDINGS,
    FUTURE,
    NOT,
    NOUNS,
    RELATIVE,
    VERBS,
    english_verbs,
    plural,
)
from studies.pairs.paired.language import LANGUAGE, answer, draw
from tests.engine.cases import for_each


@for_each(("rule", "source", "target"), [
    ("verb last", "the king sees the dog", "ila ker ilo vuf veda"),
    ("verb of the heart first", "the king loves the dog", "ama ila ker ilo vuf"),
    ("verb last in a clause", "the king that loves the dog sees a cat", "ila ker ka ilo vuf ama una mir veda"),
    ("... of the object", "the king sees the dog that the cat fears", "ila ker ilo vuf ko ila mir tima veda"),
    ("gender of the subject", "the dog sees the king", "ilo vuf ila ker vedo"),
    ("number", "the dogs see the kings", "iloi vufi ilai keri vedoi"),
    ("agreement over a distance", "the dogs that the king sees hear a cat",
     "iloi vufi koi ila ker veda una mir ortoi"),
    ("... where English shows nothing", "the dogs that the king sees will hear a cat",
     "iloi vufi koi ila ker veda una mir orturoi"),
    ("adjectives turned round", "a small funny dog hears the cat", "uno vuf velo tiro ila mir orto"),
    ("two words for one noun", "the grandmothers see a lighthouse", "iloi mami olda una tur luma vedoi"),
    ("two words for one verb", "the king greets the dog", "ila ker ilo vuf hale tuna"),
    ("... of the heart", "the king forgives the dog", "dol nala ila ker ilo vuf"),
    ("one word for two nouns", "the police officer sees some post offices", "ila vik unoi meli veda"),
    ("one word for two verbs", "the king looks for the dog", "ila ker ilo vuf sera"),
    ("one word for does not", "the king does not see the dog", "ila ker ilo vuf nek veda"),
    ("... before a verb that is first", "the kings do not trust a dog", "nek fidai ilai keri uno vuf"),
    ("will", "the king will see the dog", "ila ker ilo vuf vedura"),
    ("will not", "the king will not forgive the dog", "nek dol nalura ila ker ilo vuf"),
    ("adverb first", "the king loves the dog today", "idis ama ila ker ilo vuf"),
    ("this and these", "this mouse hears these mice", "esto sor estoi sori orto"),
    ("some and a are one word", "some kings see a king", "unai keri una ker vedai"),
    ("plurals by heart", "the wolves carry the children and".removesuffix(" and"), "ilai rogi iloi kini portai"),
])  # fmt: skip
def test_a_rule(rule: str, source: str, target: str) -> None:
    assert answer(source).target == target, rule


def aligned(source: str) -> list[tuple[str, list[str]]]:
    one = answer(source)
    words = one.source.split()
    made = zip(one.target.split(), one.sources, strict=True)
    return [(word, [words[i] for i in places]) for word, places in made]


def test_where_each_word_comes_from() -> None:
    assert aligned(
        "the small dogs that a police officer does not look for will love the lighthouse today"
    ) == [
        ("idis", ["today"]),
        ("amuroi", ["love", "will", "dogs"]),
        ("iloi", ["the", "dogs"]),
        ("vufi", ["dogs"]),
        ("tiroi", ["small", "dogs"]),
        ("koi", ["that", "dogs"]),
        ("una", ["a", "police", "officer"]),
        ("vik", ["police", "officer"]),
        ("nek", ["does", "not"]),
        ("sera", ["look", "for", "police", "officer"]),
        ("ila", ["the", "lighthouse"]),
        ("tur", ["lighthouse"]),
        ("luma", ["lighthouse"]),
    ]
    said = dict(aligned("the king that sees the dogs hears the cat"))
    assert said["veda"] == ["sees", "king"] and said["orta"] == ["hears", "king"]
    said = dict(aligned("the king that the dogs see hears the cat"))
    assert said["vedoi"] == ["see", "dogs"] and said["orta"] == ["hears", "king"]
    draws = random.Random(4)
    for _ in range(500):
        one = answer(draw(draws))
        assert {place for places in one.sources for place in places} == set(range(len(one.source.split())))


def forms() -> list[str]:
    """Every word of Velan in every form that it has, a and some as one word."""
    ends = [*ENDINGS.values()]
    words = [stem + end for (stem, _, _) in NOUNS.values() for end in ("", "i")]
    words += [stem + end for stem in {*ADJECTIVES.values(), *DETERMINERS.values(), RELATIVE} for end in ends]
    words += [stem + f + end for (stem, _, _), f, end in product(VERBS.values(), ("", FUTURE), ends)]
    words += [NOT, *ADVERBS.values()]
    words += [particle for _, _, particle in VERBS.values() if particle]
    return words + [second for _, _, second in NOUNS.values() if second]


# How slurs and obscenities of languages that many speak begin, as Velan would spell them (in brackets: the
# language). Put one here when you hear of it, and another stem into the grammar.
OFFENSIVE = """
    nig neg koon kun kafir spik gook fag kik paki jap nazi rape rapi slut kunt kok dik tit fuk shit (English)
    put polla pola kul kon kabron mierda maric pij pika kona kuzo (Spanish, Portuguese) merd nik kui bit (French)
    kazz fig fik min strons (Italian) fot arsh nut mush (German) lul hoer kut flikk (Dutch) pul sul muie (Romanian)
    kurv kurw pizd pisd hui suk blad bli mud zhop shop dup jeb (Russian, Polish, Serbian) vitt pers (Finnish)
    bok sik got orosp ibn (Turkish) kir kos kus zib zip zub shar kalb (Persian, Arabic)
    lun lan lund gand chut bhos rand harami (Hindi, Punjabi, Urdu) fen bi kao (Chinese) kuso mank chin (Japanese)
    shib ssi jot (Korean) memek kont anj (Indonesian) kum mbor (Swahili) lon (Vietnamese) puk (Telugu, Filipino)
"""
COLOURS = {"black", "white", "red", "yellow", "brown", "pink", "dark", "pale", "fair", "coloured", "colored"}


def test_no_word_or_sentence_offends() -> None:
    begins = tuple(re.sub(r"\(.*?\)", "", OFFENSIVE).split())
    assert [word for word in forms() if word.startswith(begins)] == []
    assert not COLOURS & {*ADJECTIVES} and not {"hate", "kill", "hit", "beat", "shoot"} & {*VERBS}


def test_words_are_told_apart_in_all_their_forms() -> None:
    words = forms()
    assert len(set(words)) == len(words)
    english = {form for form, _, _ in english_verbs()} | {*NOUNS, *map(plural, NOUNS), *ADJECTIVES, *ADVERBS}
    assert not english & set(words)
    assert len(ENDINGS) == len(set(ENDINGS.values())) == 4
    singular = {base: form for form, base, single in english_verbs() if single}
    assert (singular["carry"], singular["look for"], singular["see"]) == ("carries", "looks for", "sees")
    assert [plural(n) for n in ("child", "woman", "mouse", "wolf")] == ["children", "women", "mice", "wolves"]


def test_what_is_drawn_has_everything() -> None:
    draws = random.Random(9)
    said = [draw(draws) for _ in range(3000)]
    words = {word for one in said for word in one.split()}
    every = [*NOUNS, *map(plural, NOUNS), *ADJECTIVES, *ADVERBS, *DETERMINERS]
    every += [form for form, _, _ in english_verbs()]
    assert words == {w for e in every for w in e.split()} | {"that", "will", "not", "do", "does"}
    clauses = [one.count("that") for one in said]
    assert 0.6 < sum(map(bool, clauses)) / len(said) < 0.7 and max(clauses) == 2  # 1 - 0.5 * 0.7
    assert max(len(one.split()) for one in said) <= 27


@for_each(("typed", "said"), [
    ("the king see the dog", "goes with “king”"),
    ("the kings sees the dog", "goes with “kings”"),
    ("the dogs that see the king hears a cat", "goes with “dogs”"),
    ("the king that the dogs sees hears a cat", "goes with “dogs”"),
    ("a kings see the dog", "do not agree"),
    ("these king sees the dog", "do not agree"),
    ("the king does see the dog", "followed by “not”"),
    ("the king do not see the dog", "goes with “king”"),
    ("the king not sees the dog", "goes with “king”"),
    ("the emperor sees the dog", "in place of “emperor”, word 2"),
    ("the king sees", "at the end of the sentence"),
    ("the king sees the dog yesterday", "over before “yesterday”"),
    ("the king looks the dog", "goes with “king”"),
    ("The king sees the dog", "in place of “The”"),
    ("the king that sees the dog that hears a cat loves a mouse", "goes with “king”"),
])  # fmt: skip
def test_what_is_no_sentence(typed: str, said: str) -> None:
    with pytest.raises(TaskError, match=said):
        LANGUAGE.answer(typed)
