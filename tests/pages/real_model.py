"""What the tests of pages with the real model share: its name in the bar, and why they are skipped without it."""

import pytest

from studies.weights.pretrained import sources
from ui import background_jobs

REAL = "pretrained-smollm2-135m"
carried = pytest.mark.skipif(
    sources.find("smollm2-135m") is None,
    reason="SmolLM2's carrier (requirements-models.txt) is not installed",
)


def leave_nothing_running() -> None:
    """Ends what a page began to measure in a thread and nobody waits for any more: it would slow other tests,
    and a thread within PyTorch when Python ends is an abort.
    """
    for job in list(background_jobs._server._jobs.values()):
        job.cancel()
    for job in list(background_jobs._server._jobs.values()):
        assert job.wait(60)
    background_jobs._server = background_jobs.Jobs()
