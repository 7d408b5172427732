"""A model in Hugging Face's layout. A family can say a configuration if its reader
(studies.weights.pretrained) reads the same model from what is written here; its table of tensors is followed
the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.config import ResolvedConfig
from engine.errors import PretrainedError
from engine.model import Transformer, build
from engine.parts.parameters import StackedLinear
from engine.parts.registry import HEALTHY
from studies.pairs.config import ResolvedSeq2Seq
from studies.pairs.seq2seq import Seq2Seq
from studies.weights.export.writers import WRITERS, Writer
from studies.weights.pretrained.families import HUGGING_FACE, PAIRS
from studies.weights.pretrained.family import TENSORS
from studies.weights.pretrained.t5 import FEED_FORWARD, HEAD
from studies.weights.pretrained.weights import Change, Piece

# What a family may have and ours lacks: a bias of zeros or a gain of ones changes nothing.
FILLED = ("attention_bias", "output_bias", "ffn_bias", "norm_bias", "norm_gain", "qk_gain")
MOST = 3  # properties that a sentence names
AS_A_TABLE = ("sinusoidal", "none")  # positions that a learned table can hold, as far as it reaches


@dataclass(frozen=True)
class Plan:
    """A way to write a model: `config` is what the family's reader sees, `filled` the fields only it has."""

    family: str
    writer: Writer
    facts: Mapping[str, Any]  # config.json
    config: ResolvedConfig
    filled: tuple[str, ...]


def plan(model: Transformer | Seq2Seq) -> Plan:
    """Returns the family of WRITERS that can say a model exactly, with the least to fill in. Raises
    PretrainedError that names what none has, or the nearest lacks; and for every encoder-decoder.
    """
    if isinstance(model, Seq2Seq):
        raise PretrainedError(_pair_refusal(model.config))
    if model.parts is not HEALTHY:
        raise PretrainedError(
            f"it was made with a deliberate mistake ({model.parts.name}), which no family has"
        )
    tried = {name: _attempt(name, writer, model.config) for name, writer in WRITERS.items()}
    if plans := [attempt for attempt in tried.values() if isinstance(attempt, Plan)]:
        return min(plans, key=lambda attempt: len(attempt.filled))
    lacking = {name: attempt for name, attempt in tried.items() if not isinstance(attempt, Plan)}
    raise PretrainedError(_refusal(model.config, lacking))


def _attempt(name: str, writer: Writer, c: ResolvedConfig) -> Plan | tuple[str, ...]:
    """The plan with a family, or the fields that it cannot say."""
    read_back = _read_back(name, writer, c)
    if read_back is None:
        return _unsaid(name, writer, c)
    if differ := _differences(c, read_back):
        return differ
    filled = tuple(field for field in FILLED if _has(read_back, field) and not _has(c, field))
    if c.position != read_back.position:
        filled += ("position",)
    return Plan(name, writer, writer.facts(c) | {"architectures": [writer.architecture]}, read_back, filled)


def _read_back(name: str, writer: Writer, c: ResolvedConfig) -> ResolvedConfig | None:
    """Reads back what a writer makes of a configuration; None if the family's reader refuses it."""
    try:
        return HUGGING_FACE[name].config(writer.facts(c)).resolved()
    except PretrainedError:
        return None


def _unsaid(name: str, writer: Writer, c: ResolvedConfig) -> tuple[str, ...]:
    """The fields at fault where the reader refuses: with plain values in their place it does not."""
    plain: dict[str, Any] = {"ffn": writer.ffn, "tie_embeddings": True}
    for fields_ in (("ffn",), ("tie_embeddings",), ("ffn", "tie_embeddings")):
        easier = replace(c, **{field: plain[field] for field in fields_})
        if (read_back := _read_back(name, writer, easier)) is not None:
            return fields_ + _differences(easier, read_back)
    return ("d_head",)


def _has(c: ResolvedConfig, field: str) -> bool:
    """True if a model has these biases or gains; W_O is counted beside the others only."""
    return bool(getattr(c, field)) and (field != "output_bias" or c.attention_bias)


def _differences(c: ResolvedConfig, read_back: ResolvedConfig) -> tuple[str, ...]:
    """Fields in which two configurations compute something else, whatever is filled in."""
    free = {"dropout"}
    if c.position != "rope":
        free |= {"rope_theta", "rope_fraction"}
    if read_back.position == "learned" and c.position in AS_A_TABLE:
        free |= {"position"}
    return tuple(
        each.name for each in fields(c) if each.name not in free and not _alike(each.name, c, read_back)
    )


def _alike(field: str, c: ResolvedConfig, read_back: ResolvedConfig) -> bool:
    if field in FILLED:
        return _has(read_back, field) or not _has(c, field)
    mine, theirs = getattr(c, field), getattr(read_back, field)
    return mine == theirs or (isinstance(mine, float) and math.isclose(mine, theirs, rel_tol=1e-6))


def _refusal(c: ResolvedConfig, tried: Mapping[str, tuple[str, ...]]) -> str:
    """Which property no family has; else what the nearest one lacks."""
    known = ", ".join(writer.title for writer in WRITERS.values())
    never = sorted(set.intersection(*(set(missing) for missing in tried.values())))
    if never:
        text = " and ".join(f"{f} = {getattr(c, f)!r}" for f in never)
        return f"no family that can be exported ({known}) has {text}"
    nearest = min(tried, key=lambda name: len(tried[name]))
    text = " and ".join(f"{f} = {getattr(c, f)!r}" for f in tried[nearest])
    return (
        f"no family that can be exported ({known}) has all of its properties; the nearest,"
        f" {WRITERS[nearest].title}, has no {text}"
    )


def _pair_refusal(c: ResolvedSeq2Seq) -> str:
    """Which properties of an encoder-decoder T5 lacks, the one family of them that is known here."""
    d = c.decoder
    facts = {
        "vocab_size": d.vocab_size,
        "n_positions": d.context,
        "d_model": d.d_model,
        "num_layers": d.n_layers,
        "num_heads": d.n_heads,
        "d_kv": d.d_head,
        "d_ff": d.d_ff,
        "layer_norm_epsilon": d.norm_eps,
        "feed_forward_proj": next((k for k, v in FEED_FORWARD.items() if v == d.ffn), "relu"),
        "tie_word_embeddings": d.output_head == "scaled",
        TENSORS: () if d.tie_embeddings else (HEAD,),
    }
    lacking = _differences(d, PAIRS["t5"].config(facts).decoder.resolved())
    if not lacking:
        return "it is a T5, which can be imported here but not exported"
    text = " and ".join(f"{f} = {getattr(d, f)!r}" for f in lacking[:MOST])
    more = f", and {len(lacking) - MOST} more" if len(lacking) > MOST else ""
    return f"T5, the only encoder-decoder family supported here, has no {text}{more}"


# Tensors -----------------------------------------------------------------------------------------


@torch.no_grad()
def tensors(model: Transformer, plan: Plan, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """Returns Hugging Face's names -> tensors. Raises PretrainedError for a table without a way back."""
    empty = build(plan.config, device="meta")
    ours = {name: p.detach() for name, p in model.named_parameters()}
    result: dict[str, Tensor] = {}
    for name, each in HUGGING_FACE[plan.family].pieces(plan.config).items():
        x = ours[name] if name in ours else _filled(name, empty, model)
        rows = _rows(name, each, empty)
        for (theirs, change), block in zip(each.parts, x.split(rows) if rows else (x,), strict=True):
            result[plan.writer.full(theirs)] = undone(block, change).to(dtype).contiguous()
    return result


def _filled(name: str, empty: Transformer, model: Transformer) -> Tensor:
    """A tensor that the family has and the model does not: one that changes nothing."""
    shape = empty.get_parameter(name).shape
    if name.endswith("bias"):
        return torch.zeros(shape)
    if name.endswith("gain"):
        return torch.ones(shape)
    if name == "positions.weight":
        added = model.hooks(shape[0], model.embedding).embed(torch.zeros(1, *shape))
        return torch.zeros(shape) if added is None else added
    raise PretrainedError(f"the family has a tensor that this model lacks: {name}")


def _rows(name: str, each: Piece, empty: Transformer) -> list[int]:
    """The heights of the matrices that lie one below the other in a tensor of ours; none for a single one."""
    if len(each.parts) == 1:
        return []
    owner = empty.get_submodule(name.rpartition(".")[0])
    if not isinstance(owner, StackedLinear) or len(owner.row_blocks) != len(each.parts):
        raise PretrainedError(f"{name} cannot be taken apart into {' and '.join(each.names)}")
    return list(owner.row_blocks)


def undone(x: Tensor, change: Change | None) -> Tensor:
    """Inverts `change` on x. It may move numbers, whatever their values, or add a constant: both are found by
    changing numbered places. Raises PretrainedError for any other.
    """
    if change is None:
        return x
    size = x.numel()
    for shape in (tuple(x.shape), tuple(x.shape)[::-1]):
        places = change(np.arange(size, dtype=np.float64).reshape(shape))
        if places.shape != tuple(x.shape):
            continue
        offset = float(places.min())  # 0 but where a constant is added
        order = torch.from_numpy(np.ascontiguousarray(places - offset)).round().long().flatten()
        if not torch.equal(order.sort().values, torch.arange(size)):
            continue
        back = torch.empty(size, dtype=torch.float32)
        back[order] = x.float().flatten() - offset
        return back.view(shape)
    raise PretrainedError("a change that its family makes to a tensor cannot be undone")
