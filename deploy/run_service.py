"""The process that holds the runs of several servers on one machine, which deploy/servers.py starts:
`python -m deploy.run_service FOLDER`. Servers find its socket in the folder, which nobody else may enter.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import torch

from engine.errors import RunError
from runs import profiles
from runs.memory import share_memory
from runs.service import RunService, serve
from ui.operate import log


def main() -> None:
    """Holds the runs until this process is told to end; then ends every training."""
    torch.set_num_threads(1)  # a thread that ran a multi-threaded operation would slow the others down
    share_memory()
    log.arrange()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        service = RunService(profiles.current())
    except RunError as error:
        raise SystemExit(str(error)) from error
    try:
        serve(service, Path(sys.argv[1]))
    except OSError as error:
        raise SystemExit(f"The runs cannot be served in {sys.argv[1]}: {error.strerror or error}") from error
    finally:
        service.manager.close()


if __name__ == "__main__":
    main()
