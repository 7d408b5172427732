"""All checks, in the order in which one does them; their words stand in words.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.data.progress import Steps
from studies.lab.doctor import forward, over_training, start
from studies.lab.doctor.case import Case
from studies.lab.doctor.check import Check, Experiment, Finding, Need, run_checks
from studies.lab.reference.compare import TOLERANCE

ENDLESS = float("inf")
WORDS = {
    name: {what: " ".join(text.split()) for what, text in words.items()}
    for name, words in tomllib.loads(
        Path(__file__).with_name("words.toml").read_text(encoding="utf-8")
    ).items()
}


def _check(
    name: str,
    needs: Need,
    measure: Experiment,
    limits: tuple[float, float],
    written: str,
    minutes: int,
    slow: bool = False,
) -> Check:
    low, high = limits
    return Check(name, needs, measure, low, high, written, minutes, slow, **WORDS[name])


ALL = (
    _check("future", "model", forward.sees_the_future, (0.0, 0.0001), "{:.1%}", 2),
    _check("rows", "model", forward.rows_of_the_pattern, (0.0, 0.0001), "{:.2f}", 1),
    _check("spread", "model", forward.spread_of_scores, (0.67, 1.5), "{:.2f}", 2),
    _check("order", "model", forward.bag_of_words, (1e-12, ENDLESS), "{:.2g}", 2),
    _check("shapes", "model", forward.shapes_and_names, (0.0, 0.0), "{:.0f}", 2),
    _check("range", "model", forward.numbers_and_range, (0.0, 0.0), "{:,.0f}", 2),
    _check("twice", "model", forward.twice_the_same, (0.0, 0.0), "{:.1%}", 1),
    _check("cached", "model", forward.cached_alike, (0.0, 0.001), "{:.1%}", 3),
    _check("reference", "model", forward.like_the_reference, (0.0, TOLERANCE), "{:.2g}", 12),
    _check("targets", "text", over_training.next_tokens, (1.0, 1.0), "{:.0%}", 1),
    _check("unseen", "text", over_training.unseen, (0.0, 0.05), "{:.1%}", 4),
    _check("first_loss", "start", start.first_loss, (-0.5, 0.5), "{:+.2f}", 1),
    _check("gradients", "start", start.gradients_by_block, (0.67, 1.5), "{:.2f}", 3),
    _check("clipped", "start", start.clipped, (0.0, 5.0), "{:.1f}", 2),
    _check("one_batch", "start", start.overfits_a_batch, (0.0, 1.0), "{:.2f}", 5, slow=True),
    _check("learned", "training", over_training.learned, (-ENDLESS, -0.2), "{:+.2f}", 1),
    _check("steady", "training", over_training.largest_rise, (0.0, 0.5), "{:.2f}", 1),
    _check("gap", "training", over_training.gap, (-0.3, 0.5), "{:+.2f}", 1),
    _check("writes", "text", over_training.what_it_writes, (-0.9, 0.6), "{:+.2f}", 1),
)
CHECKS: Mapping[str, Check] = {check.name: check for check in ALL}


def examine(case: Case, names: Sequence[str] | None = None) -> Steps[tuple[Finding, ...]]:
    """Runs some checks (all by default), in the order of CHECKS, with a progress after each."""
    wanted = tuple(CHECKS[name] for name in CHECKS if names is None or name in names)
    return (yield from run_checks(wanted, case))
