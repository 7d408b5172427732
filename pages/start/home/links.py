"""Where a part of the living map leads: the page that explains it, with the model, the text and the place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ui import site
from ui.step import NEWEST
from ui.subject import Subject

LISTED = 4096  # tokens that Embeddings has in a list; of more, one is typed, and a bare word in quotes


def target(ask: Mapping[str, Any], subject: Subject, step: int) -> tuple[str, dict[str, str]]:
    """(path of the page, what its address says). A part that no page explains leads to Shapes."""
    part = str(ask.get("part"))
    pages = site.explanations()
    path = pages.get(part, pages["norm1"])
    query = {"model": subject.key[0], "text": subject.text} | _place(part, ask, subject)
    if step != NEWEST:
        query["step"] = str(step)
    return path, query


def _place(part: str, ask: Mapping[str, Any], subject: Subject) -> dict[str, str]:
    """What a page calls the place that was clicked, counted from 0."""
    c = subject.config
    layer = _below(ask.get("layer"), c.n_layers)
    if part == "attention":
        head = _below(ask.get("head"), c.n_heads)
        return {"attention_view": "heads", "attention_layer": layer, "attention_head": head}
    if part == "feedforward":
        return {
            "feedforward_view": "neurons",
            "feedforward_layer": layer,
            "feedforward_neuron": _below(ask.get("neuron"), c.d_ff),
        }
    token = _below(ask.get("token"), len(subject.ids))
    if part.startswith("sum_"):
        return {"residual_view": "lens", "residual_token": token}
    if part == "embedding":
        word = subject.labels[int(token)]
        exact = c.vocab_size <= LISTED or word.startswith("␣")
        return {"embed_view": "lookup", "embed_token": word if exact else f'"{word}"'}
    return {}


def _below(value: object, bound: int) -> str:
    """The index as it is written; 0 for what is none."""
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < bound
    return str(value) if fits else "0"
