"""One step of an optimiser on one text: the loss before and after, by learning rate, and the singular values
of the update of one matrix.

A first step follows from the gradient alone. SGD moves against it. AdamW's moments are then the gradient and
its square, so every weight moves by about the learning rate, against its gradient's sign. Muon brings the
singular values of each matrix's update near one another (Jordan et al. 2024), and leaves all but the blocks'
matrices to AdamW.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import TrainConfig
from engine.data.progress import Progress, Steps
from engine.errors import ConfigError
from engine.model import Transformer
from engine.parts.parameters import StackedLinear
from engine.training.numerics import Numerics
from engine.training.optim import Optimiser, Slot, layout
from studies.shapes.backward import EPSILON, Matrix, check, matrices, trainable_twin

Rule = Literal["sgd", "adamw", "muon"]
RULES: tuple[Rule, ...] = ("sgd", "adamw", "muon")
SGD_RATE = 0.01  # no training here uses SGD, so TrainConfig has no default for it
SCALES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)  # of the learning rate
EVENED = 1.5  # times AdamW's share: far enough apart to see
MAX_PARAMETERS = 150_000_000  # a gradient, an update and new weights are held at once: 12 bytes for each
_EXACT = Numerics(torch.device("cpu"), torch.float32, "highest", "")


def rates(rule: Rule) -> tuple[float, ...]:
    """Returns a rule's default learning rates: Muon's, then AdamW's for the rest."""
    c = TrainConfig()
    return {
        "sgd": (SGD_RATE,),
        "adamw": (c.learning_rate,),
        "muon": (c.muon_learning_rate, c.learning_rate),
    }[rule]


@dataclass(frozen=True, eq=False)
class SingleStep:
    """The mean loss of a text, nats per token: `before`, and after one step by rule and SCALES of its default
    rates.
    """

    before: float
    scales: np.ndarray = field(repr=False)
    after: Mapping[Rule, np.ndarray] = field(repr=False)  # (scale,)

    def at(self, rule: Rule, scale: float) -> float:
        """Returns the loss after a step with the nearest scale."""
        return float(self.after[rule][np.abs(self.scales - scale).argmin()])

    def lowest(self, scale: float) -> Rule:
        """Returns the rule whose step leaves the lowest loss; of equal ones the first."""
        return min(RULES, key=lambda rule: self.at(rule, scale))


@dataclass(frozen=True, eq=False)
class Spectra:
    """The singular values of one matrix's update, largest first, by rule. The gradient is a sum over the
    text's predictions, so at most `rank` of its singular values are above zero.
    """

    matrix: Matrix
    shape: tuple[int, int]
    rank: int
    values: Mapping[Rule, np.ndarray] = field(repr=False)

    def relative(self, rule: Rule) -> np.ndarray:
        """Returns the singular values as shares of the largest one."""
        values = self.values[rule]
        result: np.ndarray = values / values[0] if values[0] else values
        return result

    def middle(self, rule: Rule) -> float:
        """Returns the middle one of the singular values within the rank, as a share of the largest."""
        return float(self.relative(rule)[self.rank // 2])

    @property
    def evened(self) -> bool:
        """True if Muon's singular values are clearly nearer one another than AdamW's."""
        return self.middle("muon") > EVENED * self.middle("adamw")


def loss_of(model: Transformer, ids: Sequence[int]) -> Tensor:
    """Returns the mean cross-entropy of a text's tokens after the first, nats, float64."""
    tokens = torch.tensor([list(ids)], device=model.embedding.device)
    return F.cross_entropy(model(tokens)[0, :-1].double(), tokens[0, 1:])


def gradients(model: Transformer, ids: Sequence[int]) -> tuple[float, dict[str, Tensor]]:
    """Returns the loss of a text and its gradient with respect to every parameter, by name."""
    check(model, ids)
    twin = trainable_twin(model)
    parameters = dict(twin.named_parameters())
    with torch.enable_grad():
        loss = loss_of(twin, ids)
        found = torch.autograd.grad(loss, list(parameters.values()), materialize_grads=True)
    return float(loss.detach()), dict(zip(parameters, found, strict=True))


def update_of(slot: Slot, gradient: Tensor, rule: Rule) -> Tensor:
    """Returns what a rule's first step adds to a parameter, of its shape, at the default rate and without
    weight decay. The engine's own optimiser does the step, on a model of this one parameter whose loss has
    that gradient.
    """
    if rule == "sgd":
        return gradient.detach().float().mul(-SGD_RATE)
    model = _alone(slot)
    (parameter,) = model.parameters()
    optimiser = Optimiser(model, TrainConfig(optimizer=rule, weight_decay=0.0, grad_clip=0.0), _EXACT)
    with torch.enable_grad():
        optimiser.update((parameter * gradient.detach().float()).sum(), 1.0)
    return optimiser.master_weights.view(slot.shape)


def _alone(slot: Slot) -> nn.Module:
    """Returns a model whose single parameter is zero, and which the optimiser groups as it does `slot`'s."""
    model = nn.Module()
    if slot.group == "matrix":
        matrix = StackedLinear(slot.shape[1], slot.row_blocks, bias=False)
        nn.init.zeros_(matrix.weight)
        model.add_module("blocks", nn.ModuleList([matrix]))  # named as a block's: Muon's share
    else:
        model.register_parameter("other", nn.Parameter(torch.zeros(slot.shape)))
    return model


def parameter_count(model: Transformer) -> int:
    """Returns the number of parameters that a model has, a tied matrix counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


def single_step(
    model: Transformer, ids: Sequence[int], scales: Sequence[float] = SCALES
) -> Steps[SingleStep]:
    """Takes one step of each rule on a text and measures its loss after, at each of `scales` of the learning
    rate. Raises ConfigError for a model that is too large, and as `check` does.
    """
    size = parameter_count(model)
    if size > MAX_PARAMETERS:
        raise ConfigError(
            "parameters", size, f"must be at most {MAX_PARAMETERS:,}: a step holds three copies"
        )
    total = len(RULES) * (1 + len(scales))
    yield Progress(0, total)
    before, found = gradients(model, ids)
    slots, done = layout(model), 0
    own = dict(model.named_parameters())
    after: dict[Rule, np.ndarray] = {}
    for rule in RULES:
        update = {}
        for slot in slots:
            update[slot.name] = update_of(slot, found[slot.name], rule)
            yield Progress(done, total)
        moved = trainable_twin(model).requires_grad_(False)
        for name, parameter in moved.named_parameters():
            parameter.data = own[name].detach().clone()
        losses = []
        for scale in scales:
            done += 1
            yield Progress(done, total)
            losses.append(_after(moved, own, update, scale, ids))
        done += 1
        after[rule] = np.array(losses)
    return SingleStep(before, np.array(scales), after)


@torch.no_grad()
def _after(
    moved: Transformer,
    own: Mapping[str, Tensor],
    update: Mapping[str, Tensor],
    scale: float,
    ids: Sequence[int],
) -> float:
    for name, parameter in moved.named_parameters():
        torch.add(own[name], update[name].to(parameter.dtype), alpha=scale, out=parameter.data)
    return float(loss_of(moved, ids))


def spectra(model: Transformer, ids: Sequence[int], key: str) -> Steps[Spectra]:
    """Measures the singular values of the update of the matrix `key`
    (`studies.shapes.backward.matrices`), by rule. Raises ConfigError for a matrix that is not there,
    and as `check` does.
    """
    matrix = _named(model, key)
    yield Progress(0, len(RULES))
    check(model, ids)
    twin = trainable_twin(model)
    with torch.enable_grad():
        loss = loss_of(twin, ids)
        (found,) = torch.autograd.grad(loss, [twin.get_parameter(matrix.name)], materialize_grads=True)
    slot = next(each for each in layout(model) if each.name == matrix.name)
    values: dict[Rule, np.ndarray] = {}
    for done, rule in enumerate(RULES):
        update = matrix.of(update_of(slot, found, rule))
        values[rule] = torch.linalg.svdvals(update.double()).cpu().numpy()
        yield Progress(done + 1, len(RULES))
    rank = min(*update.shape, len(ids) - 1)
    return Spectra(matrix, (update.shape[0], update.shape[1]), rank, values)


def _named(model: Transformer, key: str) -> Matrix:
    known = matrices(model)
    if key not in known:
        raise ConfigError("matrix", key, "is not a matrix of this model")
    return known[key]


# One weight's step ------------------------------------------------------------------------------

RANKED = 50  # largest gradients of a matrix, among which a weight is chosen
ELEMENTWISE: tuple[Rule, ...] = ("sgd", "adamw")  # rules that move a weight by its own gradient alone


@dataclass(frozen=True)
class WeightStep:
    """One weight and a first step of it. `loss` is the text's mean loss, nats per token, `above` and `below`
    the same with the weight EPSILON larger and smaller; all in float64. By rule: `rates`, the `steps` that
    it adds to the weight, and the losses `after` them, with no other weight changed.
    """

    matrix: Matrix
    entry: tuple[int, int]
    weight: float
    gradient: float
    loss: float
    above: float
    below: float
    rates: Mapping[Rule, float]
    steps: Mapping[Rule, float]
    after: Mapping[Rule, float]


def weight_step(
    model: Transformer, ids: Sequence[int], key: str, rank: int, scale: float
) -> Steps[WeightStep]:
    """Takes one step of a single weight of the matrix `key`, at `scale` times the default learning rates: the
    weight whose gradient is the largest but `rank`, among RANKED. Raises as `spectra`.
    """
    matrix = _named(model, key)
    check(model, ids)
    total = 3 + 2 * len(ELEMENTWISE)
    yield Progress(0, total)
    exact = trainable_twin(copy.deepcopy(model).double())
    parameter = exact.get_parameter(matrix.name)
    with torch.enable_grad():
        loss = loss_of(exact, ids)
        (found,) = torch.autograd.grad(loss, [parameter], materialize_grads=True)
    gradient = matrix.of(found)
    order = gradient.abs().flatten().topk(min(RANKED, gradient.numel())).indices
    entry = divmod(int(order[rank % len(order)]), gradient.shape[1])
    parameter.data = parameter.detach().clone()
    rows, weight = matrix.of(parameter.data), float(matrix.of(parameter.data)[entry])

    def moved(amount: float) -> float:
        rows[entry] = weight + amount
        with torch.no_grad():
            return float(loss_of(exact, ids))

    slot = next(each for each in layout(model) if each.name == matrix.name)
    steps: dict[Rule, float] = {}
    after: dict[Rule, float] = {}
    for done, rule in enumerate(ELEMENTWISE):
        yield Progress(1 + 2 * done, total)
        steps[rule] = scale * float(matrix.of(update_of(slot, found, rule))[entry])
        yield Progress(2 + 2 * done, total)
        after[rule] = moved(steps[rule])
    yield Progress(total - 2, total)
    above = moved(EPSILON)
    yield Progress(total - 1, total)
    return WeightStep(
        matrix,
        (entry[0], entry[1]),
        weight,
        float(gradient[entry]),
        float(loss.detach()),
        above,
        moved(-EPSILON),
        {rule: scale * rates(rule)[0] for rule in ELEMENTWISE},
        steps,
        after,
    )
