"""Sentences of the views of Sampling."""

from collections.abc import Sequence

import numpy as np

from engine.config import SampleConfig
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
        "A row for each of the most likely tokens, a column for each stage. Bars are probabilities, $p_i ="
        " e^{l_i} / \\sum_j e^{l_j}$, over the tokens that are left. A hatched cell says which stage removed"
        " the token. The order is Hugging Face's: penalty, temperature, top-k, top-p, min-p.\n\nFor a"
        " thousand draws: bars are the shares drawn, vertical marks the probabilities. Beside them, the"
        " distance between the two against the number of draws, on log scales."
    ),
    why=(
        "The model outputs a logit for every token, not a choice. The sampling settings decide whether text"
        " is dull, lively or incoherent, with the same weights. Top-k keeps a fixed number of tokens; the"
        " number that top-p keeps changes with the distribution. One sample says little about a model: the"
        " error of the shares shrinks as $1/\\sqrt{n}$, so one more digit of accuracy takes a hundred times"
        " as many draws."
    ),
    attempt=(
        "Set the temperature to 1.5 and watch the tail grow, then cut it with top-p 0.9. Set it to 0: one"
        " token is left, and the seed no longer matters. Then raise the penalty: it affects only tokens"
        " already in the text.\n\nDraw a thousand times, then change the seed: the first draws differ, the"
        " histogram barely changes."
    ),
)

# strategy -> (its settings, how it chooses, its effect); beam search keeps branches and has none
STRATEGIES: dict[str, tuple[SampleConfig | None, str, str]] = {
    "Greedy": (
        SampleConfig(temperature=0.0),
        "the most likely token",
        "always the same; tends to repeat",
    ),
    "Temperature 0.5": (SampleConfig(temperature=0.5), "logits times 2, then a draw", "more predictable"),
    "Temperature 1.5": (SampleConfig(temperature=1.5), "logits divided by 1.5, then a draw", "more random"),
    "Top-k 10": (
        SampleConfig(temperature=1.0, top_k=10),
        "a draw from the 10 most likely",
        "cuts the tail, however confident the model is",
    ),
    "Top-p 0.9": (
        SampleConfig(temperature=1.0, top_p=0.9),
        "a draw from the smallest set that holds 90%",
        "cuts more of the tail the surer the model is",
    ),
    "Beam search": (
        None,
        "[the most likely text of several branches](/generation?generation_view=beam)",
        "suits translation; open-ended text becomes dull",
    ),
}

TEMPERATURES_QUESTION = "What does temperature do?"
TEMPERATURES = Words(
    see=(
        "The same logits divided by five temperatures $\\tau$ before the softmax: $p_i \\propto e^{l_i /"
        " \\tau}$. Below each, the beginning of a text sampled at that temperature; “Measure it” has the"
        " whole text."
    ),
    why=(
        "Low temperatures repeat what is safe, high ones let unlikely tokens in, and one unlikely token leads"
        " to the next. 0.8 is a common compromise."
    ),
    attempt=(
        "Read from left to right. Then choose one of your runs and drag the step slider back: an untrained"
        " model writes noise at every temperature."
    ),
    texts=(
        "A lecture shows the 15 highest-scoring letters after “KING RICHARD II:”, with S and T on top. Which"
        " letters lead depends on the model: here W and I in the classic one, T and W in the modern one, at"
        " τ = 1 with at most 14% each. *Measure it* lists 15."
    ),
)
LISTED = "The 15 most likely tokens; temperature changes their probabilities, never their order."
CHOICES = "Choices are $e$ to the entropy: the number of equally likely tokens with the same uncertainty."

LIKELIHOOD_QUESTION = "How is a text scored?"
LIKELIHOOD = Words(
    see=(
        "For each token of the text, its surprisal given all tokens before it: $-\\ln p$. The line is the"
        " mean, the dotted line the cost of a uniform guess. The first token has nothing before it, so it is"
        " not scored."
    ),
    why=(
        "By the chain rule, $p(x_1 \\dots x_T) = \\prod_t p(x_t \\mid x_{<t})$. The product is too small to"
        " be readable, so we take the logarithm and the mean: the loss. In training the mean is over all"
        " tokens of a mini-batch, and gradient descent lowers it. $e$ to the loss is the perplexity, the"
        " number of equally likely choices that would be as hard (the effective branching factor)."
    ),
    attempt=(
        "Write nonsense, then a line of Shakespeare. Swap two characters: surprisal peaks at the swap and"
        " just after it. “Measure it” has published perplexities."
    ),
    texts=(
        "A lecture also scores the first token, by putting a start token in front: $p(x_1)$ then means $p(x_1"
        " \\mid \\langle bos \\rangle)$. The character models here were trained without one."
    ),
)
ONE_TOKEN = "A text of one token has nothing to score: write a longer one."
DIVERGED = (
    "The logits are not finite (NaN or inf): this model diverged, so the text has no probability. Choose an"
    " earlier step."
)
RUNGS = {
    "guessing": "uniform guess among 65",
    "pairs": "bigram counts",
    "4 layers": "Transformer, 4 blocks",
    "8 layers": "Transformer, 8 blocks",
}
LADDER = (
    "Published: a university lecture's models on Tiny Shakespeare, by their *training* loss, which is lower"
    " than their validation loss. Here: the held-out tenth of the same text; the four blocks are the shipped"
    " classic model. Perplexities are comparable only for the same tokenization: these are per character."
)


NO_SAMPLES = (
    "This model attends in both directions and fills in masked tokens; it does not continue a text, so there"
    " are no samples."
)
ENGINE_DRAWS = "The engine's own thousand draws, with the same random numbers as the browser's."


def engine_result(token: str, index: int) -> str:
    return (
        "**The engine's own result**, computed on the server once the sliders stop moving: it draws"
        f" “{token}” (token {index})."
    )


def no_logits(why: str) -> str:
    return (
        f"{why[:1].upper()}{why[1:]}. The weights are not finite, as happens when training diverges: choose"
        " an earlier step or another model."
    )


def stages_alt(tokens: int, stages: int) -> str:
    return f"Probability of the {tokens} most likely tokens after each of {stages} stages, by the engine."


def shares_alt(draws: int, tokens: int) -> str:
    return f"Share of {draws:,} draws beside the probability, for the {tokens} likeliest tokens."


def temperatures_alt(tokens: int, temperatures: Sequence[float]) -> str:
    each = ", ".join(f"{t:g}" for t in temperatures)
    return f"Probability of the {tokens} likeliest tokens at temperatures {each}."


def scored_alt(scored: Scored, tokens: int) -> str:
    return (
        f"Surprisal −ln p of each of {tokens} tokens given all before it; the mean,"
        f" {scored.likelihood.nats:.2f} nats, is the loss."
    )


def after(token: str) -> str:
    """Names the chosen position."""
    return f"What follows “{token}”."


def after_the_chosen(token: str, torn: int) -> str:
    """Says where a reader begins, and why there."""
    return f"What follows “{token}”, the last position with {torn} or more effective choices."


def filled_in(token: str, gap: bool) -> str:
    """Says which token a model that fills in masked tokens puts at each place."""
    if gap:
        return f"Candidates for the last gap, “{token}”: this model does not predict what follows."
    return f"Candidates at “{token}”, which the model sees: it predicts that token, not the next one."


def left(outcome: Outcome) -> str:
    """Says what the stages leave."""
    are = "is" if outcome.left == 1 else "are"
    return (
        f"**{outcome.left:,} of {outcome.vocab:,} tokens {are} left to draw from**, with"
        f" **{outcome.after:.1f}** effective choices ({outcome.before:.1f} before)."
    )


def drawn(tally: Tally, seed: int, token: str, likely: int) -> str:
    """Says how often the likeliest token came, and how far all shares strayed."""
    return (
        f"The error of the shares shrinks as $1/\\sqrt{{n}}$. In {tally.total:,} draws with seed {seed},"
        f" “{token}” came up **{tally.counts[likely]} times** ({tally.expected[likely]:.0f} expected); the"
        f" total variation distance is {tally.away:.1%}."
    )


SURE = 0.5  # of the favourite at the highest temperature: then the draws are tame at all of them


UNCERTAIN_TEXT = "Read a text that leaves a choice"
WRITE_EACH = "Write a text at each temperature: up to a minute"


def is_sure(stage: Stage) -> bool:
    """True where one token has nearly everything."""
    return float(stage.probabilities.max()) > SURE


def after_an_uncertain(token: str) -> str:
    return f"Show an uncertain position: after “{token}”"


def temperature(
    first: Stage, last: Stage, temperatures: Sequence[float], order: np.ndarray, token: str
) -> str:
    """Compares the likeliest token at the lowest and at the highest temperature."""
    low, high = first.probabilities[order[0]], last.probabilities[order[0]]
    if is_sure(last):
        return (
            "**Temperature τ divides the logits before the softmax.** Here the model is so sure that it"
            f" hardly matters: “{token}” has **{low:.0%}** at τ = {temperatures[0]:g} and still"
            f" **{high:.0%}** at τ = {temperatures[-1]:g}."
        )
    return (
        "**Temperature τ divides the logits before the softmax.** A low τ sharpens the distribution: at τ ="
        f" {temperatures[0]:g} the most likely token, “{token}”, has **{low:.0%}** ({first.choices:.1f}"
        f" effective choices). A high τ flattens it: at τ = {temperatures[-1]:g} it has **{high:.0%}**"
        f" ({last.choices:.1f})."
    )


def scored(scored: Scored, noun: str) -> str:
    """Says what the loss of a text is, and what it means."""
    likelihood = scored.likelihood
    return (
        f"The loss on this text, by the chain rule, is **{likelihood.nats:.2f} nats** per {noun} (perplexity"
        f" **{likelihood.perplexity:.1f}**); a uniform guess would cost {scored.guessing:.2f}."
    )


def chain(scored: Scored) -> str:
    """Returns the four steps from probabilities to the perplexity (a table in Markdown)."""
    likelihood, (mantissa, power) = scored.likelihood, scored.product
    few = " · ".join(f"{p:.2g}" for p in scored.p[:3]) + (" · …" if likelihood.tokens > 3 else "")
    total, nats = minus(f"{likelihood.total:.2f}"), f"{likelihood.nats:.3f}"
    return (
        f"| step | |\n|---|---|\n| multiply (chain rule) | {few} = {mantissa:.1f} · $10^{{{power}}}$ |\n|"
        f" logarithm | ln = {total} |\n| minus the mean: the **loss** | {-likelihood.total:.2f} /"
        f" {likelihood.tokens} = **{nats}** nats |\n| exp: the **perplexity** | $e^{{{nats}}}$ ="
        f" **{likelihood.perplexity:.2f}** |"
    )
