"""Where a part of the living map leads: the page that explains it, with the model, the text and the place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from studies.shapes.operations import trace
from ui import site
from ui.fit_text import most_tokens, read
from ui.model_bar import Subject
from ui.training_step import NEWEST

LISTED = 4096  # tokens that Embeddings has in a list; of more, one is typed, and a bare word in quotes
# The view of Positions about each scheme, and what that calls a token's place.
SCHEMES = {
    "rope": ({"positions_view": "rope", "rope_topic": "arrows"}, "rope_query"),
    "sinusoidal": ({"positions_view": "sinusoidal", "sinusoid_part": "clock"}, "clock_position"),
    "learned": ({"positions_view": "learned"}, None),
    "alibi": ({"positions_view": "biases"}, None),
    "t5": ({"positions_view": "biases", "bias_scheme": "t5"}, None),
}


@dataclass(frozen=True)
class ViewState:
    """A link's target on a page: in its address, and what its controls `held` (they also stand in the
    address). Everything else that the page remembers of another place is to be `forgotten`.
    """

    query: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[str, int | str] = field(default_factory=dict)
    forgotten: tuple[str, ...] = ()


def target(ask: Mapping[str, Any], subject: Subject, step: int) -> tuple[str, ViewState]:
    """Returns the page to which a part of the map leads, and its state: one that no page explains leads to
    Shapes. The text goes along from page to page by itself.
    """
    part = str(ask.get("part"))
    pages = site.explanations()
    path = pages.get(part, pages["norm1"])
    link = _place(part, ask, subject) if part in PLACES else _step(ask, subject)
    query = {"model": subject.key[0], **link.query, **{key: str(value) for key, value in link.held.items()}}
    if step != NEWEST:
        query["step"] = str(step)
    # A component keeps what was chosen in it: an address says nothing to it until that is gone.
    return path, ViewState(query, link.held, (*link.query, *link.forgotten))


def _place(part: str, ask: Mapping[str, Any], subject: Subject) -> ViewState:
    """Layers, heads, neurons and tokens are counted from 0."""
    layer = _below(ask.get("layer"), subject.config.n_layers)
    token = _token(ask, subject)
    return PLACES[part](ask, subject, layer, token)


def _attention(ask: Mapping[str, Any], subject: Subject, layer: int, token: int) -> ViewState:
    """A head among the others; where a row of it was clicked, how its weights come about."""
    head = _below(ask.get("head"), subject.config.n_heads)
    held: dict[str, int | str] = {"attention_layer": layer, "attention_head": head}
    if ask.get("row") is True:
        held["attention_stage"] = "softmax"
    view = "steps" if ask.get("row") is True else "heads"
    return ViewState({"attention_view": view, "attention_query": str(token)}, held, ("attention_key",))


def _feedforward(ask: Mapping[str, Any], subject: Subject, layer: int, token: int) -> ViewState:
    neuron = _below(ask.get("neuron"), subject.config.d_hidden)
    held = {"feedforward_layer": layer, "feedforward_neuron": neuron}
    return ViewState({"feedforward_view": "neurons", "feedforward_token": str(token)}, held)


def _residual(ask: Mapping[str, Any], subject: Subject, layer: int, token: int) -> ViewState:
    depth = _below(ask.get("depth"), subject.config.n_layers + 1, subject.config.n_layers)
    return ViewState(
        {"residual_view": "lens", "residual_token": str(token), "residual_cell": f"{depth}-{token}"}
    )


def _embedding(ask: Mapping[str, Any], subject: Subject, layer: int, token: int) -> ViewState:
    word = subject.vocabulary[_reread(subject)[token]]
    exact = subject.config.vocab_size <= LISTED or word.startswith("␣")
    held = {"embed_token": word if exact else f'"{word}"'}
    return ViewState({"embed_view": "lookup", "embed_position": str(token)}, held)


def _position(ask: Mapping[str, Any], subject: Subject, layer: int, token: int) -> ViewState:
    view, name = SCHEMES.get(subject.config.position, ({}, None))
    return ViewState(view | ({} if name is None else {name: str(token)}))


def _tokens(ask: Mapping[str, Any], subject: Subject, layer: int, token: int) -> ViewState:
    return ViewState({"tokens_view": "compare"}, {"compare_text": subject.text})


def _softmax(ask: Mapping[str, Any], subject: Subject, layer: int, token: int) -> ViewState:
    """The same temperature and top-k, and no other cut."""
    query = {"sampling_view": "stages", "sampling_position": str(token), "sampling_top_p": "1"}
    for name in ("temperature", "top_k"):
        value = ask.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            query[f"sampling_{name}"] = f"{value:g}"
    return ViewState(query, forgotten=("sampler",))


PLACES = {
    "attention": _attention,
    "feedforward": _feedforward,
    "sum_position": _residual,
    "sum_attention": _residual,
    "sum_feedforward": _residual,
    "sum_both": _residual,
    "embedding": _embedding,
    "position": _position,
    "tokens": _tokens,
    "softmax": _softmax,
}


def _step(ask: Mapping[str, Any], subject: Subject) -> ViewState:
    """The step of the forward pass that makes what was clicked, on Shapes; its first view where there is
    none of that name.
    """
    steps = trace(subject.config, len(_reread(subject)), subject.model.parts)
    at = next((i for i, step in enumerate(steps) if step.name == ask.get("name")), None)
    query = {"shapes_view": "pass"} | ({} if at is None else {"shapes_step": str(at)})
    return ViewState(query, {"shapes_source": "own"}, ("shapes_walk", "shapes_traced"))


def _reread(subject: Subject) -> tuple[int, ...]:
    """The text as other pages cut it: the tokens of one that grew here may be others."""
    return read(subject.text, subject.tokenizer, most_tokens(subject.config))[0]


def _token(ask: Mapping[str, Any], subject: Subject) -> int:
    """Where the other pages have the token that was clicked: where its last letter is."""
    token, again = _below(ask.get("token"), len(subject.ids)), _reread(subject)
    if again == subject.ids:
        return token
    end = len(subject.tokenizer.decode(list(subject.ids[: token + 1])))
    lengths = (len(subject.tokenizer.decode(list(again[: i + 1]))) for i in range(len(again)))
    return next((i for i, length in enumerate(lengths) if length >= end), len(again) - 1)


def _below(value: object, bound: int, otherwise: int = 0) -> int:
    """The index that a browser sent; `otherwise` for what is none."""
    valid = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < bound
    return int(value) if valid else otherwise  # type: ignore[call-overload]
