"""A reader's tree of texts, where they stand in it, and how far it may grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from studies.generation.branches import Pick, Tree, Written, ended_by
from studies.generation.row_products import Arithmetic

BATCH = 32  # tokens that are written before the browser is told; of a large model fewer
SECONDS = 0.4  # and so long at most
AGAIN = 160  # the same, of a link's branches: nobody reads them as they come
BRANCHES = 24
LENGTHS = {"local": 1000, "hosted": 400}  # tokens of one branch
TREE = 4  # branches of that length make the largest tree

Branch = tuple[tuple[Pick, ...], int]  # picks, length


@dataclass(frozen=True)
class Limits:
    """Limits of a view: tokens of a branch, requested and at most; the words that end a text ('' for none),
    and the tokens that do. `arithmetic` is what a large model computes with.
    """

    length: int
    most: int
    stop: str = ""
    ends: frozenset[int] = frozenset()
    arithmetic: Arithmetic = "float32"

    @property
    def tree(self) -> int:
        return TREE * self.most


@dataclass
class Session:
    """A tree and where its reader stands. `todo` are a link's branches still to be written."""

    name: str  # of the model, the text and the settings
    tree: Tree
    parts: list[bytes]  # every token's bytes, by id
    leaf: int | None = None  # the branch that is read; None before anything is written
    at: int = 0  # tokens of it that are shown
    todo: list[Branch] = field(default_factory=list)
    link_position: tuple[int, int] | None = None  # (branch, tokens) of a link, until its branches are there
    made: list[int | None] = field(default_factory=list)  # where those written came to
    answered: str = ""
    move: int = 0  # counts how often the reader was taken elsewhere
    message: str = ""  # about the last thing asked
    rested: tuple[Written, ...] = ()  # the path that is summed up below: it follows when the writing pauses
    tokens_shown: int = 0  # tokens of it that were shown then
    origin: tuple[str, str] = ("", "")  # the link that it was begun with
    fresh: bool = True  # nobody has looked yet: the player starts by itself


def reason(path: Sequence[Written], parts: Sequence[bytes], limits: Limits) -> tuple[int, str]:
    """Returns (tokens of a branch that are shown, what ended it there): "stop", "end" for a token that ends
    it, "length", or "" when it can go on. parts: every token's bytes, by id.
    """
    last = next((node.depth for node in path if node.token in limits.ends), limits.most + 1)
    if limits.stop:
        end = ended_by([parts[node.token] for node in path], limits.stop)
        if end is not None and end <= min(limits.length, last):
            return end, "stop"
    if last <= limits.length:
        return last, "end"
    return (limits.length, "length") if len(path) >= limits.length else (len(path), "")
