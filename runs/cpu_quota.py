"""CPU and memory that this process may use. A container is often given less than the machine has: the quota
of its control group (Linux: cgroups(7); `cpu.max` and `memory.max`, in version 1 under older names).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GROUPS, MINE = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
UNKNOWN = 8 * 10**9  # bytes of memory, where the system does not say


def cores(groups: Path = GROUPS, mine: Path = MINE) -> int:
    """Returns the cores that all threads of this process may keep busy, rounded down, at least 1."""
    found: float = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for folder in _folders("cpu", groups, mine):
        match _numbers(folder / "cpu.max") or [
            *_numbers(folder / "cpu.cfs_quota_us"),
            *_numbers(folder / "cpu.cfs_period_us"),
        ]:
            case [time, period] if time > 0 and period > 0:  # of a core, in each period
                found = min(found, time / period)
    return max(1, int(found))


def memory(groups: Path = GROUPS, mine: Path = MINE) -> int:
    """Returns the bytes of main memory that this process and those beside it may fill."""
    try:
        result = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        result = UNKNOWN
    for folder in _folders("memory", groups, mine):
        limits = _numbers(folder / "memory.max") + _numbers(folder / "memory.limit_in_bytes")
        result = min([result, *(int(limit) for limit in limits if limit > 0)])
    return result


def _folders(controller: str, groups: Path, mine: Path) -> Iterator[Path]:
    """Where limits stand: in this process's own group, and in all that hold it. The lowest one counts."""
    try:
        lines = mine.read_text(encoding="utf-8").splitlines()
    except OSError:  # no Linux
        return
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number != "0" and controller not in controllers.split(","):
            continue
        tops = [groups] if number == "0" else [groups / controllers, groups / controller]
        for top in tops:
            group = top / path.lstrip("/")
            yield group
            if group != top:  # seen from inside a container its own path may not exist: the top is its group
                yield from (folder for folder in group.parents if folder.is_relative_to(top))


def _numbers(file: Path) -> list[float]:
    """The numbers of a file; `max` (no limit) is 0, and what cannot be read is nothing."""
    with suppress(OSError, ValueError):
        return [0.0 if word == "max" else float(word) for word in file.read_text(encoding="utf-8").split()]
    return []
