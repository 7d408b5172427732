"""The stages that the browser computes by itself are held to fixed values (tests/js/stages.json), and those to the
engine here. Written anew by `python -m tests.engine.test_js_values`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.config import SampleConfig
from engine.sample import draw, stages

VALUES = Path(__file__).parents[1] / "js" / "stages.json"
# the likeliest two are equal; each is exact in float32
LOGITS = [2.5, -1.25, 0.5, 2.5, -3.0, 0.0, 1.75, -0.5]
PREVIOUS = [0, 1, 1, 6]
NUMBERS = [0.0, 0.2, 0.5, 0.77, 0.999999]
SETTINGS: list[dict[str, Any]] = [
    {}, {"temperature": 0.0}, {"temperature": 1e-5}, {"temperature": 0.5, "top_k": 3}, {"top_k": 1},
    {"temperature": 1.5, "top_p": 0.9, "min_p": 0.05}, {"top_p": 0.5, "repetition_penalty": 1.8},
    {"temperature": 2.0, "top_k": 5, "top_p": 0.8, "repetition_penalty": 0.6, "penalty_last": True},
]  # fmt: skip
SETTING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "penalty_last")


def told(record: Any) -> dict[str, Any]:
    said = {"name": record.name, "kept": record.remaining, "removed": record.removed.nonzero()[0].tolist()}
    numbers = {"mass": round(record.mass, 6), "entropy": round(record.entropy, 6)}
    return said | numbers | {"p": [round(float(p), 6) for p in record.probabilities]}


def values() -> dict[str, Any]:
    cases = []
    for settings in SETTINGS:
        config = SampleConfig(**settings)
        records = stages(torch.tensor(LOGITS), config, PREVIOUS)
        drawn = [draw(records[-1].probabilities, u) for u in NUMBERS]
        whole = {name: getattr(config, name) for name in SETTING}
        cases.append({"settings": whole, "stages": list(map(told, records)), "drawn": drawn})
    return {"logits": LOGITS, "previous": PREVIOUS, "numbers": NUMBERS, "cases": cases}


def test_the_fixed_values_are_the_engines() -> None:
    fixed, now = json.loads(VALUES.read_text("utf-8")), values()
    for theirs, ours in zip(fixed.pop("cases"), now.pop("cases"), strict=True):
        assert theirs["settings"] == ours["settings"] and theirs["drawn"] == ours["drawn"]
        for a, b in zip(theirs["stages"], ours["stages"], strict=True):
            assert (a["name"], a["kept"], a["removed"]) == (b["name"], b["kept"], b["removed"])
            assert [a["mass"], a["entropy"], *a["p"]] == pytest.approx(
                [b["mass"], b["entropy"], *b["p"]], abs=2e-6
            )
    assert fixed == now


if __name__ == "__main__":
    made = values()
    cases = ",\n".join(json.dumps(case) for case in made.pop("cases"))
    VALUES.write_text(f'{json.dumps(made)[:-1]}, "cases": [\n{cases}\n]}}\n', "utf-8")
