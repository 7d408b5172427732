"""Bugs with a low training loss and poor text, and the doctor's tests that tell them apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import permutations
from random import Random

from engine.model import build
from engine.parts.registry import parts_of
from studies.exercises.exercise import Exercise, Mistake, See, extra_options, see
from studies.exercises.forms import Choice, Pick
from studies.lab.doctor.case import Case
from studies.lab.doctor.check import Finding, run_check, shown
from studies.lab.doctor.checks import CHECKS
from studies.lab.faults import FAULTS

DOCTOR: See = see("bugs", bugs_view="doctor", measure="true")
FINE = {
    "The causal mask is forgotten": "every position sees the token that it should predict",
    "The mask is transposed or broadcast wrongly": "some rows see the token that they should predict",
    "The mask is applied after the softmax": "later tokens leak in through the denominator",
    "The decoder gets the padding mask where the causal one belongs": "nothing hides later tokens from it",
    "The labels are not shifted": "every token predicts itself",
}
BAD = {
    "The learning rate is a hundred times too high": "the loss diverges or stalls, so it is not low",
    "$\\sqrt{d_k}$ is forgotten": "the loss falls slowly or stalls, so it shows",
    "No gradient clipping": "it may show as spikes or NaN in the loss",
    "Positions are forgotten": "the loss stays too high: a bag of words",
    "Post-norm in 48 layers without warm-up": "the loss stalls near the start",
}


def healthy_looking(rng: Random) -> Exercise:
    fine, bad = rng.sample(list(FINE), 3), dict(rng.sample(list(BAD.items()), 3))
    options = tuple(sorted((*fine, *bad), key=lambda option: rng.random()))
    right = frozenset(fine)
    return Exercise(
        "Three of these bugs give a **low training loss and poor text**: the worst kind. Which?",
        Pick(options),
        right,
        (
            "A low loss with poor text comes from cheating: the answer is visible in training, but not when"
            " the model writes.",
            *(f"*{option}*: {FINE[option]}." for option in sorted(right)),
        ),
        extra_options(right, {option: f"Not “{option}”: {why}." for option, why in bad.items()}),
        DOCTOR,
        {"options": options},
    )


BUGS = {
    "no_mask": "The causal mask is missing",
    "leaky_mask": "The mask is broadcast wrongly",
    "mask_after_softmax": "The mask is applied after the softmax",
    "softmax_over_queries": "The softmax runs over the queries",
    "not_shifted": "The targets are not shifted",
}
ANSWERS = {  # test -> what it finds in a model that passes it, and in one that fails
    "future": ("no", "yes, by {number} of the largest"),
    "rows": ("yes", "no, the worst is off by {number}"),
    "targets": ("yes", "no, only {number} of them are"),
    "order": ("yes", "no"),
    "twice": ("yes", "no, they differ by {number}"),
}
TESTS = tuple(ANSWERS)
READ = ("future", "rows", "targets")  # the tests whose results name a bug
VOCABULARY = 29


@lru_cache(maxsize=8)
def findings(bug: str) -> Mapping[str, Finding]:
    """Runs TESTS on a small model with a bug. Its initial weights are large enough for scores to differ."""
    config, _, parts = FAULTS[bug].faulty()
    model = build(replace(config, vocab_size=VOCABULARY), parts=parts_of(parts), init="fan_in")
    return {test: run_check(CHECKS[test], Case(model)) for test in TESTS}


def differ(first: str, second: str) -> list[str]:
    """Returns the tests that one of two bugs passes and the other fails."""
    return [test for test in TESTS if findings(first)[test].verdict != findings(second)[test].verdict]


def which_test(rng: Random) -> Exercise:
    """Asks how two bugs can be told apart."""
    pair = rng.choice([pair for pair in permutations(BUGS, 2) if differ(*pair)])
    options = {
        test: f"{CHECKS[test].title}: {CHECKS[test].question}" for test in rng.sample(TESTS, len(TESTS))
    }
    right = frozenset(options[test] for test in differ(*pair))
    alike = {
        option: f"Both {findings(pair[0])[test].verdict} *{CHECKS[test].title}*: it cannot tell them apart."
        for test, option in options.items()
        if option not in right
    }
    first, second = (BUGS[bug].lower() for bug in pair)
    return Exercise(
        f"A model trains with a low loss and writes poorly: either **{first}** or **{second}**. Which tests"
        " tell the two bugs apart?",
        Pick(tuple(options.values())),
        right,
        tuple(
            f"*{CHECKS[test].question}* With the first bug {_result(pair[0], test)}; with the second"
            f" {_result(pair[1], test)}."
            for test in options
        ),
        extra_options(right, alike),
        DOCTOR,
        {"bugs": pair},
    )


def which_bug(rng: Random) -> Exercise:
    """Asks for the bug behind the results of three tests."""
    triples = [each for each in permutations(BUGS, 3) if all(differ(*pair) for pair in permutations(each, 2))]
    bugs = rng.choice(triples)
    bug = bugs[0]
    results = "".join(f"\n- {CHECKS[test].question} *{_result(bug, test).capitalize()}*." for test in READ)
    return Exercise(
        f"A model trains with a low loss and writes poorly. Which bug does it have?\n{results}",
        Choice(tuple(BUGS[each] for each in BUGS if each in bugs)),
        BUGS[bug],
        (*(findings(bug)[test].sentence for test in READ), f"**{BUGS[bug]}**. {FAULTS[bug].fix}"),
        tuple(
            Mistake(
                BUGS[other],
                f"*{CHECKS[test].question}* Here {_result(bug, test)}; with that bug {_result(other, test)}.",
            )
            for other in bugs[1:]
            for test in differ(bug, other)[:1]
        ),
        DOCTOR,
        {"bug": bug},
    )


def _result(bug: str, test: str) -> str:
    """Answers a test's question for a model with a bug."""
    finding = findings(bug)[test]
    number = shown(finding.number or 0.0, CHECKS[test].written)
    return ANSWERS[test][finding.verdict == "fail"].format(number=number)


TASKS = (
    ("healthy-looking", "Bugs that look healthy", healthy_looking),
    ("which-test", "Telling two bugs apart", which_test),
    ("which-bug", "Naming the bug", which_bug),
)
