"""Holds the runs of several servers: `python -m engine.service.serve`, with GLASSFORMER_RUNS and
GLASSFORMER_SECRET, the servers' GLASSFORMER_PROFILE and, if wanted, GLASSFORMER_RAY. Ends at Ctrl-C or
SIGTERM, with every training.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

from engine.errors import GlassformerError
from engine.service import profiles
from engine.service.secret import SECRET
from engine.service.shared import VARIABLE, Desk, made, place


def main() -> None:
    """Serves until it is told to end. Exits with a sentence where it cannot."""
    import torch

    torch.set_num_threads(1)  # a thread that ran a multi-threaded operation would slow the others down
    try:
        found = place()
        if found is None:
            raise SystemExit(f"Name host and port in {VARIABLE}, and a secret in {SECRET}.")
        profile = profiles.current()
        desk = Desk(*found, lambda address: made(profile, address))
    except (GlassformerError, OSError) as error:
        raise SystemExit(str(error)) from error

    def end(number: int, frame: FrameType | None) -> None:
        desk.close()
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    desk.serve()


if __name__ == "__main__":
    main()
