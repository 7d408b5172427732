"""Lists of pairs that a prompt shows and asks: each answer is one token of SmolLM2."""

from __future__ import annotations

from studies.circuits.examples_in_prompt import Pair


def _pairs(text: str) -> tuple[Pair, ...]:
    words = text.split()
    return tuple(zip(words[::2], words[1::2], strict=True))


WORD_PAIRS: dict[str, tuple[Pair, ...]] = {
    "antonyms": _pairs(
        "hot cold big small up down good bad fast slow old new happy sad light dark hard soft left right"
        " rich poor strong weak high low long short full empty early late loud quiet true false win lose"
        " push pull"
    ),
    "capitals": _pairs(
        "France Paris Italy Rome Spain Madrid Germany Berlin England London Japan Tokyo Austria Vienna"
        " Russia Moscow China Beijing Egypt Cairo Greece Athens Portugal Lisbon Ireland Dublin Poland"
        " Warsaw Hungary Budapest Sweden Stockholm Norway Oslo Cuba Havana Kenya Nairobi Iraq Baghdad"
    ),
}
