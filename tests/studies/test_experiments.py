"""Commands that make stored files go on where they were interrupted: after any run the rest follows, and no run twice."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from engine.data import corpora
from engine.errors import CheckpointError
from studies.experiments import (
    bigram_expectations,
    bug_races,
    dropout_runs,
    extrapolation,
    finetune_runs,
    lab_races,
    ladder,
    masks_swapped,
    no_causal_mask,
    no_residual,
    preference_runs,
    reward_runs,
    scaling,
    smaller_caches,
    stored_races,
    stretched_rope,
    why_decoders,
)
from studies.experiments.command import complete, reading, require_all
from studies.experiments.why_decoders import CHECKPOINTS
from studies.lab.doctor import story, table
from studies.pairs.presets import PAIRED
from tests.engine.cases import for_each

TEXT = corpora.from_text("ROMEO: the cat sat on the mat; she sees the shed.\n" * 40, "toy")


def shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every training has a step or two, on a toy text."""
    monkeypatch.setattr(corpora, "load", lambda name: TEXT)
    for name, value in {"PLANS": ((1, "none"), (2, "none")), "STRIDE": 1}.items():
        monkeypatch.setattr(no_residual, name, value)
    monkeypatch.setattr(no_residual.compare, "__defaults__", (2,))
    monkeypatch.setattr(no_causal_mask, "STEPS", 1)
    preset = PAIRED["dates"]
    assert preset.train is not None
    tiny = replace(preset, train=replace(preset.train, steps=1, batch_size=2, eval_tokens=64))
    monkeypatch.setitem(masks_swapped.PAIRED, "dates", tiny)  # type: ignore[arg-type]
    short = replace(bigram_expectations.TRAINING, steps=1, batch_size=2, eval_tokens=64)
    monkeypatch.setattr(bigram_expectations, "TRAINING", short)
    stages = {name: replace(stage, steps=2) for name, stage in [*story.STAGES.items()][:2]}
    for name, value in {"STAGES": stages, "STRIDE": 1, "READ": "ROMEO: the cat", "LETTERS": 2}.items():
        monkeypatch.setattr(story, name, value)
    monkeypatch.setattr(story.torch, "set_flush_denormal", lambda on: None)  # it outlives the command


def test_no_run_of_a_file_is_trained_twice(tmp_path: Path) -> None:
    path, begun = tmp_path / "new" / "runs.json", []

    def go_on(plans: str) -> None:
        def train(plan: str) -> int:
            begun.append(plan)
            return {"a": 1, "b": 2}[plan]

        complete(path, plans, lambda path: json.loads(path.read_text()), train, str, dict)

    with pytest.raises(KeyError):
        go_on("ax")
    assert json.loads(path.read_text()) == {"a": 1}
    go_on("ab")
    assert begun == ["a", "x", "b"] and path.read_text() == '{"a":1,"b":2}\n'


@for_each(
    "text, message",
    [("{", r"broken\.json cannot be read: .*\. Delete it, then `python"), (None, r"\. `python")],
)
def test_a_file_that_cannot_be_read_has_to_be_deleted_if_it_is_there(
    text: str | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "broken.json"
    if text:
        path.write_text(text)
    with pytest.raises(CheckpointError, match=message), reading(path, "dropout"):
        pass


def test_an_interrupted_file_says_how_many_runs_it_lacks() -> None:
    require_all("ba", "ab", Path("x.json"), "dropout")
    with pytest.raises(CheckpointError, match=r"x\.json lacks 2 of 3 runs\. `python -m .* dropout`"):
        require_all("b", "abc", Path("x.json"), "dropout")


def cut_short(source: Path, target: Path) -> Path:
    """A stored file as an interruption leaves it: all but its last run."""
    values = json.loads(source.read_text())
    runs = values if isinstance(values, list) else values.get("pairs") or values.get("rungs") or values
    runs.pop() if isinstance(runs, list) else runs.popitem()
    target.write_text(json.dumps(values))
    return target


@for_each("command, source", [
    (bigram_expectations, bigram_expectations.SHIPPED),
    (dropout_runs, dropout_runs.PATH),
    (no_causal_mask, no_causal_mask.SHIPPED),
    (no_residual, no_residual.PATH),
])  # fmt: skip
def test_a_page_is_refused_a_file_that_lacks_a_run(command: ModuleType, source: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"lacks 1 of"):
        command.shipped(cut_short(source, tmp_path / source.name))


def test_of_swapped_masks_both_trainings_are_shown_or_none(tmp_path: Path) -> None:
    path = cut_short(masks_swapped.SHIPPED, tmp_path / "swapped.json")
    assert len(masks_swapped.opened(path)) == 1 and masks_swapped.shipped(path) == {}


@for_each("setting", ["model", "train"])
def test_a_file_of_another_recipe_is_not_gone_on_with(setting: str, tmp_path: Path) -> None:
    values = json.loads(no_residual.PATH.read_text())
    values[setting] |= {"d_model": 32} if setting == "model" else {"steps": 1}
    path = tmp_path / "residuals.json"
    path.write_text(json.dumps(values))
    with pytest.raises(CheckpointError, match=rf"another recipe \({setting}\)"):
        no_residual.opened(path)


def test_a_training_without_its_model_is_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = no_causal_mask.Learning((0,), (1.0,), ("x",))
    begun = []

    def train(name: str, *_: Any) -> tuple[no_causal_mask.Learning, None]:
        begun.append(name)
        return trained, None

    monkeypatch.setattr(corpora, "load", lambda name: TEXT)
    monkeypatch.setattr(no_causal_mask, "learn", train)
    monkeypatch.setattr(no_causal_mask, "stored", lambda *arguments: arguments[-1].mkdir(parents=True))
    no_causal_mask.main(["--into", str(tmp_path)])
    (tmp_path / "square" / "unmasked").rmdir()
    no_causal_mask.main(["--into", str(tmp_path)])
    assert begun == ["masked", "unmasked", "unmasked"]


@pytest.mark.exhaustive
@for_each("command, step", [
    (bigram_expectations, "measured"),
    (masks_swapped, "learn"),
    (no_causal_mask, "learn"),
    (no_residual, "compare"),
    (story, "play"),
])  # fmt: skip
def test_an_interrupted_command_goes_on_and_ends_as_one_in_a_piece(
    command: ModuleType, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shortened(monkeypatch)
    monkeypatch.setattr(time, "strftime", lambda *_: "today")  # both go on past midnight
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


READERS: dict[str, tuple[Callable[[Path], object], Path]] = {
    "bigrams": (bigram_expectations.shipped, bigram_expectations.SHIPPED),
    "bug": (lambda path: bug_races.shipped(path.stem, path.parent), bug_races.FOLDER / "no_mask.json"),
    "cast": (lambda path: why_decoders.stored_forms(path.parent), why_decoders.CHECKPOINTS / "cast.json"),
    "doctor": (table.shipped, table.PATH),
    "dropout": (dropout_runs.shipped, dropout_runs.PATH),
    "extrapolation": (extrapolation.shipped_runs, extrapolation.PATH),
    "finetune": (finetune_runs.stored, finetune_runs.PATH),
    "ladder": (ladder.shipped, ladder.SHIPPED),
    "preferences": (preference_runs.stored, preference_runs.PATH),
    "races": (stored_races.load_race, lab_races.SHIPPED / "norms-12.json"),
    "residuals": (no_residual.shipped, no_residual.PATH),
    "reward": (reward_runs.stored, reward_runs.PATH),
    "scaling": (scaling.stored, scaling.PATH),
    "smaller caches": (smaller_caches.shipped, smaller_caches.PATH),
    "story": (story.shipped, story.PATH),
    "stretched": (stretched_rope.stretched_runs, stretched_rope.PATH),
    "swapped": (masks_swapped.shipped, masks_swapped.SHIPPED),
    "tasks": (lambda path: why_decoders.interface(path.parents[1]), Path("tasks") / "copy" / "metrics.json"),
    "unmasked": (no_causal_mask.shipped, no_causal_mask.SHIPPED),
}
SHIPPED = (
    *(bigram_expectations.shipped, dropout_runs.shipped, finetune_runs.shipped, ladder.shipped),
    *(masks_swapped.shipped, no_causal_mask.shipped, preference_runs.shipped, reward_runs.shipped),
    *(scaling.shipped, story.shipped, table.shipped),
)


@pytest.mark.parametrize("read", SHIPPED, ids=lambda read: read.__module__.rpartition(".")[2])
def test_what_ships_is_read_once_and_not_with_every_answer(read: Callable[[], object]) -> None:
    assert read() is read()


WHOLE = ("", "{", "[]", "{}", "null", '"x"', "7", "[" * 100_000, '{"runs": null}', '{"tasks": []}', "\ud800")


def damaged(values: Any, chance: random.Random) -> Any:
    """The same JSON with one part of it, down to the fourth level, replaced by another thing."""
    if chance.random() < 0.25 or not isinstance(values, dict | list) or not values:
        return chance.choice([None, "x", [], {}, -1, [None], {"x": None}])
    key = chance.choice(list(values) if isinstance(values, dict) else range(len(values)))
    copy = values.copy()
    copy[key] = damaged(values[key], chance)
    return copy


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_a_sentence_without_a_path(name: str, tmp_path: Path) -> None:
    read, file = READERS[name]
    place = tmp_path / file.parent.name / file.name if name != "tasks" else tmp_path / file
    shutil.copytree(
        CHECKPOINTS / "paired", place.parent / "paired", ignore=shutil.ignore_patterns("*.safetensors")
    )
    place.parent.mkdir(parents=True, exist_ok=True)
    whole, chance = (CHECKPOINTS / file if name == "tasks" else file).read_text("utf-8"), random.Random(name)
    values, refused = json.loads(whole), 0
    texts = [*WHOLE, whole[: len(whole) // 2], *(json.dumps(damaged(values, chance)) for _ in range(25))]
    for number, text in enumerate(texts):
        place.write_bytes(text.encode("utf-8", "surrogatepass"))
        cached = getattr(read, "cache_clear", lambda: None)
        cached()
        try:
            read(place)
        except CheckpointError as error:
            refused += 1
            assert str(tmp_path) not in str(error) and len(str(error)) <= 1_010, number
        finally:
            cached()
    assert refused >= 8
