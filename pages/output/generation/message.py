"""The message to the browser about a tree: where things stand, and the tokens that it does not have yet."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from pages.output.generation.records import Limits, Session, reason
from pages.output.generation.session import whole_of
from studies.generation.branches import Written
from ui.model_bar import Subject


def message(session: Session, ask: Mapping[str, Any], subject: Subject, limits: Limits) -> dict[str, Any]:
    """Returns the state of the tree, and the tokens that the browser does not have yet."""
    tree = session.tree
    have = whole_of(ask.get("have")) if ask.get("session") == session.name else 0
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
        "said": session.message,
        "fresh": session.fresh,
        "length": limits.length,
        "stop": limits.stop,
        "context": subject.config.context,
        "vocab": subject.config.vocab_size,
    }


def row(node: Written) -> list[Any]:
    """Returns a token as the browser reads it: [parent, token, drawn, begin, ln p, q, [token, p, q, ...]];
    null for what is no number.
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
    """Returns six digits that count, so that what is small does not become none.

    >>> six(0.12345678), six(3.1e-9), six(0.0)
    (0.123457, 3.1e-09, 0.0)
    """
    return float(f"{value:.6g}")
