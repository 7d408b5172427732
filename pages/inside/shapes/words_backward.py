"""Sentences of the view Backpropagation."""

from __future__ import annotations

from engine.measure.shapes.backward import EPSILON, Backward, Matrix, MatrixGradient, Nudges
from engine.measure.shapes.optimiser_step import SGD_RATE, Rule, SingleStep, Spectra, rates
from ui.figures.labels import plain
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import minus, scientific

ASK = {
    "pass": "How does an error reach every weight?",
    "weight": "What does a gradient predict?",
    "step": "How does an optimiser turn gradients into a step?",
}
SHOW = "Show"
TOO_SHORT = (
    "The text has one token, so there is no next token to predict: type a longer one in the bar above."
)
DIVERGED = "This model has diverged: its loss has become NaN or infinite, so it has no usable gradient."
STRIP = "Position whose next token is predicted (a stronger colour means a larger loss)"
LOGITS = "logits"
LANES, TOTALS, ERROR = "gradient norm by token", "all tokens", "p\u00a0−\u00a0y"
BACKWARDS, UNTOUCHED = "← backward pass", "later tokens:<br>no gradient"
GRADIENT = "largest gradient entries (click a weight)"
NUDGE = "Nudge added to the weight"
PREDICTED, MEASURED = "predicted: gradient × nudge", "measured: forward pass"
RATE = "Learning rate ÷ default"
AFTER = "loss on this text (nats per token)"
RANK, SHARE = "number of predictions", "singular value ÷ largest"
RULE_NAMES: dict[Rule, str] = {"sgd": "SGD", "adamw": "AdamW", "muon": "Muon"}
SMALL = 1e-3  # below it a power of ten is written
CLOSE = 0.15  # of the measured change, by which a prediction may be off and still be called right

PASS = Words(
    see=(
        "The loss of one prediction, backpropagated: read from top to bottom. A cell is the norm of the"
        " residual stream's gradient at one token, a bar the norm over all tokens. The gradient enters at"
        " the chosen position; attention spreads it to earlier ones."
    ),
    why=(
        "With $p = \\text{softmax}(\\text{logits})$ and $y$ one-hot at the next token,"
        " $\\partial L / \\partial \\text{logits} = p - y$. The chain rule carries it through every sublayer,"
        " $\\partial L / \\partial x = J^\\top \\, \\partial L / \\partial x'$, and one pass gives the"
        " gradient of every weight (Rumelhart, Hinton and Williams, 1986)."
    ),
    attempt=(
        "Choose a token that the model predicts well: p − y almost vanishes, and so do all gradients. Then"
        " choose the first token: its gradient has no earlier tokens to reach."
    ),
)
WEIGHT = Words(
    see=(
        "Left, one matrix's gradient, in the rows and columns with its largest entries. Right, the loss of"
        " the same prediction as the boxed weight changes: measured by forward passes, and predicted by the"
        " gradient."
    ),
    why=(
        "A gradient is a slope: $\\Delta L \\approx g \\, \\Delta w$ for a small $\\Delta w$. An optimiser"
        " relies on it for every weight at once, $w \\leftarrow w - \\eta g$, and where the loss curves away"
        " from its tangent, a large step overshoots (Rumelhart, Hinton and Williams, 1986)."
    ),
    attempt=(
        "Move the nudge to both ends, then click other weights. In the last block's feed-forward network"
        " the gradient has rank one: only the chosen position feeds it, so its rows are multiples of each"
        " other."
    ),
)
STEP = Words(
    see=(
        "Left, the loss on this text after one step from these weights, against the learning rate: 1 is the"
        f" engine's default (SGD: {SGD_RATE}). Right, the singular values of one matrix's update, largest"
        " first. The gradient has at most one nonzero singular value per prediction; any further ones in"
        " Muon's update are rounding error."
    ),
    why=(
        "SGD adds $-\\eta G$. AdamW's first step adds about $-\\eta \\, \\text{sign}(G)$. Muon adds $-\\eta"
        " \\, U V^\\top$, where $G = U \\Sigma V^\\top$: all singular values end up near 1, so rare"
        " directions move as far as frequent ones (Jordan et al., 2024)."
    ),
    attempt=(
        "Raise the learning rate until a step overshoots: which optimiser fails first? Then compare"
        " matrices, and try a longer text: each prediction adds one direction to the gradient."
    ),
    texts=(
        "Muon is often said to make all singular values equal. Five Newton–Schulz steps bring the large ones"
        " between about 0.7 and 1.2; the smallest stay behind."
    ),
)
STEP_MEASURED = (
    "One step from the weights shown, without weight decay or clipping. Muon updates the blocks' matrices"
    " and leaves the rest to AdamW. The loss is the mean over all predictions of the text."
)
STEP_BY_HAND = (
    "With $m = (1 - \\beta_1) \\, g$ and $v = (1 - \\beta_2) \\, g^2$ after the first step, the bias"
    " corrections divide by $1 - \\beta_1$ and $1 - \\beta_2$:\n\n$$\\Delta w = -\\eta \\, \\frac{\\hat"
    " m}{\\sqrt{\\hat v} + \\epsilon} = -\\eta \\, \\frac{g}{|g| + \\epsilon} \\approx -\\eta \\,"
    " \\text{sign}(g)$$\n\nMuon divides $G$ by its norm, then repeats five times $X \\leftarrow a X + b \\,"
    " X X^\\top X + c \\, (X X^\\top)^2 X$ with $(a, b, c) = (3.4445, -4.7750, 2.0315)$: each singular value"
    " $\\sigma$ becomes $a \\sigma + b \\sigma^3 + c \\sigma^5$, and the directions stay the same."
)


def three(value: float, signed: bool = False) -> str:
    """Returns a number with three significant digits and a true minus sign.

    >>> three(-0.30712, signed=True), three(51.43), three(0.0)
    ('−0.307', '51.4', '0')
    """
    if not value or abs(value) < SMALL:
        return scientific(value)
    text = f"{value:+#.3g}" if signed else f"{value:#.3g}"
    return minus(text.rstrip("."))


def amount(value: float) -> str:
    """
    >>> amount(0.06), amount(-0.2), amount(0.0)
    ('+0.06', '−0.20', '0')
    """
    return minus(f"{value:+.2f}") if value else "0"


def multiple(scale: float) -> str:
    """
    >>> multiple(0.25), multiple(8.0)
    ('1/4', '8')
    """
    return f"{scale:g}" if scale >= 1 else f"1/{1 / scale:g}"


def titled(matrix: Matrix) -> str:
    return matrix.title if matrix.block is None else f"block {matrix.block} · {matrix.title}"


# The backward pass ------------------------------------------------------------------------------


def mistake(token: str, loss: float) -> str:
    return f"next: {token}, loss {three(loss)} nats"


def passed(prediction: Backward) -> str:
    totals = prediction.totals
    return (
        f"Backpropagation carries the error {ERROR} back through the blocks and gives every weight its"
        f" gradient. The stream's gradient has norm **{three(float(totals[-1]))}** after the last sublayer"
        f" and **{three(float(totals[0]))}** at the embedding."
    )


def lanes_alt(prediction: Backward) -> str:
    totals = prediction.totals
    return (
        "Heatmap of the gradient's norm by state (rows, the logits on top) and token; it reaches"
        f" {prediction.reached} of {len(prediction.ids)} tokens. Bars: {three(float(totals[-1]))} after"
        f" the last sublayer, {three(float(totals[0]))} at the embedding."
    )


def error_title(token: str) -> str:
    return f"error at the logits:<br>“{plain(token)}” came next"


def error_alt(token: str, prediction: Backward) -> str:
    value = float(prediction.error[prediction.target])
    return (
        f"Bars of p − y for the tokens with the largest error: {three(value)} for {token}, which came next."
    )


def error(value: float) -> str:
    """
    >>> error(-0.9882), error(0.0004)
    ('−0.988', '< 0.001')
    """
    return minus(f"{value:+.3f}") if abs(value) >= SMALL else f"< {SMALL}"


def error_by_hand(token: str, prediction: Backward) -> str:
    p = float(prediction.probabilities[prediction.target])
    return (
        f"The model gave “{safe(token)}”, which came next, $p = {p:.4g}$. Its loss is $-\\ln p ="
        f" {prediction.loss:.4g}$ nats, and its error $p - 1 = {p - 1:.4g}$. Every other token's error is"
        " its own probability, so all errors sum to 0: raising one logit lowers all other probabilities."
    )


# One weight -------------------------------------------------------------------------------------


def nudged(nudges: Nudges, at: int) -> str:
    step, predicted, measured = (float(x[at]) for x in (nudges.amounts, nudges.predicted, nudges.measured))
    if not step:
        return (
            "The gradient says how fast the loss rises as this weight grows:"
            f" **{three(nudges.gradient, signed=True)}** nats per unit. Nudge the weight to test it."
        )
    numbers = (
        f"adding {amount(step)} should change the loss by **{three(predicted, signed=True)}** nats, and it"
        f" changes by **{three(measured, signed=True)}**."
    )
    if abs(predicted - measured) <= CLOSE * abs(measured):
        return f"The gradient predicts the effect of a small change: {numbers}"
    return f"The gradient holds for small changes only, and this one is too large: {numbers}"


def loss_of(token: str) -> str:
    return f"loss of “{token}” (nats)"


def added(weight: float) -> str:
    return f"added to the weight (now {three(weight)})"


def map_alt(gradient: MatrixGradient, entry: tuple[int, int]) -> str:
    return (
        f"Heatmap of the gradient of {titled(gradient.matrix)} where it is largest; row {entry[0]}, column"
        f" {entry[1]}: {three(gradient.at(entry), signed=True)}."
    )


def curve_alt(nudges: Nudges, at: int, token: str) -> str:
    return (
        f"Loss of {token} against the change of the weight: {three(float(nudges.losses[at]))} nats"
        f" measured at {amount(float(nudges.amounts[at]))}, and the tangent line."
    )


def first_order(nudges: Nudges, entry: tuple[int, int]) -> str:
    return (
        f"The weight in row {entry[0]}, column {entry[1]} is $w = {nudges.weight:.4g}$, and its gradient"
        f" $g = {nudges.gradient:.5g}$ nats per unit. To first order,"
        f" $L(w + \\Delta w) = {nudges.loss:.4g} + ({nudges.gradient:.4g}) \\, \\Delta w$."
    )


def difference(nudges: Nudges, slope: float) -> str:
    return (
        "Without any calculus, by two forward passes in float64:"
        f"\n\n$$\\frac{{L(w + {EPSILON:g}) - L(w - {EPSILON:g})}}{{2 \\cdot {EPSILON:g}}} = {slope:.5g}"
        f" \\qquad \\text{{and by backpropagation }} {nudges.gradient:.5g}$$"
    )


# One step ---------------------------------------------------------------------------------------


def stepped(taken: SingleStep, scale: float, spectra: Spectra | None) -> str:
    best = taken.lowest(scale)
    after = taken.at(best, scale)
    if after >= taken.before:
        return (
            "At this learning rate every step overshoots: even the best raises the loss on this text, from"
            f" **{three(taken.before)}** to **{three(after)}** nats per token."
        )
    text = (
        f"One step lowers the loss on this text, most of all with {RULE_NAMES[best]}: from"
        f" **{three(taken.before)}** to **{three(after)}** nats per token."
    )
    return text + (f" {EVEN}" if spectra is not None and spectra.evened else "")


MIDDLE = "median singular value ÷ largest"
EVEN = "Muon's update has a flatter singular-value spectrum than AdamW's."


def evened(spectra: Spectra | None) -> str:
    """Returns the answer where no step was taken; nothing where there are no singular values either."""
    if spectra is None:
        return ""
    shares = f"**{spectra.middle('muon'):.0%}** with Muon and **{spectra.middle('adamw'):.0%}** with AdamW"
    if spectra.evened:
        return (
            "Muon evens out the singular values of an update: relative to the largest, the median is"
            f" {shares}."
        )
    return f"Relative to the largest, the median singular value of this matrix's update is {shares}."


def too_large(size: int, most: int) -> str:
    return (
        f"This model has {size:,} parameters: a step needs three copies of them, so the limit here is"
        f" {most:,}."
    )


def rate(rule: Rule, scale: float) -> str:
    """
    >>> rate("adamw", 2.0), rate("muon", 1.0)
    ('0.002', '0.02; AdamW 0.001')
    """
    first, *rest = (f"{each * scale:.3g}" for each in rates(rule))
    return first + "".join(f"; {RULE_NAMES['adamw']} {each}" for each in rest)


def rule_loss(rule: Rule, loss: float) -> str:
    return f"{RULE_NAMES[rule]}: {three(loss)}"


def before(taken: SingleStep) -> str:
    return f"before the step: {three(taken.before)}"


def loss_alt(taken: SingleStep, scale: float) -> str:
    losses = ", ".join(f"{name} {three(taken.at(rule, scale))}" for rule, name in RULE_NAMES.items())
    return (
        f"Loss on the text after one step against the learning rate: {three(taken.before)} before; {losses}."
    )


def singular_alt(spectra: Spectra) -> str:
    shares = ", ".join(f"{name} {spectra.middle(rule):.1%}" for rule, name in RULE_NAMES.items())
    return (
        f"Singular values of the update of {titled(spectra.matrix)}; the median relative to the largest:"
        f" {shares}."
    )


def singular_axis(matrix: Matrix) -> str:
    return f"singular values of the update of {titled(matrix)}, largest first"
