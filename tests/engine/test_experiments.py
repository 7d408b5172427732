"""Commands that make stored files go on where they were interrupted: after any run the rest follows, and no run twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from engine.data import corpora
from engine.experiments import bigram_expectations, masks_swapped, no_causal_mask, no_residual
from engine.experiments.command import complete
from engine.presets import PAIRED
from tests.engine.cases import for_each

TEXT = corpora.from_text("ROMEO: the cat sat on the mat; she sees the shed.\n" * 40, "toy")


def shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every training has a step or two, on a toy text."""
    monkeypatch.setattr(corpora, "load", lambda name: TEXT)
    for name, value in {"DEPTHS": (1, 2), "NORMS": ("none",), "STRIDE": 1}.items():
        monkeypatch.setattr(no_residual, name, value)
    monkeypatch.setattr(no_residual.compare, "__defaults__", (2,))
    monkeypatch.setattr(no_causal_mask, "STEPS", 1)
    preset = PAIRED["dates"]
    assert preset.train is not None
    tiny = replace(preset, train=replace(preset.train, steps=1, batch_size=2, eval_tokens=64))
    monkeypatch.setitem(masks_swapped.PAIRED, "dates", tiny)  # type: ignore[arg-type]
    short = replace(bigram_expectations.TRAINING, steps=1, batch_size=2, eval_tokens=64)
    monkeypatch.setattr(bigram_expectations, "TRAINING", short)


def test_no_run_of_a_file_is_trained_twice(tmp_path: Path) -> None:
    path, begun = tmp_path / "new" / "runs.json", []

    def go_on(plans: str) -> None:
        def train(plan: str) -> int:
            begun.append(plan)
            return {"a": 1, "b": 2}[plan]

        complete(path, plans, lambda path: json.loads(path.read_text()), train, int, str, dict)

    with pytest.raises(KeyError):
        go_on("ax")
    assert json.loads(path.read_text()) == {"a": 1}
    go_on("ab")
    assert begun == ["a", "x", "b"] and path.read_text() == '{"a":1,"b":2}\n'


@pytest.mark.exhaustive
@for_each(
    "command, step",
    [
        (bigram_expectations, "measured"),
        (masks_swapped, "learn"),
        (no_causal_mask, "trained"),
        (no_residual, "compare"),
    ],
)
def test_an_interrupted_command_goes_on_and_ends_as_one_in_a_piece(
    command: ModuleType, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shortened(monkeypatch)
    train, begun = getattr(command, step), []

    def interrupted(after: int) -> Callable[..., Any]:
        def trained(*plan: Any) -> Any:
            if len(begun) == after:
                raise KeyboardInterrupt
            begun.append(plan)
            return train(*plan)

        return trained

    monkeypatch.setattr(command, step, interrupted(after=1))
    with pytest.raises(KeyboardInterrupt):
        command.main(["--into", str(tmp_path / "twice")])
    monkeypatch.setattr(command, step, interrupted(after=99))
    command.main(["--into", str(tmp_path / "twice")])
    plans = len(begun)
    command.main(["--into", str(tmp_path / "once")])
    assert plans >= 2 and begun[:plans] == begun[plans:], "each run once, in the same order"
    assert files(tmp_path / "twice") == files(tmp_path / "once") != {}


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*.*")
        if path.is_file()
    }
