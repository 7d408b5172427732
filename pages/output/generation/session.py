"""A reader's tree of texts: it grows by what the browser requests, and a link can bring it back.

The browser asks for one thing at a time, by number, and says how many tokens it already has: so nothing is
sent twice, nothing is lost when Streamlit leaves out a run, and nothing is done twice when it repeats one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import streamlit as st

from engine.config import SampleConfig
from engine.data.tokenizers import token_bytes
from engine.model import Transformer
from engine.sample.decoder import Held
from pages.output.generation.link import parse
from pages.output.generation.records import AGAIN, BATCH, BRANCHES, SECONDS, Limits, Session, reason
from studies.generation.branches import Tree, Written, follow, pick
from studies.generation.branches import grow as grown
from studies.generation.row_products import Arithmetic
from studies.generation.single_row import Products, ready
from ui import content, memo, widgets
from ui.model_bar import Subject
from ui.text.tokens import show_bytes

TEXT = content.beside(__file__)


def begin(
    name: str, subject: Subject, sampling: SampleConfig, limits: Limits, link: str, link_position: str
) -> Session:
    """Returns a new session: of a link's branches, else of the model's own first tokens."""
    session = Session(
        name,
        Tree(subject.ids),
        token_bytes(subject.tokenizer),
        todo=parse(link, subject.config.vocab_size, limits),
    )
    if session.todo:
        session.fresh, session.origin = False, (link, link_position)
        branch, _, at = link_position.partition(".")
        first, shown = widgets.number_of(branch), widgets.number_of(at)
        session.link_position = (first or 0, limits.most if shown is None else shown)
        bring_back(session, subject, sampling, limits)
    elif limits.length:
        _grow(session, subject, sampling, limits, None, min(BATCH, limits.length))
    return session


@memo.loaded()
def products_of(key: tuple[str, int], arithmetic: Arithmetic, _model: Transformer) -> Products:
    """Returns a large model's products in an arithmetic, one copy for all sessions. Raises ConfigError."""
    return ready(_model, arithmetic)


@st.cache_resource(max_entries=2, show_spinner=False)
def _held(key: tuple[str, int], arithmetic: Arithmetic, _model: Transformer) -> Held:
    """Returns a large model's cache of texts, for all sessions of the server: one of them at a time."""
    return Held(_model, products_of(key, arithmetic, _model) if arithmetic != "float32" else None)


@contextmanager
def _reading(subject: Subject, limits: Limits) -> Iterator[Held | None]:
    """A model of ours reads a text anew in no time, and then adds up the same numbers in the same order."""
    if not subject.is_pretrained:
        yield None
        return
    held = _held(subject.key, limits.arithmetic, subject.model)
    with held.lock:
        yield held


def _grow(
    session: Session, subject: Subject, sampling: SampleConfig, limits: Limits, after: int | None, count: int
) -> None:
    """Writes on, until the browser is to be told."""
    so_far = [(node.parent, node.token) for node in session.tree.nodes], sorted(session.tree.gone)
    settings = subject.key, subject.ids, sampling, limits.arithmetic, sorted(limits.ends)
    name = repr((settings, so_far, after, count))
    session.tree, session.leaf = _grown(name, session.tree, subject, sampling, limits, after, count)


@memo.measured()
def _grown(
    name: str,
    _tree: Tree,
    _subject: Subject,
    _sampling: SampleConfig,
    _limits: Limits,
    _after: int | None,
    _count: int,
) -> tuple[Tree, int | None]:
    """Returns a larger tree and its last token. A class that opens the page reads the same text: it is
    written once.
    """
    with _reading(_subject, _limits) as held:
        return grown(
            _tree,
            _subject.model,
            _sampling,
            _after,
            _count,
            stop=_limits.ends,
            held=held,
            seconds=SECONDS if held is not None else math.inf,
        )


def bring_back(session: Session, subject: Subject, sampling: SampleConfig, limits: Limits) -> None:
    """Writes a batch of a link's branches."""
    left = BATCH if subject.is_pretrained else AGAIN
    while session.todo and left > 0:
        picks, length = session.todo[0]
        size = len(session.tree)
        left = min(left, limits.tree - size)
        with _reading(subject, limits) as held:
            session.tree, end, done = follow(
                session.tree, subject.model, sampling, picks, length, left, held=held
            )
        left -= len(session.tree) - size
        session.leaf = session.tree.end(end)
        if done or len(session.tree) >= limits.tree:
            session.todo.pop(0)
            session.made.append(end)
    if not session.todo and session.link_position is not None:
        branch, at = session.link_position
        end = session.made[min(branch, len(session.made) - 1)]
        session.leaf, session.link_position, session.move = session.tree.end(end), None, session.move + 1
        session.at = min(at, len(session.tree.path(session.leaf)))


def answer(
    session: Session, ask: Mapping[str, Any], subject: Subject, sampling: SampleConfig, limits: Limits
) -> None:
    """Does what the browser asks for, once. Requests that make no sense are ignored."""
    returning = bool(session.todo)
    if returning:
        bring_back(session, subject, sampling, limits)
    if ask.get("session") != session.name or str(ask.get("id")) == session.answered:
        return
    session.answered, session.message, session.fresh = str(ask.get("id"))[:60], "", False
    if returning:
        return  # the reader is taken where the link says
    tree, leaf = session.tree, _index(ask.get("leaf"), session.tree)
    if leaf is not None or not len(tree):
        session.leaf = tree.end(leaf)
    session.at = min(max(whole_of(ask.get("at")), 0), len(tree.path(session.leaf)))
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
    if count > 0 and reason(session.tree.path(session.leaf), session.parts, limits)[1] not in ("stop", "end"):
        _grow(session, subject, sampling, limits, session.leaf, count)


def _pick(
    session: Session, ask: Mapping[str, Any], subject: Subject, sampling: SampleConfig, limits: Limits
) -> None:
    after, token = _index(ask.get("after"), session.tree), whole_of(ask.get("token"))
    if ask.get("after") is not None and after is None:
        return
    if isinstance(ask.get("text"), str):
        token, session.message = token_of(str(ask["text"])[:200], subject)
    if not 0 <= token < subject.config.vocab_size:
        return
    known = session.tree.child(after, token)
    if known is None and len(session.tree.leaves()) >= BRANCHES and session.tree.children(after):
        session.message = TEXT("too many branches", branches=BRANCHES)
        return
    if known is None and len(session.tree) >= limits.tree:
        session.message = TEXT("tree full", tokens=limits.tree)
        return
    with _reading(subject, limits) as held:
        session.tree, index = pick(session.tree, subject.model, sampling, after, token, held=held)
    session.leaf, session.at, session.move = (
        session.tree.end(index),
        session.tree.nodes[index].depth,
        session.move + 1,
    )
    if known is None:
        _more(session, subject, sampling, limits)


def resting(session: Session, limits: Limits, writing: bool) -> tuple[tuple[Written, ...], int]:
    """Returns (the branch that is read, as many of its tokens as the player shows, or all before it shows
    any); while it is being written, as both were at the last pause.
    """
    path = session.tree.path(session.leaf)
    count, why = reason(path, session.parts, limits)
    if not (writing and session.rested) or why or session.rested != path[: len(session.rested)]:
        session.rested = path[:count]
        session.tokens_shown = min(session.at, count) or count
    return session.rested, session.tokens_shown


def token_of(text: str, subject: Subject) -> tuple[int, str]:
    """Returns the token that a person typed, and a sentence about it; -1 when there is none.

    ⏎ and ␣ stand for a line break and a space.
    """
    text = text.replace("⏎", "\n").replace("␣", " ")
    unknown = subject.tokenizer.unknown(text)
    if unknown:
        return -1, TEXT("no token", characters=" ".join(map(_show, unknown[:5])))
    if not text:
        return -1, TEXT["nothing typed"]
    ids = subject.tokenizer.encode(text)
    if len(ids) == 1:
        return ids[0], ""
    first = subject.vocabulary[ids[0]]
    return ids[0], TEXT("several tokens", text=_show(text), tokens=len(ids), first=first)


def _show(text: str) -> str:
    return show_bytes(text.encode("utf-8", "replace"))


def whole_of(value: Any) -> int:
    """Returns a whole number that the browser sent; -1 for anything else."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**40:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _index(value: Any, tree: Tree) -> int | None:
    """The index of a token that is there, else None."""
    index = whole_of(value)
    return index if index >= 0 and tree.has(index) else None
