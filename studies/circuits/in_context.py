"""In-context learning: one layer of attention is trained to continue examples of a linear function, a new
function in every prompt. It learns a step of gradient descent on the examples.

    for look in learn(Regression()):
        ...

The construction is von Oswald et al. 2023 ("Transformers learn in-context by gradient descent"); that
training finds it is Ahn et al. 2023 ("Transformers learn to implement preconditioned gradient descent for
in-context learning") and Zhang et al. 2023 ("Trained Transformers learn linear models in-context"). The
setting is that of Garg et al. 2022 ("What can Transformers learn in-context?").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from engine.data.progress import Progress, Steps
from engine.training.optim import AdamW

Layer = Literal["linear", "softmax", "softmax4"]
HEADS: dict[Layer, int] = {"linear": 1, "softmax": 1, "softmax4": 4}
INIT = 0.1  # std of the first weights: at zero there is no gradient
LOOK_EVERY = 25  # steps
COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 35, 40)  # examples in a prompt that is measured
TASKS = 2_000  # prompts that are measured, the same for all
TEST_SEED = 2**20  # of these, and of no training


@dataclass(frozen=True)
class Regression:
    """A training. Each prompt holds `examples` pairs (x, w·x) and a query: x (d,) and w (d,) are drawn anew
    from a standard normal distribution. Layers from `seeds` seeds, `seed` the first, are trained side by
    side.
    """

    layer: Layer = "linear"
    d: int = 10
    examples: int = 20
    seed: int = 0
    seeds: int = 3
    steps: int = 1500
    batch: int = 64
    learning_rate: float = 1e-2

    @property
    def best_rate(self) -> float:
        """The step size at which one step of gradient descent from zero has the lowest expected error.

        With S = XᵀX / n the error is E|(1 - rate S) w|² = d (1 - 2 rate + rate² (n + d + 1) / n).
        """
        return self.examples / (self.examples + self.d + 1)

    @property
    def best_error(self) -> float:
        """The expected error of that step, where guessing 0 has 1."""
        return 1 - self.best_rate


class AttentionLayer(nn.Module):
    """One layer of attention for each of several seeds. The query (x, 0) attends to the examples (x, y), and
    the prediction is the last entry of what it gathers. W_Q and W_K act only as their product, and so do W_V
    and W_O: they are trained as `keys` and `values`, as in Ahn et al. 2023.
    """

    def __init__(self, plan: Regression, draws: Sequence[torch.Generator]) -> None:
        super().__init__()
        self.softmax, heads = plan.layer != "linear", HEADS[plan.layer]
        keys = [INIT * torch.randn(heads, plan.d + 1, plan.d, generator=g) for g in draws]
        values = [INIT * torch.randn(heads, plan.d + 1, generator=g) for g in draws]
        self.keys = nn.Parameter(torch.stack(keys))  # (seed, head, d + 1, d): W_K^T W_Q without the query's 0
        self.values = nn.Parameter(torch.stack(values))  # (seed, head, d + 1): the last row of W_O W_V

    def forward(self, examples: Tensor, query: Tensor) -> Tensor:
        """Predicts y for `query` (seed, batch, d) after `examples` (seed, batch, n, d + 1): (seed, batch)."""
        wanted = torch.einsum("shkd,sbd->sbhk", self.keys, query)
        scores = wanted @ examples.transpose(-1, -2)  # (seed, batch, head, n)
        values = torch.einsum("sbnk,shk->sbhn", examples, self.values)
        pattern = scores.softmax(-1) if self.softmax else scores / examples.shape[-2]
        return (pattern * values).sum((-1, -2))

    def weights(self) -> dict[str, Tensor]:
        """Returns a copy of its parameters as they are now."""
        return {name: p.detach().clone() for name, p in self.named_parameters()}

    def matrix(self) -> np.ndarray:
        """Returns M of the prediction (1/n) Σ y_i x_i·M x_query + ..., (seed, d, d): all that is linear in
        the y of the examples, of a softmax layer to first order in its scores. One step of gradient descent
        from zero has M = rate · 1.
        """
        x, y = self.keys.detach().double().split([self.keys.shape[-1], 1], dim=2)
        value_x, value_y = self.values.detach().double().split([self.keys.shape[-1], 1], dim=2)
        both = value_y[..., None] * x + value_x[..., None] * y  # (seed, head, d, d)
        result: np.ndarray = both.sum(1).numpy()
        return result


def layer_with(plan: Regression, weights: Mapping[str, Tensor]) -> AttentionLayer:
    """Returns the layers of a plan with these parameters."""
    layer = AttentionLayer(plan, [torch.Generator() for _ in range(plan.seeds)])
    layer.load_state_dict(dict(weights))
    return layer


def prompts(
    draws: Sequence[torch.Generator], batch: int, examples: int, d: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Draws prompts: (examples (seed, batch, n, d + 1), query (seed, batch, d), its y (seed, batch))."""
    x = torch.stack([torch.randn(batch, examples + 1, d, generator=g) for g in draws])
    w = torch.stack([torch.randn(batch, d, 1, generator=g) for g in draws])
    pairs = torch.cat([x, x @ w], dim=-1)  # (seed, batch, n + 1, d + 1)
    return pairs[:, :, :-1], pairs[:, :, -1, :-1], pairs[:, :, -1, -1]


# Training -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LearnedStep:
    """The layers after a step. `losses` (seed,): mean squared error of the last batches, where guessing 0 has
    1. `matrices` (seed, d, d): see `AttentionLayer.matrix`.
    """

    step: int
    losses: np.ndarray = field(repr=False)
    matrices: np.ndarray = field(repr=False)
    weights: Mapping[str, Tensor] = field(repr=False)  # of the layers, by name

    @property
    def loss(self) -> float:
        """The mean of all seeds."""
        return float(self.losses.mean())

    @property
    def diagonal(self) -> float:
        """The mean of the diagonal of the first matrix."""
        return float(np.diagonal(self.matrices[0]).mean())


def learn(plan: Regression) -> Iterator[LearnedStep]:
    """Trains the layers with Adam and yields a look before the first step and at every LOOK_EVERY-th; the
    learning rate falls to 0 over the second half.
    """
    draws = [torch.Generator().manual_seed(plan.seed + i) for i in range(plan.seeds)]
    layer = AttentionLayer(plan, draws)
    optimizer = AdamW(layer.parameters(), plan.learning_rate)
    recent: list[Tensor] = []
    yield LearnedStep(0, np.full(plan.seeds, np.nan), layer.matrix(), layer.weights())
    for step in range(1, plan.steps + 1):
        examples, query, y = prompts(draws, plan.batch, plan.examples, plan.d)
        losses = (layer(examples, query) - y).square().mean(1)  # (seed,)
        optimizer.zero_grad()
        losses.sum().backward()  # no seed's weights are in another's loss
        optimizer.rate = plan.learning_rate * min(1.0, 2 * (1 - (step - 1) / plan.steps))
        optimizer.step()
        recent = [*recent[1 - LOOK_EVERY :], losses.detach()]
        if step % LOOK_EVERY == 0 or step == plan.steps:
            mean = torch.stack(recent).mean(0).numpy() / plan.d
            yield LearnedStep(step, mean, layer.matrix(), layer.weights())


# Predictors without training ----------------------------------------------------------------------


def gradient_step(examples: Tensor, query: Tensor, rate: float) -> Tensor:
    """Predicts with w after one step of gradient descent from w = 0 on the loss 1/(2n) Σ (w·x_i - y_i)²:
    examples (..., n, d + 1), query (..., d) -> (...).
    """
    x, y = examples[..., :-1], examples[..., -1:]
    w = rate * (x * y).mean(-2)  # minus the gradient at zero
    return (w * query).sum(-1)


def least_squares(examples: Tensor, query: Tensor) -> Tensor:
    """Predicts with the w that fits the examples best, the shortest one where several do: examples (..., n,
    d + 1), query (..., d) -> (...), float64.
    """
    x, y = examples[..., :-1].double(), examples[..., -1:].double()
    w = (torch.linalg.pinv(x) @ y).squeeze(-1)
    return (w * query.double()).sum(-1)


# Measuring ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InContext:
    """Trained layers, measured on new prompts. Errors are mean squared errors, where guessing 0 has 1, after
    `counts` (count,) examples: `layers` (seed, count), `gradient` (count,) one step of the plan's best rate,
    `least` (count,) least squares. `predicted` (seed, prompt) and `stepped` (prompt,) are the predictions of
    layers and gradient step after as many examples as in training.
    """

    plan: Regression
    looks: tuple[LearnedStep, ...] = field(repr=False)
    counts: np.ndarray = field(repr=False)
    layers: np.ndarray = field(repr=False)
    gradient: np.ndarray = field(repr=False)
    least: np.ndarray = field(repr=False)
    predicted: np.ndarray = field(repr=False)
    stepped: np.ndarray = field(repr=False)

    @property
    def layer(self) -> AttentionLayer:
        return layer_with(self.plan, self.looks[-1].weights)

    @property
    def matrices(self) -> np.ndarray:
        """(seed, d, d)"""
        return self.looks[-1].matrices

    @property
    def mean_layers(self) -> np.ndarray:
        """The error after each count of examples, the mean of all seeds, (count,)."""
        result: np.ndarray = self.layers.mean(0)
        return result

    @property
    def rates(self) -> np.ndarray:
        """The mean of the diagonal of each matrix, (seed,): the step size, where it is that of gradient
        descent.
        """
        result: np.ndarray = np.diagonal(self.matrices, axis1=1, axis2=2).mean(-1)
        return result

    @property
    def rate(self) -> float:
        """The mean of all seeds."""
        return float(self.rates.mean())

    @property
    def beside(self) -> float:
        """The root mean square of all that is not on the diagonals; 0 where there is nothing."""
        off = self.matrices[:, ~np.eye(self.plan.d, dtype=bool)]
        return float(np.sqrt(np.square(off).mean())) if off.size else 0.0

    @property
    def apart(self) -> np.ndarray:
        """The mean square of layer minus gradient step over that of the step, (seed,): 0 where they agree."""
        result: np.ndarray = np.square(self.predicted - self.stepped).mean(1) / np.square(self.stepped).mean()
        return result

    @property
    def error(self) -> float:
        """The error after as many examples as in training, the mean of all seeds."""
        return float(self.layers[:, self._trained].mean())

    @property
    def gradient_error(self) -> float:
        return float(self.gradient[self._trained])

    @property
    def is_gradient_step(self) -> bool:
        """True if every layer predicts what the step does, but for a twentieth of the variance."""
        return bool((self.apart < 0.05).all())

    @property
    def _trained(self) -> int:
        return int(np.flatnonzero(self.counts == self.plan.examples)[0])


def measure(plan: Regression) -> Steps[InContext]:
    """Trains the layers of a plan and measures them, with a progress after each look; what it has so far are
    the looks.
    """
    looks: tuple[LearnedStep, ...] = ()
    for look in learn(plan):
        looks = (*looks, look)
        yield Progress(look.step, plan.steps, looks)
    draws = [torch.Generator().manual_seed(TEST_SEED)]
    examples, query, y = prompts(draws, TASKS, max(COUNTS), plan.d)
    counts, layer = sorted({*COUNTS, plan.examples}), layer_with(plan, looks[-1].weights)
    rows, shown = [], (np.zeros(0), np.zeros(0))
    for count in counts:
        guesses = predictions(plan, layer, examples[:, :, :count], query)
        rows.append([np.square(each - y.numpy()).mean(-1) / y.square().mean().item() for each in guesses])
        if count == plan.examples:
            shown = guesses[:2]
        yield Progress(plan.steps, plan.steps, looks)
    by_layer, by_step, by_least = (np.stack([row[i] for row in rows], axis=-1) for i in range(3))
    return InContext(plan, looks, np.array(counts), by_layer, by_step[0], by_least[0], shown[0], shown[1][0])


@torch.no_grad()
def predictions(
    plan: Regression, layer: AttentionLayer, examples: Tensor, query: Tensor
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predicts after `examples` (1, batch, n, d + 1) for `query` (1, batch, d): the layers (seed, batch), one
    step of gradient descent at the plan's best rate (1, batch), and least squares (1, batch).
    """
    all_seeds = plan.seeds, -1, -1
    layers = layer(examples.expand(plan.seeds, -1, -1, -1), query.expand(*all_seeds))
    step = gradient_step(examples, query, plan.best_rate)
    return layers.numpy(), step.numpy(), least_squares(examples, query).numpy()


def continued(trained: InContext, points: Sequence[tuple[float, float]], at: np.ndarray) -> np.ndarray:
    """Predicts y at each x of `at` (query,) after `points` of one input number, one at least: (seed + 2,
    query), the layers, then the gradient step, then least squares.
    """
    query = torch.tensor(at, dtype=torch.float32)[None, :, None]
    examples = torch.tensor(points, dtype=torch.float32)[None, None].expand(1, len(at), -1, -1)
    return np.concatenate(predictions(trained.plan, trained.layer, examples, query))


def mean_layer(lines: np.ndarray) -> np.ndarray:
    """Returns the mean of the layers (at,) in the lines (seed + 2, at) of `continued`."""
    result: np.ndarray = lines[:-2].mean(0)
    return result


def slopes(trained: InContext, points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Returns what the layers (the mean of all seeds), one gradient step and least squares predict at x = 1
    after some points: the slope, where it is a line through zero.
    """
    *layers, step, least = continued(trained, points, np.ones(1))[:, 0].tolist()
    return sum(layers) / len(layers), step, least
