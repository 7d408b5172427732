"""The torch operations of one forward pass, cut into steps wherever the model shows a tensor to its probe.

The probe names tensors. Between two of them lie the operations that made the second: a `TorchFunctionMode`,
PyTorch's own way to see every call, notes each with its tensors and the line of `engine/` that made it. A
step is what leads from named tensors to a new one. It cannot be cut by time alone, since a mixer makes
queries, keys and values before it shows the first of them: the operations are followed back from the tensor.
docs/operation-trace.md says why this is done through torch and not by the probe alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import currentframe
from math import prod
from pathlib import Path
from traceback import walk_stack
from types import CodeType
from typing import Any, Literal, ParamSpec, TypeVar

from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from engine.config import ResolvedConfig
from engine.model import Transformer
from engine.probe import AXES
from studies.costs.cards.table import card_of
from studies.pairs.config import ResolvedSeq2Seq
from studies.pairs.seq2seq import Seq2Seq
from studies.shapes.formulas import formulas

P = ParamSpec("P")
T = TypeVar("T")
Stage = Literal["input", "block", "output"]
Role = Literal["position", "mask", "forward"]  # tables made ready before the blocks, or the pass itself
_OURS = tuple(str(Path(__file__).parents[2] / name) for name in ("engine", "studies"))
_OUTPUT = (
    "out_pre", "out_post", "out_scaled", "logits", "pool_first", "pool_in", "pooled", "probabilities",
)  # fmt: skip
_PARTS = {
    "embedding": ("tokens", "embed", "type_embed"),
    "position": ("pos_embed", "position"),
    "residual": ("resid_pre", "resid_mid", "cross_resid", "resid_post"),
    "norm": ("norm_embed", "norm1", "cross_norm", "norm2", "norm_final", "norm_out"),
    "feedforward": ("router", "routing", "ffn_in", "ffn_pre", "ffn_gate", "ffn_post", "ffn_out"),
    "output": _OUTPUT,
}
_PART = {name: part for part, names in _PARTS.items() for name in names}  # all others: attention
_LAST = ("norm_final", "norm_out", *_OUTPUT)
_VIEWS = (
    "unflatten", "split", "chunk", "transpose", "view", "permute", "__getitem__", "flatten", "unsqueeze",
)  # fmt: skip
_FREE = (
    *_VIEWS, "reshape", "embedding", "stack", "cat", "new_empty", "new_zeros", "empty", "full", "arange",
    "tensor", "to", "float", "long", "roll", "triu", "zeros_like",
)  # fmt: skip
_UNSEEN_AXES = {  # of tensors that no probe sees
    "out_scaled": AXES["norm_final"],
    "pool_first": AXES["pooled"],
    "pool_in": AXES["pooled"],
    "cross_kv_flat": ("batch", "key", "2 kv_head × d_head"),
    "qkv_flat": ("batch", "query", "(head + 2 kv_head) × d_head"),
    "ffn_in": ("batch", "query", "2 × d_ff"),
    "q_latent_flat": ("batch", "query", "d_query"),
    "q_latent": ("batch", "query", "d_query"),
    "latent_flat": ("batch", "key", "d_latent + d_rotated"),
    "latent_split": ("batch", "key", "d_latent"),
    "latent": ("batch", "key", "d_latent"),
    "kv_flat": ("batch", "key", "head × 2 d_head"),
    "mask": ("query", "key"),
    "probabilities": AXES["logits"],
}


@dataclass(frozen=True)
class Shape:
    """A tensor's name, axes (of `engine.probe`; merged ones read `head × d_head`) and sizes."""

    name: str
    axes: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def numbers(self) -> int:
        return prod(self.sizes)

    @property
    def doubled(self) -> int:
        """The factor by which its numbers grow with twice the text."""
        return 2 ** sum(axis in ("query", "key") for axis in self.axes)


@dataclass(frozen=True)
class SourceLines:
    """The `lines` of a file, counted from 1, that ran inside a function's `code`."""

    code: CodeType
    module: str
    lines: tuple[int, ...]


@dataclass(frozen=True)
class TraceStep:
    """One operation. `formula` is LaTeX, `words` the same in plain signs; `bytes` of the output in float32.

    FLOPs: a product of (m, k) and (k, n) counts 2mkn; `elementwise` counts 1 for each number that an
    operation writes, 5 for softmax and norms (their sums included). Copies and views count 0. A weight counts
    in `parameters` where it is used first; used again (tied embeddings), it stands in `shared`.
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
    weights: tuple[Shape, ...]  # without axes: rows × columns, as PyTorch stores them
    shared: tuple[str, ...]
    products: int
    elementwise: int
    bytes: int
    view: bool  # the output is the input seen differently: no new memory
    ran: tuple[SourceLines, ...]

    @property
    def bare(self) -> str:
        """The name without its block: `pattern` for `blocks.3.pattern`."""
        return self.name.rpartition(".")[2]

    @property
    def stack(self) -> str:
        """The stack's name, `encoder` or `decoder`, where there are both; '' for the logits."""
        first = self.name.partition(".")[0]
        return first if first in ("encoder", "decoder") else ""


@dataclass(eq=False)
class _Operation:
    name: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    role: Role
    line: tuple[CodeType, str, int] | None  # a function's code, its module, the line
    in_step: bool = False


class OperationTrace(TorchFunctionMode):
    """Collects the `steps` of a model's forward pass that runs under this mode and with this `probe`."""

    def __init__(self, model: Transformer | Seq2Seq) -> None:
        super().__init__()
        self.steps: list[TraceStep] = []
        self.parts, whole = model.parts, model.config
        # Configurations by how the names of their activations begin.
        self.stacks: dict[str, ResolvedConfig] = (
            {"decoder.": whole.decoder, "encoder.": whole.encoder}
            if isinstance(whole, ResolvedSeq2Seq)
            else {"": whole}
        )
        pair = isinstance(whole, ResolvedSeq2Seq)
        self.formulas = {
            name: formulas(config, self.parts, crossing=pair and config.causal, padded=pair)
            for name, config in self.stacks.items()
        }
        self.role: Role = "forward"
        self.operations: list[_Operation] = []
        self.made_by, self.shapes, self.weights = (WeakIdKeyDictionary() for _ in range(3))  # by tensor
        self.weights.update((p, name) for name, p in model.named_parameters())
        self.used: set[str] = set()  # weights
        self.outputs: list[Tensor] = []  # of the steps

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        inputs, outputs = list(_tensors((args, kwargs))), list(_tensors(result))
        if func.__name__ == "split" and inputs[0] in self.weights:  # rows of a matrix are weights too
            self.weights.update((x, f"{self.weights[inputs[0]]}[{i}]") for i, x in enumerate(outputs))
        elif outputs and not any(x is given for x in outputs for given in inputs):  # else it did nothing
            operation = _Operation(func.__name__, inputs, outputs, self.role, _engine_line())
            self.operations.append(operation)
            self.made_by.update((x, operation) for x in outputs)
        return result

    def during(self, role: Role, work: Callable[P, T]) -> Callable[P, T]:
        """Wraps `work` so that its operations become a step of their own: position tables, the mask."""

        def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
            self.role = role
            try:
                return work(*args, **kwargs)
            finally:
                self.role = "forward"

        return wrapped

    def probe(self, name: str, x: Tensor) -> Tensor:
        """Makes steps of the operations that led to x. A tensor that already has a name makes none."""
        if name.endswith("blocks.0.resid_pre"):  # all tables are ready
            stack = name.removesuffix("blocks.0.resid_pre")
            for role in ("position", "mask"):
                prepared = [o for o in self.operations if o.role == role and not o.in_step]
                if prepared:
                    self._add(stack + role, prepared, prepared[-1].outputs[0])
        if not any(x is output for output in self.outputs):
            chain = self._chain(x)
            # The products of several experts are one step
            many = (
                name.endswith(("ffn_gate", "ffn_pre", "ffn_out"))
                and sum(o.name == "linear" for o in chain) > 1
            )
            *before, last = [chain] if many else _groups(chain)
            stem = ""
            for group in before:
                stem = self._stem(name, group) or stem
                self._add(self._unseen_name(name, group[-1], stem), group, group[-1].outputs[0])
            self._add(name, last, x)
        return x

    def _stack(self, name: str) -> str:
        """Returns the prefix of the stack that a name belongs to; the decoder's for names without one."""
        return next((stack for stack in self.stacks if name.startswith(stack)), next(iter(self.stacks)))

    def _stem(self, target: str, group: list[_Operation]) -> str:
        """Returns the mixer's name for what its matrix makes on the way to `target`; else an empty text."""
        flat = card_of(self.parts.mixer(self.stacks[self._stack(target)])).flat
        weights = (self.weights[given] for o in group for given in o.inputs if given in self.weights)
        return next((flat[name] for weight in weights if (name := weight.split(".")[-2]) in flat), "")

    def _unseen_name(self, target: str, made: _Operation, stem: str) -> str:
        """Names a tensor that no probe sees, on the way to `target`; `stem` is that of the last matrix."""
        scope, dot, bare = target.rpartition(".")
        linear = made.name == "linear"
        names = {
            "attn_out": "z_merged",
            "ffn_pre": "ffn_in",
            "cross_out": "cross_z_merged",
            "logits": "out_scaled",
            "pooled": "pool_in" if linear else "pool_first",
        }
        if bare in names:
            return scope + dot + names[bare]
        if stem and not linear and made.outputs[0].dim() == 3:
            return f"{scope}{dot}{stem}" + ("_split" if made.name == "split" else "")
        stem = stem or card_of(self.parts.mixer(self.stacks[self._stack(target)])).flat.get(bare, "x")
        if bare.startswith("cross_"):
            stem = "cross_q" if bare == "cross_q" else "cross_kv"
        return f"{scope}{dot}{stem}_{'flat' if linear else 'heads'}"

    def _chain(self, x: Tensor) -> list[_Operation]:
        """Returns the operations, in no step yet, that lead to x from tensors that have a name; in order."""
        last, chain, waiting = self.made_by.get(x), [], [x]
        while waiting:
            operation = self.made_by.get(waiting.pop())
            if operation and not operation.in_step and operation not in chain and operation.role == last.role:
                chain.append(operation)
                waiting += operation.inputs
        return [o for o in self.operations if o in chain]

    def _shown(self, shape: Shape) -> Shape:
        """Returns the shape of what a probe sees, for what experts sorted on the way to it."""
        if len(shape.axes) == len(shape.sizes) and "ffn_" not in shape.name:
            return shape
        return next((step.output for step in self.steps if step.name == shape.name), shape)

    def _add(self, name: str, group: list[_Operation], x: Tensor) -> None:
        """Adds the step that makes x, `name`, by a group of operations."""
        bare = name.rpartition(".")[2]
        made = [out for o in group for out in o.outputs]
        if group:
            read = [given for o in group for given in o.inputs if not any(given is out for out in made)]
        else:  # the second half of what an earlier operation made
            read = self.made_by[x].inputs if x in self.made_by else []
        inputs = dict.fromkeys(self._shown(self.shapes[given]) for given in read if given in self.shapes)
        weights = {self.weights[given]: given for given in read if given in self.weights}
        new = {weight: given for weight, given in weights.items() if weight not in self.used}
        self.used |= new.keys()
        for o in group:
            o.in_step = True
            for index, out in enumerate(o.outputs):
                self.shapes[out] = Shape(name, _axes(bare, out, index), tuple(out.shape))
        self.outputs.append(x)
        self.shapes[x] = Shape(name, _axes(bare, x, 0), tuple(x.shape))
        counts = [_flops(o) for o in group]
        # A new part may pass by places that have no formula.
        formula, words = self.formulas[self._stack(name)].get(bare, ("", ""))
        in_block = "blocks.0." in name and bare != "resid_pre"
        step = TraceStep(
            name=name,
            stage="block" if in_block else "output" if bare in _LAST else "input",
            block=0 if in_block else None,
            part=_PART.get(bare, "attention"),
            formula=formula,
            words=words,
            inputs=tuple(inputs),
            output=self.shapes[x],
            parameters=sum(weight.numel() for weight in new.values()),
            weights=tuple(Shape(weight, (), tuple(given.shape)) for weight, given in new.items()),
            shared=tuple(weight for weight in weights if weight not in new),
            products=sum(products for products, _ in counts),
            elementwise=sum(elementwise for _, elementwise in counts),
            bytes=prod(x.shape) * (8 if bare == "tokens" else 4),
            view=bare != "tokens" and all(o.name in _VIEWS for o in group),
            ran=_lines_of(group or [self.made_by[x]] if x in self.made_by else []),
        )
        self.steps.append(step)


def _groups(chain: list[_Operation]) -> list[list[_Operation]]:
    """Cuts where the shape tells a story: around every product with a weight, and where heads are split."""
    groups: list[list[_Operation]] = [[]]
    for before, o, following in zip([None, *chain], chain, [*chain[1:], None], strict=False):
        if o.name == "linear" and groups[-1]:
            groups.append([])
        groups[-1].append(o)
        halves = (
            o.name == "chunk" and before and before.name == "unflatten"
        )  # of each head: its key and value
        ends = o.name in ("linear", "split") or halves
        ends = ends or (o.name == "unflatten" and following and following.name not in ("split", "chunk"))
        if following and ends:
            groups.append([])
    return groups


def _axes(bare: str, x: Tensor, index: int) -> tuple[str, ...]:
    """Returns the axes of output number `index` of the operation that made x."""
    if bare == "latent_split" and index == 1:
        return ("batch", "key", "d_rotated")
    if bare.endswith("_heads"):
        queries = index == 0 and bare not in ("kv_heads", "cross_kv_heads")
        return ("batch", "query", "head", "d_head") if queries else ("batch", "key", "kv_head", "d_head")
    if bare == "position":
        return ("query", "d_head") if x.dim() == 2 else ("head", "query", "key")
    return AXES.get(bare) or _UNSEEN_AXES.get(bare, ("batch", "query", "head × d_head"))


def _flops(o: _Operation) -> tuple[int, int]:
    """Returns the FLOPs of one operation, (in products, elementwise): see TraceStep."""
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


def _engine_line() -> tuple[CodeType, str, int] | None:
    """Returns the innermost line of the engine that is running, outside this file: (code, module, line)."""
    for frame, line in walk_stack(currentframe()):
        code = frame.f_code
        ours = code.co_filename.startswith(_OURS) and code.co_filename != __file__
        if ours and not code.co_name.startswith("<"):  # a comprehension is no function to be shown
            return code, frame.f_globals["__name__"], line
    return None


def _lines_of(group: list[_Operation]) -> tuple[SourceLines, ...]:
    """Returns the lines of a group by function. The code is stored: an inner function has no name."""
    lines: dict[tuple[CodeType, str], set[int]] = {}
    for code, module, line in (o.line for o in group if o.line):
        lines.setdefault((code, module), set()).add(line)
    return tuple(SourceLines(code, module, tuple(sorted(ran))) for (code, module), ran in lines.items())
