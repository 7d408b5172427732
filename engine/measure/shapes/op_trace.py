"""A tape of the torch operations of one forward pass, cut into steps wherever the model shows a tensor to its
probe.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Literal, ParamSpec, TypeVar

from torch import Tensor
from torch.overrides import TorchFunctionMode

from engine.config import ResolvedConfig, ResolvedSeq2Seq
from engine.measure.shapes.formulas import formulas
from engine.model import Transformer
from engine.probe import AXES
from engine.seq2seq import Seq2Seq

P = ParamSpec("P")
T = TypeVar("T")
Place = tuple[CodeType, str, int]  # a function's code, its module, and the line
Stage = Literal["input", "block", "output"]
_ENGINE = str(Path(__file__).parents[2])
_PARTS = {
    "embedding": ("tokens", "embed", "type_embed"),
    "position": ("pos_embed", "position"),
    "residual": ("resid_pre", "resid_mid", "cross_resid", "resid_post"),
    "norm": ("norm_embed", "norm1", "cross_norm", "norm2", "norm_final", "norm_out"),
    "feedforward": ("ffn_in", "ffn_pre", "ffn_gate", "ffn_post", "ffn_out"),
    "output": (
        "out_pre",
        "out_post",
        "out_scaled",
        "logits",
        "pool_first",
        "pool_in",
        "pooled",
        "probabilities",
    ),
}
_LAST = ("norm_final", *_PARTS["output"], "norm_out")
_PART = {name: part for part, names in _PARTS.items() for name in names}
_VIEWS = frozenset(
    ["unflatten", "split", "chunk", "transpose", "view", "permute", "__getitem__", "flatten", "unsqueeze"]
)
_FREE = _VIEWS | frozenset(
    [
        "reshape",
        "embedding",
        "stack",
        "cat",
        "new_empty",
        "new_zeros",
        "empty",
        "full",
        "arange",
        "tensor",
        "to",
        "float",
        "long",
        "roll",
        "triu",
        "zeros_like",
    ]
)


@dataclass(frozen=True)
class Shape:
    """A tensor by name, without its numbers. `axes` are in the vocabulary of `engine.probe`; a merged axis
    reads `head × d_head`.
    """

    name: str
    axes: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def numbers(self) -> int:
        """How many numbers it holds."""
        return prod(self.sizes)

    @property
    def doubled(self) -> int:
        """How many times as many it holds with twice the text: each axis of positions doubles."""
        return 2 ** sum(axis in ("query", "key") for axis in self.axes)


@dataclass(frozen=True)
class Ran:
    """Lines of a file (counted from 1) that ran inside `source`, the code of a function called `name` in
    `module`.
    """

    source: CodeType
    module: str
    name: str
    lines: tuple[int, ...]


@dataclass(frozen=True)
class TraceStep:
    """One operation. `formula` is LaTeX, `words` the same in plain signs; `bytes` are those of the output in
    float32 (ids: int64).

    FLOPs: a product of (m, k) and (k, n) counts 2mkn; `elementwise` counts 1 for each number that an
    operation writes, 5 a number for softmax and norms (their sums included). Copies and views count 0. A
    weight counts in `parameters` where it is used first; where it is used again (tied embeddings), it stands
    in `shared`.
    """

    name: str
    stage: Stage
    block: int | None
    part: str
    formula: str
    words: str
    inputs: tuple[Shape, ...]
    output: Shape
    parameters: int
    weights: tuple[Shape, ...]  # without axes: rows × columns, as PyTorch keeps them
    shared: tuple[str, ...]
    products: int
    elementwise: int
    bytes: int
    view: bool  # the output is the input seen differently: no new memory
    ran: tuple[Ran, ...]

    @property
    def flops(self) -> int:
        return self.products + self.elementwise

    @property
    def bare(self) -> str:
        """The name without its block: `pattern` for `blocks.3.pattern`."""
        return self.name.rpartition(".")[2]

    @property
    def tower(self) -> str:
        """`encoder` or `decoder`, where there are both; the logits belong to neither."""
        first = self.name.partition(".")[0]
        return first if first in ("encoder", "decoder") else ""


@dataclass(eq=False)
class _Operation:
    name: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    role: str  # position | mask | forward: whose work it is
    frame: Place | None
    claimed: bool = False


@dataclass(eq=False)
class Tape(TorchFunctionMode):
    """Writes down torch operations, and turns them into steps whenever the model shows a tensor to
    `probe`.
    """

    model: Transformer | Seq2Seq
    steps: list[TraceStep] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.parts, whole = self.model.parts, self.model.config
        both = isinstance(whole, ResolvedSeq2Seq)
        # Configurations by how the names of their activations begin.
        self.towers: dict[str, ResolvedConfig] = (
            {"encoder.": whole.encoder, "decoder.": whole.decoder}
            if isinstance(whole, ResolvedSeq2Seq)
            else {"": whole}
        )
        self.formulas = {
            name: formulas(config, self.parts, crossing=both and config.causal, padded=both)
            for name, config in self.towers.items()
        }
        self.role = "forward"  # whose work is being done
        self.operations: list[_Operation] = []  # keeps every tensor alive, so that its id stays its own
        self.made_by: dict[int, _Operation] = {}
        self.known: dict[int, Shape] = {}
        self.weights: dict[int, tuple[str, Tensor]] = {
            id(p): (name, p) for name, p in self.model.named_parameters()
        }
        self.used: set[str] = set()
        self.told: set[int] = set()  # tensors that are the output of a step

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        inputs, outputs = list(_tensors((args, kwargs))), list(_tensors(result))
        if func.__name__ == "split" and id(inputs[0]) in self.weights:  # rows of a matrix are weights too
            name = self.weights[id(inputs[0])][0]
            self.weights.update((id(out), (f"{name}[{i}]", out)) for i, out in enumerate(outputs))
            return result
        if outputs and not any(
            out is into for out in outputs for into in inputs
        ):  # what returns its input did nothing
            made = _Operation(func.__name__, inputs, outputs, self.role, _caller())
            self.operations.append(made)
            self.made_by.update((id(out), made) for out in outputs)
        return result

    def during(self, role: str, work: Callable[P, T]) -> Callable[P, T]:
        """`work`, such that the operations of it go down as its own: the tables of a position scheme, the
        mask.
        """

        def under_that_name(*args: P.args, **kwargs: P.kwargs) -> T:
            before, self.role = self.role, role
            try:
                return work(*args, **kwargs)
            finally:
                self.role = before

        return under_that_name

    def probe(self, name: str, x: Tensor) -> Tensor:
        if name.endswith("blocks.0.resid_pre"):
            for role in ("position", "mask"):
                prepared = [o for o in self.operations if o.role == role and not o.claimed]
                if prepared:
                    scope = name.removesuffix("blocks.0.resid_pre")
                    self._emit(scope + role, prepared, prepared[-1].outputs[0])
        if id(x) not in self.told:
            *before, last = _groups(self._chain(x))
            scope, dot, bare = name.rpartition(".")
            for group in before:
                self._emit(
                    scope + dot + self._between(scope, bare, group[-1].name),
                    group,
                    group[-1].outputs[0],
                )
            self._emit(name, last, x)
        return x

    def _tower(self, name: str) -> str:
        """The tower that a name belongs to; the last one, where it belongs to none."""
        return next((tower for tower in self.towers if name.startswith(tower)), list(self.towers)[-1])

    def _between(self, scope: str, target: str, operation: str) -> str:
        """A name for what no probe sees, on the way to `target`."""
        named = {
            "attn_out": "z_merged",
            "ffn_pre": "ffn_in",
            "cross_out": "cross_z_merged",
            "logits": "out_scaled",
            "pooled": "pool_in" if operation == "linear" else "pool_first",
        }
        if target in named:
            return named[target]
        stem = self.parts.mixer(self.towers[self._tower(f"{scope}.")]).flat.get(target, "x")
        if target.startswith("cross_"):
            stem = "cross_q" if target == "cross_q" else "cross_kv"
        return f"{stem}_flat" if operation == "linear" else f"{stem}_heads"

    def _chain(self, x: Tensor) -> list[_Operation]:
        """The operations, not yet told of, that lead to x from tensors that have a name."""
        found: list[_Operation] = []
        start, waiting = self.made_by.get(id(x)), [x]
        while waiting:
            made = self.made_by.get(id(waiting.pop()))
            if (
                made is not None
                and not made.claimed
                and made not in found
                and start
                and made.role == start.role
            ):
                found.append(made)
                waiting += made.inputs
        return [o for o in self.operations if o in found]

    def _emit(self, name: str, group: list[_Operation], x: Tensor) -> None:
        bare = name.rpartition(".")[2]
        own = {id(out) for o in group for out in o.outputs}
        leaves = {id(t): t for o in group for t in o.inputs if id(t) not in own}
        if not group and id(x) in self.made_by:  # the second half of what an earlier operation made
            leaves = {id(t): t for t in self.made_by[id(x)].inputs}
        inputs = tuple(dict.fromkeys(self.known[key] for key in leaves if key in self.known))
        named = [self.weights[key] for key in leaves if key in self.weights]
        fresh = [(n, p) for n, p in named if n not in self.used]
        self.used.update(n for n, _ in fresh)
        for o in group:
            o.claimed = True
            for place, out in enumerate(o.outputs):
                self.known[id(out)] = Shape(name, _axes(bare, out, place), tuple(out.shape))
        self.told.add(id(x))
        shape = self.known[id(x)] = Shape(name, _axes(bare, x, 0), tuple(x.shape))
        counts = [_flops(o) for o in group]
        latex, words = self.formulas[self._tower(name)].get(
            bare, ("", "")
        )  # a new part may pass by places that have no name
        inside = "blocks.0." in name and bare != "resid_pre"
        stage: Stage = "block" if inside else "output" if bare in _LAST else "input"
        self.steps.append(
            TraceStep(
                name,
                stage,
                0 if inside else None,
                _PART.get(bare, "attention"),
                latex,
                words,
                inputs,
                shape,
                sum(p.numel() for _, p in fresh),
                tuple(Shape(n, (), tuple(p.shape)) for n, p in fresh),
                tuple(n for n, _ in named if n not in dict(fresh)),
                sum(p for p, _ in counts),
                sum(e for _, e in counts),
                prod(x.shape) * (8 if bare == "tokens" else 4),
                bare != "tokens" and all(o.name in _VIEWS for o in group),
                _ran(group or [self.made_by[id(x)]] if id(x) in self.made_by else []),
            )
        )


def _groups(chain: list[_Operation]) -> list[list[_Operation]]:
    """Cut where the shape tells a story: around every product with a weight, and where heads are split
    apart.
    """
    groups: list[list[_Operation]] = [[]]
    for o, following in zip(chain, [*chain[1:], None], strict=False):
        if o.name == "linear" and groups[-1]:
            groups.append([])
        groups[-1].append(o)
        if following and (
            o.name in ("linear", "split") or (o.name == "unflatten" and following.name != "split")
        ):
            groups.append([])
    return groups


def _axes(bare: str, x: Tensor, place: int) -> tuple[str, ...]:
    if bare in AXES:
        return AXES[bare]
    if bare.endswith("_heads"):
        asks = place == 0 and bare != "cross_kv_heads"
        return ("batch", "query", "head", "d_head") if asks else ("batch", "key", "kv_head", "d_head")
    named: dict[str, tuple[str, ...]] = {
        "out_scaled": AXES["norm_final"],
        "pool_first": AXES["pooled"],
        "pool_in": AXES["pooled"],
        "cross_kv_flat": ("batch", "key", "2 kv_head × d_head"),
        "qkv_flat": ("batch", "query", "(head + 2 kv_head) × d_head"),
        "ffn_in": ("batch", "query", "2 × d_ff"),
        "mask": ("query", "key"),
        "probabilities": AXES["logits"],
        "position": ("query", "d_head") if x.dim() == 2 else ("head", "query", "key"),
    }
    return named.get(bare, ("batch", "query", "head × d_head"))


def _flops(o: _Operation) -> tuple[int, int]:
    """(those of products, elementwise ones) of one operation; see TraceStep."""
    n = sum(out.numel() for out in o.outputs)
    if o.name == "linear":
        return 2 * n * o.inputs[0].shape[-1], n * (len(o.inputs) == 3)
    if o.name in ("bmm", "baddbmm"):
        return 2 * n * o.inputs[-1].shape[1], n * (o.name == "baddbmm")  # baddbmm also scales
    if o.name in ("softmax", "layer_norm", "rms_norm"):
        return 0, 5 * n
    return 0, 0 if o.name in _FREE else n


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item)


def _caller() -> Place | None:
    """The innermost line of the engine that asked for the running operation."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        ours = code.co_filename.startswith(_ENGINE) and code.co_filename != __file__
        if ours and not code.co_name.startswith("<"):  # a comprehension is no function to be shown
            return code, frame.f_globals["__name__"], frame.f_lineno
        frame = frame.f_back
    return None


def _ran(group: list[_Operation]) -> tuple[Ran, ...]:
    """The code itself is kept: a function made in another function has no name to find it by."""
    places: dict[tuple[CodeType, str], set[int]] = {}
    for code, module, line in dict.fromkeys(o.frame for o in group if o.frame):
        places.setdefault((code, module), set()).add(line)
    return tuple(
        Ran(code, module, code.co_qualname, tuple(sorted(lines))) for (code, module), lines in places.items()
    )
