"""Prompts of the experiments that were tried, by view, and texts of our own that models read."""

from __future__ import annotations

from typing import NamedTuple

from studies.circuits.steering import Where

OWN = "own"

CITIES = (
    "The capital of France is Paris, and the capital of Italy is Rome. Most people who visit Europe for the"
    " first time want to see one of the two, and many of them come back."
)
# The short one is for sinks: the longer the text, the less a lost beginning costs each token.
PARIS_AND_ROME = CITIES + (
    " In Paris they walk along the river, climb the tower and wait in long lines for the museums. In Rome"
    " they sit in the sun, eat ice cream and look at old stones. Both cities are full of tourists in summer,"
    " and both are quiet in the early morning, when the streets are washed and the first trains arrive."
)


class Pair(NamedTuple):
    """Two prompts, and the answer that each calls for."""

    clean: str
    corrupted: str
    answers: tuple[str, str]


PAIRS: dict[str, Pair] = {
    "capital": Pair("The capital of France is", "The capital of Italy is", (" Paris", " Rome")),
    "name": Pair(
        "When Mary and John went to the store, John gave a drink to",
        "When Mary and John went to the store, Mary gave a drink to",
        (" Mary", " John"),
    ),
    "agreement": Pair("The keys to the old cabinet", "The key to the old cabinet", (" are", " is")),
    "opposite": Pair("The opposite of hot is", "The opposite of big is", (" cold", " small")),
    "gender": Pair("Anna said that", "Peter said that", (" she", " he")),
    # for models that read letters
    "thou": Pair("thou ar", "they ar", ("t", "e")),
    "hast": Pair("thou ha", "they ha", ("s", "v")),
    "far": Pair("thou never wer", "they never wer", ("t", "e")),
}


class Question(NamedTuple):
    """A prompt, and the token that should follow; empty: whatever the model says."""

    prompt: str
    answer: str
    letters: bool = False  # for models that read letters


QUESTIONS: dict[str, Question] = {
    "capital": Question("The capital of France is", " Paris"),
    "gold": Question("The chemical symbol for gold is", " Au"),
    "hamlet": Question("The author of Hamlet is William", " Shakespeare"),
    "planet": Question("The largest planet in the solar system is", " Jupiter"),
    "opposite": Question("The opposite of hot is", " cold"),
    "sum": Question("Two plus two is", " four"),
    "window": Question("But, soft! what light through yonder win", "d", letters=True),
    "romeo": Question("ROMEO", ":", letters=True),
    "art": Question("thou ar", "t", letters=True),
    "citizen": Question("First Citiz", "e", letters=True),
}


class Steered(NamedTuple):
    """Two prompts, a text to go on with, and where and how strongly to add. `depth` is the block as a share
    of all blocks.
    """

    plus: str
    minus: str
    text: str
    where: Where = "every"
    coefficient: float = 1.0
    depth: float = 1 / 3

    def block(self, n_layers: int) -> int:
        return min(n_layers - 1, round(self.depth * n_layers))


WORDS: dict[str, Steered] = {
    "weather": Steered(
        "The weather is wonderful",
        "The weather is terrible",
        "This morning I looked out of the window and",
        coefficient=2.0,
    ),
    "wedding": Steered(
        "wedding bride groom", "car road engine", "I went up to my friend and said", coefficient=0.5
    ),
    "magic": Steered(
        "Dragons, magic and wizards", "Computers, money and offices", "Yesterday I met a man who"
    ),
    "french": Steered("Je suis allé à la maison et", "I went to the house and", "My name is", depth=0.4),
    "love": Steered(" Love", " Hate", "I hate you because", "front", 4.0, 0.2),
}
LETTERS: dict[str, Steered] = {
    "capitals": Steered("THE KING IS HERE", "the king is here", "The king is", depth=0.5),
    "question": Steered("?", ".", "Is it you", coefficient=2.0, depth=0.5),
    "joy": Steered("Love and sweet joy", "Death and bloody war", "My lord, ", coefficient=2.0, depth=0.5),
}
# Nothing in it is to be expected from the prompts: what steering costs is measured on it.
NEUTRAL = (
    "A bicycle has two wheels of the same size, one behind the other, held by a frame of steel or aluminium."
    " The rider sits on a saddle and turns two pedals with the feet. A chain carries this movement to the"
    " rear wheel, and a set of gears decides how far the wheel turns for each turn of the pedals. On a flat"
    " road a high gear is used; on a hill a lower one makes the work easier, although the bicycle then moves"
    " more slowly. The front wheel is turned with the handlebar, which also holds the two brakes. Most brakes"
    " press a block of rubber against the rim of the wheel. Older bicycles had no gears at all and only one"
    " brake. In many towns there are now lanes along the road that are kept for bicycles, and places near the"
    " station where they can be left for the day. A bridge over a river can be built in several ways. The"
    " simplest is a beam that lies on two supports, one on each bank. When the river is wide, more supports"
    " are put into the water, and each part of the bridge is then carried by the two next to it. An arch"
    " carries its load to both sides and needs strong ground there. A hanging bridge is held by cables that"
    " run over two towers, and it can cross a much wider river than any other kind."
)
