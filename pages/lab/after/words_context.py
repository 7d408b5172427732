"""Sentences (Markdown) of in-context learning, from values that they are given."""

from __future__ import annotations

from collections.abc import Sequence

from engine.measure.circuits.in_context import TASKS, InContext, LearnedStep, Regression, slopes
from ui.page_frame import Words
from ui.text.numbers import minus

QUESTION = "How does a model learn from examples in its prompt?"
CONTEXT = Words(
    see=(
        "A prompt holds examples (x, y) of a linear function, then a query x. Left, the matrix through"
        " which the layer compares an example with the query; in one dimension, its answers as a line."
        " Right, its error on new functions, beside one step of gradient descent on the same examples, and"
        " least squares. Three seeds are trained while you watch."
    ),
    why=(
        "In-context learning changes no weight, yet the answers fit the examples. Attention sums value times"
        " (key · query), and the gradient of a squared error is such a sum: Σ yᵢ xᵢ. So a layer can descend"
        " that gradient within its forward pass (von Oswald et al. 2023), and training finds just that (Ahn"
        " et al. 2023; Zhang et al. 2023). Whether large language models do the same is open."
    ),
    attempt=(
        "Train on 5 examples, then on 40: with more of them the layer learns a larger step. Take softmax"
        " with one head: its weights are positive, so it also adds a multiple of the mean y; with 4 heads"
        " it can subtract that out. In one dimension, drag an example away from the line."
    ),
)
LEARNER = "Learner"
LEARNER_HINT = "A layer trained here on numbers, or a language model prompted in words."
LAYER_HINT = (
    "Linear attention divides the scores by the number of examples; softmax turns them into positive weights,"
    " here in one head or in four."
)
SIZE_HINT = (
    "In 10 dimensions the layer's matrix is shown; in one dimension its answers, for examples that you"
    " choose."
)
SEED_HINT = "Three layers are trained, from this seed and the two after it."
POINTS = "Examples x y: drag them, or type"
POINTS_HINT = (
    "Up to 12 points from −2 to 2, with commas between them. Click a small dot to add an example; drag one to"
    " move it, click it to remove it."
)
MOVE_HINT = "Drag it or use the arrow keys; a click or Delete removes it."
NO_POINTS = (
    "Type pairs such as 1 0.5, -1 -1: numbers from −2 to 2, at most 12 pairs. Until then the first examples"
    " are used."
)
TRAINING = "Training three layers"


def answer(trained: InContext) -> str:
    """Says what the layers do, for several input numbers."""
    rate, best = minus(f"{trained.rate:.3f}"), f"{trained.plan.best_rate:.3f}"
    if trained.plan.layer == "linear" and trained.is_gradient_step:
        return (
            f"The layer does one step of gradient descent on the examples: its matrix is **{rate}** times the"
            f" identity (mean of {trained.plan.seeds} seeds), and **{best}** is the best step size."
        )
    if trained.plan.layer == "linear":
        return (
            f"The layer is not a gradient step yet: its diagonal is **{rate}**, where the best step size is"
            f" **{best}**."
        )
    better = trained.error < trained.gradient_error
    return (
        f"Softmax attention learns from the examples too, but {'better' if better else 'worse'} than one"
        f" gradient step: its error is **{trained.error:.2f}**, that of the step"
        f" **{trained.gradient_error:.2f}**."
    )


def answer_points(trained: InContext, points: Sequence[tuple[float, float]]) -> str:
    """Says what the layers answer after some points."""
    layer, step, least = (minus(f"{slope:.2f}") for slope in slopes(trained, points))
    if trained.plan.layer == "linear" and trained.is_gradient_step:
        return (
            f"The layer takes one step of gradient descent from zero: its line has slope **{layer}** on your"
            f" examples, where least squares has **{least}**."
        )
    if trained.plan.layer == "linear":
        return (
            f"The layer is not a gradient step yet: its line has slope **{layer}** on your examples, that"
            f" of one step **{step}**."
        )
    return (
        f"A softmax layer draws a curve through the examples, not a line: at x = 1 it predicts **{layer}**,"
        f" one gradient step **{step}**."
    )


def rows(trained: InContext) -> dict[str, list[str]]:
    """Returns the table of all seeds."""
    return {
        "seed": [str(trained.plan.seed + i) for i in range(trained.plan.seeds)],
        "diagonal, mean": [minus(f"{rate:.3f}") for rate in trained.rates],
        "error": [
            f"{each[trained.counts.tolist().index(trained.plan.examples)]:.3f}" for each in trained.layers
        ],
        "differs from the step by": [f"{share:.1%}" for share in trained.apart],
    }


def measured(trained: InContext) -> str:
    plan = trained.plan
    return (
        f"On {TASKS:,} new functions, after {plan.examples} examples. One gradient step of size"
        f" {plan.best_rate:.3f} has an error of {trained.gradient_error:.3f} there, and {plan.best_error:.3f}"
        f" is expected. Off the diagonal the weights are {trained.beside:.3f} (root mean square). The last"
        " column is the mean square of layer minus step, over that of the step."
    )


def by_hand(plan: Regression) -> str:
    n, d = plan.examples, plan.d
    return (
        r"One step from $w = 0$ on $\frac{1}{2n}\sum_i (w\cdot x_i - y_i)^2$ with step size $\eta$:"
        "\n\n"
        r"$$w = \frac{\eta}{n}\sum_i y_i x_i, \qquad \hat y = w\cdot x = \sum_i"
        r" \underbrace{y_i}_{\text{value}}\;\frac{1}{n}\,"
        r"\underbrace{x_i^\top (\eta I)\, x}_{\text{key · query}}$$"
        "\n\n"
        "That is linear attention whose value is the example's $y$ and whose $W_K^\\top W_Q$ is $\\eta$"
        " times the identity. With $x$ and $w$ from standard normal distributions the expected error"
        " (guessing 0: 1) is"
        "\n\n"
        rf"$$1 - 2\eta + \eta^2\,\frac{{n + d + 1}}{{n}}, \quad\text{{lowest at}}\quad \eta ="
        rf" \frac{{n}}{{n + d + 1}} = \frac{{{n}}}{{{n + d + 1}}} = {plan.best_rate:.3f},"
        rf" \quad\text{{where it is}}\quad 1 - \eta = {plan.best_error:.3f}.$$"
        "\n\n"
        "Least squares needs the inverse of $X^\\top X$, which one step does not have: further layers take"
        " further steps."
    )


def matrix_alt(look: LearnedStep) -> str:
    rate = minus(f"{look.diagonal:.2f}")
    return f"The layer's matrix after step {look.step:,}: {rate} on its diagonal, on average."


def errors_alt(trained: InContext) -> str:
    return (
        f"Squared error against examples in the prompt. After {trained.plan.examples}: the layer"
        f" {trained.error:.2f}, one gradient step {trained.gradient_error:.2f} (guessing 0: 1)."
    )


def losses_alt(looks: Sequence[LearnedStep]) -> str:
    return f"The training loss of {len(looks[-1].losses)} seeds, {looks[-1].loss:.2f} at the end."


def plane_alt(points: Sequence[tuple[float, float]]) -> str:
    return (
        f"{len(points)} examples on a plane, and the lines of the layer, one gradient step and least squares."
    )
