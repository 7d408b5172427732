"""How many descriptors a server may have."""

import resource

import pytest

from tests.engine.cases import for_each
from ui.operate import file_descriptors


@for_each(
    "soft, hard, wanted",
    [(1024, 4096, 4096), (1024, resource.RLIM_INFINITY, file_descriptors.MOST), (4096, 4096, None)],
)
def test_it_takes_what_the_system_gives(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, wanted: int | None
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    assert file_descriptors.more_descriptors() == (wanted or soft)
    assert asked == ([] if wanted is None else [(wanted, hard)])
