"""Sentences (Markdown) of the training page, from values that they are given."""

from __future__ import annotations

from typing import NamedTuple

from engine.measure.shapes.batch_example import ShiftedBatch
from engine.training.compare import Comparison, MeanLoss
from engine.training.numerics import perplexity
from ui.text.markdown import safe
from ui.text.numbers import counted, nats

QUESTION = "Can it learn to write?"
CLEAR = 0.02  # nats: a smaller difference between two runs may be their seeds'
SHIFTED = "Inputs x and targets y, the same text one position on: y[t] = x[t + 1]."
HARDLY = "They hardly differ: another seed could reverse the order."
IN_BITS = "These runs cut the text into different tokens, so their losses are drawn in bits per character."
READS = "**The training text**"
EMPTY_ALT = "An empty chart of loss against step, with lines for the uniform and n-gram baselines"
COMPARABLE = (
    "Nats per token and perplexity cannot be compared between tokenizers, because a longer token is harder to"
    " guess but covers more text; bits per character can, because every tokenizer has the same characters to"
    " account for."
)
GONE = (
    "The run in this link is not on this server: it was removed, or the server was restarted, or the link is"
    " incomplete. **Train** starts the recipe that the link describes."
)
STRANGER = (
    "This run belongs to another browser: you can watch it, but only that browser can control it. You can"
    " train the same recipe yourself."
)


# Settings, and what starts a training

ANOTHER_RUN = "Another run"
PRESET_USES = "What this preset uses, and why"
COMPARE = "Compare with"
TRAIN_BOTH = "Train both"
TRAIN_THIS = "Train this recipe"
BACK = "Back to the preset"
FROM_LAST = "from the speed of your last run"
FROM_MACHINE = "roughly, from this machine's speed in matrix multiplication"


def compare_with(change: str) -> str:
    return f"Compare with: {change}"


def together(heads: int, d_head: int, kv_heads: int, d_ff: int) -> str:
    """Says which sizes follow from others."""
    return (
        f"Together: {counted(heads, 'head')} of width {d_head}, {counted(kv_heads, 'key-value head')},"
        f" feed-forward width {d_ff:,}."
    )


def under(sentence: str, group: str) -> str:
    """Returns a sentence about a control, with the `group` where that is."""
    return f"{sentence} (Under *{group}*.)" if group else sentence


def summary(
    parameters: int,
    vocabulary: int,
    noun: str,
    tokens: int,
    characters: float | None,
    steps: int,
    long: tuple[str, str] | None,
) -> str:
    """Says how large a training is: `tokens` per step, about so many `characters`; and how `long` it takes,
    with the source of the estimate, where that is known.
    """
    read = "" if characters is None else f" (about {characters:,.0f} characters)"
    time = (
        f"about **{long[0]}** :gray[(estimated {long[1]})]"
        if long
        else ":gray[The first run will show how long it takes.]"
    )
    return (
        f"**{parameters:,}** parameters, vocabulary of **{vocabulary:,}** {noun}s  \n**{tokens:,}**"
        f" tokens per step{read}, {counted(steps, 'step')}  \n{time}"
    )


def changed(settings: str) -> str:
    return f"Changed from the preset: {settings}."


# What can be done with a run

CONTINUE_HINT = "Continues from the last snapshot for the number of steps set in More steps (under Options)."
STEP, STEP_HINT = "One step", "One update of the weights, then pause again."
RESTART_HINT = "A new run with the same settings and the same initial weights."
LOOK_INSIDE = "Look inside"
PROMPT_HINT = (
    "What the next samples continue, or answer; ⏎ is a line break. Characters that the training text lacks"
    " are left out."
)
RATE = "Learning rate"
RATE_HINT = (
    "A new peak from the next step on, including when a finished run is continued; Muon's rate changes in"
    " proportion. The change is marked on the curve and in the run's name."
)
MORE_STEPS, MORE_STEPS_HINT = "More steps", "How many steps Continue adds to the last snapshot."


def full(steps: int) -> str:
    """Says why a run without room does not go on."""
    return f"This run has {counted(steps, 'step')}, the most allowed here."


def bar(step: int, of: int, loss: float | None) -> str:
    """Says how far a run is, and the loss of its last batch."""
    return f"step **{step:,}** of {of:,}" + ("" if loss is None else f" · loss **{loss:.2f}**")


def waiting(position: int) -> str:
    return f"waiting, position {position} in the queue"


# Losses and other numbers

VALIDATION_LOSS, BITS_A_CHARACTER = "Validation loss", "Bits / character"
BITS_HINT = (
    "The total loss over all tokens, divided by the number of characters and by ln 2: comparable between"
    " tokenizers."
)
MASKED_HINT = (
    "With the masked objective, compare only within one tokenizer: hiding a longer token hides more at once."
)
ON_THE_WHOLE = "Measured on the whole validation split."
NO_LOSS = "There is no validation loss yet."
BATCH = "**Inputs and targets**"


class Small(NamedTuple):
    """A small chart: its title, a hint, and what it shows, for who cannot see it."""

    title: str
    hint: str
    alt: str


NORM = Small(
    "Gradient norm",
    "The norm of the gradient over all parameters, before clipping, on a logarithmic axis.",
    "Gradient norm before clipping, now {}",
)
LEARNING_RATE = Small(
    "Learning rate", "AdamW's learning rate, with warm-up and schedule applied.", "Learning rate, now {}"
)


def loss_hint(noun: str) -> str:
    return f"Nats per {noun} on held-out text."


def perplexity_hint(noun: str) -> str:
    return f"e to the loss: the effective number of {noun}s to choose among."


def after_step(step: int, measured_on: str) -> str:
    return f"After step {step:,}. {measured_on}"


def quick_estimate(tokens: int, noun: str) -> str:
    """Says that a loss is of a part of the validation split."""
    return (
        f"A quick estimate from about {tokens:,} {noun}s of the validation split, the same each time. The"
        " whole split is read at the end; it may be easier or harder."
    )


def unmeasured_alt(name: str) -> str:
    return f"Training and validation loss of {name}: nothing measured yet"


def loss_alt(name: str, began: str, ends: str, unit: str, step: int, whole: bool) -> str:
    """Describes the curves; `whole`: the last loss alone is of the whole validation split."""
    last = " (the last one on the whole validation split)" if whole else ""
    return (
        f"Training and validation loss of {name}: validation went from {began} to {ends} {unit} after step"
        f" {step}{last}"
    )


def size(parameters: int, vocabulary: int, noun: str, precision: str) -> str:
    """Says how large a model is, and how it computes."""
    text = f"{parameters:,} parameters, vocabulary of {vocabulary:,} {noun}s."
    return f"{text} {precision[:1].upper()}{precision[1:]}." if precision else text


def starts_at(position: int) -> str:
    return f"starts at {position:,}"


# The table of runs

ALL_RUNS = "All runs: what each changed, and what it reached"
CHOOSE_RUN, CHOOSE_RUN_HINT = "Choose a run", "The buttons below act on this run."
CHANGED, FIRST_RUN = "changed from the run before", "(the first)"
SAME_SETTINGS = "nothing: the same settings"
BY_HAND = "; by hand: "
BEST, BITS, QUICK = "best validation loss", "bits / character", "best quick estimate"
COLUMNS = {
    BEST: (
        "On the whole validation split, which is read at the end. Nats per token: comparable between runs"
        " with the same tokenizer."
    ),
    BITS: "The same loss in bits per character: comparable between tokenizers.",
    QUICK: (
        "The lowest loss during training, on a part of the validation split, the same each time. That"
        " part may be easier or harder than the whole: compare it only with other quick estimates."
    ),
}
NEW_NAME = "New name"
REMOVE_HINT = "Stops the run if it is active, and deletes its files."
CURVE_HINT = "Steps, losses, gradient norms and learning rates as CSV."
MODEL_HINT = (
    "Weights (safetensors), configuration and tokenizer (JSON) in one zip. It can be uploaded here again."
)


def steps(done: int, of: int) -> str:
    return f"{done:,} of {of:,}"


def your_text(characters: int) -> str:
    return f"your text ({counted(characters, 'character')})"


# Answers


def before(vocabulary: int, loss: float, noun: str, steps: int) -> str:
    """Returns the sentence before the first run."""
    return (
        f"Untrained, it guesses uniformly among **{vocabulary:,}** {noun}s: a loss of {loss:.2f} nats."
        f" Press **Train** and watch {counted(steps, 'step')} change that."
    )


def both(done: str) -> str:
    """Says what Train both does. `done`: the run that has trained the unchanged recipe already, if any."""
    if done:
        return (
            f"Your recipe has been trained already ({done}). This trains only the version with this one"
            " change, and shows it beside that run."
        )
    return "Trains two runs side by side: your recipe, and the same recipe with this one change."


def in_short(parameters: int, steps: int, long: str) -> str:
    """Says how much is trained, and how long one run takes; `long` is empty where nobody knows yet."""
    text = f"{counted(parameters, 'parameter', bold=True)} · {counted(steps, 'step', bold=True)}"
    return f"{text} · one run: about **{long}**" if long else text


def of_which(name: str) -> str:
    """Returns the heading above what is measured of one of two runs."""
    return f"**{safe(name)}**"


def starting(noun: str) -> str:
    """Describes a run that has not been looked at yet."""
    return f"Training is about to begin: at step **0**, every {noun} is a random guess."


def after(step: int, loss: float, bits: str, noun: str, vocabulary: int) -> str:
    """Describes a run as last validated."""
    if step == 0:
        return (
            f"Before the first step: **{nats(loss, noun)}**. So far it can only guess among {vocabulary:,}"
            f" {noun}s."
        )
    return (
        f"After {counted(step, 'step', bold=True)}: **{nats(loss, noun)}** on held-out text ({bits} bits"
        " per character); a"
        f" uniform guess has perplexity {vocabulary:,}."
    )


def diverged(step: int) -> str:
    """Says that a loss is no number."""
    return f"At step **{step:,}** the loss is NaN: training diverged."


def pair(first: str, second: str, comparison: Comparison, noun: str, leaks: bool) -> str:
    """Compares two runs. `leaks`: the second has no mask, and sees what it should guess."""
    one, other = (nats(loss, noun) for loss in comparison.losses)
    return (
        f"After {counted(comparison.steps[1], 'step', bold=True)}: {safe(first)} **{one}**; {safe(second)}"
        f" **{other}**."
        f" {verdict(comparison, leaks, noun)}"
    )


def verdict(comparison: Comparison, leaks: bool, noun: str) -> str:
    """Says what the difference of two runs means."""
    if leaks and comparison.difference < -CLEAR:
        return (
            f"That is not progress: without the mask it sees the {noun} that it should predict. When it"
            " writes, it has nothing to copy."
        )
    if leaks:
        return f"Without the mask it could copy the next {noun}, but it has not learned to yet."
    if abs(comparison.difference) < CLEAR:
        return HARDLY
    worse = "worse" if comparison.difference > 0 else "better"
    return f"With the change: **{abs(comparison.difference):.2f}** nats {worse}."


def pair_waits(first: str, second: str) -> str:
    """Returns the sentence before both have been validated at the same step."""
    return (
        f"{safe(first)} and {safe(second)} train side by side; they are compared once both are past step"
        " **0**."
    )


def changed_by_hand(name: str, changes: str) -> str:
    """Describes a run whose curve is not of its settings alone."""
    return (
        f"**{safe(name)}** was changed by hand ({changes}), so its settings alone do not explain its curve."
    )


def batch(batch: ShiftedBatch, noun: str) -> str:
    """Describes the batch of one step."""
    return (
        f"Step {batch.step:,} reads **{batch.rows}** windows of **{batch.positions}** {noun}s. Each starts at"
        f" a random position below **{batch.bound:,}** (= {batch.tokens:,} − {batch.positions}, so that the"
        f" last target exists). y[i, t] = x[i, t + 1] holds for **{batch.shifted:,}** of {batch.pairs:,}"
        " pairs."
    )


def likelihood(mean: MeanLoss, noun: str) -> str:
    """Leads from the probability of a text to the loss, and on to perplexity."""
    return (
        f"By the chain rule, a text's probability is the product over its {noun}s, each given those before: "
        r"$p(x) = \prod_t p(x_t \mid x_{<t})$, so $\;-\tfrac{1}{T}\ln p(x) = -\tfrac{1}{T}\sum_t \ln"
        r" p(x_t \mid x_{<t})$ is the loss."
        f"\n\nHere the loss is {mean.nats:.3f}. So, on (geometric) average, the {noun} that came next had"
        f" probability $e^{{-{mean.nats:.3f}}}$ = **{mean.mean_probability:.3f}**. The perplexity is"
        f" $e^{{{mean.nats:.3f}}}$ = **{perplexity(mean.nats):,.2f}**, and {mean.tokens:,} such {noun}s in"
        f" a row have probability $10^{{{mean.power_of_ten:,.0f}}}$."
    )
