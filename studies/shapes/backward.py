"""Backpropagation through one prediction: the error at the logits, the gradient of the stream after every
sublayer, and the gradient of every matrix (Rumelhart, Hinton & Williams 1986).

With p = softmax(logits) at a position and y one-hot at the next token, the loss is -log p[next] and its
gradient at the logits is p - y. PyTorch's autograd carries it down by the chain rule. A gradient says what
the loss does for a *small* change of one weight; `nudges` measures what it does, by forward passes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from engine.data.progress import Progress, Steps
from engine.errors import ConfigError, ShapeError
from engine.model import Transformer, build
from engine.parts.experts import Experts
from engine.parts.parameters import StackedLinear
from engine.probe import axes_of
from engine.recording import Recording
from studies.residual.stream import norms, states

SHOWN = 24  # rows and columns of a matrix whose gradient is shown
AMOUNTS = tuple(round(0.02 * n, 2) for n in range(-10, 11))  # added to a weight: a trained one is about 0.05
EPSILON = 1e-3  # of a finite difference in float64: its error falls with its square
_ENTERING = {"embed", "pos_embed", "type_embed", "norm_embed"}
_STREAM = _ENTERING | {"resid_pre", "resid_mid", "resid_post", "norm1", "norm2"}
_STACKED = {"w_qkv": ("W_Q", "W_K", "W_V"), "w_qk": ("W_Q", "W_K"), "w_in": ("W_gate", "W_in")}
_SINGLE = {"w_v": "W_V", "w_o": "W_O", "w_in": "W_in", "w_out": "W_out"}
_TABLES = {"embedding": "embedding", "unembedding": "unembedding"}


@dataclass(frozen=True)
class Matrix:
    """A matrix of the model: rows `start` to `stop` of a parameter; `block` None for the tables."""

    key: str  # stands in links: "2.W_O"
    name: str
    start: int
    stop: int
    block: int | None
    title: str  # "W_O", "embedding"

    def of(self, parameter: Tensor) -> Tensor:
        """Returns its rows of the parameter, or of the parameter's gradient: a view (row, column)."""
        return parameter[self.start : self.stop]


@dataclass(frozen=True, eq=False)
class MatrixGradient:
    """The gradient of the loss with respect to a matrix: where its `rows` and `columns` hold the largest
    entries, and those (row, column), float64. `entry` is (row, column) of the largest by size.
    """

    matrix: Matrix
    shape: tuple[int, int]
    norm: float
    entry: tuple[int, int]
    rows: np.ndarray = field(repr=False)
    columns: np.ndarray = field(repr=False)
    values: np.ndarray = field(repr=False)

    @property
    def largest(self) -> float:
        """The size of the largest entry."""
        return abs(self.at(self.entry))

    def has(self, entry: tuple[int, int]) -> bool:
        """True if the entry is among those shown."""
        return bool(entry[0] in self.rows and entry[1] in self.columns)

    def at(self, entry: tuple[int, int]) -> float:
        """Returns the gradient of one of the entries shown, nats per unit of the weight."""
        return float(self.values[self.rows == entry[0], self.columns == entry[1]].item())


@dataclass(frozen=True, eq=False)
class Backward:
    """The gradients of one prediction's loss, of `target` after `position`, in nats. `error` is p - y.

    `norms` are Euclidean norms of the gradient of the stream, by state and token; `totals` those of all
    tokens together. States are in the order of the forward pass. `parts` are the parts that wrote them.
    """

    ids: tuple[int, ...]
    position: int
    target: int
    loss: float
    probabilities: np.ndarray = field(repr=False)  # (vocab,)
    error: np.ndarray = field(repr=False)  # (vocab,)
    states: tuple[str, ...]
    parts: tuple[str, ...]
    norms: np.ndarray = field(repr=False)  # (state, query)
    gradients: Mapping[str, MatrixGradient] = field(repr=False)  # by the key of the matrix

    @property
    def totals(self) -> np.ndarray:
        return np.sqrt(np.square(self.norms).sum(1))

    @property
    def error_norm(self) -> float:
        """The Euclidean norm of p - y."""
        return float(np.linalg.norm(self.error))

    @property
    def reached(self) -> int:
        """Counts the tokens whose embedding gets a gradient."""
        return int((self.norms[0] > 0).sum())

    def largest_errors(self, count: int) -> list[int]:
        """Returns the tokens with the largest |p - y|, the target first."""
        order = np.argsort(-np.abs(self.error), kind="stable").tolist()
        return [self.target, *(i for i in order if i != self.target)][:count]

    def steepest(self) -> str:
        """Returns the key of the matrix with the largest entry in any block, if blocks have any."""
        every = self.gradients.values()
        inside = [each for each in every if each.matrix.block is not None] or list(every)
        return max(inside, key=lambda each: each.largest).matrix.key


def matrices(model: Transformer) -> dict[str, Matrix]:
    """Returns the model's matrices by key, bottom first: stacked ones apart, and both tables."""
    result = {}
    modules = dict(model.named_modules())
    for name, parameter in model.named_parameters():
        if parameter.dim() != 2 or not (name in _TABLES or name.startswith("blocks.")):
            continue
        owner, _, leaf = name.removesuffix(".weight").rpartition(".")
        block = int(owner.split(".")[1]) if owner else None
        stacked = modules.get(name.removesuffix(".weight"))
        heights = stacked.row_blocks if isinstance(stacked, StackedLinear) else (parameter.shape[0],)
        titles = (
            _STACKED.get(leaf, ()) if len(heights) > 1 else (_SINGLE.get(leaf) or _TABLES.get(leaf, leaf),)
        )
        if isinstance(experts := modules.get(owner), Experts) and leaf in _SINGLE:
            kinds = _STACKED[leaf] if experts.gated and leaf in _STACKED else (_SINGLE[leaf],)
            titles = tuple(f"{kind} {i}" for i in range(experts.count) for kind in kinds)
        start = 0
        for height, title in zip(heights, titles, strict=True):
            key = title if block is None else f"{block}.{title}"
            result[key] = Matrix(key, name, start, start + height, block, title)
            start += height
    return result


def trainable_twin(model: Transformer) -> Transformer:
    """Returns a twin that shares the model's weights, but whose parameters take gradients."""
    twin = build(model.config, device="meta", parts=model.parts)
    shared = {name: nn.Parameter(tensor.detach()) for name, tensor in model.named_parameters()}
    twin.load_state_dict(model.state_dict() | shared, strict=True, assign=True)
    return twin.eval().requires_grad_(True)


class _StreamGradients:
    """A probe that keeps the stream, so that its gradients can be asked for."""

    def __init__(self) -> None:
        self.stream: dict[str, Tensor] = {}

    def __call__(self, name: str, x: Tensor) -> Tensor:
        if name.rpartition(".")[2] in _STREAM:
            self.stream[name] = x
        return x


def check(model: Transformer, ids: Sequence[int], position: int = 0) -> None:
    """Raises ConfigError for a model that does not predict the next token, ShapeError where there is none."""
    if not model.config.causal:
        raise ConfigError("causal", False, "must be True: only a causal model predicts the next token")
    if not 0 <= position < len(ids) - 1:
        raise ShapeError(f"position must be from 0 to {len(ids) - 2}: its next token is what is predicted")


def backward(model: Transformer, ids: Sequence[int], position: int) -> Backward:
    """Runs a text (position,) forward, and the loss after `position` backward. Raises as `check`."""
    check(model, ids, position)
    twin, probe = trainable_twin(model), _StreamGradients()
    parameters = dict(twin.named_parameters())
    with torch.enable_grad():
        logits = twin(_tokens(twin, ids), probe)
        loss = -logits[0, position].double().log_softmax(-1)[ids[position + 1]]
        stream = {name: x for name, x in probe.stream.items() if x.requires_grad}
        wanted = [*stream.values(), logits, *parameters.values()]
        found = torch.autograd.grad(loss, wanted, materialize_grads=True)
    along = dict(zip(stream, found, strict=False))
    recording = Recording(model.config, tuple(ids), _arrays(probe.stream, along), model.parts)
    every = states(recording)
    by_name = dict(zip(parameters, found[len(stream) + 1 :], strict=True))
    probabilities = logits[0, position].detach().double().softmax(-1).cpu().numpy()
    return Backward(
        ids=tuple(ids),
        position=position,
        target=ids[position + 1],
        loss=float(loss.detach()),
        probabilities=probabilities,
        error=found[len(stream)][0, position].double().cpu().numpy(),
        states=tuple(each.label for each in every),
        parts=tuple(_part_of(each.label) for each in every),
        norms=norms([each.array for each in every]),
        gradients={key: _summary(each, each.of(by_name[each.name])) for key, each in matrices(model).items()},
    )


def _tokens(model: Transformer, ids: Sequence[int]) -> Tensor:
    return torch.tensor([list(ids)], device=model.embedding.device)


def _arrays(stream: Mapping[str, Tensor], gradients: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """Returns gradients shaped as recorded activations, float64; zeros for a fixed table."""
    arrays = {}
    for name, x in stream.items():
        values = gradients.get(name, torch.zeros_like(x)).detach().double().cpu()
        arrays[name] = (values[0] if axes_of(name)[0] == "batch" else values).numpy()
    return arrays


def _part_of(label: str) -> str:
    """
    >>> _part_of("+ attn 3"), _part_of("norm2 0"), _part_of("+ position"), _part_of("+ attn and ffn 1")
    ('attention', 'norm', 'position', 'residual')
    """
    written = [part for word, part in (("attn", "attention"), ("ffn", "feedforward")) if word in label]
    if written:
        return written[0] if len(written) == 1 else "residual"
    return "norm" if "norm" in label else "position" if "position" in label else "embedding"


def _largest(sizes: Tensor, first: int) -> Tensor:
    """Returns the places of the SHOWN largest, in order; `first` among them, also where all are equal."""
    order = sizes.index_fill(0, torch.tensor(first), torch.inf).topk(min(SHOWN, len(sizes)))
    return order.indices.sort().values


def _summary(matrix: Matrix, gradient: Tensor) -> MatrixGradient:
    size = gradient.abs()
    row, column = divmod(int(size.argmax()), gradient.shape[1])
    rows, columns = _largest(size.amax(1), row), _largest(size.amax(0), column)
    values = gradient[rows][:, columns].double().cpu().numpy()
    shape = (gradient.shape[0], gradient.shape[1])
    return MatrixGradient(
        matrix,
        shape,
        float(gradient.double().norm()),
        (row, column),
        rows.cpu().numpy(),
        columns.cpu().numpy(),
        values,
    )


# One weight, changed ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Nudges:
    """The loss with one weight changed, nats (amount,), and what the gradient there says of it."""

    weight: float
    gradient: float
    loss: float
    amounts: np.ndarray = field(repr=False)
    losses: np.ndarray = field(repr=False)

    @property
    def predicted(self) -> np.ndarray:
        """The change of the loss to first order: gradient times amount, (amount,)."""
        return self.gradient * self.amounts

    @property
    def measured(self) -> np.ndarray:
        """The change of the loss that the forward passes give, (amount,)."""
        return self.losses - self.loss

    def index(self, amount: float) -> int:
        """Returns where the nearest amount is."""
        return int(np.abs(self.amounts - amount).argmin())


def nudges(
    model: Transformer,
    prediction: Backward,
    key: str,
    entry: tuple[int, int],
    amounts: Sequence[float] = AMOUNTS,
) -> Steps[Nudges]:
    """Measures the loss with `amounts` added to one weight, a pass each. Raises ShapeError."""
    gradient = prediction.gradients[key]
    if not gradient.has(entry):
        raise ShapeError(f"the gradient of row {entry[0]}, column {entry[1]} was not kept")
    nudged = _Nudged(model, gradient.matrix, entry)
    losses = []
    for done, amount in enumerate(amounts):
        yield Progress(done, len(amounts))
        losses.append(nudged.loss(prediction.ids, prediction.position, amount))
    return Nudges(nudged.weight, gradient.at(entry), prediction.loss, np.array(amounts), np.array(losses))


def finite_difference(
    model: Transformer, prediction: Backward, key: str, entry: tuple[int, int], epsilon: float = EPSILON
) -> float:
    """Returns (L(w + epsilon) - L(w - epsilon)) / (2 epsilon), float64: a gradient without calculus."""
    nudged = _Nudged(copy.deepcopy(model).double(), prediction.gradients[key].matrix, entry)
    above, below = (nudged.loss(prediction.ids, prediction.position, each) for each in (epsilon, -epsilon))
    return (above - below) / (2 * epsilon)


class _Nudged:
    """A twin of a model in which one weight can be moved; its other weights are the model's own."""

    def __init__(self, model: Transformer, matrix: Matrix, entry: tuple[int, int]) -> None:
        self.twin = trainable_twin(model).requires_grad_(False)
        owned = self.twin.get_parameter(matrix.name)
        owned.data = owned.detach().clone()
        self.rows, self.entry = matrix.of(owned.data), entry
        self.weight = float(self.rows[entry])

    @torch.no_grad()
    def loss(self, ids: Sequence[int], position: int, amount: float) -> float:
        """Returns the loss of the token after `position` with `amount` added to the weight, nats."""
        before = self.rows[self.entry].clone()
        self.rows[self.entry] += amount
        logits = self.twin(_tokens(self.twin, ids))[0, position].double()
        self.rows[self.entry] = before
        return -float(logits.log_softmax(-1)[ids[position + 1]])
