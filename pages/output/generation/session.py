"""What a reader's tree of texts is at the moment: it grows by what the browser asks for, and a link can bring
it back.

The browser asks for one thing at a time, by number, and says how many tokens it already has: so nothing is
sent twice, nothing is lost when Streamlit leaves out a run, and nothing is done twice when it repeats one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.config import SampleConfig
from engine.sample.branches import Pick, Tree, Written, ended_by, follow, grow, pick
from engine.tokenizers import token_bytes
from ui.subject import Subject
from ui.text.markdown import safe
from ui.text.tokens import show_bytes

BATCH = 32  # tokens that are written before the browser is told
AGAIN = 160  # the same, of a link's branches: nobody reads them as they come
BRANCHES = 24
LENGTHS = {"local": 1000, "hosted": 400}  # tokens of one branch
TREE = 4  # branches of that length make the largest tree
LINK = 800  # characters of the branches in a link
_BRANCH = re.compile(r"\d{1,4}(?:-\d{1,4}\.\d{1,6})*")

Branch = tuple[tuple[Pick, ...], int]  # picks, length


@dataclass(frozen=True)
class Limits:
    """Of one view: tokens of a branch, as asked and at most, and the words that end a text ('' for none)."""

    length: int
    most: int
    stop: str = ""

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
    place: tuple[int, int] | None = None  # (branch, tokens) of a link, until its branches are there
    made: list[int | None] = field(default_factory=list)  # where those written came to
    answered: str = ""
    move: int = 0  # counts how often the reader was taken elsewhere
    said: str = ""  # about the last thing asked
    rested: tuple[Written, ...] = ()  # the path that is summed up below: it follows when the writing pauses
    origin: tuple[str, str] = ("", "")  # the link that it was begun with
    fresh: bool = True  # nobody has looked yet: the player starts by itself


def begin(
    name: str, subject: Subject, sampling: SampleConfig, limits: Limits, link: str, place: str
) -> Session:
    """A new session: of a link's branches, else of the model's own first tokens."""
    session = Session(
        name,
        Tree(subject.ids),
        token_bytes(subject.tokenizer),
        todo=parse(link, subject.config.vocab_size, limits),
    )
    if session.todo:
        session.fresh, session.origin = False, (link, place)
        branch, _, at = place.partition(".")
        session.place = (number(branch, 0), number(at, limits.most))
        bring_back(session, subject, sampling, limits)
    elif limits.length:
        session.tree, session.leaf = grow(
            session.tree, subject.model, sampling, None, min(BATCH, limits.length)
        )
    return session


def bring_back(session: Session, subject: Subject, sampling: SampleConfig, limits: Limits) -> None:
    """Writes a batch of a link's branches."""
    left = AGAIN
    while session.todo and left > 0:
        picks, length = session.todo[0]
        size = len(session.tree)
        left = min(left, limits.tree - size)
        session.tree, end, done = follow(session.tree, subject.model, sampling, picks, length, left)
        left -= len(session.tree) - size
        session.leaf = session.tree.end(end)
        if done or len(session.tree) >= limits.tree:
            session.todo.pop(0)
            session.made.append(end)
    if not session.todo and session.place is not None:
        branch, at = session.place
        end = session.made[min(branch, len(session.made) - 1)]
        session.leaf, session.place, session.move = session.tree.end(end), None, session.move + 1
        session.at = min(at, len(session.tree.path(session.leaf)))


def answer(
    session: Session, ask: Mapping[str, Any], subject: Subject, sampling: SampleConfig, limits: Limits
) -> None:
    """Does what the browser asks for, once. What makes no sense is left undone."""
    returning = bool(session.todo)
    if returning:
        bring_back(session, subject, sampling, limits)
    if ask.get("session") != session.name or str(ask.get("id")) == session.answered:
        return
    session.answered, session.said, session.fresh = str(ask.get("id"))[:60], "", False
    if returning:
        return  # the reader is taken where the link says
    tree, leaf = session.tree, _index(ask.get("leaf"), session.tree)
    if leaf is not None or not len(tree):
        session.leaf = tree.end(leaf)
    session.at = min(max(_whole(ask.get("at")), 0), len(tree.path(session.leaf)))
    what = ask.get("do")
    if what == "more":
        _more(session, subject, sampling, limits)
    elif what == "pick":
        _pick(session, ask, subject, sampling, limits)
    elif (
        what == "delete"
        and (branch := _index(ask.get("branch"), tree)) in tree.leaves()
        and len(tree.leaves()) > 1
    ):
        assert branch is not None
        reading, shared = session.leaf == branch, tree.path(branch)
        session.tree = tree.delete(branch)
        if reading:  # go where the deleted branch had come from
            held = [node for node in shared if node.index not in session.tree.gone]
            session.leaf = session.tree.end(held[-1].index if held else None)
            session.at, session.move = min(session.at, max(1, len(held))), session.move + 1


def _more(session: Session, subject: Subject, sampling: SampleConfig, limits: Limits) -> None:
    count = min(BATCH, limits.length - len(session.tree.path(session.leaf)), limits.tree - len(session.tree))
    if count > 0 and reason(session.tree.path(session.leaf), session.parts, limits)[1] != "stop":
        session.tree, session.leaf = grow(session.tree, subject.model, sampling, session.leaf, count)


def _pick(
    session: Session, ask: Mapping[str, Any], subject: Subject, sampling: SampleConfig, limits: Limits
) -> None:
    after, token = _index(ask.get("after"), session.tree), _whole(ask.get("token"))
    if ask.get("after") is not None and after is None:
        return
    if isinstance(ask.get("text"), str):
        token, session.said = token_of(str(ask["text"])[:200], subject)
    if not 0 <= token < subject.config.vocab_size:
        return
    known = session.tree.child(after, token)
    if known is None and len(session.tree.leaves()) >= BRANCHES and session.tree.children(after):
        session.said = f"{BRANCHES} branches are kept at most: delete one first."
        return
    if known is None and len(session.tree) >= limits.tree:
        session.said = f"The tree has {limits.tree:,} tokens, as many as are kept: delete a branch first."
        return
    session.tree, index = pick(session.tree, subject.model, sampling, after, token)
    session.leaf, session.at, session.move = (
        session.tree.end(index),
        session.tree.nodes[index].depth,
        session.move + 1,
    )
    if known is None:
        _more(session, subject, sampling, limits)


def resting(session: Session, limits: Limits, writing: bool) -> tuple[Written, ...]:
    """The branch that is read, as far as it is shown; while it is being written, as it was at the last
    pause.
    """
    path = session.tree.path(session.leaf)
    count, why = reason(path, session.parts, limits)
    if not (writing and session.rested) or why or session.rested != path[: len(session.rested)]:
        session.rested = path[:count]
    return session.rested


def token_of(text: str, subject: Subject) -> tuple[int, str]:
    """The token that a person typed, and a sentence about it; -1 when there is none.

    ⏎ and ␣ stand for a line break and a space.
    """
    text = text.replace("⏎", "\n").replace("␣", " ")
    unknown = subject.tokenizer.unknown(text)
    if not text or unknown:
        return (
            -1,
            (
                f"This model has no token for “{' '.join(map(_show, unknown[:5]))}”."
                if unknown
                else "Type a token first."
            ),
        )
    ids = subject.tokenizer.encode(text)
    first = subject.vocabulary[ids[0]]
    return ids[0], (
        ""
        if len(ids) == 1
        else f"“{_show(text)}” is {len(ids)} tokens here; its first, “{first}”, was taken."
    )


def _show(text: str) -> str:
    return show_bytes(text.encode("utf-8", "replace"))


def reason(path: Sequence[Written], parts: Sequence[bytes], limits: Limits) -> tuple[int, str]:
    """(tokens of a branch that are shown, what ended it there): "stop", "length", or "" when it can go on.
    parts: every token's bytes, by id.
    """
    if limits.stop:
        end = ended_by([parts[node.token] for node in path], limits.stop)
        if end is not None and end <= limits.length:
            return end, "stop"
    return (limits.length, "length") if len(path) >= limits.length else (len(path), "")


def message(session: Session, ask: Mapping[str, Any], subject: Subject, limits: Limits) -> dict[str, Any]:
    """What the browser is told: where things stand, and the tokens that it does not have yet."""
    tree = session.tree
    have = _whole(ask.get("have")) if ask.get("session") == session.name else 0
    have = have if 0 <= have <= len(tree.nodes) else 0
    new = tree.nodes[have:]
    used = {i for node in new for i, _, _ in node.alternatives} | (set(tree.prompt) if not have else set())
    words = {str(i): [subject.vocabulary[i], session.parts[i].hex()] for i in sorted(used)}
    full = len(tree) >= limits.tree
    ends = {}
    for leaf in tree.leaves():
        depth, why = reason(tree.path(leaf), session.parts, limits)
        ends[str(leaf)] = [depth, why or ("full" if full else "")]
    return {
        "session": session.name,
        "asked": session.answered,
        "from": have,
        "nodes": json.dumps([row(node) for node in new], separators=(",", ":")),
        "words": words,
        "prompt": list(tree.prompt) if not have else None,
        "leaves": list(tree.leaves()),
        "ends": ends,
        "leaf": session.leaf,
        "at": session.at,
        "move": session.move,
        "todo": len(session.todo),
        "said": session.said,
        "fresh": session.fresh,
        "length": limits.length,
        "stop": limits.stop,
        "context": subject.config.context,
        "vocab": subject.config.vocab_size,
    }


def row(node: Written) -> list[Any]:
    """A token as the browser reads it: [parent, token, drawn, begin, ln p, q, [token, p, q, ...]]; null for
    what is no number.
    """
    log_p = round(node.log_p, 6) if math.isfinite(node.log_p) else None
    return [
        -1 if node.parent is None else node.parent,
        node.token,
        node.drawn,
        node.begin,
        log_p,
        six(node.q),
        [value for i, p, q in node.alternatives for value in (i, six(p), six(q))],
    ]


def six(value: float) -> float:
    """Six digits that count, so that what is small does not become none.

    >>> six(0.12345678), six(3.1e-9), six(0.0)
    (0.123457, 3.1e-09, 0.0)
    """
    return float(f"{value:.6g}")


def again(session: Session) -> tuple[str, str]:
    """(branches, place) with which another step of the model's training writes the same branches in its own
    words.
    """
    if session.todo:
        return session.origin
    return ("", "") if session.fresh else link(session)[:2]


# The link ---------------------------------------------------------------------------------------


def link(session: Session) -> tuple[str, str, int]:
    """(the branches, where the reader stands, how many branches are left out because the link would grow too
    long).

    A branch is its length and its picks, `120-12.53`: 120 tokens, the twelfth of them picked to be token 53.
    """
    tree = session.tree
    leaves = tree.leaves()
    said = {leaf: _said(tree, leaf) for leaf in leaves}
    room = LINK - (len(said[session.leaf]) if session.leaf in said else 0)
    kept = []
    for leaf in leaves:
        room -= 0 if leaf == session.leaf else len(said[leaf]) + 1
        if room >= 0 or leaf == session.leaf:
            kept.append(leaf)
    if session.leaf not in said:
        return "", "", 0
    return (
        "_".join(said[leaf] for leaf in kept),
        f"{kept.index(session.leaf)}.{session.at}",
        len(leaves) - len(kept),
    )


def _said(tree: Tree, leaf: int) -> str:
    path = tree.path(leaf)
    return str(len(path)) + "".join(f"-{node.depth}.{node.token}" for node in path if node.picked)


def parse(text: str, vocab: int, limits: Limits) -> list[Branch]:
    """The branches of a link; what is none, or cannot be, is left out."""
    found: list[Branch] = []
    for part in text[: 4 * LINK].split("_")[:BRANCHES]:
        if not _BRANCH.fullmatch(part) or not part.isascii():
            continue
        length, *picks = part.split("-")
        pairs = [(int(depth), int(token)) for depth, _, token in (pick.partition(".") for pick in picks)]
        depths = [depth for depth, _ in pairs]
        if (
            depths == sorted(set(depths))
            and all(0 < depth for depth in depths)
            and all(token < vocab for _, token in pairs)
        ):
            size = min(int(length), limits.most)
            found.append((tuple((depth, token) for depth, token in pairs if depth <= size), size))
    return [branch for branch in found if branch[1]]


def number(text: str, otherwise: int) -> int:
    """A whole number from a link."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else otherwise


def left_out(count: int) -> str:
    """A sentence about branches that a link does not hold (Markdown)."""
    return (
        safe(
            f"The link holds the branch you read and the oldest others; {count} more would make it too long."
            " They stay here."
        )
        if count
        else ""
    )


def _whole(value: Any) -> int:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**40:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _index(value: Any, tree: Tree) -> int | None:
    """The index of a token that is there, else None."""
    index = _whole(value)
    return index if index >= 0 and tree.has(index) else None
