"""Proofs and arguments as steps to put in order: a step may be anywhere after all that it uses."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from studies.exercises.exercise import Exercise, Mistake, see
from studies.exercises.forms import Order

PROOFS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _order(proof: Mapping[str, Any], rng: Random) -> Exercise:
    text = {name: line for name, (line, *_) in proof["steps"].items()}
    steps = tuple(sorted((*text.values(), *proof["wrong"]), key=lambda _: rng.random()))
    needs = {line: tuple(text[each] for each in uses) for line, *uses in proof["steps"].values()}
    form = Order(steps, needs, proof["wrong"])
    right = tuple(text.values())
    listed = "".join(f"\n- **{form.letter(step)}** {step}" for step in steps)
    return Exercise(
        f"{proof['claim']} Put the {len(right)} steps of the {proof['kind']} in order; {len(form.wrong)} of"
        f" those listed do not belong.\n{listed}",
        form,
        right,
        tuple(f"**{form.letter(step)}** {step}" for step in right),
        tuple(
            Mistake((*right, step), f"Step {form.letter(step)} does not belong: {why}")
            for step, why in form.wrong.items()
        ),
        see(**proof["see"]),
        {"steps": steps},
    )


TASKS = tuple((name, proof["title"], partial(_order, proof)) for name, proof in PROOFS.items())
