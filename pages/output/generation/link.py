"""The branches of a tree in a link, and back."""

from __future__ import annotations

import re

from pages.output.generation.records import BRANCHES, Branch, Limits, Session
from studies.generation.branches import Tree

LINK = 800  # characters of the branches in a link
_BRANCH = re.compile(r"\d{1,4}(?:-\d{1,4}\.\d{1,6})*")


def link(session: Session) -> tuple[str, str, int]:
    """Returns (the branches, where the reader stands, how many branches are left out because the link would
    grow too long).

    A branch is its length and its picks, `120-12.53`: 120 tokens, the twelfth of them picked to be token 53.
    """
    tree = session.tree
    leaves = tree.leaves()
    written = {leaf: _said(tree, leaf) for leaf in leaves}
    room = LINK - (len(written[session.leaf]) if session.leaf in written else 0)
    leaves_linked = []
    for leaf in leaves:
        room -= 0 if leaf == session.leaf else len(written[leaf]) + 1
        if room >= 0 or leaf == session.leaf:
            leaves_linked.append(leaf)
    if session.leaf not in written:
        return "", "", 0
    return (
        "_".join(written[leaf] for leaf in leaves_linked),
        f"{leaves_linked.index(session.leaf)}.{session.at}",
        len(leaves) - len(leaves_linked),
    )


def _said(tree: Tree, leaf: int) -> str:
    path = tree.path(leaf)
    return str(len(path)) + "".join(f"-{node.depth}.{node.token}" for node in path if node.picked)


def parse(text: str, vocab: int, limits: Limits) -> list[Branch]:
    """Returns the branches of a link; what is none, or cannot be, is left out."""
    branches: list[Branch] = []
    for part in text[: 4 * LINK].split("_")[:BRANCHES]:
        if not _BRANCH.fullmatch(part) or not part.isascii():
            continue
        length, *picks = part.split("-")
        pairs = [(int(depth), int(token)) for depth, _, token in (pick.partition(".") for pick in picks)]
        depths = [depth for depth, _ in pairs]
        if (
            depths == sorted(set(depths))
            and all(depth > 0 for depth in depths)
            and all(token < vocab for _, token in pairs)
        ):
            size = min(int(length), limits.most)
            branches.append((tuple((depth, token) for depth, token in pairs if depth <= size), size))
    return [branch for branch in branches if branch[1]]


def again(session: Session) -> tuple[str, str]:
    """Returns (branches, place) with which another step of the model's training writes the same branches in
    its own words.
    """
    if session.todo:
        return session.origin
    return ("", "") if session.fresh else link(session)[:2]
