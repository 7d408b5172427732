"""Sentences of the doctor's views."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from engine.lab.doctor.check import Check, Finding, shown
from engine.lab.doctor.patient import Patient
from engine.lab.doctor.story import STEPS, StageRun
from engine.lab.doctor.table import Chart
from engine.lab.faults import Fault
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import counted

QUESTIONS = {
    "doctor": "Is this model healthy?",
    "patient": "What is wrong with this model?",
    "story": "Why isn't the loss falling?",
}
MARKS = {"pass": ":green[:material/check_circle:]", "fail": ":red[:material/cancel:]", "not applicable": "–"}
PENDING = ":gray[:material/hourglass_empty:]"
CHECK, BUG, NO_BUG = "Check", "Insert a bug", "none"
BUG_HINT = (
    "Loads the same weights into a model with this bug. Initialisation bugs change nothing in a trained"
    " model."
)
SLOW = "Include the overfit-one-batch test"
SLOW_HINT = "Reinitialises the model and trains it on one batch, which takes a few seconds."
EXAMINING = "Examining"


def examined(findings: Sequence[Finding], checks: Mapping[str, Check]) -> str:
    """Says how many checks passed, and what the first that did not says."""
    applied = [f for f in findings if f.verdict != "not applicable"]
    failed = [f for f in applied if f.verdict == "fail"]
    if not failed:
        return f"Yes, as far as these checks can tell: **all {len(applied)}** that apply to this model pass."
    first = failed[0]
    counted = (
        f"**{len(failed)} of {len(applied)} checks fail.** {checks[first.check].title}: {first.sentence}"
    )
    return counted


def so_far(findings: Sequence[Finding]) -> str:
    """Says how many checks passed while others are being done.

    >>> so_far(())
    'The checks are running.'
    """
    verdicts = [finding.verdict for finding in findings]
    passed = verdicts.count("pass")
    of = passed + verdicts.count("fail")
    if not of:
        return "The checks are running."
    return f"So far **{passed} of {of} checks** have passed; the others are still running."


def of_check(check: Check, finding: Finding) -> str:
    """Returns one check in words: its question, what it found, and why the limit lies there."""
    return f"**{check.question}** {finding.sentence}\n\n*Why this limit?* {check.reason}"


def number(check: Check, finding: Finding) -> str:
    """Returns the number of a check as its sentence writes it."""
    return "" if finding.number is None else shown(finding.number, check.written)


def should_be(check: Check) -> str:
    """Returns the values of a healthy model, in short.

    >>> from engine.lab.doctor.checks import CHECKS
    >>> [should_be(CHECKS[name]) for name in ("future", "spread", "targets", "learned", "first_loss")]
    ['0', '0.67 to 1.50', '100%', 'below −0.20', '±0.50']
    """
    if check.slack or check.low == check.high:
        return shown(check.high if check.low == check.high else 0.0, check.written)
    if math.isinf(check.low):
        return f"below {shown(check.high, check.written)}"
    if math.isinf(check.high):
        return "above 0"
    if check.low == 0.0:
        return f"below {shown(check.high, check.written)}"
    if check.low == -check.high:
        return f"±{shown(check.high, check.written).lstrip('+')}"
    return f"{shown(check.low, check.written)} to {shown(check.high, check.written)}"


COST = "seconds"
DOCTOR = Words(
    see=(
        "Every check runs one small experiment on the model in the bar and compares one number with a limit."
        " A dash means that the check does not apply. Under *Measure it*, each row is a model trained with"
        " one bug and each column a check; a cell is red where the check fails."
    ),
    why=(
        "A Transformer with a bug often still trains, only worse. The loss may not show it; these experiments"
        " can, and most of them take less than a second. No check finds everything: comparing with a second"
        " implementation finds the most and costs the most; changing a token finds every leak from the future"
        " in two minutes."
    ),
    attempt=(
        "Insert “The mask is missing”. Then choose a run of your own, or the time-lapse at step 0. Under"
        " *Measure it*, look for bugs that the loss alone would not have shown."
    ),
)


# Which check finds which bug ---------------------------------------------------------------------

FAULT, WHICH = "Bug", "Which check finds which bug?"


def caught_by_checks(title: str, chart: Chart, checks: Mapping[str, Check]) -> str:
    """Says how many checks find a fault, and what the quickest of them says."""
    caught = chart.caught_by
    applied = [name for name, finding in chart.findings.items() if finding.verdict != "not applicable"]
    if not caught:
        return f"**{title}**: none of the {len(applied)} checks fails, as it should be."
    quickest = min(caught, key=lambda name: checks[name].minutes)
    sentence = chart.findings[quickest].sentence
    return (
        f"**{title}** is caught by **{len(caught)} of the {len(applied)} checks** that apply. The quickest,"
        f" “{checks[quickest].title}”: {sentence}"
    )


def which_alt(charts: Mapping[str, Chart], checks: Mapping[str, Check]) -> str:
    return (
        f"A grid of {len(charts)} models, one healthy and the others with one bug each, and {len(checks)}"
        " checks; a cell is red where the check fails on the model."
    )


MADE = (
    "Made by `python -m engine.experiments doctor`: a model with each bug was trained once on Tiny"
    " Shakespeare and then examined; every cell of this grid is measured."
)


# The mystery patient -----------------------------------------------------------------------------

SEED, SEED_HINT = "Patient", "The same number gives everyone the same patient."
NEXT = "Next"
ORDER = "Order a test"
DIAGNOSIS, NOT_YET = "Your diagnosis", "choose one"
NAME_IT = "Submit"
CURVE = {"losses": "training text", "validation": "held-out text"}


def offered(check: Check) -> str:
    """Returns a test that can be ordered, with what it costs."""
    return f"{check.title} · {check.minutes} min"


def would_show(fault: Fault) -> str:
    """Describes the symptoms of the chosen bug, whatever the patient has."""
    if not fault.symptom:
        return "You would see nothing: no test would fail."
    return f"You would see: {fault.symptom}"


def before(patient: Patient, spent: int) -> str:
    """Says what can be seen without a test."""
    chart, left = patient.chart, patient.budget - spent
    last = chart.evaluations[-1]
    return (
        f"This model ended at **{last.validation_loss:.2f} nats** on held-out text (unigram baseline:"
        f" {chart.counting:.2f}). You have **{left} minutes** left for tests. What is wrong with it?"
    )


def diagnosis(patient: Patient, named: str, title: str, spent: int) -> str:
    """Says whether the diagnosis is right, and what the fault was."""
    truth = f"**{title}**"
    if named == patient.name:
        return f"Right, in **{spent} minutes** of tests: {truth}."
    return f"Not quite: it was {truth} ({spent} minutes of tests)."


def enough(chart: Chart, checks: Mapping[str, Check]) -> str:
    """Names the least that would have found it."""
    caught = chart.caught_by
    if not caught:
        return "No test fails on a healthy model: the skill is knowing when to stop looking."
    quickest = min(caught, key=lambda name: checks[name].minutes)
    return (
        f"The quickest test that fails is “{checks[quickest].title}” ({checks[quickest].minutes} min);"
        f" {len(caught)} fail in all."
    )


def reveal(fault: Fault) -> str:
    return f"**Symptoms.** {fault.symptom}\n\n**Cause.** {fault.story}\n\n**The fix.** {fault.fix}"


def result(check: Check, finding: Finding) -> tuple[str, str, str]:
    """Returns a row of the table of results."""
    return MARKS[finding.verdict], check.title, finding.sentence


def patient_alt(patient: Patient) -> str:
    chart = patient.chart
    return (
        f"The loss on training text over {counted(chart.steps[-1], 'step')}, ending at"
        f" {chart.losses[-1]:.2f} nats,"
        f" and on held-out text, ending at {chart.evaluations[-1].validation_loss:.2f}; a line marks the"
        f" unigram baseline, {chart.counting:.2f}."
    )


PATIENT = Words(
    see="The loss curves of a run and what the model wrote. It may have one bug, or none.",
    why=(
        "In practice nobody tells you where the bug is. The skill is knowing which tests to try, and in which"
        " order."
    ),
    attempt="Read what the model wrote, and look at the loss, before you order anything. Then order the"
    " cheapest test that would separate your two best guesses.",
)


# The story ---------------------------------------------------------------------------------------

STEP = "Step"
CHAPTERS = {
    "stuck": "1 It is stuck",
    "norms": "2 Gradients",
    "cheats": "3 Too good",
    "shapes": "4 The mask",
    "mended": "5 Fixed",
    "told": "6 The textbook version",
}
NAMES = {
    "both": "both bugs",
    "spread": "weights unscaled",
    "mask": "mask transposed",
    "told": "mask transposed, writes unscaled",
    "mended": "both fixed",
}


def stuck(both: StageRun, counting: float) -> str:
    last = both.last
    return (
        f"It is stuck: after {counted(last.step, 'step')} the validation loss is **{last.loss:.2f}**, hardly"
        f" better than the unigram baseline ({counting:.2f}), and it writes “{begins(last.greedy)}”."
    )


def norms(both: StageRun, mended: StageRun) -> str:
    return (
        "The gradients explode: with unscaled weights from `torch.randn`, the gradient at the bottom of the"
        f" stack is **{both.growth:,.0f} times** the one at the top before the first step. With standard"
        f" initialisation the ratio is {mended.growth:.1f}."
    )


def cheats(mask: StageRun) -> str:
    last = mask.last
    return (
        f"Too good to be true: with small weights the validation loss falls to **{last.loss:.3f}** in"
        f" {last.step:,} steps, far below any correctly masked model, yet it writes “{begins(last.greedy)}”."
    )


def shapes(mask: StageRun, future: float) -> str:
    n = len(mask.pattern)
    return (
        f"The mask is transposed: the printed pattern puts **{future:.0%}** of all weight on later"
        f" characters. No shape check could reveal it, since both masks are ({n}, {n})."
    )


def mended(run: StageRun) -> str:
    last = run.last
    return (
        f"With both fixed the validation loss is **{last.loss:.2f}** nats after"
        f" {counted(last.step, 'step')}, and it"
        f" writes “{begins(last.drawn)}”."
    )


def as_described(run: StageRun, mask: StageRun) -> str:
    there = next(look for look in mask.looks if look.step == run.last.step)
    return (
        "The textbook version, where only the residual writes are unscaled, does not get stuck here: with the"
        f" mask transposed the validation loss still falls to **{run.last.loss:.3f}**, as it does with the"
        f" mask bug alone ({there.loss:.3f})."
    )


LINES = {"unigram": "unigram", "bigram": "bigram"}
BLOCKS = "The norm of the gradient of each block's weights, before the first step."


def again(run: StageRun, stored: StageRun) -> str:
    """Compares the live training with the stored one."""
    return (
        f"Trained now: {run.losses[-1]:.2f} nats after {counted(run.points[-1], 'step')}; stored:"
        f" {stored.losses[-1]:.2f}."
    )


def pattern_alt(name: str) -> str:
    return (
        f"Attention pattern of the first head of the last block, {name}: queries down, keys across; later"
        " tokens are above the diagonal."
    )


def as_written(text: str) -> str:
    """Returns a text with its line breaks visible, so that blank lines are seen."""
    return text.replace("\n", "⏎\n")


def begins(text: str, most: int = 28) -> str:
    """Returns the beginning of a text on one line, line breaks visible."""
    line = text.replace("\n", "⏎")
    return safe(line if len(line) <= most else line[:most].rstrip() + " …")


def story_alt(names: Sequence[str], what: str) -> str:
    return f"{what} over the training steps, one line each for: {', '.join(names)}."


LIVE = "Train this again, now"
LIVE_HINT = "Trains the same model from the same initial weights for 200 steps, here and now."
LIVE_DOING = "Training"
STORY = Words(
    see=(
        "One debugging session, with one seed, in six steps. Each shows what was printed; the answer says"
        " what it implies."
    ),
    why="One bug can hide another: while the weights are too large, the leaking mask does not show.",
    attempt="Retrain a model under “Measure it”: the same weights and batches give the same curve.",
)
STORY_MADE = (
    f"Made by `python -m engine.experiments story`: the preset “Classic”, {STEPS:,} steps with its"
    " learning-rate schedule, the runs with bugs stopped after 500. The textbook reports the output “the the"
    " the the”, a loss stuck at 4.2 and two causes: a transposed mask and unscaled writes. At 4.17 nats, a"
    " uniform guess among 65 characters, a model cannot know “the”; a healthy model early in training does"
    " write it with greedy decoding."
)
