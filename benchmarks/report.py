"""What every benchmark ends with: a table for people, and one line of JSON for programs."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import torch

Goals = dict[str, tuple[str, float]]


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        model = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model
        )
        flags = next((line.split() for line in lines if line.startswith("flags")), [])
        model += "".join(f" {f}" for f in ("avx512_bf16", "amx_bf16") if f in flags)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": model,
        "cores": cores,
        "threads": torch.get_num_threads(),
        "used_as": torch.backends.cpu.get_cpu_capability(),  # AVX2 also where it is told to act so
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def table(rows: list[dict[str, object]]) -> None:
    """Prints rows with aligned columns."""
    columns = list(rows[0])
    cells = [columns] + [[_text(row[c]) for c in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        print(
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
        )


def finish(name: str, figures: dict[str, float], goals: Goals) -> bool:
    """Prints the goals, then the JSON line. Returns whether all were met."""
    print()
    for goal, (sign, bound) in goals.items():
        met = _met(figures[goal], sign, bound)
        print(f"{'met   ' if met else 'NOT met'} {goal}: {figures[goal]:.3g} {sign} {bound:g}")
    met = all(_met(figures[goal], *bound) for goal, bound in goals.items())
    line = {
        "benchmark": name,
        "machine": machine(),
        "figures": {k: round(v, 4) for k, v in figures.items()},
        "goals": goals,
        "met": met,
    }
    print(json.dumps(line))
    return met


def _met(value: float, sign: str, bound: float) -> bool:
    return value <= bound if sign == "<=" else value >= bound


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
