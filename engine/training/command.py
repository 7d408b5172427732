"""What the commands that make shipped models have in common."""

from __future__ import annotations

import argparse
from pathlib import Path


def places(description: str | None) -> argparse.ArgumentParser:
    """Where the models go (`--into`), and where an interrupted training lies (`--work`)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--into", type=Path, default=Path("checkpoints"))
    parser.add_argument(
        "--work",
        type=Path,
        default=None,
        help="where the resumable state lies (default: the user's cache folder)",
    )
    return parser
