"""Sentences of the views of Sampling."""

from collections.abc import Sequence

import numpy as np

from engine.sample import Stage
from engine.sample.outcome import Outcome, Tally
from engine.sample.scoring import Scored
from ui.page_frame import Words
from ui.text.numbers import minus

SEED = "The same seed draws the same token."
STAGES_QUESTION = "How do logits become one token?"
MODES = {"stages": "One draw", "draws": "A thousand draws"}
STAGES = Words(
    see=(
        "A row for each of the likeliest tokens, a column for each stage. Bars are probabilities, $p_i ="
        " e^{l_i} / \\sum_j e^{l_j}$, over the tokens that are left. A hatched cell says which stage"
        " removed the token. The order is Hugging Face's: penalty, temperature, top-k, top-p, min-p.\n\n"
        "Of a thousand draws: bars are shares, the upright marks are the probabilities. Beside them, their"
        " distance against the number of draws, both logarithmic."
    ),
    why=(
        "The model gives a number for every token and no choice. How the choice is made decides between"
        " dull, lively and mad, with the same weights. One sample says little about a model: how far shares"
        " stray from probabilities shrinks as $1/\\sqrt{n}$. For one more digit, draw a hundred times as"
        " often."
    ),
    attempt=(
        "Set the temperature to 1.5 and watch the tail grow, then cut it with top-p 0.9. Set it to 0: one"
        " token is left, and the seed no longer matters. Then move the penalty: it touches only tokens of"
        " the text so far.\n\nDraw a thousand times, then change the seed: the first draws differ, the"
        " thousandth histogram hardly."
    ),
)

TEMPERATURES_QUESTION = "What does temperature do?"
TEMPERATURES = Words(
    see=(
        "The same logits divided by five temperatures $\\tau$ before the softmax: $p_i \\propto e^{l_i /"
        " \\tau}$. Below each, the beginning of a text that the model wrote with it; “Measure it” has all of"
        " it."
    ),
    why=(
        "Low temperatures repeat what is safe, high ones let the unlikely in, and one unlikely token"
        " leads to the next. 0.8 is a usual compromise."
    ),
    attempt=(
        "Read from left to right. Then take a run of yours and drag the step back: an untrained model"
        " writes noise at every temperature."
    ),
)
CHOICES = (
    "Choices are $e$ to the entropy: as uncertain as a choice among that number of equally likely tokens."
)

LIKELIHOOD_QUESTION = "How is a text scored?"
LIKELIHOOD = Words(
    see=(
        "For each token of the text, how surprised the model was after reading all before it: $-\\ln p$. The"
        " line is the mean, the dotted one what guessing among all tokens would cost. The first token has"
        " nothing before it, so it is not scored."
    ),
    why=(
        "By the chain rule, $p(x_1 \\dots x_T) = \\prod_t p(x_t \\mid x_{<t})$. The product is too small to"
        " read, so one takes the logarithm and the mean: the loss. In training the mean goes over all"
        " tokens of a mini-batch, and every step lowers it. $e$ to the loss is the perplexity, the number"
        " of equally likely choices."
    ),
    attempt=(
        "Write nonsense, then a line of Shakespeare. Swap two characters: the surprise is at the swap, and at"
        " what follows. “Measure it” has the perplexities that others published."
    ),
)
ONE_TOKEN = "A text of one token has nothing to be scored after: write a longer one."
DIVERGED = (
    "No logit is a finite number: this model has diverged, and the text has no probability. Look at an"
    " earlier step."
)
RUNGS = {
    "guessing": "guessing among all 65",
    "pairs": "counting pairs (bigram)",
    "4 layers": "Transformer, 4 layers",
    "8 layers": "Transformer, 8 layers",
}
LADDER = (
    "Published: a university lecture's models on Tiny Shakespeare, by their *training* loss, which is lower"
    " than the one on held-out text. Here: the held-out tenth of the same text; the four layers are the"
    " shipped"
    " classic model. Perplexities compare only where tokens are the same: these are of characters."
)


NO_SAMPLES = "This model looks both ways and fills gaps; it does not write on, so there are no samples."
ENGINE_DRAWS = "The engine's own thousand draws, with the same random numbers as the browser's."


def engine_result(token: str, index: int) -> str:
    return (
        "**The engine's own result**, computed on the server when the sliders rest: it draws"
        f" “{token}” (token {index})."
    )


def no_logits(why: str) -> str:
    return (
        f"{why[:1].upper()}{why[1:]}. The weights have grown beyond all numbers, as they do when a training"
        " diverges: look at an earlier step, or at another model."
    )


def stages_alt(tokens: int, stages: int) -> str:
    return f"Probability of the {tokens} likeliest tokens after each of {stages} stages, by the engine."


def shares_alt(draws: int, tokens: int) -> str:
    return f"Share of {draws:,} draws beside the probability, for the {tokens} likeliest tokens."


def temperatures_alt(tokens: int, temperatures: Sequence[float]) -> str:
    each = ", ".join(f"{t:g}" for t in temperatures)
    return f"Probability of the {tokens} likeliest tokens at temperatures {each}."


def scored_alt(scored: Scored, tokens: int) -> str:
    return (
        f"Surprise −ln p of each of {tokens} tokens after all before it; the mean,"
        f" {scored.likelihood.nats:.2f} nats, is the loss."
    )


def after(token: str) -> str:
    """Says where somebody has chosen to look."""
    return f"What follows “{token}”."


def after_the_chosen(token: str, torn: int) -> str:
    """Says where a reader begins, and why there."""
    return f"What follows “{token}”, the last position with an effective choice of {torn} tokens or more."


def in_place(token: str, gap: bool) -> str:
    """Says which token a model that fills gaps puts at each place."""
    if gap:
        return f"What could stand in the last gap, “{token}”: this model does not say what follows."
    return f"Candidates for “{token}”, which it sees: it predicts the token there, not the next one."


def left(outcome: Outcome) -> str:
    """Says what the stages leave."""
    are = "is" if outcome.left == 1 else "are"
    return (
        f"**{outcome.left:,} of {outcome.vocab:,} tokens {are} left to draw from**, as uncertain as among"
        f" **{outcome.after:.1f}** equally likely ones ({outcome.before:.1f} before)."
    )


def drawn(tally: Tally, seed: int, token: str, likely: int) -> str:
    """Says how often the likeliest token came, and how far all shares strayed."""
    return (
        f"In {tally.total:,} draws with seed {seed}, “{token}” came **{tally.counts[likely]} times**;"
        f" {tally.expected[likely]:.0f} were expected. All shares together are {tally.away:.1%} away from the"
        " probabilities."
    )


SURE = 0.5  # of the favourite at the highest temperature: then the draws are tame at all of them


def temperature(
    first: Stage, last: Stage, temperatures: Sequence[float], order: np.ndarray, token: str
) -> str:
    """Compares the likeliest token at the lowest and at the highest temperature."""
    low, high = first.probabilities[order[0]], last.probabilities[order[0]]
    if high > SURE:
        return (
            "**Temperature τ divides the logits before the softmax.** Here the model is so sure that it"
            " hardly"
            f" matters: the favourite, “{token}”, has **{low:.0%}** at τ = {temperatures[0]:g} and still"
            f" **{high:.0%}** at τ = {temperatures[-1]:g}. Choose a token after which more is open."
        )
    return (
        "**Temperature τ divides the logits before the softmax.** Low is tame: at"
        f" τ = {temperatures[0]:g} the favourite, “{token}”, has **{low:.0%}**, and the draw is as open as"
        f" among {first.choices:.1f} equally likely tokens. High is wild: at τ = {temperatures[-1]:g} it has"
        f" **{high:.0%}**, as among {last.choices:.1f}."
    )


def scored(scored: Scored, noun: str) -> str:
    """Says what the loss of a text is, and what it means."""
    likelihood = scored.likelihood
    return (
        f"By the chain rule, from the probability of each token given those before it: the loss is"
        f" **{likelihood.nats:.2f} nats per token** (perplexity **{likelihood.perplexity:.1f}** {noun}); a"
        " uniform"
        f" guess would cost {scored.guessing:.2f}."
    )


def chain(scored: Scored) -> str:
    """Returns the four steps from probabilities to the perplexity (a table in Markdown)."""
    likelihood, (mantissa, power) = scored.likelihood, scored.product
    few = " · ".join(f"{p:.2g}" for p in scored.p[:3]) + (" · …" if likelihood.tokens > 3 else "")
    total, nats = minus(f"{likelihood.total:.2f}"), f"{likelihood.nats:.3f}"
    return (
        "| step | |\n|---|---|\n"
        f"| multiply (chain rule) | {few} = {mantissa:.1f} · $10^{{{power}}}$ |\n"
        f"| logarithm | ln = {total} |\n"
        f"| mean, minus: the **loss** | {-likelihood.total:.2f} / {likelihood.tokens} = **{nats}** nats |\n"
        f"| e to it: the **perplexity** | $e^{{{nats}}}$ = **{likelihood.perplexity:.2f}** |"
    )
