"""The forward pass as a list of operations, from token ids to probabilities, for a model of any size.

One block runs on the meta device, which has shapes but no memory; it is repeated. Nothing is guessed from
the configuration: shapes, parameters and source lines are those of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from engine.config import ModelConfig
from engine.model import build, mask_of
from engine.parts.registry import HEALTHY, Parts
from engine.probe import AXES
from engine.recording import Recording
from studies.costs.meta_device import plain_sizes
from studies.pairs.config import Seq2SeqConfig
from studies.pairs.seq2seq import build_pair
from studies.shapes.op_trace import OperationTrace, Shape, SourceLines, TraceStep

__all__ = ["Shape", "SourceLines", "TraceStep", "probabilities", "tensor_of", "totals", "trace", "trace_pair"]

DEVICE = "meta"  # has shapes but no memory


@lru_cache(maxsize=64)
def trace(config: ModelConfig, tokens: int, parts: Parts = HEALTHY) -> tuple[TraceStep, ...]:
    """Returns every operation on one sequence of `tokens` ids, in order. An activation that is another one
    unchanged has no step. Raises ConfigError for a bad configuration, ShapeError for too many tokens.
    """
    c = config.validate().resolved()
    model = build(replace(c, n_layers=1), device=DEVICE, parts=parts).eval()
    recorder = OperationTrace(model)
    # What is made ready before the blocks is no activation: it goes down as the work of those who made it.
    model.hooks = recorder.during("position", model.hooks)  # type: ignore[method-assign]
    model.mask = recorder.during("mask", model.mask)  # type: ignore[method-assign]
    ids = torch.zeros(1, tokens, dtype=torch.int64, device=DEVICE)
    last: dict[str, Tensor] = {}

    def probe(name: str, x: Tensor) -> Tensor:
        last[name] = recorder.probe(name, x)
        return last[name]

    with plain_sizes(), torch.inference_mode(), recorder:
        out = model(ids, probe)
        if model.output.present:
            recorder.probe("probabilities", probabilities(out))
        if model.pooler is not None:
            model.pooled(last["norm_final"], recorder.probe)
    return tuple(_repeat(recorder.steps, c.n_layers))


@lru_cache(maxsize=32)
def trace_pair(
    config: Seq2SeqConfig, source: int, target: int, parts: Parts = HEALTHY
) -> tuple[TraceStep, ...]:
    """Traces an encoder-decoder of `source` and `target` ids; names begin with their stack's."""
    c = config.validate().resolved()
    single = replace(c, encoder=replace(c.encoder, n_layers=1), decoder=replace(c.decoder, n_layers=1))
    model = build_pair(single, device=DEVICE, parts=parts).eval()
    recorder = OperationTrace(model)
    for stack in (model.encoder, model.decoder):
        stack.hooks = recorder.during("position", stack.hooks)  # type: ignore[method-assign]
    model._masks = recorder.during("mask", model._masks)  # type: ignore[method-assign]
    read, written = (torch.zeros(1, n, dtype=torch.int64, device=DEVICE) for n in (source, target))
    padding = torch.zeros(1, 1, 1, source, device=DEVICE)
    with plain_sizes(), torch.inference_mode(), recorder:
        recorder.probe("probabilities", probabilities(model(read, written, recorder.probe, padding)))
    below = [s for s in recorder.steps if s.stack == "encoder"]
    top = f"encoder.blocks.{c.encoder.n_layers - 1}."  # a memory that no last norm makes is a block's
    above = [
        replace(s, inputs=tuple(replace(i, name=i.name.replace("encoder.blocks.0.", top)) for i in s.inputs))
        for s in recorder.steps
        if s.stack != "encoder"
    ]
    return (*_repeat(below, c.encoder.n_layers, "encoder."), *_repeat(above, c.decoder.n_layers, "decoder."))


def probabilities(logits: Tensor) -> Tensor:
    """Returns softmax of logits (batch, query, vocab): each row sums to 1."""
    return logits.softmax(dim=-1)


def totals(steps: Sequence[TraceStep]) -> dict[str, int]:
    """Sums over steps. `bytes` leaves views out: what the pass would hold if it kept every tensor."""
    return {
        "parameters": sum(s.parameters for s in steps),
        "products": sum(s.products for s in steps),
        "elementwise": sum(s.elementwise for s in steps),
        "bytes": sum(s.bytes for s in steps if not s.view),
    }


def _repeat(steps: list[TraceStep], layers: int, at: str = "") -> Iterator[TraceStep]:
    """Yields block 0's steps once for each layer, each reading the one below; `at`: their prefix."""
    block = [s for s in steps if s.stage == "block"]
    yield from (s for s in steps if s.stage == "input")
    entered = next(
        (s.name for s in reversed(steps) if s.stage == "input" and s.output.axes == AXES["embed"]), "embed"
    )
    left = block[-1].name if block else entered
    for i in range(layers):
        names = {s.name: f"{at}blocks.{i}.{s.bare}" for s in block} | (
            {} if i == 0 else {entered: f"{at}blocks.{i - 1}.{left.rpartition('.')[2]}"}
        )
        for s in block:
            inputs = tuple(replace(shape, name=names.get(shape.name, shape.name)) for shape in s.inputs)
            weights = tuple(
                replace(w, name=w.name.replace("blocks.0.", f"blocks.{i}.", 1)) for w in s.weights
            )
            yield replace(
                s,
                name=names[s.name],
                block=i,
                inputs=inputs,
                output=replace(s.output, name=names[s.name]),
                weights=weights,
            )
    last = f"{at}blocks.{layers - 1}.{left.rpartition('.')[2]}" if block else left
    for s in steps:
        if s.stage == "output":
            yield replace(
                s,
                inputs=tuple(
                    replace(shape, name=last if shape.name == left else shape.name) for shape in s.inputs
                ),
            )


def tensor_of(step: TraceStep, recording: Recording) -> tuple[np.ndarray, tuple[str, ...]] | None:
    """Returns a step's output and axes in a recording, put together from recorded ones; or None."""
    scope, bare = step.name[: -len(step.bare)], step.bare
    if step.name in recording:
        return recording[step.name], recording.axes(step.name)
    if bare == "mask":
        mask = mask_of(recording.config, recording.parts, len(recording.ids), torch.empty(0))
        return None if mask is None else (mask.numpy(), ("query", "key"))
    if bare == "probabilities":
        return np.exp(recording.log_probabilities).astype(np.float32), ("query", "vocab")
    pieces = {
        "qkv_flat": ("q", "k", "v"),
        "q_flat": ("q",),
        "qk_flat": ("q",),
        "v_flat": ("v",),
        "qkv_heads": ("q",),
        "q_heads": ("q",),
        "qk_heads": ("q",),
        "v_heads": ("v",),
        "x_heads": ("q",),
        "z_merged": ("z",),
        "ffn_in": ("ffn_gate", "ffn_pre"),
    }.get(bare, ())
    if not pieces or any(scope + piece not in recording for piece in pieces):
        return None
    result = [recording[scope + piece] for piece in pieces]
    if bare == "ffn_in":
        return np.concatenate(result, axis=-1), step.output.axes[1:]
    swapped = [x.swapaxes(0, 1) for x in result]  # (head, query, d_head) -> (query, head, d_head)
    if bare.endswith("_heads"):
        return swapped[0], ("query", "head", "d_head")
    return np.concatenate([x.reshape(len(x), -1) for x in swapped], axis=-1), step.output.axes[1:]
