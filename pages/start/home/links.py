"""Where a part of the living map leads: the page that explains it, with the model, the text and the place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ui import site
from ui.step import NEWEST
from ui.subject import Subject

LISTED = 4096  # tokens that Embeddings has in a list; of more, one is typed, and a bare word in quotes


def target(
    ask: Mapping[str, Any], subject: Subject, step: int
) -> tuple[str, dict[str, str], dict[str, int | str]]:
    """(path of the page, what its address says, what its controls hold). A part that no page explains leads
    to Shapes. The text goes along from page to page by itself.
    """
    part = str(ask.get("part"))
    pages = site.explanations()
    path = pages.get(part, pages["norm1"])
    said, held = _place(part, ask, subject)
    query = {"model": subject.key[0]} | said | {key: str(value) for key, value in held.items()}
    if step != NEWEST:
        query["step"] = str(step)
    return path, query, held


def _place(
    part: str, ask: Mapping[str, Any], subject: Subject
) -> tuple[dict[str, str], dict[str, int | str]]:
    """What a page calls the place that was clicked, counted from 0."""
    c = subject.config
    layer = _below(ask.get("layer"), c.n_layers)
    if part == "attention":
        head = _below(ask.get("head"), c.n_heads)
        return {"attention_view": "heads"}, {"attention_layer": layer, "attention_head": head}
    if part == "feedforward":
        neuron = _below(ask.get("neuron"), c.d_ff)
        return {"feedforward_view": "neurons"}, {"feedforward_layer": layer, "feedforward_neuron": neuron}
    token = _below(ask.get("token"), len(subject.ids))
    if part.startswith("sum_"):
        return {"residual_view": "lens", "residual_token": str(token)}, {}
    if part == "embedding":
        word = subject.labels[token]
        exact = c.vocab_size <= LISTED or word.startswith("␣")
        return {"embed_view": "lookup"}, {"embed_token": word if exact else f'"{word}"'}
    return {}, {}


def _below(value: object, bound: int) -> int:
    """The index that a browser sent; 0 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < bound else 0
