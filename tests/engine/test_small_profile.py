"""The profile for one gigabyte: one process beside the server, whatever is asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import ConfigError
from engine.presets import PRESETS
from engine.service import profiles
from engine.service.manager import RunManager, RunSpec
from engine.service.profiles import GB, LIBRARIES, MB, PROFILES
from tests.engine.cases import for_each
from tests.engine.running import LONG, look, reached, spec, wait

SMALL = PROFILES["small"]
SERVER = 560 * MB  # resident after a tour of all pages with four controls moved on each (measured: 556)
ME, OTHER = "me", "other"


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[RunManager]:
    found = RunManager(replace(SMALL, max_steps=LONG.steps), tmp_path)
    yield found
    found.close()


def test_all_of_it_fits_into_a_gigabyte() -> None:
    assert SMALL.max_workers == 1
    assert SERVER + SMALL.max_workers * SMALL.max_worker_bytes + SMALL.text_bytes_total <= GB
    assert SMALL.max_worker_bytes > LIBRARIES


@for_each("name", ["fast", "classic", "modern", "induction"])
def test_the_presets_of_the_lecture_train_in_it(name: str) -> None:
    preset = PRESETS[name]
    assert preset.train is not None
    profiles.check(
        SMALL, RunSpec(replace(preset.model, vocab_size=65), preset.train, "text", "a text to train on")
    )


def test_a_larger_one_is_refused_with_what_would_fit() -> None:
    preset = PRESETS["mini"]
    assert preset.train is not None
    with pytest.raises(ConfigError, match=r"at most 2,304 are allowed here, so 18 at this context"):
        profiles.check(
            SMALL, RunSpec(replace(preset.model, vocab_size=65), preset.train, "text", "a text to train on")
        )


def test_one_step_at_a_time_though_no_paused_process_is_kept(manager: RunManager) -> None:
    run = manager.start(spec(LONG), ME)
    reached(manager, run, 5)
    manager.pause(run, ME)
    wait(lambda: all(run not in process.runs for process in manager.processes()))
    before = look(manager, run).step
    manager.step(run, ME)
    wait(lambda: look(manager, run).step == before + 1)
    wait(lambda: all(run not in process.runs for process in manager.processes()))
    assert look(manager, run).step == before + 1 and look(manager, run).snapshots[-1] == before + 1
