"""Options and facts that the commands for shipped models share."""

from __future__ import annotations

import argparse
import os
import platform
from pathlib import Path

import torch


def places(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser with the folder of the models (`--into`) and of interrupted trainings (`--work`)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--into", type=Path, default=Path("checkpoints"))
    parser.add_argument(
        "--work",
        type=Path,
        default=None,
        help="where the resumable state lies (default: the user's cache folder)",
    )
    return parser


def machine() -> dict[str, str | int]:
    """Returns the machine and the versions, to be stored beside a result."""
    return {
        "processor": processor(),
        "cores": os.cpu_count() or 0,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def processor() -> str:
    """Returns the graphics card where there is one, else the processor, by its maker's name."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
