"""From logits to a token: temperature, top-k, top-p; and drafts of several tokens."""

from __future__ import annotations

import math
from random import Random

from studies.exercises.arithmetic import shown, softmax
from studies.exercises.exercise import Exercise, Mistake, mistakes, see
from studies.exercises.forms import Numbers, Pick


def temperature(rng: Random) -> Exercise:
    logits = [float(logit) for logit in rng.sample(range(-2, 5), 3)]
    tau = rng.choice([0.5, 0.8, 1.5, 2.0])
    right = softmax([logit / tau for logit in logits])
    plain = softmax(logits)
    cooled = tuple(p / tau for p in plain)
    return Exercise(
        f"The logits of three tokens are ${shown(logits, 1)}$. What are their probabilities at temperature"
        f" $\\tau = {tau}$?",
        Numbers(3, 2),
        right,
        (
            f"Divide by $\\tau$ first: ${shown([logit / tau for logit in logits], 2)}$.",
            f"Then the softmax: **{shown(right, 2)}**. At $\\tau = 1$ it would be {shown(plain, 2)}.",
        ),
        mistakes(
            (softmax([logit * tau for logit in logits]), "You multiplied by $\\tau$. Divide by it."),
            (plain, "That is temperature 1: divide the logits by $\\tau$ first."),
            (cooled, "You divided the probabilities. It is the *logits* that are divided."),
        ),
        see("sampling", sampling_view="temperatures"),
        {"logits": logits, "tau": tau},
    )


def _shares(rng: Random, count: int) -> list[int]:
    """Different percentages that sum to 100, largest first."""
    while True:
        cuts = sorted(rng.sample(range(2, 99), count - 1))
        parts = [b - a for a, b in zip([0, *cuts], [*cuts, 100], strict=True)]
        if len(set(parts)) == count and min(parts) >= 3:
            return sorted(parts, reverse=True)


def top_k(rng: Random) -> Exercise:
    shares = _shares(rng, 6)
    k = rng.randint(2, 4)
    result = shares[0] / sum(shares[:k])
    return Exercise(
        f"Six tokens have the probabilities {', '.join(f'{p / 100:.2f}' for p in shares)}. After **top-k with"
        f" $k = {k}$**: what is the probability of the likeliest token?",
        Numbers(1, 3),
        (result,),
        (
            f"The {k} likeliest remain; together they have {sum(shares[:k]) / 100:.2f}.",
            f"Renormalised: {shares[0] / 100:.2f} / {sum(shares[:k]) / 100:.2f} = **{result:.3f}**.",
        ),
        mistakes(
            ((shares[0] / 100,), "The others are removed, so the rest has to be renormalised to sum to 1."),
            ((shares[0] / sum(shares[: k + 1]),), f"Off by one: that keeps {k + 1} tokens."),
            ((shares[0] / sum(shares[: k - 1]),), f"Off by one: that keeps only {k - 1}."),
            ((1 / k,), "The tokens that remain are not equally likely."),
        ),
        see("sampling", sampling_view="stages"),
        {"shares": shares, "k": k},
    )


def top_p(rng: Random) -> Exercise:
    """Asks for the smallest set of likeliest tokens whose probabilities reach p (Holtzman et al. 2020)."""
    names = "ABCDEF"
    while True:
        shares = _shares(rng, 6)
        p = rng.choice([50, 60, 70, 75, 80, 85, 90])
        sums = [sum(shares[: end + 1]) for end in range(6)]
        size = next(place for place, total in enumerate(sums, 1) if total >= p)
        if 2 <= size <= 4 and p not in sums:
            break
    below = frozenset(names[place] for place in range(6) if shares[place] >= 100 - p)
    right = frozenset(names[:size])
    mistakes = [
        Mistake(frozenset(names[: size - 1]), "You stopped before $p$ was reached: add one more."),
        Mistake(frozenset(names[: size + 1]), "One too many: $p$ was already reached."),
    ]
    if below and all(below != mistake.value for mistake in mistakes) and below != right:
        mistakes.append(
            Mistake(below, "$p$ is not a per-token threshold: add up from the likeliest until $p$.")
        )
    listed = ", ".join(f"{name} {share / 100:.2f}" for name, share in zip(names, shares, strict=True))
    return Exercise(
        f"Probabilities: {listed}. Which tokens remain after **top-p with $p = {p / 100:g}$**?",
        Pick(tuple(names)),
        right,
        (
            "Added up, the likeliest first: "
            + ", ".join(f"{total / 100:.2f}" for total in sums[: size + 1])
            + " ...",
            f"{p / 100:g} is reached with {size} tokens: **{', '.join(sorted(right))}**.",
        ),
        tuple(mistakes),
        see("sampling", sampling_view="stages"),
        {"shares": shares, "p": p},
    )


def odds(rng: Random) -> Exercise:
    """Asks how temperature changes a gap between two logits."""
    gap, tau = rng.choice([1, 2, 3, 4]), rng.choice([0.5, 0.8, 1.25, 1.6, 2.0])
    right = math.exp(gap / tau)
    return Exercise(
        f"The logit of one token is {gap} larger than that of another. At temperature $\\tau = {tau}$, how"
        " many times as likely is it?",
        Numbers(1, 2),
        (right,),
        (
            "The softmax divides both by the same sum, so only the difference counts: $e^{\\Delta / \\tau}$.",
            f"$e^{{{gap} / {tau}}} = e^{{{gap / tau:g}}}$ = **{right:.2f}**.",
        ),
        mistakes(
            ((math.exp(gap * tau),), "You multiplied by $\\tau$. Divide by it."),
            ((math.exp(gap),), "That is temperature 1."),
            ((math.exp(gap) / tau,), "Divide by $\\tau$ before the exponential."),
            ((gap / tau,), "That is the scaled difference. The ratio is its exponential."),
        ),
        see("sampling", sampling_view="temperatures"),
        {"gap": gap, "tau": tau},
    )


def drafts(rng: Random) -> Exercise:
    """Asks for the tokens per pass of speculative decoding (Leviathan et al. 2022, equation 1)."""
    rate, ahead = rng.choice([0.5, 0.6, 0.7, 0.75, 0.8, 0.9]), rng.randint(2, 5)
    terms = [rate**n for n in range(ahead + 1)]
    right = sum(terms)
    return Exercise(
        f"A draft has {ahead} tokens, and the large model accepts each with the probability $a = {rate:g}$ if"
        " all before it were accepted. Every pass also gives a token of the large model. How many tokens does"
        " a pass bring on average?",
        Numbers(1, 2),
        (right,),
        (
            "The $n$-th drafted token stays if it and all before it are accepted, with probability $a^n$.",
            "With the large model's token: $1 + a + \\dots + a^k = (1 - a^{k+1}) / (1 - a)$.",
            f"{' + '.join(f'{term:.3f}' for term in terms)} = **{right:.2f}**.",
        ),
        mistakes(
            ((1 + ahead * rate,), "The first refused token ends the draft: the later ones are lost with it."),
            ((right - 1,), "The large model's token is missing: every pass gives at least one."),
            ((right - terms[-1],), "One power too few: a draft of $k$ tokens ends with $a^k$."),
            ((float(ahead + 1),), "That would need every token to be accepted."),
        ),
        see("generation", generation_view="drafts", drafts_part="length"),
        {"rate": rate, "ahead": ahead},
    )


def grammar(rng: Random) -> Exercise:
    """Asks for the probability of a token once a grammar has taken others away."""
    shares = _shares(rng, 6)
    allowed = sorted(rng.sample(range(1, 6), 3))  # the likeliest token is not among them
    left = sum(shares[at] for at in allowed) / 100
    p, names = shares[allowed[0]] / 100, "ABCDEF"
    listed = ", ".join(f"{name} {share / 100:.2f}" for name, share in zip(names, shares, strict=True))
    chosen = names[allowed[0]]
    return Exercise(
        f"Probabilities: {listed}. A grammar allows only {', '.join(names[at] for at in allowed)}. What is"
        f" the probability of {chosen} under the grammar?",
        Numbers(1, 3),
        (p / left,),
        (
            f"The allowed tokens have {left:.2f} together; the grammar takes {1 - left:.2f} away.",
            f"Renormalised: {p:.2f} / {left:.2f} = **{p / left:.3f}**.",
        ),
        mistakes(
            ((p,), "The others are removed, so the rest has to be renormalised to sum to 1."),
            ((1 / 3,), "Allowed tokens keep their proportions: they are not equally likely."),
            ((p / (1 - left),), "You divided by the mass that is taken away. Divide by what is left."),
            ((p * left,), "You multiplied by the mass that is left. Divide by it."),
            ((p + (1 - left) / 3,), "The mass that is taken is not dealt out evenly: proportions stay."),
        ),
        see("sampling", sampling_view="constrained"),
        {"shares": shares, "allowed": allowed},
    )


def tool_call(rng: Random) -> Exercise:
    digits = rng.randint(3, 9)
    a, b = (rng.randint(10 ** (digits - 1), 10**digits - 1) for _ in range(2))
    call, result = f"[{a}+{b}]", str(a + b)
    written = len(call) + len(result)
    inserted = len(result) + 2
    return Exercise(
        f"A model of characters, one character a token, answers `{a}+{b}=` with a **tool call**: it writes"
        f" `{call}`, the program around it inserts the result in parentheses, and the model copies the result"
        " as its answer. How many tokens does the model write itself?",
        Numbers(),
        (written,),
        (
            f"The call has {len(call)} tokens; `({result})` is inserted, so the model only reads it.",
            f"Its answer has {len(result)}: {len(call)} + {len(result)} = **{written}**.",
        ),
        mistakes(
            ((written + inserted,), "The inserted result is read, not written, by the model."),
            ((len(result),), "The model writes the call, too: to it, a call is text like any other."),
            ((len(call),), "The result is in the text now, but the model must still write its answer."),
        ),
        see("after", after_view="aloud", aloud_mode="tool"),
        {"a": a, "b": b},
    )


TASKS = (
    ("temperature", "Warmer and colder", temperature),
    ("odds", "How many times as likely", odds),
    ("top-k", "Top-k", top_k),
    ("top-p", "Top-p", top_p),
    ("grammar", "Under a grammar", grammar),
    ("drafts", "Tokens per pass", drafts),
    ("tool-call", "A tool call's tokens", tool_call),
)
