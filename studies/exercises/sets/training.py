"""The loss and what it means; the shifted batch; the stream under many writes; dropout; soft targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from studies.exercises.arithmetic import shown
from studies.exercises.exercise import Exercise, Mistake, mistakes, see
from studies.exercises.forms import Numbers


def surprisal_mistakes(choices: float) -> tuple[Mistake, ...]:
    """Returns the usual mistakes of -ln p, in nats, for p = 1 / choices."""
    return mistakes(
        ((math.log2(choices),), "You used $\\log_2$: those are bits. Nats take $\\ln$."),
        ((math.log10(choices),), "You used $\\log_{10}$. Nats take $\\ln$."),
        ((choices,), "That is the perplexity. The loss is its logarithm."),
        ((-math.log(choices),), "A loss is *minus* the logarithm of a probability."),
    )


def perplexity_mistakes(chances: Sequence[float]) -> tuple[Mistake, ...]:
    """Returns the usual mistakes of the perplexity of a text, from the probabilities of its tokens."""
    losses = [-math.log(p) for p in chances]
    mean = sum(losses) / len(losses)
    return mistakes(
        ((mean,), "That is the mean loss. The perplexity is $e$ to this power."),
        ((math.exp(sum(losses)),), "You forgot to divide by the number of tokens."),
        ((len(chances) / sum(chances),), "You averaged the probabilities. Average their logarithms."),
        ((2**mean,), "You raised 2 to a loss in nats. Nats go with $e$, bits with 2."),
        ((sum(1 / p for p in chances) / len(chances),), "You averaged $1/p$. Average $-\\ln p$."),
    )


def start(rng: Random) -> Exercise:
    vocab = rng.choice([27, 65, 96, 128, 256, 512, 1024, 10_000, 32_000, 50_257])
    right = math.log(vocab)
    return Exercise(
        f"An untrained model with $V = {vocab}$ finds every token about equally likely. At about what loss,"
        " in nats, does its training begin?",
        Numbers(1, 2, "nats"),
        (right,),
        (
            f"The right token has $p = 1/{vocab}$.",
            f"$-\\ln(1/{vocab}) = \\ln {vocab}$ = **{right:.2f}** nats.",
        ),
        surprisal_mistakes(vocab),
        see("sampling", sampling_view="likelihood"),
        {"vocab": vocab},
    )


def perplexity(rng: Random) -> Exercise:
    chances = [rng.choice([0.05, 0.1, 0.2, 0.25, 0.4, 0.5, 0.6, 0.8]) for _ in range(rng.choice([2, 3, 4]))]
    losses = [-math.log(p) for p in chances]
    mean = sum(losses) / len(losses)
    right = math.exp(mean)
    return Exercise(
        "A model gave the right tokens of a short text the probabilities"
        f" {', '.join(f'{p:g}' for p in chances)}. What is its perplexity?",
        Numbers(1, 2),
        (right,),
        (
            f"The losses $-\\ln p$: {', '.join(f'{loss:.3f}' for loss in losses)}; their mean {mean:.3f}.",
            f"$e^{{{mean:.3f}}}$ = **{right:.2f}**: as uncertain as a choice among that many equally likely"
            " tokens.",
        ),
        perplexity_mistakes(chances),
        see("sampling", sampling_view="likelihood"),
        {"chances": chances},
    )


def bits(rng: Random) -> Exercise:
    loss, letters = rng.randint(20, 45) / 10, rng.choice([2.5, 3.2, 3.6, 4.0, 4.4])
    right = loss / math.log(2) / letters
    return Exercise(
        f"A model has a loss of {loss} nats per token; a token is {letters} characters long on average. How"
        " many **bits per character** is that?",
        Numbers(1, 3),
        (right,),
        (
            f"Bits: {loss} / ln 2 = {loss / math.log(2):.3f} per token.",
            f"Divided by {letters} characters: **{right:.3f}**. This number can be compared across"
            " vocabularies.",
        ),
        mistakes(
            ((loss / letters,), "Those are nats per character. A bit is $\\ln 2$ nats."),
            ((loss / math.log(2),), "Those are bits per token. A token is several characters."),
            ((loss * math.log(2) / letters,), "You multiplied by $\\ln 2$. Divide by it."),
            ((loss / math.log(2) * letters,), "You multiplied by the length. Divide by it."),
        ),
        see("sampling", sampling_view="likelihood"),
        {"loss": loss, "letters": letters},
    )


def windows(rng: Random) -> Exercise:
    """Asks for randint's upper bound: the classic off-by-one error of get_batch."""
    size, length = rng.randint(200, 1_200_000), rng.choice([8, 16, 32, 64, 128])
    right = size - length
    return Exercise(
        f"A text of {size:,} tokens. A window $x$ has {length} of them, and $y$ is $x$ shifted by one. How"
        " many different starting positions are there? (`randint(0, n)` draws from 0 to n − 1: which n?)",
        Numbers(),
        (right,),
        (
            f"$y$ needs one more token than $x$: {length + 1} tokens.",
            f"{size:,} − {length + 1} + 1 = **{right:,}** starts, from 0 to {right - 1:,}.",
        ),
        mistakes(
            ((right + 1,), "Off by one: the last $y$ would need a token that does not exist."),
            ((right - 1,), "Off by one: `randint` excludes its bound, so one more window fits."),
            ((size,), "The last windows would run past the end of the text."),
            ((size // length,), "Windows may overlap: every start counts."),
        ),
        see("train"),
        {"size": size, "length": length},
    )


def batch(rng: Random) -> Exercise:
    texts, length = rng.choice([4, 8, 12, 16, 32, 64]), rng.choice([8, 16, 32, 64, 128, 256])
    right = texts * length
    return Exercise(
        f"A batch: $x$ has the shape ({texts}, {length}), $y$ is shifted by one. Over how many predictions is"
        " the loss of this batch averaged?",
        Numbers(),
        (right,),
        (
            "Under the causal mask every position predicts its own next token.",
            f"{texts} · {length} = **{right:,}** predictions in one pass.",
        ),
        mistakes(
            ((texts,), "Not only the last position predicts: every position does."),
            ((texts * (length - 1),), "$y$ includes the token after the last one, so no position is lost."),
            ((length,), "That is only one text of the batch."),
            ((right * length,), "Not each pair of positions: one prediction per position."),
        ),
        see("train"),
        {"texts": texts, "length": length},
    )


def stream(rng: Random) -> Exercise:
    """Asks what pre-norm and post-norm make of a stream under independent writes."""
    writes, spread = rng.choice([6, 8, 12, 16, 24]), rng.choice([0.2, 0.3, 0.4])
    size = math.sqrt(1 + writes * spread**2)
    kept = (1 + spread**2) ** (-writes / 2)
    step = math.sqrt(1 + spread**2)
    return Exercise(
        f"The entries of an embedding have standard deviation 1. Each of {writes} sublayers adds an"
        f" independent vector of standard deviation {spread}. **Pre-norm**: what is the standard deviation"
        " of the stream at the end? **Post-norm** brings it back to 1 after each addition: by what factor"
        " has the embedding been scaled at the end? (Both numbers.)",
        Numbers(2, 2),
        (size, kept),
        (
            f"Independent variances add up: $\\sqrt{{1 + {writes} \\cdot {spread}^2}}$ = {size:.2f}."
            " The embedding itself is still in it, times 1.",
            f"Post-norm divides by $\\sqrt{{1 + {spread}^2}}$ = {step:.3f} each time:"
            f" ${step:.3f}^{{-{writes}}}$ = {kept:.2f}.",
            f"**{size:.2f}** and **{kept:.2f}**: pre-norm's stream grows and what was written stays;"
            " post-norm's keeps its size and what was written fades.",
        ),
        mistakes(
            (
                (1 + writes * spread, kept),
                "You added standard deviations. For independent vectors *variances* add up.",
            ),
            ((size**2, kept), "The first is the variance: take its square root."),
            ((1.0, kept), "Pre-norm normalises only the copy that is read: the stream itself grows."),
            ((size, 1 / step), f"The second is the factor of one norm. There are {writes} of them."),
            ((size, 1.0), "Post-norm rescales the whole sum, the embedding in it included."),
        ),
        see("residual", residual_view="norms"),
        {"writes": writes, "spread": spread},
    )


def dropout(rng: Random) -> Exercise:
    count, share, size = rng.choice([16, 64, 100, 256, 400]), rng.choice([0.1, 0.2, 0.5]), rng.randint(1, 3)
    mean = float(count * size)
    single = size**2 * share / (1 - share)
    spread = math.sqrt(count * single)
    return Exercise(
        f"A neuron adds up {count} inputs, each equal to {size}. In training, dropout sets each of them to 0"
        f" with probability $p = {share}$, independently, and divides the others by $1 - p$. What are the"
        " mean and the standard deviation of the sum? (Both numbers.)",
        Numbers(2, 2),
        (mean, spread),
        (
            f"An input is {size} / {1 - share:g} with probability {1 - share:g}, else 0: its mean is {size},"
            f" and {count} of them have the mean **{mean:g}**, as without dropout.",
            f"Its variance is ${size}^2 \\cdot p / (1 - p)$ = {single:.3f}. Variances of independent inputs"
            f" add up: $\\sqrt{{{count} \\cdot {single:.3f}}}$ = **{spread:.2f}**.",
        ),
        mistakes(
            (
                ((1 - share) * mean, size * math.sqrt(count * share * (1 - share))),
                "That is the sum without the division by $1 - p$.",
            ),
            ((mean, spread**2), "The second is the variance: take its square root."),
            (
                (mean, count * spread / math.sqrt(count)),
                "You added standard deviations. For independent inputs *variances* add up.",
            ),
            (
                (mean, size * math.sqrt(count * share * (1 - share))),
                "The inputs that remain are divided by $1 - p$, and so is their spread.",
            ),
        ),
        see("feedforward", feedforward_view="dropout"),
        {"count": count, "share": share, "size": size},
    )


def soft_target(rng: Random) -> Exercise:
    student, teacher = (
        [low / 100, (high - low) / 100, (100 - high) / 100]
        for low, high in (sorted(rng.sample(range(start, 90, 10), 2)) for start in (10, 15))
    )
    at = rng.choice([i for i in range(3) if student[i] != teacher[i]])
    right = max(range(3), key=teacher.__getitem__)
    result = student[at] - teacher[at]
    return Exercise(
        f"A student gives three tokens the probabilities {shown(student, 2)}, its teacher"
        f" {shown(teacher, 2)}. The student learns from the teacher's probabilities (distillation,"
        " temperature 1). What is the gradient of the loss with respect to the student's logit of token"
        f" {at + 1}?",
        Numbers(1, 2),
        (result,),
        (
            "As with a text, the gradient is the student's probabilities minus the target's.",
            f"The target is no longer one token, but the teacher: {student[at]:.2f} − {teacher[at]:.2f} ="
            f" **{result:+.2f}**.",
        ),
        mistakes(
            ((-result,), "The other way round: too high a probability has a positive gradient."),
            (
                (student[at] - float(at == right),),
                "That is the gradient of one right token. The teacher gives all of them a probability.",
            ),
            ((student[at],), "That is the student's probability alone."),
        ),
        see("after", after_view="distillation"),
        {"student": student, "teacher": teacher, "at": at},
    )


TASKS = (
    ("start", "Where the loss begins", start),
    ("perplexity", "Perplexity", perplexity),
    ("bits", "Bits per character", bits),
    ("windows", "How many windows", windows),
    ("batch", "Predictions in a batch", batch),
    ("stream", "The stream after many writes", stream),
    ("dropout", "A sum under dropout", dropout),
    ("soft-target", "Distillation: a logit's gradient", soft_target),
)
