"""The limits of a server's profile against each other, the memory that it has, and the presets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.errors import ConfigError
from runs import profiles
from runs.profiles import GB, LIBRARIES, MB, PROFILES
from runs.state import RunSpec
from studies.costs.presets import PRESETS


@pytest.mark.parametrize("name", [name for name, profile in PROFILES.items() if profile.public])
def test_where_strangers_come_everything_has_a_limit(name: str) -> None:
    here, home = PROFILES[name], PROFILES["local"]
    assert 0 < here.max_queued_address < here.max_queued and here.max_starts_address > 0
    assert here.max_runs_each < here.max_runs_address < here.max_runs_total
    assert here.max_text * 4 <= here.text_bytes_total < here.snapshot_bytes_total
    assert here.max_runs_each < here.max_runs_total <= home.max_runs_total / 5


SMALL = PROFILES["small"]
SERVER = 560 * MB  # resident after a tour of all pages with four controls moved on each (measured: 556)


def test_the_small_profile_fits_into_a_gigabyte_and_trains_the_presets_of_the_lecture() -> None:
    assert SMALL.max_workers == 1
    assert SERVER + SMALL.max_workers * SMALL.max_worker_bytes + SMALL.text_bytes_total <= GB
    assert SMALL.max_worker_bytes > LIBRARIES
    for name in ("fast", "classic", "modern", "induction", "nanogpt", "mini"):
        preset = PRESETS[name]
        assert preset.train is not None
        asked = RunSpec(replace(preset.model, vocab_size=65), preset.train, "text", "a text to train on")
        if name not in ("mini", "nanogpt"):
            profiles.check(SMALL, asked)
    with pytest.raises(ConfigError, match=r"at most 2,304 are allowed here, so 18 at this context"):
        profiles.check(SMALL, asked)
