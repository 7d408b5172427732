"""What a container is given, not what its machine has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runs import cpu_quota
from tests.engine.cases import for_each

WHOLE = cpu_quota.memory(Path("/nowhere"), Path("/nowhere"))


def written(root: Path, files: dict[str, str], own: str) -> tuple[Path, Path]:
    for name, text in files.items():
        (root / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "groups" / name).write_text(text)
    (root / "mine").write_text(own)
    return root / "groups", root / "mine"


@pytest.fixture(autouse=True)
def many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)


@for_each(("files", "own", "cores"), [
    ({}, "0::/\n", 64), ({"cpu.max": "200000 100000\n"}, "0::/\n", 2), ({"cpu.max": "50000 100000\n"}, "0::/\n", 1),
    ({"cpu.max": "9900000 100000\n"}, "0::/\n", 64), ({"cpu.max": "nonsense"}, "0::/\n", 64),
    ({"a/cpu.max": "800000 100000", "a/b/cpu.max": "300000 100000"}, "0::/a/b\n", 3),
    ({"cpu.max": "300000 100000"}, "0::/seen/from/outside\n", 3),
    ({"cpu,cpuacct/cpu.cfs_quota_us": "300000", "cpu,cpuacct/cpu.cfs_period_us": "100000"},
     "4:cpu,cpuacct:/\n2:memory:/\n", 3),
    ({"cpu/x/cpu.cfs_quota_us": "-1", "cpu/x/cpu.cfs_period_us": "100000"}, "4:cpu:/x\n", 64),
    ({"cpu/x/cpu.cfs_quota_us": "700000", "cpu/x/cpu.cfs_period_us": "100000"}, "4:cpu:/x\n", 7),
])  # fmt: skip
def test_cores_are_those_of_the_quota(tmp_path: Path, files: dict[str, str], own: str, cores: int) -> None:
    assert cpu_quota.cores(*written(tmp_path, files, own)) == cores


@for_each(("files", "own", "memory"), [
    ({}, "0::/\n", WHOLE), ({"memory.max": "max"}, "0::/\n", WHOLE),
    ({"memory.max": "1073741824\n"}, "0::/\n", 2**30),
    ({"a/memory.max": "1073741824", "a/b/memory.max": "max"}, "0::/a/b\n", 2**30),
    ({"memory/x/memory.limit_in_bytes": "536870912"}, "7:memory:/x\n", 2**29),
    ({"memory/memory.limit_in_bytes": "9223372036854771712"}, "7:memory:/x\n", WHOLE),
])  # fmt: skip
def test_memory_is_that_of_the_limit(tmp_path: Path, files: dict[str, str], own: str, memory: int) -> None:
    assert cpu_quota.memory(*written(tmp_path, files, own)) == memory


def test_where_there_are_no_groups_it_is_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nowhere = Path("/nowhere")
    assert cpu_quota.cores(nowhere, nowhere) == 64 and cpu_quota.memory(nowhere, nowhere) == WHOLE > 10**8
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5, 6}, raising=False)
    assert cpu_quota.cores(*written(tmp_path, {"cpu.max": "800000 100000"}, "0::/\n")) == 3
