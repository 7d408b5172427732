"""Texts about the parts of an encoder-decoder: those of a stack as in a model of one, with the numbers of the
whole; and those that only two stacks have.
"""

from __future__ import annotations

from dataclasses import replace

from engine.config import ResolvedConfig
from engine.ledger import Ledger
from pages.start.home.words_map import Part, describe, dims, parameters

LEFT_OUT = {"encoder": {"unembedding", "softmax"}, "decoder": set[str]()}


def describe_pair(counted: Ledger) -> dict[str, Part]:
    """Returns the parts by their stack and id, `decoder.cross_attention`; and the `memory`."""
    result = {"memory": _memory(counted)}
    for stack, config in (("encoder", counted.encoder), ("decoder", counted.config)):
        assert config is not None
        for name, part in describe(config, counted.parts).items():
            if name not in LEFT_OUT[stack]:
                result[f"{stack}.{name}"] = _of_the_whole(counted, stack, name, part)
    result["decoder.cross_attention"] = _cross(counted)
    result["decoder.sum_cross_attention"] = Part(
        "residual",
        "Sum: the output of cross-attention is added",
        (),
        "The output of cross-attention is added to the stream: an update, not a replacement.",
    )
    norm = result.get("decoder.norm1")
    if norm is not None:
        result["decoder.norm_cross"] = replace(
            norm, rows=_rows(counted, "decoder", "norm_cross", counted.config.n_layers)
        )
    result["encoder.tokens"] = replace(result["encoder.tokens"], text=_SOURCE, title="Source")
    result["decoder.tokens"] = replace(result["decoder.tokens"], text=_TARGET, title="Written so far")
    for stack in ("encoder", "decoder"):
        part = result[f"{stack}.embedding"]
        result[f"{stack}.embedding"] = replace(
            part, text=f"{part.text} Both stacks read from the same table."
        )
    return result


_SOURCE = "The source text, cut into tokens. The encoder sees all of it at once, in both directions."
_TARGET = (
    "What has been written so far, after a start token. In training it is the correct target, shifted by one"
    " position; at inference, the model's own output."
)
_INSIDE = ("attention", "cross_attention", "feedforward", "norm1", "norm_cross", "norm2")


def _of_the_whole(counted: Ledger, stack: str, name: str, part: Part) -> Part:
    """Returns the part of a stack with its parameters as the whole model counts them."""
    config = counted.encoder if stack == "encoder" else counted.config
    assert config is not None
    if name == "block":
        every = counted.of_stack(stack, _INSIDE)
        each = every // config.n_layers
        rows = [row for row in part.rows if row[0] not in ("parameters", "of the model")]
        rows += [
            ("parameters", f"{each:,} in each of {config.n_layers:,}"),
            ("of the model", f"{every / counted.total:.1%}"),
        ]
        return replace(part, rows=tuple(rows), lines=(f"{parameters(each)} each",))
    shared = [row for row in part.rows if row[0] != "of the model"]
    return replace(part, rows=tuple(shared))


def _rows(counted: Ledger, stack: str, component: str, layers: int) -> tuple[tuple[str, str], ...]:
    every = counted.of_stack(stack, (component,))
    return (
        ("parameters", f"{every // layers:,} in each block"),
        ("in all blocks", f"{every:,}"),
        ("of the model", f"{every / counted.total:.1%}"),
    )


def _cross(counted: Ledger) -> Part:
    c = counted.config
    every = counted.of_stack("decoder", ("cross_attention",))
    text = (
        "Queries (q) come from the tokens written so far; keys and values (k, v) come from the memory. So"
        " each token attends to every position of the source; only the padding of shorter sources is hidden."
    )
    return Part(
        "attention",
        "Cross-attention",
        (_heads(c), "attends to the memory", parameters(every // c.n_layers)),
        text,
        _rows(counted, "decoder", "cross_attention", c.n_layers),
    )


def _heads(c: ResolvedConfig) -> str:
    return f"{c.n_heads} head{'s' if c.n_heads > 1 else ''} × {c.d_head}"


def _memory(counted: Ledger) -> Part:
    assert counted.encoder is not None
    c = counted.encoder
    text = (
        "The encoder's output: one vector for each token of the source, computed once. Every"
        " decoder block attends to them at each step."
    )
    shape = dims("S, d", (c.context, c.d_model))
    return Part("attention", "Memory", (shape,), text, (("memory at most", shape), ("parameters", "0")))
