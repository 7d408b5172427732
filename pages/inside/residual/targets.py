"""The token whose logit is taken apart, and what it is compared with."""

from __future__ import annotations

import numpy as np

from engine.measure.residual.attribution import Versus
from engine.sample.outcome import likeliest_ids
from pages.inside.residual import words
from pages.inside.residual.words import ITSELF, MEAN, TOP
from ui import memo, widgets
from ui.model_bar import Subject

FEW = 1000  # tokens that all stand in the list
LISTED = 200  # of a larger vocabulary: the likeliest ones. Any other can be typed


def choose_tokens(subject: Subject, position: int) -> tuple[int, Versus]:
    """Draws two boxes of shown tokens; returns (target id, what it is compared with). A leftover of another
    alphabet falls back.
    """
    recording = subject.recording()
    listed = _listed(subject, recording.logits[position])
    chosen = _choice(subject, listed, (TOP,), words.TARGET, "residual_target", words.TARGET_HINT)
    other = _choice(subject, listed, (ITSELF, MEAN), words.VERSUS, "residual_versus", words.VERSUS_HINT)
    target = None if chosen == TOP else _token(subject, chosen)
    versus: Versus = "mean" if other == MEAN else None if other == ITSELF else _token(subject, other)
    return (recording.likeliest(position) if target is None else target), versus


def _listed(subject: Subject, logits: np.ndarray) -> list[str]:
    """The words in both lists: all there are, or the likeliest."""
    names = _names(subject.key[0], len(subject.vocabulary), subject)
    if len(names) <= FEW:
        return list(dict.fromkeys(names))
    return list(dict.fromkeys(names[i] for i in likeliest_ids(logits, LISTED)))


def _choice(
    subject: Subject, listed: list[str], first: tuple[str, ...], label: str, key: str, hint: str
) -> str:
    """One of `first`, of the listed tokens, or, of a large vocabulary, any that is typed."""
    if len(subject.vocabulary) <= FEW:
        return widgets.select(label, (*first, *listed), key, kind="list", hint=hint)
    wanted = widgets.held_or_linked(key)
    typed = (
        isinstance(wanted, str) and wanted not in (*first, *listed) and _token(subject, wanted) is not None
    )
    options = (*first, *((wanted,) if typed else ()), *listed)
    hint = f"{hint} {words.TYPED_HINT}"
    return widgets.select(label, options, key, kind="list", hint=hint, accept_new_options=True)


def _token(subject: Subject, word: str) -> int | None:
    """The id of a listed word; of a text that somebody typed, its first token.
    ␣ and ⏎ stand for a space and a line break.
    """
    ids = _ids(subject.key[0], len(subject.vocabulary), subject)
    if word in ids:
        return ids[word]
    text = word[:200].replace("␣", " ").replace("⏎", "\n")
    tokens = subject.tokenizer.encode(text) if text and not subject.tokenizer.unknown(text) else []
    return tokens[0] if tokens else None


@memo.loaded()
def _names(model: str, vocab: int, _subject: Subject) -> list[str]:
    """Returns the name of each token here, by id: its word, and where that word means something else in these
    lists, that it is the token.
    """
    return [f"{word} (token)" if word in (TOP, ITSELF, MEAN) else word for word in _subject.vocabulary]


@memo.loaded()
def _ids(model: str, vocab: int, _subject: Subject) -> dict[str, int]:
    """The id of each name; of the first token where several look alike."""
    return {name: i for i, name in reversed(list(enumerate(_names(model, vocab, _subject))))}
